//! Dense matrix products.
//!
//! An element is Σ a·b in blocks of [`DEPTH`]: within a block the terms are added one after the other, each rounded once
//! with its product, and the blocks' sums follow in their order. So results depend neither on the machine nor on the shape.
//! Each call runs on one thread; callers split the work into pieces that do not depend on the number of threads.
//!
//! Columns of the right operand are packed, some at a time; the left one is read where it is.

use std::mem::MaybeUninit;

use super::vector::{LANES, Vector, load_up_to, store_up_to};
use super::{Kernels, run};

/// Terms of a block.
const DEPTH: usize = 256;
/// Most columns that are packed at a time.
const MOST_COLUMNS: usize = 2 * LANES;

/// A matrix inside a slice: element (i, j) is at `i * row_stride + j * col_stride`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    values: &'a [f32],
    row_stride: usize,
    col_stride: usize,
}

impl<'a> View<'a> {
    /// Rows one after the other, `stride` values apart.
    pub(crate) fn rows(values: &'a [f32], stride: usize) -> Self {
        View {
            values,
            row_stride: stride,
            col_stride: 1,
        }
    }

    /// The transpose of [`View::rows`].
    pub(crate) fn transposed(values: &'a [f32], stride: usize) -> Self {
        View {
            values,
            row_stride: 1,
            col_stride: stride,
        }
    }

    fn covers(&self, n_rows: usize, n_cols: usize) -> bool {
        n_rows == 0
            || n_cols == 0
            || (n_rows - 1) * self.row_stride + (n_cols - 1) * self.col_stride < self.values.len()
    }
}

/// Whether a product replaces the output or is added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// out = product.
    Replace,
    /// out += product.
    Add,
}

/// An output inside a slice, whose rows start `stride` values apart.
#[derive(Debug)]
pub(crate) struct ViewMut<'a> {
    values: &'a mut [f32],
    stride: usize,
}

impl<'a> ViewMut<'a> {
    /// Rows one after the other, `stride` values apart.
    pub(crate) fn rows(values: &'a mut [f32], stride: usize) -> Self {
        ViewMut { values, stride }
    }
}

/// out (m×n, row-major) = a (m×k) · b (k×n), where `[m, n, k]` is the shape.
///
/// # Panics
/// If an operand is smaller than the shape says.
pub(crate) fn product(
    shape: [usize; 3],
    a: View<'_>,
    b: View<'_>,
    out: &mut [f32],
    output: Output,
) {
    let [m, n, k] = shape;
    assert_eq!(out.len(), m * n, "result of {m}x{k}·{k}x{n}");
    product_into(shape, a, b, ViewMut::rows(out, n), output);
}

/// Like [`product`], into rows that are apart; values between them are kept.
///
/// # Panics
/// If an operand is smaller than the shape says, or the rows of the output overlap.
pub(crate) fn product_into(
    shape: [usize; 3],
    a: View<'_>,
    b: View<'_>,
    out: ViewMut<'_>,
    output: Output,
) {
    Kernels::detect().product_into(shape, a, b, out, output);
}

impl Kernels {
    /// As the function of the same name.
    pub(crate) fn product_into(
        self,
        [m, n, k]: [usize; 3],
        a: View<'_>,
        b: View<'_>,
        out: ViewMut<'_>,
        output: Output,
    ) {
        assert!(a.covers(m, k), "left operand of {m}x{k}·{k}x{n}");
        assert!(b.covers(k, n), "right operand of {m}x{k}·{k}x{n}");
        let result = View::rows(out.values, out.stride);
        let is_disjoint = out.stride >= n || m <= 1;
        assert!(
            result.covers(m, n) && is_disjoint,
            "result of {m}x{k}·{k}x{n}"
        );
        if output == Output::Replace {
            for row in 0..m {
                out.values[row * out.stride..][..n].fill(0.0);
            }
        }
        let shape = [m, n, k];
        run!(self, multiply(shape: [usize; 3], a: View<'_>, b: View<'_>, out: ViewMut<'_>))
    }
}

/// Packed columns of the right operand, at the alignment of a cache line.
#[repr(align(64))]
struct Packed([MaybeUninit<f32>; DEPTH * MOST_COLUMNS]);

/// out += a · b. SAFETY: the caller has the instructions of `V` and has compared the shape with the operands.
#[inline(always)]
unsafe fn multiply<V: Vector>(shape: [usize; 3], a: View<'_>, b: View<'_>, out: ViewMut<'_>) {
    unsafe {
        // The sums of a block fill most registers.
        match V::N_REGISTERS >= 32 {
            true => multiply_blocks::<V, 8, 2>(shape, a, b, out),
            false => multiply_blocks::<V, 4, 1>(shape, a, b, out),
        }
    }
}

/// out += a · b, ROWS rows and N vectors of columns at a time.
#[inline(always)]
unsafe fn multiply_blocks<V: Vector, const ROWS: usize, const N: usize>(
    [m, n, k]: [usize; 3],
    a: View<'_>,
    b: View<'_>,
    out: ViewMut<'_>,
) {
    let mut packed = Packed([MaybeUninit::uninit(); DEPTH * MOST_COLUMNS]);
    let n_columns = N * LANES;
    let out_stride = out.stride;
    let out = out.values.as_mut_ptr();
    for first_term in (0..k).step_by(DEPTH) {
        let depth = DEPTH.min(k - first_term);
        for first_column in (0..n).step_by(n_columns) {
            let width = n_columns.min(n - first_column);
            pack(
                b,
                [first_term, first_column],
                [depth, width],
                n_columns,
                &mut packed.0,
            );
            for first_row in (0..m).step_by(ROWS) {
                let n_rows = ROWS.min(m - first_row);
                let mut rows = [a.values.as_ptr(); ROWS];
                // A block with fewer rows repeats the last; its sums are not written.
                for (at, row) in rows.iter_mut().enumerate() {
                    let row_idx = (first_row + at).min(m - 1);
                    let start = row_idx * a.row_stride + first_term * a.col_stride;
                    *row = unsafe { row.add(start) };
                }
                unsafe {
                    let sums = block_sums::<V, ROWS, N>(
                        rows,
                        a.col_stride,
                        packed.0.as_ptr().cast(),
                        depth,
                    );
                    for (at, sums) in sums.into_iter().enumerate().take(n_rows) {
                        let out = out.add((first_row + at) * out_stride + first_column);
                        for (block, sum) in sums.into_iter().enumerate() {
                            let n_left = width.saturating_sub(block * LANES);
                            if n_left > 0 {
                                let out = out.add(block * LANES);
                                store_up_to(sum.add(load_up_to(out, n_left)), out, n_left);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Sums of products of rows with packed columns, one term after the other.
#[inline(always)]
unsafe fn block_sums<V: Vector, const ROWS: usize, const N: usize>(
    rows: [*const f32; ROWS],
    stride: usize,
    packed: *const f32,
    depth: usize,
) -> [[V; N]; ROWS] {
    unsafe {
        let mut sums = [[V::splat(0.0); N]; ROWS];
        for term in 0..depth {
            let mut columns = [V::splat(0.0); N];
            for (block, columns) in columns.iter_mut().enumerate() {
                *columns = V::load(packed.add((term * N + block) * LANES));
            }
            for row in 0..ROWS {
                let factor = V::splat(*rows[row].add(term * stride));
                for block in 0..N {
                    sums[row][block] = factor.mul_add(columns[block], sums[row][block]);
                }
            }
        }
        sums
    }
}

/// Copies columns of the right operand, term after term, zeros beyond the last.
fn pack(
    b: View<'_>,
    [first_term, first_column]: [usize; 2],
    [depth, width]: [usize; 2],
    n_columns: usize,
    packed: &mut [MaybeUninit<f32>],
) {
    let packed = packed[..depth * n_columns].chunks_exact_mut(n_columns);
    let start = |term: usize| (first_term + term) * b.row_stride + first_column * b.col_stride;
    if b.col_stride == 1 {
        for (term, packed) in packed.enumerate() {
            let (values, rest) = packed.split_at_mut(width);
            values.write_copy_of_slice(&b.values[start(term)..][..width]);
            rest.fill(MaybeUninit::new(0.0));
        }
        return;
    }
    let last = (width - 1) * b.col_stride;
    for (term, packed) in packed.enumerate() {
        let (values, rest) = packed.split_at_mut(width);
        let column = b.values[start(term)..][..=last]
            .iter()
            .step_by(b.col_stride);
        values
            .iter_mut()
            .zip(column)
            .for_each(|(value, &x)| _ = value.write(x));
        rest.fill(MaybeUninit::new(0.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(
        [m, n, k]: [usize; 3],
        a: impl Fn(usize, usize) -> f32,
        b: impl Fn(usize, usize) -> f32,
    ) -> Vec<f32> {
        let mut out = vec![0.0; m * n];
        for i in 0..m {
            for j in 0..n {
                let mut sum = 0.0;
                for block in (0..k).step_by(DEPTH) {
                    let terms = block..k.min(block + DEPTH);
                    sum += terms.fold(0.0, |sum: f32, l| a(i, l).mul_add(b(l, j), sum));
                }
                out[i * n + j] = sum;
            }
        }
        out
    }

    #[test]
    fn products_are_those_of_three_loops_to_the_bit_on_odd_shapes() {
        let shapes = [
            [5, 7, 3],
            [1, 33, 17],
            [19, 2, 1],
            [4, 4, 0],
            [17, 49, 300],
            [9, 31, 513],
        ];
        for shape in shapes {
            let [m, n, k] = shape;
            let a: Vec<f32> = (0..m * k).map(|i| (i as f32 * 0.7).sin()).collect();
            let b: Vec<f32> = (0..k * n).map(|i| (i as f32 * 0.3).cos()).collect();
            let by_rows = (View::rows(&a, k), View::rows(&b, n));
            let transposed = (View::transposed(&a, m), View::transposed(&b, k));
            let expected = naive(shape, |i, l| a[i * k + l], |l, j| b[l * n + j]);
            let of_transposed = naive(shape, |i, l| a[l * m + i], |l, j| b[j * k + l]);
            for kernels in Kernels::all() {
                for ((a, b), expected) in [(by_rows, &expected), (transposed, &of_transposed)] {
                    // Values between the rows of the output stay.
                    let stride = n + 3;
                    let mut out = vec![7.0; m * stride];
                    for (output, factor) in [(Output::Replace, 1.0), (Output::Add, 2.0)] {
                        let view = ViewMut::rows(&mut out, stride);
                        kernels.product_into(shape, a, b, view, output);
                        for (row, expected) in out.chunks_exact(stride).zip(expected.chunks(n)) {
                            for (&found, &expected) in row.iter().zip(expected) {
                                let expected = factor * expected;
                                // What is added to is rounded once a block.
                                let is_right = match (output, k <= DEPTH) {
                                    (Output::Add, false) => (found - expected).abs() < 1e-4,
                                    _ => found == expected,
                                };
                                assert!(is_right, "{kernels:?} {shape:?}: {found} {expected}");
                            }
                            assert!(row[n..].iter().all(|&kept| kept == 7.0));
                        }
                    }
                }
            }
        }
    }
}
