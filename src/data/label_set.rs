//! Label names and their ids.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::data::Texts;
use crate::ids::LabelId;

/// The names of all labels; a label's id is its position.
///
/// Invariant: no name occurs twice.
#[derive(Clone, Debug, Default)]
pub struct LabelSet {
    names: Texts,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl LabelSet {
    /// The id of a name, which is added if it is new.
    pub fn intern(&mut self, name: &str) -> LabelId {
        let hash = self.hasher.hash_one(name);
        if let Some(&id) = self
            .index
            .find(hash, |&id| self.names.get(id as usize) == name)
        {
            return LabelId(id);
        }
        let id = self.names.len() as u32;
        self.names.push(name);
        let (names, hasher) = (&self.names, &self.hasher);
        self.index
            .insert_unique(hash, id, |&id| hasher.hash_one(names.get(id as usize)));
        LabelId(id)
    }

    /// The id of a name, if it is known.
    pub fn find(&self, name: &str) -> Option<LabelId> {
        let hash = self.hasher.hash_one(name);
        self.index
            .find(hash, |&id| self.names.get(id as usize) == name)
            .map(|&id| LabelId(id))
    }

    /// The name of a label.
    ///
    /// # Panics
    /// If the label is not in the set.
    pub fn name(&self, label: LabelId) -> &str {
        self.names.get(label.idx())
    }

    /// All names, in the order of their ids.
    pub fn names(&self) -> &Texts {
        &self.names
    }

    /// Number of labels.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

impl PartialEq for LabelSet {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names
    }
}

impl<T: AsRef<str>> FromIterator<T> for LabelSet {
    fn from_iter<I: IntoIterator<Item = T>>(names: I) -> Self {
        let names = names.into_iter();
        let mut labels = LabelSet {
            // A table that grows hashes every name again.
            index: HashTable::with_capacity(names.size_hint().0),
            ..LabelSet::default()
        };
        for name in names {
            labels.intern(name.as_ref());
        }
        labels
    }
}
