//! The metrics themselves: each is a ratio of two sums over the points.

use super::propensity::InversePropensities;
use super::ranking::{Compared, Comparer, FilterPairs};
use crate::ids::Scored;

/// Which metrics to compute.
#[derive(Clone, Debug)]
pub(crate) struct MetricsOptions {
    /// Cut-offs of P, nDCG and PSP. Zeros are ignored.
    pub(crate) ks: Vec<usize>,
    /// Cut-offs of R. Zeros are ignored.
    pub(crate) recall_ks: Vec<usize>,
    /// Weights of the labels, for PSP; `None` leaves it out.
    pub(crate) inverse_propensities: Option<InversePropensities>,
    /// Pairs to drop first.
    pub(crate) filter: FilterPairs,
}

impl Default for MetricsOptions {
    fn default() -> Self {
        MetricsOptions {
            ks: vec![1, 3, 5],
            recall_ks: vec![1, 3, 5, 10, 20, 100],
            inverse_propensities: None,
            filter: FilterPairs::default(),
        }
    }
}

/// Metrics of a data set, in percent: P, nDCG and PSP at 1, 3 and 5, R at 1, 3, 5, 10, 20 and 100.
///
/// Without points each is 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    values: Vec<MetricValue>,
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
}

impl Family {
    fn name(self) -> &'static str {
        match self {
            Family::Precision => "p",
            Family::Ndcg => "ndcg",
            Family::PropensityScored => "psp",
            Family::Recall => "r",
        }
    }
}

impl Metrics {
    /// P@k; `None` for a cut-off that is not computed.
    pub fn precision(&self, k: usize) -> Option<f64> {
        self.find(Family::Precision, k)
    }

    /// nDCG@k; `None` for a cut-off that is not computed.
    pub fn ndcg(&self, k: usize) -> Option<f64> {
        self.find(Family::Ndcg, k)
    }

    /// PSP@k; `None` for a cut-off that is not computed, or if the labels' training points are not known.
    pub fn psp(&self, k: usize) -> Option<f64> {
        self.find(Family::PropensityScored, k)
    }

    /// R@k; `None` for a cut-off that is not computed.
    pub fn recall(&self, k: usize) -> Option<f64> {
        self.find(Family::Recall, k)
    }

    /// All metrics by name, such as `p@1` and `r@100`: P, nDCG, PSP, R, each in the order of its cut-offs.
    pub fn iter(&self) -> impl Iterator<Item = (String, f64)> {
        self.values.iter().map(|value| {
            (
                format!("{}@{}", value.family.name(), value.k),
                value.percent,
            )
        })
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
        let is_it = |value: &&MetricValue| value.family == family && value.k == k;
        self.values.iter().find(is_it).map(|value| value.percent)
    }
}

#[derive(Debug)]
struct MetricSums {
    family: Family,
    k: usize,
    attained: f64,
    attainable: f64,
}

/// Computes metrics point by point, so that predictions need not be kept.
#[derive(Debug)]
pub(crate) struct MetricsBuilder {
    measures: Vec<MetricSums>,
    inverse_propensities: Option<InversePropensities>,
    comparer: Comparer,
    n_points: usize,
    n_skipped: usize,
}

impl MetricsBuilder {
    /// A builder without points.
    pub(crate) fn new(options: MetricsOptions) -> Self {
        let mut families = vec![
            (Family::Precision, &options.ks),
            (Family::Ndcg, &options.ks),
        ];
        if options.inverse_propensities.is_some() {
            families.push((Family::PropensityScored, &options.ks));
        }
        families.push((Family::Recall, &options.recall_ks));

        let mut measures = Vec::new();
        for (family, ks) in families {
            let ks = ks.iter().copied().filter(|&k| k != 0);
            measures.extend(ks.map(|k| MetricSums {
                family,
                k,
                attained: 0.0,
                attainable: 0.0,
            }));
        }
        let n_places = measures.iter().map(|measure| measure.k).max().unwrap_or(0);
        MetricsBuilder {
            measures,
            inverse_propensities: options.inverse_propensities,
            comparer: Comparer::new(options.filter, n_places),
            n_points: 0,
            n_skipped: 0,
        }
    }

    /// Adds the next point: its true labels, and its ranked labels in any order.
    pub(crate) fn push(&mut self, truth_row: &[u32], ranked: &[Scored]) {
        let Compared { truth, hits } = self.comparer.compare(truth_row, ranked);
        if truth.is_empty() {
            self.n_skipped += 1;
            return;
        }
        self.n_points += 1;

        // The weights of the true labels, highest first: those of a perfect ranking.
        let weights = self.inverse_propensities.as_ref();
        let mut best_weights: Vec<f64> = weights
            .map(|weights| truth.iter().map(|&label| weights.get(label)).collect())
            .unwrap_or_default();
        best_weights.sort_unstable_by(|a, b| b.total_cmp(a));

        for measure in &mut self.measures {
            let k = measure.k;
            let hits = &hits[..hits.partition_point(|&(place, _)| place < k)];
            let n_best = k.min(truth.len());
            match measure.family {
                Family::Precision => {
                    measure.attained += hits.len() as f64 / k as f64;
                    measure.attainable += 1.0;
                }
                Family::Ndcg => {
                    let dcg: f64 = hits.iter().map(|&(place, _)| discount(place)).sum();
                    let ideal: f64 = (0..n_best).map(discount).sum();
                    measure.attained += dcg / ideal;
                    measure.attainable += 1.0;
                }
                Family::PropensityScored => {
                    if let Some(weights) = weights {
                        measure.attained += hits
                            .iter()
                            .map(|&(_, label)| weights.get(label))
                            .sum::<f64>();
                        measure.attainable += best_weights[..n_best].iter().sum::<f64>();
                    }
                }
                Family::Recall => {
                    measure.attained += hits.len() as f64 / truth.len() as f64;
                    measure.attainable += 1.0;
                }
            }
        }
    }

    /// The metrics of all points pushed.
    pub(crate) fn finish(self) -> Metrics {
        let values = self.measures.iter().map(|measure| {
            let ratio = if measure.attainable == 0.0 {
                0.0
            } else {
                measure.attained / measure.attainable
            };
            MetricValue {
                family: measure.family,
                k: measure.k,
                percent: 100.0 * ratio,
            }
        });
        Metrics {
            values: values.collect(),
            n_points: self.n_points,
            n_skipped: self.n_skipped,
        }
    }
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
        let (mut p, mut ndcg, mut r, mut gained, mut best, mut n) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
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
        }
        let percent = |sum: f64, of: f64| if of == 0.0 { 0.0 } else { 100.0 * sum / of };
        BTreeMap::from([
            (format!("p@{k}"), percent(p, n)),
            (format!("ndcg@{k}"), percent(ndcg, n)),
            (format!("r@{k}"), percent(r, n)),
            (format!("psp@{k}"), percent(gained, best)),
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
                ks: ks.clone(),
                recall_ks: ks.clone(),
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
        let metrics = MetricsBuilder::new(options).finish();
        let names: Vec<String> = metrics.iter().map(|(name, _)| name).collect();
        assert_eq!(
            names.join(" "),
            "p@1 p@3 p@5 ndcg@1 ndcg@3 ndcg@5 psp@1 psp@3 psp@5 r@1 r@3 r@5 r@10 r@20 r@100"
        );
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
        let metrics = builder.finish();
        assert_eq!((metrics.n_points(), metrics.n_skipped()), (1, 1));
        assert_eq!(metrics.precision(1), Some(100.0));
        assert_eq!((metrics.psp(1), metrics.precision(2)), (None, None));
    }
}
