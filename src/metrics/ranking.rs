//! The true labels and the hits of a point, after the filter.

use crate::ids::{LabelId, Scored};
use crate::matrix::top_k;

/// Pairs of a point and a label that are dropped from truth and ranking.
///
/// Public data sets list reciprocal pairs this way, such as an item that is its own label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterPairs {
    sorted: Vec<(usize, LabelId)>,
    keeps_truth: bool,
}

impl FilterPairs {
    /// The labels dropped at a point, in ascending order.
    fn labels_at(&self, point_idx: usize) -> &[(usize, LabelId)] {
        let start = self.sorted.partition_point(|pair| pair.0 < point_idx);
        let end = self.sorted.partition_point(|pair| pair.0 <= point_idx);
        &self.sorted[start..end]
    }

    /// Whether the label is dropped at the point.
    pub(crate) fn contains(&self, point_idx: usize, label: LabelId) -> bool {
        self.sorted.binary_search(&(point_idx, label)).is_ok()
    }

    /// The same pairs, dropped from rankings only: what is listed and true counts as missed, as in the released code of
    /// ELIAS.
    pub fn of_answers_only(self) -> Self {
        FilterPairs {
            keeps_truth: true,
            ..self
        }
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }
}

impl FromIterator<(usize, LabelId)> for FilterPairs {
    fn from_iter<I: IntoIterator<Item = (usize, LabelId)>>(pairs: I) -> Self {
        let mut sorted: Vec<_> = pairs.into_iter().collect();
        sorted.sort_unstable();
        sorted.dedup();
        FilterPairs {
            sorted,
            keeps_truth: false,
        }
    }
}

/// Filters and ranks the labels of one point after another; reuses its buffers.
#[derive(Debug, Default)]
pub(super) struct Comparer {
    filter: FilterPairs,
    n_places: usize,
    point_idx: usize,
    truth: Vec<LabelId>,
    ranking: Vec<Scored>,
}

/// A filtered and ranked point.
pub(super) struct Compared<'a> {
    /// True labels in ascending order.
    pub(super) truth: &'a [LabelId],
    /// The first places, best first.
    pub(super) ranking: &'a [Scored],
    /// The hits, by ascending place (from 0), with their labels.
    pub(super) hits: Vec<(usize, LabelId)>,
}

impl Comparer {
    /// A comparison of the first `n_places` places.
    pub(super) fn new(filter: FilterPairs, n_places: usize) -> Self {
        Comparer {
            filter,
            n_places,
            ..Comparer::default()
        }
    }

    /// The next point.
    pub(super) fn compare(&mut self, truth_row: &[u32], ranked: &[Scored]) -> Compared<'_> {
        let dropped = self.filter.labels_at(self.point_idx);
        let is_kept = |label: LabelId| dropped.binary_search_by_key(&label, |pair| pair.1).is_err();
        self.point_idx += 1;

        self.truth.clear();
        self.truth
            .extend(truth_row.iter().map(|&label| LabelId(label)));
        self.truth.sort_unstable();
        self.truth.dedup();
        if !self.filter.keeps_truth {
            self.truth.retain(|&label| is_kept(label));
        }

        self.ranking.clear();
        self.ranking
            .extend(ranked.iter().filter(|scored| is_kept(scored.label)));
        // Bring duplicates of a label together, best first, and keep the first.
        top_k(&mut self.ranking, ranked.len());
        self.ranking.sort_by_key(|scored| scored.label);
        self.ranking.dedup_by_key(|scored| scored.label);
        top_k(&mut self.ranking, self.n_places);

        let hits = self
            .ranking
            .iter()
            .enumerate()
            .filter(|(_, scored)| self.truth.binary_search(&scored.label).is_ok())
            .map(|(place, scored)| (place, scored.label))
            .collect();
        Compared {
            truth: &self.truth,
            ranking: &self.ranking,
            hits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(filter: &[(usize, u32)], truth: &[u32], ranked: &[(u32, f32)], hits: &[(usize, u32)]) {
        let filter = filter
            .iter()
            .map(|&(point_idx, label)| (point_idx, LabelId(label)))
            .collect();
        let ranked: Vec<Scored> = ranked
            .iter()
            .map(|&(label, score)| Scored {
                label: LabelId(label),
                score,
            })
            .collect();
        let mut comparer = Comparer::new(filter, 3);
        let found: Vec<(usize, u32)> = comparer
            .compare(truth, &ranked)
            .hits
            .iter()
            .map(|&(place, label)| (place, label.0))
            .collect();
        assert_eq!(found, hits);
    }

    #[test]
    fn places_follow_the_score_not_the_order_given() {
        check(&[], &[5], &[(9, 0.1), (5, 0.2)], &[(0, 5)]);
    }

    #[test]
    fn ties_go_to_the_lower_label() {
        check(&[], &[5], &[(5, 0.5), (4, 0.5)], &[(1, 5)]);
    }

    #[test]
    fn a_repeated_label_counts_once_at_its_better_place() {
        check(&[], &[5], &[(5, 0.1), (4, 0.5), (5, 0.9)], &[(0, 5)]);
    }

    #[test]
    fn a_filtered_pair_leaves_truth_and_ranking_of_its_point_only() {
        check(&[(0, 4), (1, 5)], &[4, 5], &[(4, 0.9), (5, 0.5)], &[(0, 5)]);
        check(&[(0, 5)], &[5], &[(5, 0.9)], &[]);
    }

    #[test]
    fn pairs_that_are_filtered_from_answers_only_stay_in_the_truth() {
        let filter: FilterPairs = [(0, LabelId(4))].into_iter().collect();
        let ranked = [(4, 0.9), (5, 0.5)].map(|(label, score)| Scored {
            label: LabelId(label),
            score,
        });
        let mut comparer = Comparer::new(filter.of_answers_only(), 3);
        let compared = comparer.compare(&[4, 5], &ranked);
        assert_eq!(compared.truth, [LabelId(4), LabelId(5)]);
        assert_eq!(compared.hits, [(0, LabelId(5))]);
    }

    #[test]
    fn places_after_the_last_cut_off_do_not_count() {
        check(&[], &[5], &[(1, 0.9), (2, 0.8), (3, 0.7), (5, 0.6)], &[]);
    }
}
