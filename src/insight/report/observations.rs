//! The observations of the paper, and whether they hold for this model.

use super::data::{PruneRow, ReportData};
use super::wording::count;

/// Whether an observation holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Yes,
    No,
    /// The model or the data lacks what is needed.
    Unknown,
}

impl Holds {
    fn of(holds: bool) -> Self {
        if holds { Holds::Yes } else { Holds::No }
    }

    /// The outcome as text, and as a CSS class with dashes.
    pub(super) fn name(self) -> &'static str {
        match self {
            Holds::Yes => "holds",
            Holds::No => "differs",
            Holds::Unknown => "unknown",
        }
    }
}

/// One observation of the paper, and what this model shows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Observation {
    pub(super) claim: &'static str,
    pub(super) here: String,
    pub(super) outcome: Holds,
}

/// A finding in this model.
struct Finding {
    text: String,
    holds: bool,
}

/// The most edges that can be pruned without a loss.
pub(super) struct FreePruning {
    /// Edges removed, in percent.
    share: f64,
    pub(super) text: String,
}

/// A drop of P@1 and R@100, in points, that does not count as a loss.
const NO_LOSS: f64 = 0.2;

/// A claim of the paper, what this model shows of it, and why it may show nothing.
struct Claim(&'static str, Option<Finding>, &'static str);

const NO_FIXED: &str = "needs a model with fixed clusters of as many epochs to compare with";

/// All observations, in the order of the paper.
pub(super) fn observe(data: &ReportData) -> Vec<Observation> {
    let claims = quality_claims(data).into_iter().chain(index_claims(data));
    claims
        .map(|Claim(claim, finding, missing)| {
            let (here, outcome) = match finding {
                Some(Finding { text, holds }) => (text, Holds::of(holds)),
                None => (missing.to_owned(), Holds::Unknown),
            };
            Observation {
                claim,
                here,
                outcome,
            }
        })
        .collect()
}

/// Claims about the answers.
fn quality_claims(data: &ReportData) -> Vec<Claim> {
    let gain = |from, to, metrics: &[&str]| gain(data, from, to, metrics);
    vec![
        Claim(
            "Learning the index improves recall over fixed clusters (by up to 7 %)",
            gain("fixed", "stage2", &["r@10", "r@100"]),
            NO_FIXED,
        ),
        Claim(
            "It also improves precision (by up to 2.5 %)",
            gain("fixed", "stage2", &["p@1", "p@5"]),
            NO_FIXED,
        ),
        Claim(
            "The gain in recall is largest in the two most frequent deciles",
            head_gain(data),
            NO_FIXED,
        ),
        Claim(
            "The sparse ranker improves the top of the ranking",
            gain("stage2", "ranker", &["p@1", "p@5"]),
            "the model has no ranker",
        ),
        Claim(
            "Calibration improves on the plain product of the scores",
            gain("ranker", "calibrated", &["p@1", "psp@1"]),
            "the model is not calibrated",
        ),
        Claim(
            "An ensemble improves every metric",
            gain("calibrated", "ensemble", &["p@1", "p@5", "r@10", "r@100"]),
            "the model has one member",
        ),
    ]
}

/// Claims about the index.
fn index_claims(data: &ReportData) -> Vec<Claim> {
    vec![
        Claim(
            "Most of the edge weight of a cluster is on a few labels",
            concentration(data),
            "the edges are fixed",
        ),
        Claim(
            "The ranker underestimates rare labels; the scores of the model are more even",
            evenness(data),
            "the model has no ranker",
        ),
        Claim(
            "84 % of the edges can be pruned without hurting the model",
            most_pruned(data).map(|FreePruning { share, text }| Finding {
                text,
                holds: share >= 84.0,
            }),
            "the edges are fixed",
        ),
        Claim(
            "About 60 % of the stage-1 edges remain with good confidence",
            stage1_overlap(data),
            "the model does not contain the stage-1 clusters",
        ),
        Claim(
            "Frequent labels are assigned to more clusters than rare ones",
            Some(clusters_of_frequent_labels(data)),
            "",
        ),
        Claim(
            "Training points of labels in several clusters are more spread out",
            compactness(data),
            "needs the training data",
        ),
    ]
}

/// Gains in metrics between two stages.
fn gain(data: &ReportData, from: &str, to: &str, metrics: &[&str]) -> Option<Finding> {
    let stage = |name: &str| match name {
        "fixed" => data.fixed.as_ref(),
        _ => data.stage(name),
    };
    let (from, to) = (stage(from)?, stage(to)?);
    let gains: Vec<f64> = metrics
        .iter()
        .map(|&name| to.metrics[name] - from.metrics[name])
        .collect();
    let words = metrics
        .iter()
        .zip(&gains)
        .map(|(name, gain)| format!("{} {gain:+.2}", name.to_uppercase()));
    Some(Finding {
        text: words.collect::<Vec<_>>().join(", "),
        holds: gains.iter().all(|gain| *gain > 0.0),
    })
}

fn stage1_overlap(data: &ReportData) -> Option<Finding> {
    let overlap = data.health.stage1_overlap.as_ref()?;
    let cutoffs = &crate::insight::OVERLAP_CUTOFFS;
    let at = cutoffs.iter().position(|cutoff| *cutoff == 0.5);
    let percent = overlap[at.unwrap_or(0)];
    Some(Finding {
        text: format!("{percent:.1} % have a score of at least 0.5"),
        holds: (45.0..75.0).contains(&percent),
    })
}

fn clusters_of_frequent_labels(data: &ReportData) -> Finding {
    let means = &data.health.clusters_by_decile;
    let (head, tail) = (means[0], means[means.len() - 1]);
    Finding {
        text: format!("{head:.2} clusters per label in the first decile, {tail:.2} in the last"),
        holds: head > tail,
    }
}

fn head_gain(data: &ReportData) -> Option<Finding> {
    let (one, two) = (data.fixed.as_ref()?, data.stage("stage2")?);
    let gains: Vec<f64> = two
        .contribution_by_decile
        .iter()
        .zip(&one.contribution_by_decile)
        .map(|(a, b)| a - b)
        .collect();
    let head = gains[0] + gains[1];
    let rest: f64 = gains[2..].iter().sum();
    Some(Finding {
        text: format!("deciles 1 and 2 add {head:+.2} to R@100, the others {rest:+.2}"),
        holds: head > rest,
    })
}

fn concentration(data: &ReportData) -> Option<Finding> {
    data.health.beta?;
    let n_few = (data.health.n_labels / data.health.n_clusters.max(1)).max(1);
    let weights = &data.health.weight_by_rank;
    let few: f64 = weights.iter().take(n_few).sum();
    let median = data.health.edges_of_cluster[1];
    Some(Finding {
        text: format!(
            "{:.0} % of the weight is on the {n_few} strongest of {median} edges",
            100.0 * few
        ),
        holds: few > 0.5 && n_few * 2 < median,
    })
}

fn evenness(data: &ReportData) -> Option<Finding> {
    data.stage("ranker")?;
    // The first and the last decile with true labels.
    let ends = |of: fn(&crate::insight::ScoreSpread) -> f64| {
        let filled: Vec<f64> = data
            .test
            .spread
            .iter()
            .filter(|one| one.n_pairs > 0)
            .map(of)
            .collect();
        Some([*filled.first()?, *filled.last()?])
    };
    let [q_head, q_tail] = ends(|spread| spread.ranker[2])?;
    let [p_head, p_tail] = ends(|spread| spread.model[2])?;
    let ratio = |head: f64, tail: f64| tail / head.max(1e-9);
    Some(Finding {
        text: format!(
            "median score of true labels, first to last decile: ranker {q_head:.2} to {q_tail:.2}, model {p_head:.2} to {p_tail:.2}"
        ),
        holds: q_tail < q_head && ratio(q_head, q_tail) < ratio(p_head, p_tail),
    })
}

/// The most edges that can be pruned without a loss.
pub(super) fn most_pruned(data: &ReportData) -> Option<FreePruning> {
    let pruning = data.pruning.as_ref()?;
    let [p1, _, _, r100] = pruning.by_threshold.first()?.metrics;
    let rows = pruning.by_threshold.iter().chain(&pruning.by_top_k);
    let is_free =
        |row: &&PruneRow| row.metrics[0] >= p1 - NO_LOSS && row.metrics[3] >= r100 - NO_LOSS;
    let best = rows
        .filter(is_free)
        .max_by(|a, b| a.removed.total_cmp(&b.removed))?;
    let text = format!(
        "{:.1} % can be removed: P@1 {:+.2}, R@100 {:+.2}",
        best.removed,
        best.metrics[0] - p1,
        best.metrics[3] - r100
    );
    Some(FreePruning {
        share: best.removed,
        text,
    })
}

fn compactness(data: &ReportData) -> Option<Finding> {
    let bands = &data.train.as_ref()?.compactness;
    let bands: Vec<_> = bands
        .iter()
        .filter(|band| band.n_labels.iter().all(|&n| n >= 10))
        .collect();
    let first = bands.first()?;
    let n_so = bands
        .iter()
        .filter(|band| band.mean_length[1] < band.mean_length[0])
        .count();
    let text = format!(
        "in {n_so} of {}; for labels with {} to {} points, compactness {:.2} in one cluster and {:.2} in several",
        count(bands.len(), "frequency band"),
        first.fewest_points,
        first.most_points,
        first.mean_length[0],
        first.mean_length[1]
    );
    Some(Finding {
        text,
        holds: 2 * n_so > bands.len(),
    })
}
