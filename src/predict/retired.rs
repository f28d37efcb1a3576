//! Labels that are answers no more: removed, or merged into others.
//!
//! Members keep their classifiers, since what they make of a label is also evidence about the others; a retired label is
//! dropped from the answers, or its score goes to the label that it was merged into, where it is the higher one.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::ids::{LabelId, Scored};

/// The retired labels, each with the label that it was merged into.
///
/// Invariant: no label was merged into a retired one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retired(BTreeMap<LabelId, Option<LabelId>>);

impl Retired {
    /// Retired labels of a model with this many.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if there is no such label, or one was merged into a retired one.
    pub(crate) fn new(
        labels: impl Iterator<Item = (LabelId, Option<LabelId>)>,
        n_labels: usize,
    ) -> Result<Self> {
        let retired: BTreeMap<_, _> = labels.collect();
        let is_valid = |label: &LabelId| label.idx() < n_labels;
        let fits = retired.keys().all(is_valid)
            && (retired.values().flatten())
                .all(|into| is_valid(into) && !retired.contains_key(into));
        if fits {
            return Ok(Retired(retired));
        }
        let problem = "its retired labels are not among its labels";
        Err(Error::InvalidModel(problem.into()))
    }

    /// Whether no label is retired.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a label is retired.
    pub(crate) fn contains(&self, label: LabelId) -> bool {
        self.0.contains_key(&label)
    }

    /// The retired labels, ascending, with those that they were merged into.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (LabelId, Option<LabelId>)> {
        self.0.iter().map(|(&label, &into)| (label, into))
    }

    /// The label that answers for another; none if it was removed.
    pub(crate) fn successor(&self, label: LabelId) -> Option<LabelId> {
        self.0.get(&label).copied().unwrap_or(Some(label))
    }

    /// Retires a label.
    pub(super) fn retire(&mut self, label: LabelId, into: Option<LabelId>) {
        for earlier in self.0.values_mut() {
            if *earlier == Some(label) {
                *earlier = into;
            }
        }
        self.0.insert(label, into);
    }

    /// Brings a label back.
    pub(super) fn restore(&mut self, label: LabelId) {
        self.0.remove(&label);
    }

    /// Adds the labels that were merged into listed ones.
    pub(super) fn with_predecessors(&self, listed: &mut Vec<LabelId>) {
        let wanted: std::collections::BTreeSet<LabelId> = listed.iter().copied().collect();
        let merged = self.iter().filter_map(|(label, into)| Some((label, into?)));
        listed.extend(
            merged
                .filter(|(_, into)| wanted.contains(into))
                .map(|(label, _)| label),
        );
    }

    /// Replaces retired labels by their successors, of which the higher score counts.
    pub(super) fn replace(&self, scored: &mut Vec<Scored>) {
        if self.is_empty() || !scored.iter().any(|scored| self.contains(scored.label)) {
            return;
        }
        scored.retain_mut(|scored| match self.successor(scored.label) {
            Some(label) => {
                scored.label = label;
                true
            }
            None => false,
        });
        scored.sort_unstable_by(|a, b| a.label.cmp(&b.label).then(b.score.total_cmp(&a.score)));
        scored.dedup_by_key(|scored| scored.label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_end_at_labels_that_are_there() {
        let of = LabelId;
        let mut retired = Retired::default();
        retired.retire(of(1), Some(of(2)));
        retired.retire(of(2), Some(of(3)));
        assert_eq!(retired.successor(of(1)), Some(of(3)));
        let scored = |label: u32, score: f32| Scored {
            label: of(label),
            score,
        };
        let mut answers = vec![
            scored(1, 0.9),
            scored(3, 0.4),
            scored(0, 0.5),
            scored(2, 0.1),
        ];
        retired.replace(&mut answers);
        assert_eq!(answers, [scored(0, 0.5), scored(3, 0.9)]);
        let mut listed = vec![of(3)];
        retired.with_predecessors(&mut listed);
        assert_eq!(listed, [of(3), of(1), of(2)]);
        retired.retire(of(3), None);
        assert_eq!(retired.successor(of(1)), None);
        retired.restore(of(3));
        assert_eq!(retired.successor(of(3)), Some(of(3)));
        assert!(Retired::new(retired.iter(), 3).is_ok());
        assert!(Retired::new(retired.iter(), 2).is_err());
        let into_retired = [(of(0), Some(of(1))), (of(1), None)];
        assert!(Retired::new(into_retired.into_iter(), 3).is_err());
    }
}
