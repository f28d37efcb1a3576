//! W_L in eight bits: a quarter of the bytes shows which shortlisted rows are worth reading in full.
//!
//! A row is ŵ = scale·whole numbers, and ‖w − ŵ‖ is kept; an embedding becomes φ̂ with sixteen bits. Then
//! w·φ = ŵ·φ̂ + (w − ŵ)·φ + ŵ·(φ − φ̂) ≤ ŵ·φ̂ + ‖w − ŵ‖·‖φ‖ + ‖ŵ‖·‖φ − φ̂‖: a bound, so that
//! no row is left out wrongly.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::kernels::Kernels;
use crate::matrix::{EightBits, WeightRows};

/// Largest absolute integer that a file may hold.
const TYPE_LIMIT: f32 = 128.0;

/// The rows of W_L in eight bits, beside the full ones.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CoarseRows {
    rows: EightBits,
    /// ‖w − ŵ‖, per row; the largest number if the row is not finite.
    errors: Vec<f32>,
}

/// Upper bounds of products with the rows of W_L.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds<'a> {
    rows: &'a EightBits,
    /// ‖w − ŵ‖, per row; none where w is ŵ.
    errors: &'a [f32],
}

/// Buffers of [`Bounds::upper`]; one per thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct CoarseScratch {
    embedding: Vec<i16>,
    products: Vec<i32>,
}

impl CoarseRows {
    /// Bytes: those of the rows, and an error per row.
    pub(crate) fn n_bytes(n_labels: usize, dim: usize) -> usize {
        EightBits::n_bytes(n_labels, dim) + 4 * n_labels
    }

    /// Rounds every row; `None` if the rows have eight bits anyway.
    pub(crate) fn new(weights: &WeightRows) -> Option<Self> {
        let WeightRows::Full(matrix) = weights else {
            return None;
        };
        let rows = EightBits::new(matrix);
        let error = |row_idx| {
            let row: &[f32] = matrix.row(row_idx);
            if row.iter().any(|w| !w.is_finite()) {
                return f32::MAX;
            }
            norm(
                row.iter()
                    .zip(rows.row(row_idx))
                    .map(|(w, rounded)| w - rounded),
            )
        };
        let errors = (0..matrix.n_rows()).into_par_iter().map(error).collect();
        Some(CoarseRows { rows, errors })
    }

    /// Rows that were rounded before.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if there is not one error of at least 0 per row.
    pub(crate) fn from_parts(rows: EightBits, errors: Vec<f32>) -> Result<Self> {
        let n_rows = rows.n_rows();
        if errors.len() != n_rows || !errors.iter().all(|error| *error >= 0.0) {
            return Err(Error::InvalidModel(format!(
                "{n_rows} coarse rows need an error of at least 0 each"
            )));
        }
        Ok(CoarseRows { rows, errors })
    }

    /// The rows, and ‖w − ŵ‖.
    pub(crate) fn parts(&self) -> (&EightBits, &[f32]) {
        (&self.rows, &self.errors)
    }

    /// Bounds of products with the full rows.
    pub(crate) fn bounds(&self) -> Bounds<'_> {
        Bounds {
            rows: &self.rows,
            errors: &self.errors,
        }
    }
}

impl<'a> Bounds<'a> {
    /// Bounds of rows that have eight bits themselves.
    pub(crate) fn exact(rows: &'a EightBits) -> Self {
        Bounds { rows, errors: &[] }
    }

    /// Upper bounds of w·φ for these rows, in whatever order the product is summed. bounds: one per row
    pub(crate) fn upper(
        self,
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
        assert_eq!(dim, self.rows.n_cols(), "an embedding of another size");
        let (values, scales) = self.rows.parts();
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
        // Largest effect of rounding in the exact product, as a share of ‖w‖·‖φ‖: products are summed in at least eight lanes.
        let rounding = f32::EPSILON * (dim as f32 / 8.0 + 16.0);
        let of_scale = longest * (lost + rounding * length);
        products.resize(rows.len(), 0);
        Kernels::detect().integer_dots(coarse, values.values(), rows, products);
        let bound = |(&row, &product): (&u32, &i32)| {
            let scale = scales[row as usize];
            let error = self.errors.get(row as usize).copied().unwrap_or(0.0);
            scale * (step * product as f32 + of_scale) + error * length
        };
        bounds.clear();
        bounds.extend(rows.iter().zip(&*products).map(bound));
    }
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
    use crate::matrix::Matrix;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_product_exceeds_its_bound(
            (dim, values) in (1usize..70).prop_flat_map(|dim| (Just(dim), prop::collection::vec(-3.0f32..3.0, dim * 6))),
            scale in prop::sample::select(vec![1e-30f32, 1e-3, 1.0, 1e6]), is_eight: bool,
        ) {
            let scaled: Vec<f32> = values[..5 * dim].iter().map(|w| w * scale).collect();
            let full = WeightRows::from(Matrix::from_vec(scaled, 5, dim));
            let weights = if is_eight { full.into_eight() } else { full };
            let embedding = &values[5 * dim..];
            let coarse = CoarseRows::new(&weights);
            let upper = match (&weights, &coarse) {
                (WeightRows::Eight(rows), None) => Bounds::exact(rows),
                (_, coarse) => coarse.as_ref().expect("full rows have coarse ones").bounds(),
            };
            let (mut scratch, mut bounds) = (CoarseScratch::default(), Vec::new());
            upper.upper(embedding, &[0, 1, 2, 3, 4, 2], &mut scratch, &mut bounds);
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
        let coarse = CoarseRows::new(&weights.into()).unwrap();
        coarse.bounds().upper(
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
        let rows = || EightBits::new(&Matrix::from_vec(vec![1.0, 2.0], 2, 1));
        assert!(CoarseRows::from_parts(rows(), vec![0.0, 0.1]).is_ok());
        assert!(CoarseRows::from_parts(rows(), vec![0.0]).is_err());
        assert!(CoarseRows::from_parts(rows(), vec![0.0, f32::NAN]).is_err());
    }
}
