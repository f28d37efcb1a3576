//! Identifiers: a label, a cluster, and a label with its score.
//!
//! A bare `u32` never crosses a function border in the method; these newtypes do.
//! Nothing here computes anything.

use bytemuck::{Pod, Zeroable};

/// A label, as its row in W_L and its column in Y.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct LabelId(pub u32);

/// A cluster, as its row in W_C and in the adjacency A.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct ClusterId(pub u32);

impl LabelId {
    /// The id as an index into per-label arrays.
    #[inline]
    pub fn idx(self) -> usize {
        self.0 as usize
    }
}

impl ClusterId {
    /// The id as an index into per-cluster arrays.
    #[inline]
    pub fn idx(self) -> usize {
        self.0 as usize
    }
}

/// A label and how relevant it is held to be; higher is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// The label.
    pub label: LabelId,
    /// Its score.
    pub score: f32,
}
