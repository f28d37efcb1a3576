//! `elias prune`: a smaller model without the weak edges of its index.

use std::path::PathBuf;

use clap::Args;
use elias::insight::{Cut, prune};

use crate::models;
use crate::ui::console::{Console, Misuse};

/// Remove weak edges from a model's index
///
/// An edge goes if its score is below --threshold, or if it is not among the --top-k strongest of its cluster. Every
/// label keeps its strongest edge, so none becomes unreachable. `elias report` shows the cost of each cut.
#[derive(Args)]
pub(crate) struct Prune {
    /// The model
    model: PathBuf,
    /// Where the pruned model goes
    #[arg(short, long, value_name = "MODEL2")]
    out: PathBuf,
    /// Remove edges with a lower score, 0 to 1
    #[arg(
        long,
        value_name = "T",
        conflicts_with = "top_k",
        required_unless_present = "top_k"
    )]
    threshold: Option<f32>,
    /// Keep this many edges per cluster
    #[arg(long, value_name = "N")]
    top_k: Option<usize>,
    /// Replace the model if there is one
    #[arg(long)]
    overwrite: bool,
}

impl Prune {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let cut = match (self.threshold, self.top_k) {
            (_, Some(k)) => Cut::TopK(k),
            (Some(threshold), None) if (0.0..=1.0).contains(&threshold) => {
                Cut::Threshold(threshold)
            }
            (threshold, None) => {
                let found = threshold.unwrap_or(f32::NAN);
                return Err(Misuse(format!("--threshold {found}: expected 0 to 1")).into());
            }
        };
        let mut predictor = models::load(&self.model)?;
        let n_labels = predictor.labels().len();
        for (member_idx, pruned) in prune(&mut predictor, cut)?.iter().enumerate() {
            console.say(format_args!(
                "member {}: {} of {} edges removed ({:.2} %); {} of {n_labels} labels kept only \
                 because their strongest edge stays",
                member_idx + 1,
                pruned.n_removed,
                pruned.n_edges,
                100.0 * pruned.n_removed as f64 / pruned.n_edges.max(1) as f64,
                pruned.n_rescued,
            ));
            console.say(format_args!(
                "{} labels cannot be reached",
                pruned.n_unreachable
            ));
        }
        models::save(&predictor, &self.out, self.overwrite)?;
        console.say(format_args!("the model is in {}", self.out.display()));
        Ok(())
    }
}
