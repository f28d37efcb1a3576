//! Merging the rankings of several models into one.
//!
//! The score of a label is the mean of its members' scores; a member that does not list the label counts as 0.
//! Ties go to the lower id. This module sees rankings, never the models that made them.

use crate::ids::{LabelId, Scored};
use crate::matrix::top_k;

/// Merges rankings; reuses its buffer from text to text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Merger {
    entries: Vec<ListedLabel>,
}

/// A label in a member's list.
#[derive(Clone, Copy, Debug)]
struct ListedLabel {
    label: LabelId,
    member: u32,
    score: f32,
}

impl Merger {
    /// Writes the `k` labels with the highest mean score over the union of the members' lists to `out`, best first.
    ///
    /// The order within a list does not matter. A member should list a label once; if it lists it twice, both
    /// scores count. Without members the result is empty.
    pub(crate) fn merge(&mut self, members: &[&[Scored]], k: usize, out: &mut Vec<Scored>) {
        out.clear();
        self.entries.clear();
        for (member_idx, list) in members.iter().enumerate() {
            self.entries.extend(list.iter().map(|scored| ListedLabel {
                label: scored.label,
                member: member_idx as u32,
                score: scored.score,
            }));
        }
        // By member within a label, which fixes the order of summation.
        self.entries
            .sort_unstable_by_key(|entry| (entry.label, entry.member));
        for of_label in self.entries.chunk_by(|a, b| a.label == b.label) {
            let sum: f32 = of_label.iter().map(|entry| entry.score).sum();
            out.push(Scored {
                label: of_label[0].label,
                score: sum / members.len() as f32,
            });
        }
        top_k(out, k);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scored(label: u32, score: f32) -> Scored {
        Scored {
            label: LabelId(label),
            score,
        }
    }

    #[test]
    fn missing_counts_as_zero_and_ties_go_to_the_lower_id() {
        let first = [scored(7, 0.8), scored(2, 0.4)];
        let second = [scored(5, 0.4), scored(7, 0.2)];
        let mut out = vec![scored(1, 1.0)];
        Merger::default().merge(&[&first, &second], 3, &mut out);
        assert_eq!(out, [scored(7, 0.5), scored(2, 0.2), scored(5, 0.2)]);
        Merger::default().merge(&[], 3, &mut out);
        assert!(out.is_empty());
    }

    proptest! {
        #[test]
        fn merging_is_the_mean_over_all_labels(
            members in prop::collection::vec(prop::collection::btree_map(0u32..30, 0u8..16, 0..20), 1..5),
            k in 0usize..40,
        ) {
            // Sixteenths, so that sums are exact in any order.
            let lists: Vec<Vec<Scored>> = members
                .iter()
                .map(|member| member.iter().map(|(&label, &score)| scored(label, f32::from(score) / 16.0)).collect())
                .collect();
            let mut expected: Vec<Scored> = (0..30)
                .filter(|label| members.iter().any(|member| member.contains_key(label)))
                .map(|label| {
                    let sum: f32 = members.iter().filter_map(|member| member.get(&label)).map(|&s| f32::from(s) / 16.0).sum();
                    scored(label, sum / members.len() as f32)
                })
                .collect();
            expected.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.label.cmp(&b.label)));
            expected.truncate(k);

            let views: Vec<&[Scored]> = lists.iter().map(Vec::as_slice).collect();
            let mut merger = Merger::default();
            let mut out = Vec::new();
            for _ in 0..2 {
                merger.merge(&views, k, &mut out);
                prop_assert_eq!(&out, &expected);
            }
        }
    }
}
