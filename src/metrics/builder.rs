//! The metrics themselves: each is a ratio of two sums over the points.

use super::cut_offs::CutOffs;
use super::propensity::InversePropensities;
use super::ranking::{Compared, Comparer, FilterPairs};
use crate::ids::Scored;

/// Which metrics to compute.
#[derive(Clone, Debug, Default)]
pub(crate) struct MetricsOptions {
    /// Cut-offs of the metrics.
    pub(crate) cut_offs: CutOffs,
    /// Weights of the labels, for PSP; `None` leaves it out.
    pub(crate) inverse_propensities: Option<InversePropensities>,
    /// Pairs to drop first.
    pub(crate) filter: FilterPairs,
}

/// Metrics of a data set, in percent, at the [`CutOffs`] that were asked for.
///
/// Without points each is 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    cut_offs: CutOffs,
    values: Vec<MetricValue>,
    r_precision: Option<f64>,
    average_recall: Option<f64>,
    n_points: usize,
    n_skipped: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct MetricValue {
    family: Family,
    k: usize,
    percent: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Precision,
    Ndcg,
    PropensityScored,
    Recall,
    F1,
    PointF1,
}

impl Family {
    fn name(self) -> &'static str {
        match self {
            Family::Precision => "p",
            Family::Ndcg => "ndcg",
            Family::PropensityScored => "psp",
            Family::Recall => "r",
            Family::F1 => "f1",
            Family::PointF1 => "point_f1",
        }
    }
}

impl Metrics {
    /// The cut-offs that were asked for.
    pub fn cut_offs(&self) -> &CutOffs {
        &self.cut_offs
    }

    /// P@k; `None` for a cut-off that is not measured.
    pub fn precision(&self, k: usize) -> Option<f64> {
        self.find(Family::Precision, k)
    }

    /// nDCG@k; `None` for a cut-off that is not measured.
    pub fn ndcg(&self, k: usize) -> Option<f64> {
        self.find(Family::Ndcg, k)
    }

    /// PSP@k; `None` for a cut-off that is not measured, or if the labels' training points are not known.
    pub fn psp(&self, k: usize) -> Option<f64> {
        self.find(Family::PropensityScored, k)
    }

    /// R@k; `None` for a cut-off that is not measured.
    pub fn recall(&self, k: usize) -> Option<f64> {
        self.find(Family::Recall, k)
    }

    /// F1@k, the harmonic mean of P@k and R@k; `None` unless both are measured.
    pub fn f1(&self, k: usize) -> Option<f64> {
        self.find(Family::F1, k)
    }

    /// The mean over the points of their own F1@k; `None` for a cut-off that is not measured.
    pub fn point_f1(&self, k: usize) -> Option<f64> {
        self.find(Family::PointF1, k)
    }

    /// P@|y|, with the number of true labels of each point as its k; `None` if a point has more than the answers.
    pub fn r_precision(&self) -> Option<f64> {
        self.r_precision
    }

    /// The mean of R@5, R@10, …, R@50; `None` of fewer than 50 answers.
    pub fn average_recall(&self) -> Option<f64> {
        self.average_recall
    }

    /// All metrics measured by name, such as `p@1` and `r@100`: P, nDCG, PSP, R, F1, F1 per point, each in the order of
    /// its cut-offs, then `r_precision` and `average_recall`.
    pub fn iter(&self) -> impl Iterator<Item = (String, f64)> {
        let at_k = self.values.iter().map(|value| {
            (
                format!("{}@{}", value.family.name(), value.k),
                value.percent,
            )
        });
        let others = [
            ("r_precision", self.r_precision),
            ("average_recall", self.average_recall),
        ];
        let others = others.into_iter();
        at_k.chain(others.filter_map(|(name, value)| Some((name.to_owned(), value?))))
    }

    /// Points measured.
    pub fn n_points(&self) -> usize {
        self.n_points
    }

    /// Points skipped because they have no true label, or none after the filter.
    pub fn n_skipped(&self) -> usize {
        self.n_skipped
    }

    fn find(&self, family: Family, k: usize) -> Option<f64> {
        find(&self.values, family, k)
    }
}

/// Cut-offs of average recall.
const AVERAGED_KS: [usize; 10] = [5, 10, 15, 20, 25, 30, 35, 40, 45, 50];

#[derive(Debug)]
struct MetricSums {
    family: Family,
    k: usize,
    attained: f64,
    attainable: f64,
}

impl MetricSums {
    fn percent(&self) -> f64 {
        if self.attainable == 0.0 {
            0.0
        } else {
            100.0 * self.attained / self.attainable
        }
    }
}

/// Computes metrics point by point, so that predictions need not be kept.
#[derive(Debug)]
pub(crate) struct MetricsBuilder {
    cut_offs: CutOffs,
    measures: Vec<MetricSums>,
    r_precision: f64,
    average_recall: f64,
    /// The most true labels of a point.
    n_most_true: usize,
    inverse_propensities: Option<InversePropensities>,
    comparer: Comparer,
    n_points: usize,
    n_skipped: usize,
}

impl MetricsBuilder {
    /// A builder without points.
    pub(crate) fn new(options: MetricsOptions) -> Self {
        let cut_offs = options.cut_offs;
        let mut families = vec![
            (Family::Precision, cut_offs.ranked()),
            (Family::Ndcg, cut_offs.ranked()),
        ];
        if options.inverse_propensities.is_some() {
            families.push((Family::PropensityScored, cut_offs.ranked()));
        }
        families.push((Family::Recall, cut_offs.recall()));
        families.push((Family::PointF1, cut_offs.ranked()));

        let mut measures = Vec::new();
        for (family, ks) in families {
            measures.extend(ks.iter().map(|&k| MetricSums {
                family,
                k,
                attained: 0.0,
                attainable: 0.0,
            }));
        }
        MetricsBuilder {
            cut_offs,
            measures,
            r_precision: 0.0,
            average_recall: 0.0,
            n_most_true: 0,
            inverse_propensities: options.inverse_propensities,
            comparer: Comparer::new(options.filter, usize::MAX),
            n_points: 0,
            n_skipped: 0,
        }
    }

    /// Adds the next point: its true labels, and its ranked labels in any order.
    pub(crate) fn push(&mut self, truth_row: &[u32], ranked: &[Scored]) {
        let Compared { truth, hits, .. } = self.comparer.compare(truth_row, ranked);
        if truth.is_empty() {
            self.n_skipped += 1;
            return;
        }
        self.n_points += 1;
        self.n_most_true = self.n_most_true.max(truth.len());

        // The weights of the true labels, highest first: those of a perfect ranking.
        let weights = self.inverse_propensities.as_ref();
        let mut best_weights: Vec<f64> = weights
            .map(|weights| truth.iter().map(|&label| weights.get(label)).collect())
            .unwrap_or_default();
        best_weights.sort_unstable_by(|a, b| b.total_cmp(a));

        let n_true = truth.len() as f64;
        let n_hits_within = |k: usize| hits.partition_point(|&(place, _)| place < k);
        self.r_precision += n_hits_within(truth.len()) as f64 / n_true;
        let recalls = AVERAGED_KS.map(|k| n_hits_within(k) as f64 / n_true);
        self.average_recall += recalls.iter().sum::<f64>() / AVERAGED_KS.len() as f64;
        for measure in &mut self.measures {
            let k = measure.k;
            let hits = &hits[..n_hits_within(k)];
            let n_hits = hits.len() as f64;
            let n_best = k.min(truth.len());
            if let (Family::PropensityScored, Some(weights)) = (measure.family, weights) {
                let gained = hits.iter().map(|&(_, label)| weights.get(label));
                measure.attained += gained.sum::<f64>();
                measure.attainable += best_weights[..n_best].iter().sum::<f64>();
                continue;
            }
            measure.attainable += 1.0;
            measure.attained += match measure.family {
                Family::Precision => n_hits / k as f64,
                Family::Recall => n_hits / n_true,
                Family::PointF1 => 2.0 * n_hits / (k as f64 + n_true),
                Family::Ndcg => {
                    let dcg: f64 = hits.iter().map(|&(place, _)| discount(place)).sum();
                    let ideal: f64 = (0..n_best).map(discount).sum();
                    dcg / ideal
                }
                Family::PropensityScored | Family::F1 => unreachable!("no sum of its own"),
            };
        }
    }

    /// The metrics of all points pushed, whose rankings go `depth` places deep: those that look further are left out.
    pub(crate) fn finish(self, depth: usize) -> Metrics {
        let mean = |sum: f64| 100.0 * sum / self.n_points.max(1) as f64;
        let measured = self.measures.iter().filter(|measure| measure.k <= depth);
        let mut values: Vec<MetricValue> = measured
            .map(|measure| MetricValue {
                family: measure.family,
                k: measure.k,
                percent: measure.percent(),
            })
            .collect();
        let find = |family, k| find(&values, family, k);
        let f1 = self.cut_offs.ranked().iter().filter_map(|&k| {
            let (precision, recall) = (find(Family::Precision, k)?, find(Family::Recall, k)?);
            let percent = 2.0 * precision * recall / (precision + recall);
            Some(MetricValue {
                family: Family::F1,
                k,
                percent: if percent.is_nan() { 0.0 } else { percent },
            })
        });
        let f1: Vec<MetricValue> = f1.collect();
        let place = values.partition_point(|value| value.family != Family::PointF1);
        values.splice(place..place, f1);
        Metrics {
            values,
            r_precision: (self.n_most_true <= depth).then(|| mean(self.r_precision)),
            average_recall: (AVERAGED_KS[9] <= depth).then(|| mean(self.average_recall)),
            cut_offs: self.cut_offs,
            n_points: self.n_points,
            n_skipped: self.n_skipped,
        }
    }
}

fn find(values: &[MetricValue], family: Family, k: usize) -> Option<f64> {
    let is_it = |value: &&MetricValue| value.family == family && value.k == k;
    values.iter().find(is_it).map(|value| value.percent)
}

/// The gain of a hit at a place counted from 0.
fn discount(place: usize) -> f64 {
    1.0 / (place as f64 + 2.0).log2()
}

#[cfg(test)]
mod tests {
    use super::super::{LabelFrequencies, Propensity, measure};
    use super::*;
    use crate::ids::LabelId;
    use crate::matrix::CsrBuilder;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    const N_LABELS: usize = 12;

    fn weights(counts: &[usize], n_points: usize) -> InversePropensities {
        let frequencies = LabelFrequencies {
            counts: counts.to_vec(),
            n_points,
        };
        frequencies.inverse_propensities(Propensity::default())
    }

    /// A data set with few labels and few distinct scores, so that ties, duplicates and empty rows are common.
    type MetricsCase = (
        Vec<(BTreeSet<u32>, Vec<(u32, u8)>)>,
        Vec<(usize, u32)>,
        Vec<usize>,
    );

    fn cases() -> impl Strategy<Value = MetricsCase> {
        let label = 0..N_LABELS as u32;
        let point = (
            prop::collection::btree_set(label.clone(), 0..6),
            prop::collection::vec((label.clone(), 0u8..4), 0..9),
        );
        (
            prop::collection::vec(point, 0..8),
            prop::collection::vec((0usize..8, label), 0..6),
            // The last two labels have no training points.
            prop::collection::vec(0usize..50, N_LABELS - 2),
        )
    }

    /// Every metric written as its definition reads, over the whole data set at once.
    fn naive(case: &MetricsCase, k: usize) -> BTreeMap<String, f64> {
        let (points, filter, counts) = case;
        let weight = |label: u32| {
            let count = counts.get(label as usize).copied().unwrap_or(0) as f64;
            1.0 + (100f64.ln() - 1.0) * 2.5f64.powf(0.55) / (count + 1.5).powf(0.55)
        };
        let (mut p, mut ndcg, mut r, mut f1) = (0.0, 0.0, 0.0, 0.0);
        let (mut gained, mut best, mut n) = (0.0, 0.0, 0.0);
        for (point_idx, (truth, predictions)) in points.iter().enumerate() {
            let kept = |label: &u32| !filter.contains(&(point_idx, *label));
            let truth: Vec<u32> = truth.iter().copied().filter(kept).collect();
            let mut best_score = BTreeMap::new();
            for &(label, score) in predictions.iter().filter(|(label, _)| kept(label)) {
                let known = best_score.entry(label).or_insert(score);
                *known = score.max(*known);
            }
            let mut order: Vec<u32> = best_score.keys().copied().collect();
            order.sort_by_key(|label| (u8::MAX - best_score[label], *label));
            order.truncate(k);
            if truth.is_empty() {
                continue;
            }
            n += 1.0;
            let (mut n_hits, mut dcg, mut ideal) = (0.0, 0.0, 0.0);
            for (place, label) in order.iter().enumerate() {
                if truth.contains(label) {
                    n_hits += 1.0;
                    dcg += 1.0 / ((place + 2) as f64).log2();
                    gained += weight(*label);
                }
            }
            for place in 0..k.min(truth.len()) {
                ideal += 1.0 / ((place + 2) as f64).log2();
            }
            let mut weights: Vec<f64> = truth.iter().map(|&label| weight(label)).collect();
            weights.sort_by(|a, b| b.total_cmp(a));
            best += weights.iter().take(k).sum::<f64>();
            p += n_hits / k as f64;
            r += n_hits / truth.len() as f64;
            ndcg += dcg / ideal;
            f1 += 2.0 * n_hits / (k + truth.len()) as f64;
        }
        let percent = |sum: f64, of: f64| if of == 0.0 { 0.0 } else { 100.0 * sum / of };
        BTreeMap::from([
            (format!("p@{k}"), percent(p, n)),
            (format!("ndcg@{k}"), percent(ndcg, n)),
            (format!("r@{k}"), percent(r, n)),
            (format!("psp@{k}"), percent(gained, best)),
            (format!("point_f1@{k}"), percent(f1, n)),
            (
                format!("f1@{k}"),
                percent(2.0 * p * r / f64::max(n, 1.0), p + r),
            ),
        ])
    }

    proptest! {
        #[test]
        fn metrics_equal_their_definitions(case in cases()) {
            let (points, filter, counts) = &case;
            let mut truth = CsrBuilder::default();
            let mut predictions = Vec::new();
            for (labels, ranked) in points {
                truth.push_row(labels.iter().map(|&label| (label, 1.0)));
                predictions.push(
                    ranked.iter().map(|&(label, score)| Scored { label: LabelId(label), score: f32::from(score) }).collect(),
                );
            }
            let ks = vec![1, 2, 3, 5, 10];
            let options = MetricsOptions {
                cut_offs: CutOffs::at(ks.clone()),
                inverse_propensities: Some(weights(counts, 100)),
                filter: filter.iter().map(|&(point_idx, label)| (point_idx, LabelId(label))).collect(),
            };
            let metrics = measure(&truth.finish(N_LABELS).unwrap(), &predictions, options);
            prop_assert_eq!(metrics.n_points() + metrics.n_skipped(), points.len());
            let named: BTreeMap<String, f64> = metrics.iter().collect();
            for (name, expected) in ks.iter().flat_map(|&k| naive(&case, k)) {
                let found = named[&name];
                prop_assert!((found - expected).abs() < 1e-9, "{} is {}, by definition {}", name, found, expected);
            }
        }
    }

    #[test]
    fn metrics_come_in_a_stable_order() {
        let options = MetricsOptions {
            inverse_propensities: Some(weights(&[3], 9)),
            ..MetricsOptions::default()
        };
        let metrics = MetricsBuilder::new(options).finish(usize::MAX);
        let names: Vec<String> = metrics.iter().map(|(name, _)| name).collect();
        assert_eq!(
            names.join(" "),
            "p@1 p@3 p@5 ndcg@1 ndcg@3 ndcg@5 psp@1 psp@3 psp@5 r@1 r@3 r@5 r@10 r@20 r@100 \
             f1@1 f1@3 f1@5 point_f1@1 point_f1@3 point_f1@5 r_precision average_recall"
        );
    }

    #[test]
    fn metrics_that_look_further_than_the_answers_are_not_measured() {
        let found = |depth| {
            let mut builder = MetricsBuilder::new(MetricsOptions {
                cut_offs: CutOffs::at([2, 10]),
                ..MetricsOptions::default()
            });
            builder.push(&[0, 1, 2], &[]);
            let metrics = builder.finish(depth);
            let names: Vec<String> = metrics.iter().map(|(name, _)| name).collect();
            names.join(" ")
        };
        assert_eq!(found(2), "p@2 ndcg@2 r@2 f1@2 point_f1@2");
        assert_eq!(found(3), "p@2 ndcg@2 r@2 f1@2 point_f1@2 r_precision");
        assert!(found(50).ends_with("average_recall") && found(49).contains("r@10"));
        assert!(!found(49).contains("average"));
    }

    #[test]
    fn points_without_true_labels_are_skipped_and_counted() {
        let mut builder = MetricsBuilder::new(MetricsOptions::default());
        let hit = [Scored {
            label: LabelId(1),
            score: 1.0,
        }];
        builder.push(&[], &hit);
        builder.push(&[1], &hit);
        let metrics = builder.finish(usize::MAX);
        assert_eq!((metrics.n_points(), metrics.n_skipped()), (1, 1));
        assert_eq!(metrics.precision(1), Some(100.0));
        assert_eq!((metrics.psp(1), metrics.precision(2)), (None, None));
    }
}
