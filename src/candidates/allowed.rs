//! The labels that may be answers, where a query leaves some out.
//!
//! Sources add what they always add, and beyond that as many allowed labels as if there were no others: a label's score
//! also depends on the candidates beside it, and must not rise because better ones are left out. Of a list of allowed
//! labels, every one is scored, whatever the index says; see [`AllowedLabels::all_scored`] for long lists.

use crate::ids::LabelId;

/// Listed labels that all become candidates. Of a longer list, all are scored by their classifiers, and the best become
/// candidates where other sources find too few.
const MAX_SCORED: usize = 1000;

/// A set of labels.
///
/// Invariants: a bit per label, and `listed` has those that are set, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AllowedLabels {
    bits: Vec<u64>,
    /// The allowed labels if they were listed, not merely left over by a list of denied ones.
    listed: Option<Vec<LabelId>>,
}

impl AllowedLabels {
    /// The listed labels, or all `n_labels`, without the denied ones.
    ///
    /// # Panics
    /// If a label is not below `n_labels`.
    pub(crate) fn new(n_labels: usize, allow: Option<&[LabelId]>, deny: &[LabelId]) -> Self {
        let mut bits = vec![u64::MAX; n_labels.div_ceil(64)];
        if let Some(allow) = allow {
            bits.fill(0);
            for label in allow {
                bits[label.idx() / 64] |= 1 << (label.idx() % 64);
            }
        }
        for label in deny {
            bits[label.idx() / 64] &= !(1 << (label.idx() % 64));
        }
        let mut allowed = AllowedLabels { bits, listed: None };
        if let Some(allow) = allow {
            let mut listed = allow.to_vec();
            listed.sort_unstable();
            listed.dedup();
            listed.retain(|&label| allowed.contains(label));
            allowed.listed = Some(listed);
        }
        allowed
    }

    /// Whether a label may be an answer.
    #[inline]
    pub(crate) fn contains(&self, label: LabelId) -> bool {
        self.bits[label.idx() / 64] >> (label.idx() % 64) & 1 == 1
    }

    /// The listed labels if they are so few that all become candidates where `n_wanted` are.
    pub(crate) fn all_scored(&self, n_wanted: usize) -> Option<&[LabelId]> {
        self.listed()
            .filter(|listed| listed.len() <= MAX_SCORED.max(n_wanted))
    }

    /// The allowed labels, ascending, if they were listed.
    pub(crate) fn listed(&self) -> Option<&[LabelId]> {
        self.listed.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_label_is_allowed_if_it_is_listed_and_not_denied(
            n_labels in 1usize..200,
            allow in prop::option::of(prop::collection::vec(0u32..200, 0..50)),
            deny in prop::collection::vec(0u32..200, 0..50),
        ) {
            let known = |ids: Vec<u32>| -> Vec<LabelId> {
                ids.into_iter().filter(|&id| (id as usize) < n_labels).map(LabelId).collect()
            };
            let (allow, deny) = (allow.map(known), known(deny));
            let allowed = AllowedLabels::new(n_labels, allow.as_deref(), &deny);
            let all = (0..n_labels as u32).map(LabelId);
            let expected: BTreeSet<LabelId> = all
                .clone()
                .filter(|label| allow.as_ref().is_none_or(|allow| allow.contains(label)))
                .filter(|label| !deny.contains(label))
                .collect();
            for label in all {
                prop_assert_eq!(allowed.contains(label), expected.contains(&label));
            }
            let listed = allow.map(|_| expected.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(allowed.listed(), listed.as_deref());
        }
    }
}
