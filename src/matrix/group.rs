//! Grouping pairs by key: which points shortlisted this label, which texts hold this word.
//!
//! A counting sort whose cost grows with the pairs, not with the number of possible keys: only touched counters
//! are read and reset. Groups come in ascending key order, members in the order they were given.

/// Reusable buffers of a grouping over keys below a fixed bound.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// For each possible key: members so far; all zero between calls.
    counts: Vec<u32>,
    keys: Vec<u32>,
    starts: Vec<usize>,
    members: Vec<u32>,
}

impl Groups {
    /// Buffers for keys below `n_keys`.
    pub fn new(n_keys: usize) -> Self {
        Groups {
            counts: vec![0; n_keys],
            ..Groups::default()
        }
    }

    /// Groups the positions of `keys` by key.
    ///
    /// # Panics
    /// If a key is not below the bound.
    pub fn group(&mut self, keys: impl Iterator<Item = u32> + Clone) {
        self.keys.clear();
        let mut n_pairs = 0;
        for key in keys.clone() {
            let count = &mut self.counts[key as usize];
            if *count == 0 {
                self.keys.push(key);
            }
            *count += 1;
            n_pairs += 1;
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
        self.members.resize(n_pairs, 0);
        for (position, key) in keys.enumerate() {
            let next = &mut self.counts[key as usize];
            self.members[*next as usize] = position as u32;
            *next += 1;
        }
        for &key in &self.keys {
            self.counts[key as usize] = 0;
        }
    }

    /// The distinct keys, ascending.
    pub fn keys(&self) -> &[u32] {
        &self.keys
    }

    /// Where each group starts in `members`; one more entry than keys.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// Positions of the pairs, group after group.
    pub fn members(&self) -> &[u32] {
        &self.members
    }

    /// Positions of the pairs of one group.
    pub fn group_members(&self, group_idx: usize) -> &[u32] {
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
                groups.group(keys.iter().copied());
                let mut expected: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
                for (position, &key) in keys.iter().enumerate() {
                    expected.entry(key).or_default().push(position as u32);
                }
                let got: BTreeMap<u32, Vec<u32>> = groups.keys().iter().enumerate()
                    .map(|(group_idx, &key)| (key, groups.group_members(group_idx).to_vec())).collect();
                prop_assert_eq!(got, expected);
            }
        }
    }
}
