//! Metrics and timings as tables and as JSON.

use std::io::{self, Write};

use elias::Measurements;
use elias::metrics::{Metrics, Reliability};

use crate::ui::count::count;
use crate::ui::table::Table;

/// Writes tables.
pub(crate) fn write_table(out: &mut impl Write, measured: &Measurements) -> io::Result<()> {
    write_metrics(out, &measured.metrics)?;
    write_thresholds(out, measured)?;
    writeln!(
        out,
        "\n{}, {} skipped without true labels, {}",
        count(measured.metrics.n_points(), "point"),
        measured.metrics.n_skipped(),
        count(measured.n_labels, "label")
    )?;
    if let Some(n_seen) = measured.n_seen.filter(|&n_seen| n_seen > 0) {
        writeln!(
            out,
            "the model was trained on {n_seen} of these texts: figures are too good for new ones"
        )?;
    }
    if let Some(ms_per_point) = measured.ms_per_point {
        write!(out, "{ms_per_point:.3} ms per point in batches")?;
        if let Some(times) = measured.query_times {
            let (p50, p99) = (times.p50, times.p99);
            write!(out, "; {p50:.3} ms per single query (p99 {p99:.3} ms)")?;
        }
        writeln!(out)?;
    }
    if let Some(reliability) = &measured.reliability {
        write_reliability(out, reliability)?;
    }
    let Some(deciles) = &measured.deciles else {
        return Ok(());
    };
    writeln!(
        out,
        "\nrecall@{} by label frequency, most frequent first",
        Measurements::DECILE_K
    )?;
    let mut table = Table::new([
        "decile",
        "labels",
        "training points",
        "true pairs",
        "recall",
        "share of R",
    ]);
    for (decile_idx, decile) in deciles.iter().enumerate() {
        table.row([
            (decile_idx + 1).to_string(),
            decile.n_labels.to_string(),
            format!("{}-{}", decile.most_points, decile.fewest_points),
            decile.n_pairs.to_string(),
            format!("{:.2}", decile.recall()),
            format!("{:.2}", decile.contribution),
        ]);
    }
    table.write(out)
}

/// Writes all keys in their order; what predictions alone cannot tell is null.
pub(crate) fn write_json(out: &mut impl Write, measured: &Measurements) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, measured)?;
    writeln!(out)
}

/// Predicted probability and share of correct answers, per bin.
fn write_reliability(out: &mut impl Write, reliability: &Reliability) -> io::Result<()> {
    let error = reliability.expected_calibration_error();
    writeln!(
        out,
        "\nprobabilities of the {} best answers: expected calibration error {error:.4}",
        Measurements::N_RELIABLE
    )?;
    let mut table = Table::new(["answers", "probability", "correct"]);
    for bin in reliability.bins.iter().filter(|bin| bin.n_answers > 0) {
        table.row([
            bin.n_answers.to_string(),
            format!("{:.3}", bin.mean_probability),
            format!("{:.3}", bin.relevant_share),
        ]);
    }
    table.write(out)
}

/// One row per family, one column per cut-off, without what is not measured.
pub(crate) fn write_metrics(out: &mut impl Write, metrics: &Metrics) -> io::Result<()> {
    let cut_offs = metrics.cut_offs();
    let families = [
        ("P", Metrics::precision as fn(&_, _) -> Option<f64>),
        ("nDCG", Metrics::ndcg),
        ("PSP", Metrics::psp),
        ("R", Metrics::recall),
        ("F1", Metrics::f1),
        ("F1 per point", Metrics::point_f1),
    ];
    let mut ks = [cut_offs.ranked(), cut_offs.recall()].concat();
    ks.sort_unstable();
    ks.dedup();
    ks.retain(|&k| {
        families
            .iter()
            .any(|(_, value)| value(metrics, k).is_some())
    });
    let mut table =
        Table::new(std::iter::once("%".to_string()).chain(ks.iter().map(|k| format!("@{k}"))));
    for (name, value) in families {
        let values: Vec<Option<f64>> = ks.iter().map(|&k| value(metrics, k)).collect();
        if values.iter().all(Option::is_none) {
            continue;
        }
        let cells = values.iter().map(|value| {
            let cell = value.map(|value| format!("{value:.2}"));
            cell.unwrap_or_default()
        });
        table.row(std::iter::once(name.to_string()).chain(cells));
    }
    table.write(out)?;
    for (name, value) in [
        ("R-precision", metrics.r_precision()),
        ("average recall (R@5, 10, …, 50)", metrics.average_recall()),
    ] {
        if let Some(value) = value {
            writeln!(out, "{name} {value:.2}")?;
        }
    }
    Ok(())
}

/// All answers at the best threshold, and at the one that was asked for.
fn write_thresholds(out: &mut impl Write, measured: &Measurements) -> io::Result<()> {
    let header = [
        "answers of at least",
        "precision",
        "recall",
        "micro F1",
        "macro F1",
    ];
    let mut table = Table::new(header);
    let (best, asked) = (measured.at_best_threshold, measured.at_threshold);
    for (at, remark) in [(best, " (best F1)"), (asked, "")] {
        let Some(at) = at else { continue };
        let figures = [at.precision, at.recall, at.micro_f1, at.macro_f1];
        let cells = figures.map(|figure| format!("{figure:.2}"));
        let threshold = format!("{:.2}{remark}", at.threshold);
        table.row(std::iter::once(threshold).chain(cells));
    }
    if best.is_none() && asked.is_none() {
        return Ok(());
    }
    writeln!(out)?;
    table.write(out)
}
