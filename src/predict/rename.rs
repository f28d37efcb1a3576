//! Other names for labels of a model.
//!
//! A label keeps its number and everything that the model learned of it, also from its old name.

use std::sync::Arc;

use super::{LabelRef, Predictor};
use crate::data::LabelSet;
use crate::error::{Error, Result};

impl Predictor {
    /// Renames labels, all at once, so that two of them may change their names with each other.
    ///
    /// # Errors
    /// [`Error::UnknownLabels`] naming the first; [`Error::Query`] if a label would get two names, or two labels one.
    /// The model is unchanged then.
    pub fn rename_labels(&mut self, renames: &[(LabelRef, String)]) -> Result<()> {
        let labels = self.find_all("rename", renames.iter().map(|rename| &rename.0))?;
        let mut names: Vec<Option<&str>> = vec![None; self.labels().len()];
        for (label, (_, name)) in labels.iter().zip(renames) {
            let before = names[label.idx()].replace(name);
            if before.is_some_and(|before| before != name) {
                let label = self.labels().name(*label);
                return Err(misuse(format!("two names for {label:?}")));
            }
        }
        let mut renamed = LabelSet::default();
        for (old, new) in self.labels().names().iter().zip(names) {
            let (name, n_before) = (new.unwrap_or(old), renamed.len());
            renamed.intern(name);
            if renamed.len() == n_before {
                return Err(misuse(format!("two labels with the name {name:?}")));
            }
        }
        self.parts.label_set = Arc::new(renamed);
        Ok(())
    }
}

fn misuse(found: String) -> Error {
    Error::Query {
        name: "rename",
        found,
        expected: "a name per label, and one that no other label has",
    }
}
