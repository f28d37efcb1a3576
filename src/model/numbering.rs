//! The order of a model's labels: cluster after cluster, so that shortlisted rows of W_L are neighbours in memory.

use crate::error::{Error, Result};
use crate::ids::{LabelId, LabelRow};
use crate::matrix::{CsrBuilder, CsrMatrix};

/// The map between labels and rows of W_L.
///
/// Invariant: a permutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Numbering {
    label_of_row: Vec<LabelId>,
    row_of_label: Vec<LabelRow>,
}

impl Numbering {
    /// The order that holds the label `label_of_row[i]` in row `i`.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if it is not a permutation.
    pub(crate) fn new(label_of_row: Vec<LabelId>) -> Result<Self> {
        let mut is_numbered = vec![false; label_of_row.len()];
        let mut row_of_label = vec![LabelRow(0); label_of_row.len()];
        for (row, label) in label_of_row.iter().enumerate() {
            let was_numbered = is_numbered
                .get_mut(label.idx())
                .is_none_or(|is_numbered| std::mem::replace(is_numbered, true));
            if was_numbered {
                return Err(Error::InvalidModel(format!(
                    "label {} is numbered twice or not at all",
                    label.0
                )));
            }
            row_of_label[label.idx()] = LabelRow(row as u32);
        }
        Ok(Numbering {
            label_of_row,
            row_of_label,
        })
    }

    /// The label in a row.
    #[inline]
    pub(crate) fn label(&self, row: LabelRow) -> LabelId {
        self.label_of_row[row.idx()]
    }

    /// The row of a label.
    #[inline]
    pub(crate) fn row(&self, label: LabelId) -> LabelRow {
        self.row_of_label[label.idx()]
    }

    /// The labels in the order of their rows.
    pub(crate) fn labels(&self) -> &[LabelId] {
        &self.label_of_row
    }

    /// A label matrix with its columns in row order.
    pub(crate) fn renumber(&self, labels: &CsrMatrix) -> CsrMatrix {
        let mut builder = CsrBuilder::default();
        let mut entries: Vec<(u32, f32)> = Vec::new();
        for point in 0..labels.n_rows() {
            let (columns, values) = labels.row(point);
            entries.clear();
            let renumbered = columns
                .iter()
                .zip(values)
                .map(|(&label, &value)| (self.row_of_label[label as usize].0, value));
            entries.extend(renumbered);
            entries.sort_unstable_by_key(|entry| entry.0);
            builder.push_row(entries.iter().copied());
        }
        builder
            .finish(labels.n_cols())
            .expect("renumbered columns of a valid matrix are valid")
    }
}
