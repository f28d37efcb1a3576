//! W_L in eight bits: a quarter of the bytes shows which shortlisted rows are worth reading in full.
//!
//! A row is ŵ = scale·whole numbers, and ‖w − ŵ‖ is kept; an embedding becomes φ̂ with sixteen bits. Then
//! w·φ = ŵ·φ̂ + (w − ŵ)·φ + ŵ·(φ − φ̂) ≤ ŵ·φ̂ + ‖w − ŵ‖·‖φ‖ + ‖ŵ‖·‖φ − φ̂‖: a bound, so that
//! no row is left out wrongly.

use rayon::prelude::*;

use super::LabelWeights;
use crate::error::{Error, Result};
use crate::kernels::Kernels;
use crate::matrix::Matrix;

/// Largest absolute integer of a rounded row.
const ROW_LIMIT: f32 = 127.0;
/// Largest absolute integer that a file may hold.
const TYPE_LIMIT: f32 = 128.0;

/// The rows of W_L as 8-bit integers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CoarseRows {
    values: Matrix<i8>,
    /// The value of an integer unit, per row.
    scales: Vec<f32>,
    /// ‖w − ŵ‖, per row; the largest number if the row is not finite.
    errors: Vec<f32>,
}

/// Buffers of [`CoarseRows::upper_bounds`]; one per thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct CoarseScratch {
    embedding: Vec<i16>,
    products: Vec<i32>,
}

impl CoarseRows {
    /// Bytes: one per value, and scale and error per row.
    pub(crate) fn n_bytes(n_labels: usize, dim: usize) -> usize {
        n_labels * (dim + 8)
    }

    /// Rounds every row.
    pub(crate) fn new(weights: &LabelWeights) -> Self {
        let (n_rows, dim) = (weights.n_rows(), weights.n_cols());
        let mut values: Matrix<i8> = Matrix::zeros(n_rows, dim);
        let coarse = values.values_mut().par_chunks_mut(dim.max(1)).enumerate();
        let rounded = coarse.map(|(row_idx, out)| rounded(&weights.row(row_idx), out));
        let (scales, errors) = rounded.unzip();
        CoarseRows {
            values,
            scales,
            errors,
        }
    }

    /// Rows that were rounded before.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if there is not one scale and one error of at least 0 per row.
    pub(crate) fn from_parts(
        values: Matrix<i8>,
        scales: Vec<f32>,
        errors: Vec<f32>,
    ) -> Result<Self> {
        let n_rows = values.n_rows();
        let fits = |list: &[f32]| list.len() == n_rows && list.iter().all(|value| *value >= 0.0);
        if !fits(&scales) || !fits(&errors) {
            return Err(Error::InvalidModel(format!(
                "{n_rows} coarse rows need a scale and an error of at least 0 each"
            )));
        }
        Ok(CoarseRows {
            values,
            scales,
            errors,
        })
    }

    /// The rows as integers, the value of their units, and ‖w − ŵ‖.
    pub(crate) fn parts(&self) -> (&Matrix<i8>, &[f32], &[f32]) {
        (&self.values, &self.scales, &self.errors)
    }

    /// Upper bounds of w·φ for these rows, in whatever order the product is summed. bounds: one per row
    pub(crate) fn upper_bounds(
        &self,
        embedding: &[f32],
        rows: &[u32],
        scratch: &mut CoarseScratch,
        bounds: &mut Vec<f32>,
    ) {
        let CoarseScratch {
            embedding: coarse,
            products,
        } = scratch;
        let dim = embedding.len();
        assert_eq!(dim, self.values.n_cols(), "an embedding of another size");
        let most = (i32::MAX as usize / 128 / dim.max(1)).min(i16::MAX as usize) as f32;
        let step = largest(embedding) / most;
        let inverse = 1.0 / step;
        // Nothing but zeros, or numbers too small to differ from them.
        let (step, inverse) = if inverse.is_finite() {
            (step, inverse)
        } else {
            (0.0, 0.0)
        };
        coarse.clear();
        coarse.extend(embedding.iter().map(|x| nearest(x * inverse) as i16));
        let differences = embedding.iter().zip(&*coarse);
        let lost = norm(differences.map(|(x, &whole)| x - step * f32::from(whole)));
        let length = norm(embedding.iter().copied());
        // ‖ŵ‖ is at most the scale times this.
        let longest = TYPE_LIMIT * (dim as f32).sqrt();
        // Largest effect of rounding in the exact product, as a share of ‖w‖·‖φ‖: products are summed in eight lanes.
        let rounding = f32::EPSILON * (dim as f32 / 8.0 + 16.0);
        let of_scale = longest * (lost + rounding * length);
        products.resize(rows.len(), 0);
        Kernels::detect().integer_dots(coarse, self.values.values(), rows, products);
        let bound = |(&row, &product): (&u32, &i32)| {
            let (scale, error) = (self.scales[row as usize], self.errors[row as usize]);
            scale * (step * product as f32 + of_scale) + error * length
        };
        bounds.clear();
        bounds.extend(rows.iter().zip(&*products).map(bound));
    }
}

/// Writes a row as integers; returns the value of their unit, and ‖w − ŵ‖.
fn rounded(row: &[f32], out: &mut [i8]) -> (f32, f32) {
    let scale = largest(row) / ROW_LIMIT;
    let inverse = 1.0 / scale;
    if !scale.is_finite() || row.iter().any(|w| !w.is_finite()) {
        return (0.0, f32::MAX);
    }
    if !inverse.is_finite() {
        // Nothing but zeros, or numbers too small to differ from them.
        return (0.0, norm(row.iter().copied()));
    }
    for (out, w) in out.iter_mut().zip(row) {
        *out = (w * inverse).round_ties_even() as i8;
    }
    let differences = row.iter().zip(&*out);
    (
        scale,
        norm(differences.map(|(w, &whole)| w - scale * f32::from(whole))),
    )
}

fn largest(row: &[f32]) -> f32 {
    row.iter().fold(0f32, |most, x| most.max(x.abs()))
}

/// Prepares a number so that truncation rounds it to the nearest integer; `f32::round` would be a function call.
#[inline]
fn nearest(x: f32) -> f32 {
    x + 0.5f32.copysign(x)
}

/// ‖x‖, rounded up a little.
fn norm(values: impl Iterator<Item = f32>) -> f32 {
    let squares: f64 = values.map(|x| f64::from(x) * f64::from(x)).sum();
    (squares.sqrt() * (1.0 + 1e-6)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_product_exceeds_its_bound(
            (dim, values) in (1usize..70).prop_flat_map(|dim| (Just(dim), prop::collection::vec(-3.0f32..3.0, dim * 6))),
            scale in prop::sample::select(vec![1e-30f32, 1e-3, 1.0, 1e6]), is_half: bool,
        ) {
            let scaled: Vec<f32> = values[..5 * dim].iter().map(|w| w * scale).collect();
            let full = LabelWeights::from(Matrix::from_vec(scaled, 5, dim));
            let weights = if is_half { full.into_half() } else { full };
            let embedding = &values[5 * dim..];
            let coarse = CoarseRows::new(&weights);
            let (mut scratch, mut bounds) = (CoarseScratch::default(), Vec::new());
            coarse.upper_bounds(embedding, &[0, 1, 2, 3, 4, 2], &mut scratch, &mut bounds);
            for (&row, &bound) in [0usize, 1, 2, 3, 4, 2].iter().zip(&bounds) {
                let exact = weights.dot(row, embedding);
                prop_assert!(exact <= bound, "{exact} {bound}");
                let lengths = norm(weights.row(row).iter().copied()) * norm(embedding.iter().copied());
                prop_assert!(bound - exact <= 0.05 * lengths, "{exact} {bound} {lengths}");
            }
        }
    }

    #[test]
    fn a_row_that_is_not_finite_is_never_left_out() {
        let weights = Matrix::from_vec(vec![f32::NAN, 1.0, f32::INFINITY, 1.0, 0.0, 0.0], 3, 2);
        let mut bounds = Vec::new();
        let coarse = CoarseRows::new(&weights.into());
        coarse.upper_bounds(
            &[1.0, -1.0],
            &[0, 1, 2],
            &mut CoarseScratch::default(),
            &mut bounds,
        );
        assert!(
            bounds[0] > 1e30 && bounds[1] > 1e30 && bounds[2] == 0.0,
            "{bounds:?}"
        );
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let values = || Matrix::from_vec(vec![1i8, 2], 2, 1);
        assert!(CoarseRows::from_parts(values(), vec![1.0, 1.0], vec![0.0, 0.1]).is_ok());
        assert!(CoarseRows::from_parts(values(), vec![1.0], vec![0.0, 0.1]).is_err());
        assert!(CoarseRows::from_parts(values(), vec![1.0, -1.0], vec![0.0, 0.1]).is_err());
        assert!(CoarseRows::from_parts(values(), vec![1.0, 1.0], vec![0.0, f32::NAN]).is_err());
    }
}
