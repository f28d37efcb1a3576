//! Numbers that start at a cache line: a vector that crosses lines takes twice as long to load or store.

use std::ops::{Deref, DerefMut};

use bytemuck::{Pod, Zeroable};

use super::vector::LANES;

/// A cache line.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([f32; LANES]);

/// A list of numbers whose first one starts a cache line.
#[derive(Clone, Default)]
pub(crate) struct Aligned {
    lines: Vec<Line>,
    len: usize,
}

impl Aligned {
    /// Replaces what it holds by so many zeros.
    pub(crate) fn clear_to(&mut self, len: usize) {
        self.lines.clear();
        self.lines.resize(len.div_ceil(LANES), Line::zeroed());
        self.len = len;
    }

    /// Replaces what it holds by these numbers.
    pub(crate) fn copy_from(&mut self, values: &[f32]) {
        self.lines
            .resize(values.len().div_ceil(LANES), Line::zeroed());
        self.len = values.len();
        self.copy_from_slice(values);
    }
}

impl Deref for Aligned {
    type Target = [f32];

    #[inline]
    fn deref(&self) -> &[f32] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }
}

impl DerefMut for Aligned {
    #[inline]
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_start_at_a_line_and_are_those_given() {
        let mut aligned = Aligned::default();
        for len in [5, 40, 0, 16] {
            let values: Vec<f32> = (0..len).map(|at| at as f32).collect();
            aligned.copy_from(&values);
            assert_eq!(aligned[..], values);
            assert!((aligned.as_ptr() as usize).is_multiple_of(64));
            aligned.clear_to(len + 1);
            assert_eq!(aligned[..], vec![0.0; len + 1]);
        }
    }
}
