//! The plots of a report.

use super::data::{PruneRow, ReportData};
use crate::insight::svg::{Axis, Marks, Plot, Point, Spread};
use crate::insight::{
    BEAM_SIZES, OVERLAP_CUTOFFS, RecallBySize, SHORTLIST_SIZES, TrainingCurves, rates_by_epoch,
};
use crate::metrics::AtThreshold;

/// All plots.
pub(super) fn all(data: &ReportData) -> Vec<(&'static str, String)> {
    let mut plots = vec![
        ("recall", recall(data)),
        ("recall-by-decile", recall_by_decile(data)),
        ("shortlist-recall", shortlist_recall(data)),
        ("shortlist-recall-by-beam", shortlist_recall_by_beam(data)),
        ("label-frequencies", frequencies(data)),
        ("edge-scores", edge_histogram(data)),
        ("edge-weights-by-rank", edge_ranks(data)),
        ("true-label-scores", score_spread(data)),
        ("clusters-by-decile", clusters_by_decile(data)),
        ("learning-rates", rates(data)),
    ];
    let optional = [
        (
            "thresholds",
            data.test
                .thresholds
                .as_ref()
                .map(|known| thresholds(&known.curve, "probability or score")),
        ),
        ("reliability", reliability(data)),
        ("pruning", pruning(data)),
        ("stage1-overlap", overlap(data)),
        ("validation", validations(data)),
    ];
    plots.extend(
        optional
            .into_iter()
            .filter_map(|(name, svg)| Some((name, svg?))),
    );
    let names = ["loss", "shortlist-loss", "labels-scored"];
    plots.extend(names.into_iter().zip(losses(data)));
    plots
}

fn deciles() -> Axis {
    Axis::names(
        "decile of label frequency, most frequent first",
        (1..=10).map(|decile| decile.to_string()),
    )
}

/// The values at x = `first`, `first` + 1 and so on.
fn numbered(first: f64, values: impl IntoIterator<Item = f64>) -> Vec<Point> {
    let values = values.into_iter().enumerate();
    values
        .map(|(at, value)| Point::new(first + at as f64, value))
        .collect()
}

/// Precision, recall and F1 of all answers of at least a threshold.
pub(super) fn thresholds(curve: &[AtThreshold], kind: &str) -> String {
    let line = |value: fn(&AtThreshold) -> f64| {
        let points = curve.iter();
        Marks::Line(
            points
                .map(|at| Point::new(f64::from((at.threshold * 100.0).round()) / 100.0, value(at)))
                .collect(),
        )
    };
    Plot::new(
        "quality against the threshold",
        Axis::linear(&format!("least {kind} of an answer"), 0.0, 1.0),
        Axis::linear("%", 0.0, 100.0),
    )
    .with("precision", line(|at| at.precision))
    .with("recall", line(|at| at.recall))
    .with("F1", line(|at| at.micro_f1))
    .draw()
}

/// Recall against the size of the prediction set.
pub(super) fn recall(data: &ReportData) -> String {
    let stages = shown_stages(data);
    let values = stages.iter().flat_map(|stage| &stage.recall);
    let low = values
        .clone()
        .fold(100.0, |low: f64, &value| low.min(value));
    let high = values.fold(0.0, |high: f64, &value| high.max(value));
    let mut plot = Plot::new(
        "recall against prediction set size",
        Axis::log("predictions k", 1.0, 100.0),
        Axis::linear(
            "recall@k, %",
            (low / 10.0).floor() * 10.0,
            (high / 10.0).ceil() * 10.0,
        ),
    );
    for stage in stages {
        let points = numbered(1.0, stage.recall.iter().copied());
        plot = plot.with(&stage.stage, Marks::Line(thinned(points)));
    }
    plot.draw()
}

/// Fixed clusters where they are given, stage 2 and the complete model.
fn shown_stages(data: &ReportData) -> Vec<&crate::insight::StageFigures> {
    let mut stages: Vec<_> = data.fixed.iter().chain(data.stage("stage2")).collect();
    if let Some(last) = data
        .test
        .stages
        .last()
        .filter(|last| last.stage != "stage2")
    {
        stages.push(last);
    }
    stages
}

/// About thirty points, evenly spread on a logarithmic axis.
fn thinned(points: Vec<Point>) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::new();
    let last = points.last().copied();
    for point in points {
        if kept.last().is_none_or(|last| point.x >= last.x * 1.15) {
            kept.push(point);
        }
    }
    kept.extend(last.filter(|last| kept.last() != Some(last)));
    kept
}

/// Recall@100 by decile.
pub(super) fn recall_by_decile(data: &ReportData) -> String {
    let mut plot = Plot::new(
        "recall@100 by label frequency",
        deciles(),
        Axis::linear("recall@100, %", 0.0, 100.0),
    );
    for stage in shown_stages(data) {
        plot = plot.with(
            &stage.stage,
            Marks::Bars(numbered(0.0, stage.recall_by_decile.iter().copied())),
        );
    }
    plot.draw()
}

/// Recall inside the shortlist against its size, with the widest beam.
pub(super) fn shortlist_recall(data: &ReportData) -> String {
    let sizes = SHORTLIST_SIZES.map(|size| size as f64);
    let mut plot = Plot::new(
        "recall inside the shortlist",
        Axis::log(
            "labels in the shortlist K",
            sizes[0],
            sizes[sizes.len() - 1],
        ),
        Axis::linear("true labels inside, %", 0.0, 100.0),
    );
    let line = |recall: &RecallBySize| {
        let points = sizes.iter().zip(recall);
        Marks::Line(points.map(|(&x, &y)| Point::new(x, y)).collect())
    };
    for index in &data.shortlist.indices {
        if let Some(widest) = index.by_beam.last() {
            plot = plot.with(&index.index, line(widest));
        }
    }
    plot.with("one against all", line(&data.shortlist.one_against_all))
        .draw()
}

/// Recall inside the index's own shortlist against its size, by beam.
pub(super) fn shortlist_recall_by_beam(data: &ReportData) -> String {
    let names = BEAM_SIZES.map(|size| size.to_string());
    let mut plot = Plot::new(
        "recall inside the shortlist by beam",
        Axis::names("clusters searched b", names),
        Axis::linear("true labels inside, %", 0.0, 100.0),
    );
    let Some(index) = data.shortlist.indices.first() else {
        return plot.draw();
    };
    for (at, size) in SHORTLIST_SIZES.iter().enumerate() {
        let recall = index.by_beam.iter().map(|by_size| by_size[at]);
        let line = Marks::Line(numbered(0.0, recall));
        plot = plot.with(&format!("K = {size}"), line);
    }
    plot.draw()
}

/// Training points per label, most frequent first.
pub(super) fn frequencies(data: &ReportData) -> String {
    let mut counts: Vec<f64> = data
        .label_counts
        .iter()
        .map(|&count| f64::from(count.max(1)))
        .collect();
    counts.sort_by(|a, b| b.total_cmp(a));
    let n = counts.len() as f64;
    let most = counts.first().copied().unwrap_or(1.0);
    let points = numbered(1.0, counts);
    Plot::new(
        "training points per label",
        Axis::log("labels, most frequent first", 1.0, n.max(10.0)),
        Axis::log("training points", 1.0, most.max(10.0)),
    )
    .with("", Marks::Line(thinned(points)))
    .draw()
}

/// Distribution of the edge scores.
pub(super) fn edge_histogram(data: &ReportData) -> String {
    let histogram = &data.health.histogram;
    let n_bins = histogram.len() as f64;
    let total = histogram.iter().sum::<usize>().max(1) as f64;
    let shares: Vec<f64> = histogram
        .iter()
        .map(|&count| 100.0 * count as f64 / total)
        .collect();
    let most = shares.iter().copied().fold(0.0, f64::max);
    let names = (0..histogram.len()).map(|bin| format!("{:.2}", bin as f64 / n_bins));
    Plot::new(
        "edges by score",
        Axis::names("edge score (lower end of the bin)", names),
        Axis::linear("% of edges", 0.0, most),
    )
    .with("", Marks::Bars(numbered(0.0, shares)))
    .draw()
}

/// Mean normalised edge weight by rank within the cluster.
pub(super) fn edge_ranks(data: &ReportData) -> String {
    let weights = &data.health.weight_by_rank;
    let points = numbered(1.0, weights.iter().map(|weight| weight.max(1e-7)));
    let most = weights.first().copied().unwrap_or(1.0).max(1e-3);
    Plot::new(
        "edge weight by rank, mean over clusters",
        Axis::log(
            "edges of a cluster, strongest first",
            1.0,
            (points.len() as f64).max(10.0),
        ),
        Axis::log("normalised weight", 1e-7, most),
    )
    .with("", Marks::Line(thinned(points)))
    .draw()
}

/// Scores of true labels by decile.
pub(super) fn score_spread(data: &ReportData) -> String {
    let boxes = |of: fn(&crate::insight::ScoreSpread) -> [f64; 5]| {
        let filled = data
            .test
            .spread
            .iter()
            .enumerate()
            .filter(|(_, spread)| spread.n_pairs > 0);
        let boxes = filled.map(|(at, spread)| Spread {
            x: at as f64,
            percentiles: of(spread),
        });
        Marks::Boxes(boxes.collect())
    };
    let mut plot = Plot::new(
        "scores of true labels by label frequency",
        deciles(),
        Axis::linear("score", 0.0, 1.0),
    )
    .with("model p", boxes(|spread| spread.model));
    if data.stage("ranker").is_some() {
        plot = plot.with("ranker q", boxes(|spread| spread.ranker));
    }
    if data.stage("calibrated").is_some() {
        plot = plot.with("final score", boxes(|spread| spread.last));
    }
    plot.draw()
}

/// Share of correct answers against predicted probability; None without calibration.
pub(super) fn reliability(data: &ReportData) -> Option<String> {
    let reliability = data.test.reliability.as_ref()?;
    let bins = reliability.bins.iter().filter(|bin| bin.0 > 0);
    let points = bins
        .map(|&(_, probability, share)| Point::new(probability, share))
        .collect();
    let plot = Plot::new(
        "reliability of probabilities",
        Axis::linear("predicted probability", 0.0, 1.0),
        Axis::linear("share of correct answers", 0.0, 1.0),
    );
    let plot = plot.with("this model", Marks::Line(points));
    Some(
        plot.with(
            "ideal",
            Marks::Line(vec![Point::new(0.0, 0.0), Point::new(1.0, 1.0)]),
        )
        .draw(),
    )
}

/// Metrics against the share of edges removed.
pub(super) fn pruning(data: &ReportData) -> Option<String> {
    let pruning = data.pruning.as_ref()?;
    let rows = || pruning.by_threshold.iter().chain(&pruning.by_top_k);
    let fewest = rows().map(|row| row.removed).fold(100.0, f64::min);
    let mut plot = Plot::new(
        "metrics against the share of edges removed",
        Axis::linear("% of edges removed", (fewest / 10.0).floor() * 10.0, 100.0),
        Axis::linear(
            "%",
            0.0,
            rows().map(|row| row.metrics[3]).fold(10.0, f64::max) * 1.05,
        ),
    );
    for (name, rows) in [
        ("threshold", &pruning.by_threshold),
        ("top-k", &pruning.by_top_k),
    ] {
        for (metric, at) in [("P@1", 0), ("R@100", 3)] {
            let point = |row: &PruneRow| Point::new(row.removed, row.metrics[at]);
            plot = plot.with(
                &format!("{metric} by {name}"),
                Marks::Line(rows.iter().map(point).collect()),
            );
        }
    }
    Some(plot.draw())
}

/// Stage-1 edges that remain at each cut-off.
pub(super) fn overlap(data: &ReportData) -> Option<String> {
    let overlap = data.health.stage1_overlap.as_ref()?;
    let points = OVERLAP_CUTOFFS
        .into_iter()
        .zip(overlap.iter())
        .map(|(cutoff, percent)| Point::new(cutoff, *percent))
        .collect();
    let plot = Plot::new(
        "remaining stage-1 edges by edge score",
        Axis::linear("minimum edge score", 0.0, 1.0),
        Axis::linear("% of stage-1 edges", 0.0, 100.0),
    );
    Some(plot.with("", Marks::Line(points)).draw())
}

/// Clusters per label, by decile.
pub(super) fn clusters_by_decile(data: &ReportData) -> String {
    let means = &data.health.clusters_by_decile;
    let most = means.iter().copied().fold(0.0, f64::max);
    Plot::new(
        "clusters per label by label frequency",
        deciles(),
        Axis::linear("clusters per label", 0.0, most * 1.05),
    )
    .with("", Marks::Bars(numbered(0.0, means.iter().copied())))
    .draw()
}

/// Loss, shortlist loss and labels scored by epoch, one plot each.
pub(super) fn losses(data: &ReportData) -> Vec<String> {
    let curves = TrainingCurves::of(&data.description.history);
    let longest = curves
        .iter()
        .map(|curve| curve.losses.len())
        .max()
        .unwrap_or(0);
    if longest == 0 {
        return Vec::new();
    }
    let draw = |title: &str, at: usize| {
        let most = curves
            .iter()
            .flat_map(|curve| &curve.losses)
            .map(|loss| loss[at])
            .fold(0.0, f64::max);
        let mut plot = Plot::new(
            title,
            Axis::linear("epoch of the stage", 0.0, longest as f64),
            Axis::linear(title, 0.0, most),
        );
        for curve in &curves {
            let points = numbered(1.0, curve.losses.iter().map(|loss| loss[at]));
            let name = curve.name(&curves);
            plot = plot.with(&name, Marks::Line(points));
        }
        plot.draw()
    };
    vec![
        draw("loss per point", 0),
        draw("shortlist loss per point", 2),
        draw("labels scored per point", 3),
    ]
}

/// Learning rates over both stages.
pub(super) fn rates(data: &ReportData) -> String {
    let plan = &data.description.plan;
    let stages = rates_by_epoch(plan, 40);
    let epochs: Vec<f64> = plan
        .stages()
        .iter()
        .map(|stage| stage.epochs as f64)
        .collect();
    let all: Vec<(f64, [f32; 3])> = stages
        .iter()
        .zip([0.0, epochs[0]])
        .flat_map(|(stage, start)| {
            let points = stage.points.iter();
            points.map(move |point| (start + point.epoch, point.rates))
        })
        .collect();
    let most = all
        .iter()
        .flat_map(|(_, rates)| rates)
        .copied()
        .fold(0f32, f32::max);
    let mut plot = Plot::new(
        "learning rates",
        Axis::linear("epoch, stage 1 then stage 2", 0.0, epochs.iter().sum()),
        Axis::linear("learning rate", 0.0, f64::from(most)),
    );
    for (at, name) in ["encoder", "labels and edges", "clusters"]
        .iter()
        .enumerate()
    {
        let points = all
            .iter()
            .map(|(epoch, rates)| Point::new(*epoch, f64::from(rates[at])));
        plot = plot.with(name, Marks::Line(points.collect()));
    }
    plot.draw()
}

/// Validation metrics, if there are any.
pub(super) fn validations(data: &ReportData) -> Option<String> {
    let curves = TrainingCurves::of(&data.description.history);
    let first = curves
        .iter()
        .find(|curve| curve.phase == "stage 1")
        .map_or(0, |curve| curve.losses.len());
    let mut lines = [Vec::new(), Vec::new(), Vec::new()];
    for curve in curves.iter().filter(|curve| curve.member == 0) {
        let start = if curve.phase == "stage 2" { first } else { 0 };
        for (epoch, values) in &curve.validations {
            let x = (start + epoch) as f64;
            lines
                .iter_mut()
                .zip(values)
                .for_each(|(line, &value)| line.push(Point::new(x, value)));
        }
    }
    let last = lines[0]
        .iter()
        .map(|point: &Point| point.x)
        .fold(0.0, f64::max);
    if lines[0].is_empty() {
        return None;
    }
    let mut plot = Plot::new(
        "validation",
        Axis::linear("epoch, stage 1 then stage 2", 0.0, last),
        Axis::linear("%", 0.0, 100.0),
    );
    for (name, line) in ["P@1", "P@5", "R@100"].iter().zip(lines) {
        plot = plot.with(name, Marks::Line(line));
    }
    Some(plot.draw())
}
