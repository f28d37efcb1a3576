//! Grouping pairs by key: the points that shortlisted a label, the texts that contain a word.
//!
//! A counting sort whose cost depends on the pairs, not on the number of possible keys: only touched counters are
//! read and reset. Groups are in ascending key order, members in input order.

/// Reusable buffers of a grouping over keys below a fixed bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups<T> {
    /// Members so far per possible key; all zero between calls.
    counts: Vec<u32>,
    keys: Vec<u32>,
    starts: Vec<usize>,
    members: Vec<T>,
}

impl<T: Copy + Default> Groups<T> {
    /// Buffers for keys below `n_keys`.
    pub(crate) fn new(n_keys: usize) -> Self {
        Groups {
            counts: vec![0; n_keys],
            keys: Vec::new(),
            starts: Vec::new(),
            members: Vec::new(),
        }
    }

    /// Groups items by their key.
    ///
    /// # Panics
    /// If a key is not below the bound.
    pub(crate) fn group(&mut self, items: impl Iterator<Item = (u32, T)> + Clone) {
        self.keys.clear();
        let mut n_items = 0;
        for (key, _) in items.clone() {
            let count = &mut self.counts[key as usize];
            if *count == 0 {
                self.keys.push(key);
            }
            *count += 1;
            n_items += 1;
        }
        self.keys.sort_unstable();
        self.starts.clear();
        self.starts.push(0);
        let mut end = 0usize;
        for &key in &self.keys {
            let count = &mut self.counts[key as usize];
            let start = end;
            end += *count as usize;
            self.starts.push(end);
            *count = start as u32;
        }
        self.members.resize(n_items, T::default());
        for (key, item) in items {
            let next = &mut self.counts[key as usize];
            self.members[*next as usize] = item;
            *next += 1;
        }
        for &key in &self.keys {
            self.counts[key as usize] = 0;
        }
    }

    /// The distinct keys, ascending.
    pub(crate) fn keys(&self) -> &[u32] {
        &self.keys
    }

    /// The items of one group, in input order.
    pub(crate) fn members(&self, group_idx: usize) -> &[T] {
        &self.members[self.starts[group_idx]..self.starts[group_idx + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn groups_are_those_of_a_map(first in prop::collection::vec(0u32..12, 0..40), second in prop::collection::vec(0u32..12, 0..40)) {
            let mut groups = Groups::new(12);
            for keys in [first, second] {
                groups.group(keys.iter().copied().zip(0u32..));
                let mut expected: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
                for (position, &key) in keys.iter().enumerate() {
                    expected.entry(key).or_default().push(position as u32);
                }
                let got: BTreeMap<u32, Vec<u32>> = groups.keys().iter().enumerate()
                    .map(|(group_idx, &key)| (key, groups.members(group_idx).to_vec())).collect();
                prop_assert_eq!(got, expected);
            }
        }
    }
}
