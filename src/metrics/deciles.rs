//! Recall by label frequency.
//!
//! Labels are ordered by descending training frequency, ties by id, and cut into ten parts of nearly equal size. A
//! model that only knows frequent labels looks good on average and bad in the last deciles.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::ranking::{Comparer, FilterPairs};
use crate::ids::Scored;

const N_DECILES: usize = 10;

/// The quantity of which each tenth of the labels has as much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecileOf {
    /// The number of labels.
    #[default]
    Labels,
    /// The number of training pairs, as far as labels are not divided: the first tenth has few labels. The paper's.
    Pairs,
}

/// One tenth of the labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decile {
    /// Number of labels.
    pub n_labels: usize,
    /// The highest number of training points among its labels.
    pub most_points: usize,
    /// The lowest number of training points among its labels.
    pub fewest_points: usize,
    /// True (point, label) pairs with one of its labels.
    pub n_pairs: usize,
    /// Those of them in the first k places of the ranking.
    pub n_found: usize,
    /// Its share of R@k, in percent: the contributions of all deciles add up to R@k.
    pub contribution: f64,
}

impl Serialize for Decile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(7))?;
        map.serialize_entry("n_labels", &self.n_labels)?;
        map.serialize_entry("most_points", &self.most_points)?;
        map.serialize_entry("fewest_points", &self.fewest_points)?;
        map.serialize_entry("n_pairs", &self.n_pairs)?;
        map.serialize_entry("n_found", &self.n_found)?;
        map.serialize_entry("r@100", &self.recall())?;
        map.serialize_entry("contribution", &self.contribution)?;
        map.end()
    }
}

impl Decile {
    /// The share of its true pairs that were found, in percent; 0 without pairs.
    pub fn recall(&self) -> f64 {
        if self.n_pairs == 0 {
            0.0
        } else {
            100.0 * self.n_found as f64 / self.n_pairs as f64
        }
    }
}

/// The decile of every label, from 0 for the most frequent tenth to 9.
pub(crate) fn decile_of_labels(train_label_counts: &[usize], of: DecileOf) -> Vec<u8> {
    let n_labels = train_label_counts.len();
    let mut by_frequency: Vec<usize> = (0..n_labels).collect();
    by_frequency.sort_by_key(|&label| (usize::MAX - train_label_counts[label], label));
    let mut decile_of_label = vec![0; n_labels];
    if of == DecileOf::Pairs {
        let n_pairs: usize = train_label_counts.iter().sum();
        let mut n_before = 0;
        for label in by_frequency {
            let decile_idx = (n_before * N_DECILES).checked_div(n_pairs).unwrap_or(0);
            decile_of_label[label] = decile_idx.min(N_DECILES - 1) as u8;
            n_before += train_label_counts[label];
        }
        return decile_of_label;
    }
    for decile_idx in 0..N_DECILES {
        let start = decile_idx * n_labels / N_DECILES;
        let end = (decile_idx + 1) * n_labels / N_DECILES;
        for &label in &by_frequency[start..end] {
            decile_of_label[label] = decile_idx as u8;
        }
    }
    decile_of_label
}

/// Computes recall by decile, point by point.
#[derive(Debug)]
pub(crate) struct DecilesBuilder {
    decile_of_label: Vec<u8>,
    deciles: Vec<Decile>,
    comparer: Comparer,
    n_points: usize,
}

impl DecilesBuilder {
    /// A builder for labels with these numbers of training points, for the first `k` places.
    ///
    /// A label without a count belongs to the last decile.
    pub(crate) fn new(
        train_label_counts: &[usize],
        of: DecileOf,
        k: usize,
        filter: FilterPairs,
    ) -> Self {
        let decile_of_label = decile_of_labels(train_label_counts, of);
        let mut deciles = vec![Decile::default(); N_DECILES];
        for (&count, &decile_idx) in train_label_counts.iter().zip(&decile_of_label) {
            let decile = &mut deciles[usize::from(decile_idx)];
            let is_first = decile.n_labels == 0;
            decile.n_labels += 1;
            decile.most_points = decile.most_points.max(count);
            decile.fewest_points = if is_first {
                count
            } else {
                decile.fewest_points.min(count)
            };
        }
        DecilesBuilder {
            decile_of_label,
            deciles,
            comparer: Comparer::new(filter, k),
            n_points: 0,
        }
    }

    /// Adds the next point: its true labels, and its ranked labels in any order.
    pub(crate) fn push(&mut self, truth_row: &[u32], ranked: &[Scored]) {
        let compared = self.comparer.compare(truth_row, ranked);
        if compared.truth.is_empty() {
            return;
        }
        self.n_points += 1;
        let decile_idx = |label: usize| {
            let known = self.decile_of_label.get(label);
            known.map_or(N_DECILES - 1, |&decile_idx| usize::from(decile_idx))
        };
        for label in compared.truth {
            self.deciles[decile_idx(label.idx())].n_pairs += 1;
        }
        for (_, label) in &compared.hits {
            let decile = &mut self.deciles[decile_idx(label.idx())];
            decile.n_found += 1;
            decile.contribution += 1.0 / compared.truth.len() as f64;
        }
    }

    /// The ten deciles, the most frequent labels first.
    pub(crate) fn finish(mut self) -> Vec<Decile> {
        for decile in &mut self.deciles {
            decile.contribution *= 100.0 / self.n_points.max(1) as f64;
        }
        self.deciles
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MetricsOptions, measure};
    use super::*;
    use crate::ids::LabelId;
    use crate::matrix::CsrMatrix;

    fn ranking(labels: &[u32]) -> Vec<Scored> {
        labels
            .iter()
            .map(|&label| Scored {
                label: LabelId(label),
                score: -(label as f32),
            })
            .collect()
    }

    #[test]
    fn each_label_falls_into_the_decile_of_its_frequency() {
        // Label i has i points, so the most frequent decile holds labels 19 and 18.
        let counts: Vec<usize> = (0..20).collect();
        let truth =
            CsrMatrix::new(vec![0, 3, 5], vec![0, 18, 19, 0, 25], vec![1.0; 5], 26).unwrap();
        let predictions = [ranking(&[19, 3]), ranking(&[25])];
        let mut builder =
            DecilesBuilder::new(&counts, DecileOf::Labels, 100, FilterPairs::default());
        for (point_idx, ranking) in predictions.iter().enumerate() {
            builder.push(truth.row(point_idx).0, ranking);
        }
        let deciles = builder.finish();

        assert!(deciles.iter().all(|decile| decile.n_labels == 2));
        let (first, last) = (&deciles[0], &deciles[9]);
        assert_eq!((first.most_points, first.fewest_points), (19, 18));
        assert_eq!((first.n_pairs, first.n_found), (2, 1));
        assert_eq!(first.recall(), 50.0);
        // Label 25 was never seen in training: it counts as rare.
        assert_eq!((last.n_pairs, last.n_found), (3, 1));

        let metrics = measure(&truth, &predictions, MetricsOptions::default());
        let sum: f64 = deciles.iter().map(|decile| decile.contribution).sum();
        assert!((sum - metrics.recall(100).unwrap()).abs() < 1e-9);
    }

    #[test]
    fn a_decile_of_pairs_has_as_many_labels_as_make_up_a_tenth() {
        // 40 of 100 pairs belong to label 3: it is all of the first decile, and there is no second to fourth.
        let counts = [10, 10, 5, 40, 5, 10, 10, 10];
        let deciles = decile_of_labels(&counts, DecileOf::Pairs);
        assert_eq!(deciles, [4, 5, 9, 0, 9, 6, 7, 8]);
        assert_eq!(decile_of_labels(&[0, 0], DecileOf::Pairs), [0, 0]);
    }

    #[test]
    fn fewer_than_ten_labels_leave_deciles_empty() {
        let deciles =
            DecilesBuilder::new(&[4, 9, 1], DecileOf::Labels, 100, FilterPairs::default()).finish();
        assert_eq!(deciles.len(), 10);
        let sizes: usize = deciles.iter().map(|decile| decile.n_labels).sum();
        assert_eq!(sizes, 3);
        assert!(deciles.iter().all(|decile| decile.recall() == 0.0));
    }
}
