//! Merging the candidates of several members into one ranking.
//!
//! The score of a label is the mean of its members' scores; a member that does not list the label counts as 0.
//! Ties go to the lower id. Rankings are merged whichever models made them.

use crate::ids::{LabelId, Scored};

/// Merges rankings; reuses its buffers from text to text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Merger {
    entries: Vec<ListedLabel>,
    merged: Vec<Scored>,
}

/// A ranking that members still add to.
#[must_use]
pub(crate) struct Merging<'m> {
    merger: &'m mut Merger,
    n_members: u32,
}

/// A label in a member's list.
#[derive(Clone, Copy, Debug)]
struct ListedLabel {
    label: LabelId,
    member: u32,
    score: f32,
}

impl Merger {
    /// A ranking without members.
    pub(crate) fn start(&mut self) -> Merging<'_> {
        self.entries.clear();
        Merging {
            merger: self,
            n_members: 0,
        }
    }
}

impl<'m> Merging<'m> {
    /// Adds the list of the next member, in any order. It lists a label once.
    pub(crate) fn add(&mut self, list: impl Iterator<Item = Scored>) {
        let member = self.n_members;
        let listed = |Scored { label, score }| ListedLabel {
            label,
            member,
            score,
        };
        self.merger.entries.extend(list.map(listed));
        self.n_members += 1;
    }

    /// The mean scores of all labels of the lists, in no particular order; none without members.
    pub(crate) fn finish(self) -> &'m mut Vec<Scored> {
        let Merger { entries, merged } = self.merger;
        if self.n_members > 1 {
            // By member within a label, which fixes the order of summation.
            entries.sort_unstable_by_key(|entry| (entry.label, entry.member));
        }
        merged.clear();
        for of_label in entries.chunk_by(|a, b| a.label == b.label) {
            let sum: f32 = of_label.iter().map(|entry| entry.score).sum();
            merged.push(Scored {
                label: of_label[0].label,
                score: sum / self.n_members as f32,
            });
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::top_k;
    use proptest::prelude::*;

    fn scored(label: u32, score: f32) -> Scored {
        Scored {
            label: LabelId(label),
            score,
        }
    }

    /// The `k` best of merged lists.
    fn merge(merger: &mut Merger, lists: &[&[Scored]], k: usize) -> Vec<Scored> {
        let mut merging = merger.start();
        lists
            .iter()
            .for_each(|list| merging.add(list.iter().copied()));
        let mut merged = merging.finish().clone();
        top_k(&mut merged, k);
        merged
    }

    #[test]
    fn missing_counts_as_zero_and_ties_go_to_the_lower_id() {
        let first = [scored(7, 0.8), scored(2, 0.4)];
        let second = [scored(5, 0.4), scored(7, 0.2)];
        let mut merger = Merger::default();
        let merged = merge(&mut merger, &[&first, &second], 3);
        assert_eq!(merged, [scored(7, 0.5), scored(2, 0.2), scored(5, 0.2)]);
        assert!(merge(&mut merger, &[], 3).is_empty());
        // A text that failed half-way leaves nothing to the next one.
        merger.start().add(first.into_iter());
        assert_eq!(merge(&mut merger, &[&second], 1), [second[0]]);
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
            for _ in 0..2 {
                prop_assert_eq!(&merge(&mut merger, &views, k), &expected);
            }
        }
    }
}
