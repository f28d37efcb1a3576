//! Identifiers: a label, its row in the model, a cluster, and a label with its score.
//!
//! A bare `u32` never crosses a function border in the method; these newtypes do.

use bytemuck::{Pod, Zeroable};

/// A label, as its column in Y and its position in the label set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct LabelId(pub u32);

/// A row of W_L. A model orders its rows by cluster; `Numbering` maps between rows and labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct LabelRow(pub u32);

/// A cluster, as its row in W_C and in the adjacency A.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct ClusterId(pub u32);

impl LabelId {
    /// The id as an index into per-label arrays.
    #[inline]
    pub fn idx(self) -> usize {
        self.0 as usize
    }
}

impl LabelRow {
    /// The row as an index into per-row arrays.
    #[inline]
    pub(crate) fn idx(self) -> usize {
        self.0 as usize
    }
}

impl ClusterId {
    /// The id as an index into per-cluster arrays.
    #[inline]
    pub(crate) fn idx(self) -> usize {
        self.0 as usize
    }
}

/// A label and its score; higher is more relevant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// The label.
    pub label: LabelId,
    /// Its score.
    pub score: f32,
}
