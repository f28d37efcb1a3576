//! What the paper observed on its data, and whether it is so here.

use super::data::{PruneRow, ReportData};

/// Whether an observation holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Holds,
    DoesNotHold,
    /// The model or the data lacks what it takes to tell.
    Unknown,
}

impl Verdict {
    fn of(holds: bool) -> Self {
        if holds {
            Verdict::Holds
        } else {
            Verdict::DoesNotHold
        }
    }

    /// In words.
    pub(super) fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::Unknown => "cannot be told",
        }
    }
}

/// One observation of the paper against this model.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Observation {
    pub(super) claim: &'static str,
    pub(super) here: String,
    pub(super) verdict: Verdict,
}

/// Points of P@1 and R@100 that count as no loss when edges are pruned.
const NO_LOSS: f64 = 0.2;

/// Every observation, in the order of the paper.
pub(super) fn observe(data: &ReportData) -> Vec<Observation> {
    let mut found = Vec::new();
    let mut tell = |claim: &'static str, told: Option<(String, bool)>, missing: &str| {
        let (here, verdict) = match told {
            Some((here, holds)) => (here, Verdict::of(holds)),
            None => (missing.to_owned(), Verdict::Unknown),
        };
        found.push(Observation {
            claim,
            here,
            verdict,
        });
    };
    let no_stage1 = "the model did not keep stage 1 (train.keep_stage1)";
    let gain = |from: &str, to: &str, metrics: &[&str]| {
        let (from, to) = (data.stage(from)?, data.stage(to)?);
        let gains: Vec<f64> = metrics
            .iter()
            .map(|&name| to.metrics[name] - from.metrics[name])
            .collect();
        let words = metrics
            .iter()
            .zip(&gains)
            .map(|(name, gain)| format!("{} {gain:+.2}", name.to_uppercase()));
        Some((
            words.collect::<Vec<_>>().join(", "),
            gains.iter().all(|gain| 0.0 < *gain),
        ))
    };
    tell(
        "Learning the index improves recall over the fixed clusters of stage 1 (by up to 7 %)",
        gain("stage1", "stage2", &["r@10", "r@100"]),
        no_stage1,
    );
    tell(
        "and precision too (by up to 2.5 %)",
        gain("stage1", "stage2", &["p@1", "p@5"]),
        no_stage1,
    );
    tell(
        "The gain in recall is largest in the two most frequent deciles",
        head_gain(data),
        no_stage1,
    );
    tell(
        "The sparse ranker improves the top of the ranking",
        gain("stage2", "ranker", &["p@1", "p@5"]),
        "the model has no ranker",
    );
    tell(
        "Calibration improves on the plain product of scores",
        gain("ranker", "calibrated", &["p@1", "psp@1"]),
        "the model is not calibrated",
    );
    tell(
        "An ensemble improves every metric",
        gain("calibrated", "ensemble", &["p@1", "p@5", "r@10", "r@100"]),
        "the model has one member",
    );
    tell(
        "Most of a cluster's edge weight lies on a few labels",
        concentration(data),
        "the edges are fixed",
    );
    tell(
        "The ranker underestimates rare labels; the model's own scores are more even",
        evenness(data),
        "the model has no ranker",
    );
    tell(
        "84 % of the edges can be pruned without hurting the model",
        most_pruned(data).map(|(share, words)| (words, 84.0 <= share)),
        "the edges are fixed",
    );
    let overlap = data.health.stage1_overlap.as_ref().map(|overlap| {
        let at = elias::insight::OVERLAP_CUTOFFS
            .iter()
            .position(|cutoff| *cutoff == 0.5);
        let left = overlap[at.unwrap_or(0)];
        (
            format!("{left:.1} % have a score of 0.5 or more"),
            (45.0..75.0).contains(&left),
        )
    });
    tell(
        "About 60 % of the stage-1 edges remain with good confidence",
        overlap,
        "the model does not know its stage-1 clusters",
    );
    let means = &data.health.clusters_by_decile;
    let (head, tail) = (means[0], means[means.len() - 1]);
    tell(
        "Frequent labels are assigned to more clusters than rare ones",
        Some((
            format!("{head:.2} clusters in the first decile, {tail:.2} in the last"),
            tail < head,
        )),
        "",
    );
    tell(
        "Training points of labels with several clusters are spread more widely",
        compact(data),
        "needs the training data",
    );
    found
}

fn head_gain(data: &ReportData) -> Option<(String, bool)> {
    let (one, two) = (data.stage("stage1")?, data.stage("stage2")?);
    let gains: Vec<f64> = two
        .contribution_by_decile
        .iter()
        .zip(&one.contribution_by_decile)
        .map(|(a, b)| a - b)
        .collect();
    let head = gains[0] + gains[1];
    let rest: f64 = gains[2..].iter().sum();
    Some((
        format!("deciles 1 and 2 add {head:+.2} to R@100, all others {rest:+.2}"),
        rest < head,
    ))
}

fn concentration(data: &ReportData) -> Option<(String, bool)> {
    data.health.beta?;
    let n_few = (data.health.n_labels / data.health.n_clusters.max(1)).max(1);
    let weights = &data.health.weight_by_rank;
    let few: f64 = weights.iter().take(n_few).sum();
    let median = data.health.edges_of_cluster[1];
    let words = format!(
        "{:.0} % of the weight lies on the {n_few} strongest of {median} edges",
        100.0 * few
    );
    Some((words, 0.5 < few && n_few * 2 < median))
}

fn evenness(data: &ReportData) -> Option<(String, bool)> {
    data.stage("ranker")?;
    let ends = |of: fn(&elias::insight::ScoreSpread) -> f64| {
        let filled: Vec<f64> = data
            .test
            .spread
            .iter()
            .filter(|one| 0 < one.n_pairs)
            .map(of)
            .collect();
        Some((*filled.first()?, *filled.last()?))
    };
    let (q_head, q_tail) = ends(|spread| spread.ranker[2])?;
    let (p_head, p_tail) = ends(|spread| spread.model[2])?;
    let words = format!(
        "median of true labels from first to last decile: ranker {q_head:.2} to {q_tail:.2}, model {p_head:.2} to {p_tail:.2}"
    );
    let ratio = |head: f64, tail: f64| tail / head.max(1e-9);
    Some((
        words,
        q_tail < q_head && ratio(q_head, q_tail) < ratio(p_head, p_tail),
    ))
}

/// The largest share of edges that can go without a loss, and that in words.
pub(super) fn most_pruned(data: &ReportData) -> Option<(f64, String)> {
    let pruning = data.pruning.as_ref()?;
    let [p1, _, _, r100] = pruning.by_threshold.first()?.metrics;
    let rows = pruning.by_threshold.iter().chain(&pruning.by_top_k);
    let is_free =
        |row: &&PruneRow| p1 - NO_LOSS <= row.metrics[0] && r100 - NO_LOSS <= row.metrics[3];
    let best = rows
        .filter(is_free)
        .max_by(|a, b| a.removed.total_cmp(&b.removed))?;
    let words = format!(
        "{:.1} % can go: P@1 {:+.2}, R@100 {:+.2}",
        best.removed,
        best.metrics[0] - p1,
        best.metrics[3] - r100
    );
    Some((best.removed, words))
}

fn compact(data: &ReportData) -> Option<(String, bool)> {
    let bands = &data.train.as_ref()?.compactness;
    let bands: Vec<_> = bands
        .iter()
        .filter(|band| band.n_labels.iter().all(|&n| 10 <= n))
        .collect();
    let first = bands.first()?;
    let n_so = bands
        .iter()
        .filter(|band| band.mean_length[1] < band.mean_length[0])
        .count();
    let words = format!(
        "in {n_so} of {} bands of equal frequency; with {} to {} points, compactness {:.2} of one cluster, {:.2} of several",
        bands.len(),
        first.fewest_points,
        first.most_points,
        first.mean_length[0],
        first.mean_length[1]
    );
    Some((words, bands.len() < 2 * n_so))
}
