//! Dense matrix products, over the `f32` kernels of the `gemm` crates.
//!
//! Each call runs on one thread; callers split the work into shards that do not depend on the number of threads, so
//! results do not either.

#![allow(unsafe_code)] // gemm takes raw pointers; every view is checked against its slice first

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

    fn transpose(self) -> Self {
        View {
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
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
    let add = output == Output::Add;
    let (row, column) = (out.stride as isize, 1);
    let out = out.values.as_mut_ptr();
    let kernel = gemm_f32::gemm::f32::get_gemm_fn();
    // The kernel writes columns, so rows are written as the columns of outᵀ = bᵀ·aᵀ.
    let is_transposed = row > column;
    let (m, n, a, b) = if is_transposed {
        (n, m, b.transpose(), a.transpose())
    } else {
        (m, n, a, b)
    };
    let (row, column) = if is_transposed {
        (column, row)
    } else {
        (row, column)
    };
    // SAFETY: the three buffers hold every element that the shape and strides address.
    unsafe {
        kernel(
            m,
            n,
            k,
            out,
            column,
            row,
            add,
            a.values.as_ptr(),
            a.col_stride as isize,
            a.row_stride as isize,
            b.values.as_ptr(),
            b.col_stride as isize,
            b.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
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
                out[i * n + j] = (0..k).map(|l| a(i, l) * b(l, j)).sum();
            }
        }
        out
    }

    #[test]
    fn products_agree_with_three_loops_on_odd_shapes() {
        for shape in [[5, 7, 3], [1, 33, 17], [19, 2, 1], [4, 4, 0]] {
            let [m, n, k] = shape;
            let a: Vec<f32> = (0..m * k).map(|i| (i as f32 * 0.7).sin()).collect();
            let b: Vec<f32> = (0..k * n).map(|i| (i as f32 * 0.3).cos()).collect();
            let check = |got: &[f32], expected: &[f32]| {
                let close = got.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-5);
                assert!(close, "{shape:?}: {got:?} {expected:?}");
            };
            let mut out = vec![1.0; m * n];
            product(
                shape,
                View::rows(&a, k),
                View::rows(&b, n),
                &mut out,
                Output::Replace,
            );
            let expected = naive(shape, |i, l| a[i * k + l], |l, j| b[l * n + j]);
            check(&out, &expected);
            product(
                shape,
                View::rows(&a, k),
                View::rows(&b, n),
                &mut out,
                Output::Add,
            );
            check(&out, &expected.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
            product(
                shape,
                View::transposed(&a, m),
                View::transposed(&b, k),
                &mut out,
                Output::Replace,
            );
            check(
                &out,
                &naive(shape, |i, l| a[l * m + i], |l, j| b[j * k + l]),
            );
        }
    }
}
