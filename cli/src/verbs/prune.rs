//! `elias prune`: removes weak edges from the index of a model.

use std::path::PathBuf;

use clap::Args;
use elias::insight::{Cut, LostLabels, Pruning, RemovedShare};

use crate::ui::console::{Console, Misuse};
use crate::ui::count::count;
use crate::{models, outputs};

/// Remove weak edges from a model's index
///
/// Removes edges with a score below --threshold, or all but the --top-k strongest edges of each cluster. Every label
/// keeps its strongest edge, so none becomes unreachable, unless --strict is given. `elias report` shows what each cut
/// costs.
#[derive(Args)]
pub(crate) struct Prune {
    /// The model
    model: PathBuf,
    /// Directory to write the pruned model to
    #[arg(short, long, value_name = "MODEL2")]
    out: PathBuf,
    /// Remove edges with a lower score (0 to 1)
    #[arg(
        long,
        value_name = "T",
        conflicts_with = "top_k",
        required_unless_present = "top_k"
    )]
    threshold: Option<f32>,
    /// Edges to keep per cluster
    #[arg(long, value_name = "N")]
    top_k: Option<usize>,
    /// Cut the strongest edge of a label, too: a label without edges can no longer be found (as in the paper)
    #[arg(long)]
    strict: bool,
    /// Spread the removed edges' share of the softmax over those left, which get stronger (as in the authors' code)
    #[arg(long)]
    renormalise: bool,
    /// Replace an existing model
    #[arg(long)]
    overwrite: bool,
}

impl Prune {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        outputs::check(&self.out, true, &[&self.model])?;
        if self.top_k == Some(0) {
            let problem = "--top-k: expected at least 1, found 0";
            return Err(Misuse(problem.into()).into());
        }
        let cut = match (self.threshold, self.top_k) {
            (_, Some(k)) => Cut::TopK(k),
            (Some(threshold), None) if (0.0..=1.0).contains(&threshold) => {
                Cut::Threshold(threshold)
            }
            (threshold, None) => {
                let found = threshold.unwrap_or(f32::NAN);
                return Err(Misuse(format!(
                    "--threshold: expected a number from 0 to 1, found {found}"
                ))
                .into());
            }
        };
        let mut predictor = models::load(&self.model)?;
        let n_labels = predictor.labels().len();
        let lost = if self.strict {
            LostLabels::Dropped
        } else {
            LostLabels::Rescued
        };
        let share = if self.renormalise {
            RemovedShare::Spread
        } else {
            RemovedShare::Kept
        };
        let pruning = Pruning { cut, lost, share };
        for (member_idx, pruned) in predictor.prune(pruning)?.iter().enumerate() {
            console.info(format_args!(
                "member {}: removed {} of {} ({:.2} %); {} of {} kept only by their strongest edge",
                member_idx + 1,
                pruned.n_removed,
                count(pruned.n_edges, "edge"),
                100.0 * pruned.n_removed as f64 / pruned.n_edges.max(1) as f64,
                pruned.n_rescued,
                count(n_labels, "label"),
            ));
            console.info(format_args!(
                "{} cannot be reached",
                count(pruned.n_unreachable, "label")
            ));
        }
        predictor.check_files()?;
        models::save(&predictor, &self.out, self.overwrite)?;
        console.info(format_args!("model written to {}", self.out.display()));
        Ok(())
    }
}
