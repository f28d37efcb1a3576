//! Metrics and timings as tables and as JSON.
//!
//! Scripts rely on the JSON keys: names and order do not change, and unknown values are null.

use std::io::{self, Write};

use elias::insight::Reliability;
use elias::metrics::{Decile, Metrics};
use serde::Serializer;
use serde_json::{Value, json};

use crate::measuring::N_RELIABLE;
use crate::ui::count::count;
use crate::ui::table::Table;

/// The cut-off of recall by label frequency.
pub(crate) const DECILE_K: usize = 100;

/// Measured figures, ready to print.
pub(crate) struct Figures {
    pub(crate) metrics: Metrics,
    /// Recall by label frequency, if requested.
    pub(crate) deciles: Option<Vec<Decile>>,
    pub(crate) n_labels: usize,
    /// How well the probabilities of the best answers match the truth, if the model is calibrated.
    pub(crate) reliability: Option<Reliability>,
    /// How long predictions took, if they were made here.
    pub(crate) timing: Option<Timing>,
}

/// How long predictions take, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// Per point, in batches on all threads.
    pub(crate) ms_per_point: f64,
    /// Median and 99th percentile per query, one text at a time on one thread. None if not measured.
    pub(crate) ms_per_query: Option<[f64; 2]>,
}

impl Figures {
    /// Writes tables.
    pub(crate) fn write_table(&self, out: &mut impl Write) -> io::Result<()> {
        write_metrics(out, &self.metrics)?;
        writeln!(
            out,
            "\n{}, {} skipped without true labels, {}",
            count(self.metrics.n_points(), "point"),
            self.metrics.n_skipped(),
            count(self.n_labels, "label")
        )?;
        if let Some(timing) = &self.timing {
            write!(out, "{:.3} ms per point in batches", timing.ms_per_point)?;
            if let Some([p50, p99]) = timing.ms_per_query {
                write!(out, "; {p50:.3} ms per single query (p99 {p99:.3} ms)")?;
            }
            writeln!(out)?;
        }
        if let Some(reliability) = &self.reliability {
            write_reliability(out, reliability)?;
        }
        let Some(deciles) = &self.deciles else {
            return Ok(());
        };
        writeln!(
            out,
            "\nrecall@{DECILE_K} by label frequency, most frequent first"
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
    pub(crate) fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        let metrics = &self.metrics;
        let mut entries: Vec<(String, Value)> = Vec::new();
        for (family, ks) in [
            ("p", &[1, 3, 5][..]),
            ("ndcg", &[1, 3, 5]),
            ("psp", &[1, 3, 5]),
            ("r", &[1, 3, 5, 10, 20, 100]),
        ] {
            for k in ks {
                let name = format!("{family}@{k}");
                let value = metrics.get(&name);
                entries.push((name, json!(value)));
            }
        }
        entries.push(("n_points".into(), json!(metrics.n_points())));
        entries.push(("n_skipped".into(), json!(metrics.n_skipped())));
        entries.push(("n_labels".into(), json!(self.n_labels)));
        let query = self.timing.and_then(|timing| timing.ms_per_query);
        for (name, value) in [
            (
                "ms_per_point",
                self.timing.map(|timing| timing.ms_per_point),
            ),
            ("ms_per_query_p50", query.map(|[p50, _]| p50)),
            ("ms_per_query_p99", query.map(|[_, p99]| p99)),
        ] {
            entries.push((name.into(), json!(value)));
        }
        if let Some(reliability) = &self.reliability {
            let bins = reliability.bins.iter().map(|bin| {
                json!({
                    "n_answers": bin.n_answers,
                    "mean_probability": bin.mean_probability,
                    "relevant_share": bin.relevant_share,
                })
            });
            let error = reliability.expected_calibration_error();
            entries.push((format!("ece@{N_RELIABLE}"), json!(error)));
            entries.push(("reliability".into(), bins.collect()));
        }
        if let Some(deciles) = &self.deciles {
            let deciles = deciles.iter().map(|decile| {
                json!({
                    "n_labels": decile.n_labels,
                    "most_points": decile.most_points,
                    "fewest_points": decile.fewest_points,
                    "n_pairs": decile.n_pairs,
                    "n_found": decile.n_found,
                    "r@100": decile.recall(),
                    "contribution": decile.contribution,
                })
            });
            entries.push(("by_decile".into(), deciles.collect()));
        }
        // Serialised from a list, a map keeps the order of the list.
        let mut serializer = serde_json::Serializer::pretty(&mut *out);
        serializer
            .collect_map(entries.iter().map(|(name, value)| (name, value)))
            .map_err(io::Error::from)?;
        writeln!(out)
    }
}

/// Predicted probability and share of correct answers, per bin.
fn write_reliability(out: &mut impl Write, reliability: &Reliability) -> io::Result<()> {
    let error = reliability.expected_calibration_error();
    writeln!(
        out,
        "\nprobabilities of the {N_RELIABLE} best answers: expected calibration error {error:.4}"
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

/// One row per family, one column per cut-off.
pub(crate) fn write_metrics(out: &mut impl Write, metrics: &Metrics) -> io::Result<()> {
    let ks = [1, 3, 5, 10, 20, 100];
    let mut table =
        Table::new(std::iter::once("%".to_string()).chain(ks.iter().map(|k| format!("@{k}"))));
    for (name, key) in [("P", "p"), ("nDCG", "ndcg"), ("PSP", "psp"), ("R", "r")] {
        let values = ks.iter().map(|k| metrics.get(&format!("{key}@{k}")));
        let cells = values.map(|value| value.map_or(String::new(), |value| format!("{value:.2}")));
        table.row(std::iter::once(name.to_string()).chain(cells));
    }
    table.write(out)
}
