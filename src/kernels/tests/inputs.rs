//! KernelInputs for kernels: values of all magnitudes in slices of any length and alignment.

use super::super::TILE;
use crate::random::Random;

/// Lengths below, at and above multiples of the vector and block sizes.
pub(super) const LENGTHS: [usize; 19] = [
    0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 137,
];
/// Floats by which slices are off the alignment of their allocation.
pub(super) const OFFSETS: [usize; 3] = [0, 1, 3];

/// Rows of the matrices; some are used twice, some not at all.
pub(super) const N_ROWS: usize = 5;

/// The magnitude of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum MagnitudeRange {
    Zeros,
    Ordinary,
    /// Ordinary values and zeros of both signs.
    Sparse,
    Denormal,
    /// Large values, products of two of which are still finite.
    Large,
    /// All of the above.
    Mixed,
}

impl MagnitudeRange {
    pub(super) const ALL: [MagnitudeRange; 6] = [
        MagnitudeRange::Zeros,
        MagnitudeRange::Ordinary,
        MagnitudeRange::Sparse,
        MagnitudeRange::Denormal,
        MagnitudeRange::Large,
        MagnitudeRange::Mixed,
    ];

    fn draw(self, random: &mut Random) -> f32 {
        let unit = 2.0 * random.f32() - 1.0;
        match self {
            MagnitudeRange::Zeros => 0.0,
            MagnitudeRange::Ordinary => 3.0 * unit,
            MagnitudeRange::Sparse => [0.0, -0.0, 3.0 * unit][random.below(3)],
            MagnitudeRange::Denormal => unit * 1e-39,
            MagnitudeRange::Large => unit * 1e15,
            MagnitudeRange::Mixed => MagnitudeRange::ALL[random.below(5)].draw(random),
        }
    }
}

/// The inputs of a kernel.
#[derive(Debug)]
pub(super) struct KernelInputs {
    pub(super) len: usize,
    pub(super) offset: usize,
    magnitudes: MagnitudeRange,
}

impl KernelInputs {
    pub(super) fn new(len: usize, offset: usize, magnitudes: MagnitudeRange) -> Self {
        KernelInputs {
            len,
            offset,
            magnitudes,
        }
    }

    pub(super) fn name(&self) -> String {
        let (len, offset) = (self.len, self.offset);
        format!("length {len}, offset {offset}, {:?}", self.magnitudes)
    }

    /// A stream of its own for each name.
    fn random(&self, name: &str) -> Random {
        Random::new(self.offset as u64, name, self.len as u64)
    }

    /// `n` values; the same for the same name.
    pub(super) fn values(&self, name: &str, n: usize) -> Vec<f32> {
        let mut random = self.random(name);
        (0..n).map(|_| self.magnitudes.draw(&mut random)).collect()
    }

    /// A row of values.
    pub(super) fn row(&self, name: &str) -> Vec<f32> {
        self.values(name, self.len)
    }

    /// A matrix of [`N_ROWS`] rows.
    pub(super) fn matrix(&self) -> Vec<f32> {
        self.values("matrix", N_ROWS * self.len)
    }

    /// A tile of label rows.
    pub(super) fn tile(&self) -> [Vec<f32>; TILE] {
        std::array::from_fn(|label| self.row(&format!("label {label}")))
    }

    /// Rows of the matrix: an odd number of them at odd offsets, none where slices are empty.
    pub(super) fn rows(&self) -> Vec<u32> {
        let mut random = self.random("rows");
        let n_rows = if self.len == 0 { 0 } else { 8 + self.offset };
        (0..n_rows).map(|_| random.below(N_ROWS) as u32).collect()
    }

    /// A row of integers of eight bits.
    pub(super) fn eight_row(&self) -> Vec<i8> {
        self.integers("eight", self.len, |bits| bits as i8)
    }

    /// Integers from their whole range.
    pub(super) fn integers<T>(&self, name: &str, n: usize, cast: impl Fn(u64) -> T) -> Vec<T> {
        let mut random = self.random(name);
        (0..n).map(|_| cast(random.u64())).collect()
    }
}

/// A copy of values whose first one is `offset` elements off alignment, with guards on both sides.
pub(super) struct Unaligned<T> {
    buffer: Vec<T>,
    offset: usize,
    guard: T,
}

/// Guards after the last value.
const N_GUARDS: usize = 17;

impl<T: Copy + PartialEq + std::fmt::Debug> Unaligned<T> {
    pub(super) fn new(values: &[T], offset: usize, guard: T) -> Self {
        let mut buffer = vec![guard; offset];
        buffer.extend_from_slice(values);
        buffer.extend([guard; N_GUARDS]);
        Unaligned {
            buffer,
            offset,
            guard,
        }
    }

    pub(super) fn get(&self) -> &[T] {
        &self.buffer[self.offset..self.buffer.len() - N_GUARDS]
    }

    pub(super) fn get_mut(&mut self) -> &mut [T] {
        let end = self.buffer.len() - N_GUARDS;
        &mut self.buffer[self.offset..end]
    }

    /// The values, provided that nothing was written outside of them.
    pub(super) fn finish(self) -> Vec<T> {
        let (before, rest) = self.buffer.split_at(self.offset);
        let (values, after) = rest.split_at(rest.len() - N_GUARDS);
        let is_intact = |guard: &T| *guard == self.guard;
        assert!(before.iter().chain(after).all(is_intact), "a guard was hit");
        values.to_vec()
    }
}

/// A copy of a row, at the inputs' offset.
pub(super) fn unaligned(inputs: &KernelInputs, values: &[f32]) -> Unaligned<f32> {
    Unaligned::new(values, inputs.offset, 7.0)
}
