//! Dense matrix products, over the `gemm` crate.
//!
//! Shapes are written as they multiply: `nt` is A·Bᵀ, `nn` is A·B, `tn` is Aᵀ·B; all row-major.
//! Each call runs on one thread; callers split the work into shards whose bounds do not depend on the number of
//! threads, which keeps results the same for any number of them.

#![allow(unsafe_code)] // gemm takes raw pointers; shapes are asserted before every call

/// Whether a product replaces what the output held or is added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// out = product.
    Replace,
    /// out += product.
    Add,
}

/// The shape of a product: `m×k` times `k×n`.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// The summed dimension.
    pub k: usize,
}

/// out (m×n) = a (m×k) · b (n×k)ᵀ.
pub fn product_nt(shape: Shape, a: &[f32], b: &[f32], out: &mut [f32], output: Output) {
    let Shape { m, n, k } = shape;
    run(shape, (a, k, 1), (b, 1, k), out, output);
    debug_assert!(a.len() == m * k && b.len() == n * k);
}

/// out (m×n) = a (m×k) · b (k×n).
pub fn product_nn(shape: Shape, a: &[f32], b: &[f32], out: &mut [f32], output: Output) {
    run(shape, (a, shape.k, 1), (b, shape.n, 1), out, output);
}

/// out (m×n) = a (k×m)ᵀ · b (k×n).
pub fn product_tn(shape: Shape, a: &[f32], b: &[f32], out: &mut [f32], output: Output) {
    run(shape, (a, 1, shape.m), (b, shape.n, 1), out, output);
}

/// Operands come with their row and column strides.
fn run(
    shape: Shape,
    a: (&[f32], usize, usize),
    b: (&[f32], usize, usize),
    out: &mut [f32],
    output: Output,
) {
    let Shape { m, n, k } = shape;
    assert_eq!(a.0.len(), m * k, "left operand of {shape:?}");
    assert_eq!(b.0.len(), k * n, "right operand of {shape:?}");
    assert_eq!(out.len(), m * n, "result of {shape:?}");
    if m == 0 || n == 0 {
        return;
    }
    let add = output == Output::Add;
    // SAFETY: the three buffers have exactly the sizes that the shape and strides address.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            add,
            a.0.as_ptr(),
            a.2 as isize,
            a.1 as isize,
            b.0.as_ptr(),
            b.2 as isize,
            b.1 as isize,
            if add { 1.0 } else { 0.0 },
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(
        shape: Shape,
        a: impl Fn(usize, usize) -> f32,
        b: impl Fn(usize, usize) -> f32,
    ) -> Vec<f32> {
        let mut out = vec![0.0; shape.m * shape.n];
        for i in 0..shape.m {
            for j in 0..shape.n {
                out[i * shape.n + j] = (0..shape.k).map(|l| a(i, l) * b(l, j)).sum();
            }
        }
        out
    }

    #[test]
    fn products_agree_with_three_loops_on_odd_shapes() {
        for shape in [
            Shape { m: 5, n: 7, k: 3 },
            Shape { m: 1, n: 33, k: 17 },
            Shape { m: 19, n: 2, k: 1 },
        ] {
            let Shape { m, n, k } = shape;
            let a: Vec<f32> = (0..m * k).map(|i| (i as f32 * 0.7).sin()).collect();
            let b: Vec<f32> = (0..k * n).map(|i| (i as f32 * 0.3).cos()).collect();
            let check = |got: &[f32], expected: &[f32]| {
                assert!(
                    got.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-5),
                    "{shape:?}: {got:?} {expected:?}"
                );
            };
            let mut out = vec![1.0; m * n];
            product_nn(shape, &a, &b, &mut out, Output::Replace);
            let expected = naive(shape, |i, l| a[i * k + l], |l, j| b[l * n + j]);
            check(&out, &expected);
            product_nn(shape, &a, &b, &mut out, Output::Add);
            check(&out, &expected.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
            product_nt(shape, &a, &b, &mut out, Output::Replace);
            check(
                &out,
                &naive(shape, |i, l| a[i * k + l], |l, j| b[j * k + l]),
            );
            product_tn(shape, &a, &b, &mut out, Output::Replace);
            check(
                &out,
                &naive(shape, |i, l| a[l * m + i], |l, j| b[l * n + j]),
            );
        }
    }
}
