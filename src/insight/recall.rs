//! The quality of a stage: metrics, recall by number of answers, by decile and by label.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::evaluation::Evaluation;
use crate::ids::Scored;
use crate::matrix::{CsrMatrix, sort_descending};
use crate::metrics::{DecileOf, LabelFrequencies};

/// The metrics of a stage of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StageFigures {
    /// The name of the stage.
    pub stage: String,
    /// Metrics by name, in percent.
    pub metrics: BTreeMap<String, f64>,
    /// R@k for k = 1, 2, …, in percent.
    pub recall: Vec<f64>,
    /// R@100 among the true pairs of each decile of label frequency, in percent.
    pub recall_by_decile: Vec<f64>,
    /// The contribution of each decile to R@100, in percent.
    pub contribution_by_decile: Vec<f64>,
}

/// Evaluates the rankings of a stage, with filter and propensity of an evaluation; row `i` of `truth` belongs to `rankings[i]`.
pub(crate) fn measure_stage(
    stage: &str,
    truth: &CsrMatrix,
    rankings: &[Vec<Scored>],
    frequencies: &LabelFrequencies,
    evaluation: &Evaluation<'_>,
) -> StageFigures {
    let evaluation = Evaluation {
        by_decile: Some(DecileOf::Labels),
        n_asked: Some(100),
        ..evaluation.clone()
    };
    let measured = evaluation.measure(truth, rankings, Some(frequencies));
    let deciles = measured.deciles.unwrap_or_default();
    StageFigures {
        stage: stage.to_owned(),
        metrics: measured.metrics.iter().collect(),
        recall: recall_curve(truth, rankings, 100),
        recall_by_decile: deciles.iter().map(|decile| decile.recall()).collect(),
        contribution_by_decile: deciles.iter().map(|decile| decile.contribution).collect(),
    }
}

/// R@1 to R@`max_k`, in percent, over the points with a true label.
fn recall_curve(truth: &CsrMatrix, rankings: &[Vec<Scored>], max_k: usize) -> Vec<f64> {
    let mut shares = vec![0.0; max_k];
    let mut n_points = 0;
    for (point_idx, ranking) in rankings.iter().enumerate() {
        let labels = truth.row(point_idx).0;
        if labels.is_empty() {
            continue;
        }
        n_points += 1;
        let mut ranking = ranking.clone();
        sort_descending(&mut ranking);
        for (place, scored) in ranking.iter().take(max_k).enumerate() {
            if labels.binary_search(&scored.label.0).is_ok() {
                shares[place] += 1.0 / labels.len() as f64;
            }
        }
    }
    let mut sum = 0.0;
    for share in &mut shares {
        sum += *share;
        *share = 100.0 * sum / f64::from(n_points.max(1));
    }
    shares
}

/// Counts of a label's test points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LabelRecall {
    /// Test points that have it.
    pub n_pairs: u32,
    /// Those of them whose ranking contains it.
    pub n_found: u32,
}

/// Recall of every label in rankings of any length.
pub(crate) fn recall_of_labels(truth: &CsrMatrix, rankings: &[Vec<Scored>]) -> Vec<LabelRecall> {
    let mut labels = vec![LabelRecall::default(); truth.n_cols()];
    for (point_idx, ranking) in rankings.iter().enumerate() {
        let true_labels = truth.row(point_idx).0;
        for &label in true_labels {
            labels[label as usize].n_pairs += 1;
        }
        for scored in ranking {
            if true_labels.binary_search(&scored.label.0).is_ok() {
                labels[scored.label.idx()].n_found += 1;
            }
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LabelId;

    #[test]
    fn the_recall_curve_ends_at_the_metric_and_labels_count_their_misses() {
        let truth = CsrMatrix::new(vec![0, 2, 2, 3], vec![0, 3, 1], vec![1.0; 3], 4).unwrap();
        let ranking = |labels: &[u32]| -> Vec<Scored> {
            let scored = labels.iter().enumerate();
            scored
                .map(|(place, &label)| Scored {
                    label: LabelId(label),
                    score: 1.0 / (1.0 + place as f32),
                })
                .collect()
        };
        let rankings = [ranking(&[2, 3, 0]), ranking(&[1]), ranking(&[0])];
        let frequencies = LabelFrequencies {
            counts: vec![3, 2, 1, 1],
            n_points: 4,
        };
        let figures = measure_stage(
            "stage2",
            &truth,
            &rankings,
            &frequencies,
            &Evaluation::default(),
        );
        assert_eq!(figures.recall[..4], [0.0, 25.0, 50.0, 50.0]);
        assert_eq!(figures.metrics["r@100"], figures.recall[99]);
        let labels = recall_of_labels(&truth, &rankings);
        let of = |label: usize| (labels[label].n_pairs, labels[label].n_found);
        assert_eq!(
            [of(0), of(1), of(2), of(3)],
            [(1, 1), (1, 0), (0, 0), (1, 1)]
        );
    }
}
