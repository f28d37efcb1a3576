//! The token ids of many texts, without padding.

/// Token ids of points, row by row.
///
/// Invariant: `ends` starts at 0, never decreases, and ends at the number of ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenRows {
    ends: Vec<usize>,
    ids: Vec<u32>,
}

impl Default for TokenRows {
    fn default() -> Self {
        TokenRows {
            ends: vec![0],
            ids: Vec::new(),
        }
    }
}

impl TokenRows {
    /// Appends a row.
    pub(crate) fn push(&mut self, ids: &[u32]) {
        self.ids.extend_from_slice(ids);
        self.ends.push(self.ids.len());
    }

    /// One row.
    ///
    /// # Panics
    /// If there is no such row.
    pub(crate) fn row(&self, row_idx: usize) -> &[u32] {
        &self.ids[self.ends[row_idx]..self.ends[row_idx + 1]]
    }

    /// Number of rows.
    pub(crate) fn n_rows(&self) -> usize {
        self.ends.len() - 1
    }

    /// Number of ids in all rows.
    pub(crate) fn n_tokens(&self) -> usize {
        self.ids.len()
    }

    /// These rows, in this order.
    pub(crate) fn select_rows(&self, rows: &[usize]) -> TokenRows {
        let mut selected = TokenRows::default();
        rows.iter().for_each(|&row| selected.push(self.row(row)));
        selected
    }
}

impl<T: AsRef<[u32]>> FromIterator<T> for TokenRows {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> Self {
        let mut all = TokenRows::default();
        rows.into_iter().for_each(|row| all.push(row.as_ref()));
        all
    }
}
