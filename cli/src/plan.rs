//! The training plan as text: what will run, how much memory it needs, and about how long it takes.

use std::io::{self, Write};

use elias::config::{IndexMode, Plan, Refit, StagePlan};
use elias::internals::size;
use elias::{MemoryEstimate, PreparedTraining, Workload};

use crate::expected_time::ExpectedTime;
use crate::ui::count::count;
use crate::ui::table::Table;

/// The plan in one line.
pub(crate) fn summary(plan: &Plan, estimate: &MemoryEstimate) -> String {
    format!(
        "C {}, κ {}, beam {}, shortlist {}, d {}; about {} of memory",
        plan.n_clusters(),
        plan.kappa(),
        plan.beam_size(),
        plan.shortlist_size(),
        plan.config().encoder.dim,
        size(estimate.total())
    )
}

/// Writes the whole plan as tables.
pub(crate) fn write(
    out: &mut impl Write,
    prepared: &PreparedTraining,
    estimate: &MemoryEstimate,
) -> io::Result<()> {
    let plan = prepared.plan();
    let work = prepared.workload();
    let n_encoder_parameters = match work.n_transformer_parameters {
        Some(n_parameters) => n_parameters,
        None => n_bag_parameters(plan),
    };
    write_plan(out, plan, estimate, n_encoder_parameters, &work)
}

fn write_plan(
    out: &mut impl Write,
    plan: &Plan,
    estimate: &MemoryEstimate,
    n_encoder_parameters: usize,
    work: &Workload,
) -> io::Result<()> {
    let counts = plan.counts();
    let mut table = Table::new(["plan", ""]);
    let mut row = |name: &str, value: String| table.row([name.to_string(), value]);
    row("N: points with labels", counts.n_points.to_string());
    row("L: labels", counts.n_labels.to_string());
    row("words", counts.n_features.to_string());
    row("d: embedding size", plan.config().encoder.dim.to_string());
    row("C: clusters", plan.n_clusters().to_string());
    row("κ: edges per cluster", plan.kappa().to_string());
    row("β: scale of edge scores", format!("{:.1}", plan.beta()));
    row("b: clusters searched", plan.beam_size().to_string());
    row(
        "K: labels scored, at most",
        plan.shortlist_size().to_string(),
    );
    let stage = |stage: &StagePlan| {
        format!(
            "{} of {}",
            count(stage.epochs, "epoch"),
            count(work.points_per_epoch.div_ceil(stage.batch_size), "step")
        )
    };
    let config = plan.config();
    for (name, config) in ["stage 1", "stage 2"].iter().zip(plan.stages()) {
        row(name, stage(&config));
    }
    if config.ranker.enabled {
        let n_candidates = config.ranker.n_candidates.min(counts.n_labels);
        row(
            "ranker",
            format!("on the best {}", count(n_candidates, "label")),
        );
    }
    let calibration = match (plan.n_points_to_fit(), work.n_passes) {
        (0, _) => "none: there are too few points".to_owned(),
        (n_points, 0..=2) => format!("on at most {}", count(n_points, "point")),
        (n_points, n_passes) => {
            let n_folds = n_passes - 1;
            format!("on {}, in {n_folds} folds", count(n_points, "point"))
        }
    };
    if plan.recipe().final_score.is_fitted() {
        row("calibration", calibration);
    }
    let again = match work.refit {
        Refit::Nothing => None,
        Refit::Auto | Refit::Ranker => Some("the ranker"),
        Refit::Everything => Some("everything"),
    };
    if let Some(again) = again {
        row("trained again", format!("{again}, on all points"));
    }
    row("members", config.ensemble.members.to_string());
    let n_parameters = n_encoder_parameters + n_head_parameters(plan);
    row("parameters per member", n_parameters.to_string());
    table.write(out)?;
    writeln!(out)?;
    write_memory(out, estimate)?;
    writeln!(out)?;
    write_time(out, &ExpectedTime::measure(plan, work))
}

fn write_memory(out: &mut impl Write, estimate: &MemoryEstimate) -> io::Result<()> {
    let mut table = Table::new(["memory", ""]);
    for (name, n_bytes) in [
        ("program", estimate.program),
        ("data", estimate.data),
        ("features", estimate.features),
        ("clustering (before training)", estimate.clustering),
        ("parameters", estimate.parameters),
        ("AdamW moments", estimate.moments),
        ("step buffers", estimate.step),
        ("ranker (after training)", estimate.ranker),
        ("final scorer (after the ranker)", estimate.final_scorer),
        ("finished members", estimate.members),
    ] {
        table.row([name.to_string(), size(n_bytes)]);
    }
    table.row(["peak".to_string(), size(estimate.total())]);
    table.write(out)
}

fn write_time(out: &mut impl Write, time: &ExpectedTime) -> io::Result<()> {
    let phases = [
        ("transformer", time.transformer),
        ("stage 1", time.stages[0]),
        ("stage 2", time.stages[1]),
        ("ranker", time.ranker),
        ("final score", time.final_score),
        ("rest", time.rest),
    ];
    let some = phases.into_iter().filter(|(_, seconds)| *seconds > 0.0);
    let named: Vec<String> = some
        .map(|(name, seconds)| format!("{name} {}", format_duration(seconds)))
        .collect();
    let total = format_duration(time.total());
    writeln!(out, "time: about {total} ({})", named.join(", "))
}

fn n_bag_parameters(plan: &Plan) -> usize {
    let (n_words, dim) = (plan.counts().n_features, plan.config().encoder.dim);
    n_words * dim + dim
}

fn n_head_parameters(plan: &Plan) -> usize {
    let (counts, dim) = (plan.counts(), plan.config().encoder.dim);
    let n_edges = match plan.config().index.mode {
        IndexMode::Fixed | IndexMode::Ova => 0,
        IndexMode::Learned => plan.n_clusters() * plan.kappa(),
    };
    let rows = counts.n_labels + plan.n_clusters();
    rows * (dim + 1) + n_edges
}

/// A time in a suitable unit.
pub(crate) fn format_duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{:.0} s", s.max(1.0)),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use elias::config::{Config, DataCounts};

    #[test]
    fn the_plan_fits_80_columns_and_names_the_counts() {
        let counts = DataCounts {
            n_points: 51_213,
            n_labels: 28_484,
            n_features: 40_000,
            n_pairs: 0,
            n_parts: 0,
            embedding_dim: 0,
        };
        let plan = Config::default().resolve(counts).unwrap();
        let estimate = MemoryEstimate::default();
        let mut out = Vec::new();
        let work = Workload {
            points_per_epoch: 51_213 + 9_495,
            refit: Refit::Ranker,
            learns_label_texts: true,
            ..Workload::default()
        };
        write_plan(&mut out, &plan, &estimate, n_bag_parameters(&plan), &work).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
        for part in [
            "51213",
            "28484",
            "512",
            "557",
            "4 epochs of 238 steps",
            "trained again",
            "peak",
            "time: about",
        ] {
            assert!(out.contains(part), "{part}\n{out}");
        }
    }

    #[test]
    fn durations_have_a_suitable_unit() {
        assert_eq!(format_duration(0.2), "1 s");
        assert_eq!(format_duration(120.0), "2 min");
        assert_eq!(format_duration(7200.0), "2.0 h");
    }
}
