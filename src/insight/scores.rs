//! Whether scores are comparable: scores of true labels by label frequency, and calibration of probabilities.

use serde::{Deserialize, Serialize};

use crate::ids::Scored;
use crate::matrix::CsrMatrix;
use crate::metrics::{DecileOf, Reliability, decile_of_labels};
use crate::predict::Predictor;

/// Bins of the reliability curve.
const N_BINS: usize = 10;

/// Scores of true labels in one decile of label frequency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScoreSpread {
    /// True pairs whose label is a candidate.
    pub n_pairs: usize,
    /// The 10th, 25th, 50th, 75th and 90th percentiles of the model's scores p.
    pub model: [f64; 5],
    /// The same for the ranker's scores q.
    pub ranker: [f64; 5],
    /// The same for the final scores.
    pub last: [f64; 5],
}

/// The rankings of the same points after successive stages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StageRankings<'a> {
    /// By p, after stage 2.
    pub model: &'a [Vec<Scored>],
    /// By p·q, after the ranker; empty without one.
    pub ranker: &'a [Vec<Scored>],
    /// By the final score.
    pub last: &'a [Vec<Scored>],
}

/// The spread of the scores of true labels by decile (paper, Fig. score-calibrate-decile).
pub(crate) fn score_spread(
    truth: &CsrMatrix,
    rankings: StageRankings<'_>,
    label_counts: &[usize],
) -> Vec<ScoreSpread> {
    let StageRankings {
        model,
        ranker,
        last,
    } = rankings;
    let deciles = decile_of_labels(label_counts, DecileOf::Labels);
    let mut scores: Vec<[Vec<f64>; 3]> = vec![Default::default(); 10];
    for point_idx in 0..truth.n_rows() {
        for &label in truth.row(point_idx).0 {
            let find = |rankings: &[Vec<Scored>]| {
                let ranking = rankings.get(point_idx)?;
                let found = ranking.iter().find(|scored| scored.label.0 == label)?;
                Some(f64::from(found.score))
            };
            let decile = deciles
                .get(label as usize)
                .map_or(9, |&decile| usize::from(decile));
            let Some(p) = find(model) else { continue };
            scores[decile][0].push(p);
            if let Some(product) = find(ranker).filter(|_| p > 0.0) {
                scores[decile][1].push((product / p).min(1.0));
            }
            scores[decile][2].extend(find(last));
        }
    }
    let spread = |[p, q, last]: [Vec<f64>; 3]| ScoreSpread {
        n_pairs: p.len(),
        model: quantiles(p),
        ranker: quantiles(q),
        last: quantiles(last),
    };
    scores.into_iter().map(spread).collect()
}

fn quantiles(mut values: Vec<f64>) -> [f64; 5] {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1) as f64;
    [0.1, 0.25, 0.5, 0.75, 0.9].map(|share| {
        let place = (share * last).round() as usize;
        values.get(place).copied().unwrap_or(0.0)
    })
}

/// Probabilities against outcomes, by bin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReliabilityCurve {
    /// Per bin: number of answers, mean probability, share of right answers.
    pub bins: Vec<(usize, f64, f64)>,
    /// Expected calibration error.
    pub error: f64,
}

/// The reliability of the first `k` answers of every point with a true label; `None` without calibration.
pub(crate) fn reliability(
    predictor: &Predictor,
    truth: &CsrMatrix,
    rankings: &[Vec<Scored>],
    k: usize,
) -> Option<ReliabilityCurve> {
    let (mut probabilities, mut relevant) = (Vec::new(), Vec::new());
    for (point_idx, ranking) in rankings.iter().enumerate() {
        let labels = truth.row(point_idx).0;
        for scored in ranking.iter().take(k).filter(|_| !labels.is_empty()) {
            probabilities.push(predictor.probability(scored.score)?);
            relevant.push(labels.binary_search(&scored.label.0).is_ok());
        }
    }
    let reliability = Reliability::new(&probabilities, &relevant, N_BINS);
    let bins = reliability.bins.iter();
    Some(ReliabilityCurve {
        bins: bins
            .map(|bin| (bin.n_answers, bin.mean_probability, bin.relevant_share))
            .collect(),
        error: reliability.expected_calibration_error(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LabelId;

    #[test]
    fn scores_of_true_labels_fall_into_the_decile_of_their_frequency() {
        let truth = CsrMatrix::new(vec![0, 1, 2], vec![0, 9], vec![1.0; 2], 10).unwrap();
        let one = |label, score| {
            let label = LabelId(label);
            vec![Scored { label, score }]
        };
        let model = [one(0, 0.5), one(9, 0.8)];
        let ranker = [one(0, 0.4), one(9, 0.2)];
        let rankings = StageRankings {
            model: &model,
            ranker: &ranker,
            last: &ranker,
        };
        let counts: Vec<usize> = (0..10).map(|label| 10 - label).collect();
        let spread = score_spread(&truth, rankings, &counts);
        assert_eq!(
            (spread[0].n_pairs, spread[5].n_pairs, spread[9].n_pairs),
            (1, 0, 1)
        );
        assert!((spread[0].ranker[2] - 0.8).abs() < 1e-6);
        assert!((spread[9].ranker[2] - 0.25).abs() < 1e-6);
        assert!((spread[9].last[4] - 0.2).abs() < 1e-6);
    }
}
