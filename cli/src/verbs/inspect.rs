//! `elias inspect`: describes a model and the state of its index.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use elias::insight::{IndexHealth, Inspection};
use elias::internals::size;
use elias::{Config, Event, LabelId, Predictor};

use crate::models;
use crate::ui::console::Console;
use crate::ui::count::count;
use crate::ui::table::Table;
use crate::ui::training::milestone;

/// Describe a model and the state of its index
///
/// Prints sizes, settings, the training history, and the state of the index: cluster sizes, edges, edge scores, labels
/// in several clusters, labels that cannot be reached (must be 0), and what remains of the stage-1 clusters.
#[derive(Args)]
pub(crate) struct Inspect {
    /// The model
    model: PathBuf,
    /// Check every byte of the model first
    #[arg(long)]
    verify: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Inspect {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let predictor = if self.verify {
            let verified = Predictor::verify(&self.model).context("while checking the model")?;
            console.info("all files match the manifest");
            verified
        } else {
            models::load(&self.model)?
        };
        let inspection = predictor.inspect().with_files(&self.model)?;
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &inspection)?;
            writeln!(out)?;
        } else {
            write_tables(&mut out, &self.model, &inspection, &predictor)?;
        }
        out.flush()?;
        Ok(())
    }
}

fn write_tables(
    out: &mut impl Write,
    path: &Path,
    inspection: &Inspection,
    predictor: &Predictor,
) -> io::Result<()> {
    let plan = predictor.plan();
    let counts = plan.counts();
    let mut table = Table::new([path.display().to_string(), String::new()]);
    let mut row = |name: &str, value: String| table.row([name.to_string(), value]);
    row(
        "written by",
        inspection.written_by.clone().unwrap_or_default(),
    );
    let version = inspection.format_version.map(|version| version.to_string());
    row("format version", version.unwrap_or_default());
    let n_bytes = inspection.bytes.unwrap_or_default();
    row("size on disk", size(n_bytes as usize));
    row(
        "takes",
        if inspection.takes_texts {
            "texts"
        } else {
            "features"
        }
        .into(),
    );
    row("members", inspection.n_members.to_string());
    row("parts", inspection.parts.join(", "));
    row("training points", inspection.n_points.to_string());
    row("labels", counts.n_labels.to_string());
    let n_by_text = predictor.labels().len() - predictor.n_trained_labels();
    let all = (0..predictor.labels().len() as u32).map(LabelId);
    let n_retired = all.filter(|&label| predictor.is_retired(label)).count();
    for (name, n_labels) in [
        ("labels known by name only", n_by_text),
        ("removed or merged labels", n_retired),
    ] {
        if n_labels > 0 {
            row(name, n_labels.to_string());
        }
    }
    row("words or features", counts.n_features.to_string());
    if counts.n_pairs > 0 {
        row("pairs of words", counts.n_pairs.to_string());
    }
    row("encoder dimensions", plan.config().encoder.dim.to_string());
    row("clusters C", plan.n_clusters().to_string());
    row(
        "edges per cluster, at most (kappa)",
        plan.kappa().to_string(),
    );
    row(
        "beam, shortlist",
        format!("{}, {}", plan.beam_size(), plan.shortlist_size()),
    );
    row("seed", plan.config().train.seed.to_string());
    table.write(out)?;
    write_sizes(out, inspection)?;
    write_history(out, inspection, predictor.history())?;
    for (member_idx, health) in inspection.index.iter().enumerate() {
        let of = match predictor.n_members() {
            1 => String::new(),
            n => format!(" of member {} of {n}", member_idx + 1),
        };
        write_health(out, &of, health, &inspection.overlap_cutoffs)?;
    }
    let changed = Config::default().differences(plan.config());
    if !changed.is_empty() {
        writeln!(out, "\nsettings that differ from the defaults")?;
        for difference in changed {
            writeln!(out, "  {difference}")?;
        }
    }
    Ok(())
}

/// The bytes of each part, the largest first; members of an ensemble together.
fn write_sizes(out: &mut impl Write, inspection: &Inspection) -> io::Result<()> {
    let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, bytes) in inspection.files.iter().flatten() {
        let stem = name.split('.').next().unwrap_or(name);
        let part = stem.trim_end_matches(|c: char| c.is_ascii_digit());
        *sizes.entry(part.trim_end_matches('-')).or_default() += bytes;
    }
    let mut sizes: Vec<(&str, u64)> = sizes.into_iter().collect();
    sizes.sort_by_key(|&(part, bytes)| (std::cmp::Reverse(bytes), part));
    writeln!(out, "\nsizes")?;
    let mut table = Table::new(["part", "size"]);
    for (part, bytes) in sizes {
        table.row([part.to_string(), size(bytes as usize)]);
    }
    table.write(out)
}

fn write_history(
    out: &mut impl Write,
    inspection: &Inspection,
    history: &[Event],
) -> io::Result<()> {
    writeln!(out, "\ntraining")?;
    let mut table = Table::new(["stage", "epochs", "first loss", "last loss"]);
    let curves = &inspection.training;
    for curve in curves {
        let loss =
            |at: Option<&[f64; 4]>| at.map_or(String::new(), |loss| format!("{:.3}", loss[0]));
        table.row([
            curve.name(curves),
            curve.losses.len().to_string(),
            loss(curve.losses.first()),
            loss(curve.losses.last()),
        ]);
    }
    table.write(out)?;
    for event in history {
        if let Some(line) = milestone(event) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

fn write_health(
    out: &mut impl Write,
    of: &str,
    health: &IndexHealth,
    cutoffs: &[f64],
) -> io::Result<()> {
    writeln!(out, "\nindex{of}")?;
    let mut table = Table::new(["", "minimum", "median", "maximum"]);
    let cells = |name: &str, [low, mid, high]: [usize; 3]| {
        [
            name.to_string(),
            low.to_string(),
            mid.to_string(),
            high.to_string(),
        ]
    };
    table.row(cells("edges per cluster", health.edges_of_cluster));
    let assigned = format!(
        "labels per cluster (edge score > {:.2})",
        health.assigned_above
    );
    table.row(cells(&assigned, health.labels_of_cluster));
    table.write(out)?;
    writeln!(out, "{}", count(health.n_edges, "edge"))?;
    writeln!(
        out,
        "{} cannot be reached (must be 0)",
        count(health.n_unreachable, "label")
    )?;
    let several = health.n_in_several_clusters();
    let share = 100.0 * several as f64 / health.n_labels.max(1) as f64;
    writeln!(
        out,
        "{} ({share:.1} %) in several clusters",
        count(several, "label")
    )?;

    writeln!(out, "\nedges by score")?;
    let most = health.histogram.iter().copied().max().unwrap_or(1).max(1);
    let n_bins = health.histogram.len() as f64;
    for (bin, &count) in health.histogram.iter().enumerate() {
        let bar = "#".repeat((40 * count).div_ceil(most));
        let low = bin as f64 / n_bins;
        writeln!(out, "{low:.2}-{:.2} {count:>9} {bar}", low + 1.0 / n_bins)?;
    }
    match &health.stage1_overlap {
        None => writeln!(out, "\nthe model does not contain the stage-1 clusters")?,
        Some(overlap) => {
            writeln!(
                out,
                "\nremaining stage-1 edges in percent, by minimum edge score"
            )?;
            let mut table = Table::new(cutoffs.iter().map(|cutoff| cutoff.to_string()));
            table.row(overlap.iter().map(|percent| format!("{percent:.1}")));
            table.write(out)?;
        }
    }
    writeln!(out, "\nclusters per label, by decile of label frequency")?;
    let mut table = Table::new((1..=10).map(|decile| decile.to_string()));
    table.row(
        health
            .clusters_by_decile
            .iter()
            .map(|mean| format!("{mean:.2}")),
    );
    table.write(out)
}
