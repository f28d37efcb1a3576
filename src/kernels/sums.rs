//! Products of rows, and sums of rows with coefficients.
//!
//! SAFETY of every function: the caller has the instructions of `V` and has compared lengths; accesses lie below the
//! common length, those of a tail by their count.

use super::vector::{LANES, Vector, load_up_to, store_up_to};
use super::{AHEAD, prefetch};

/// Vectors of sums of a product, so that additions need not wait for each other.
const N_SUMS: usize = 4;

#[inline(always)]
pub(super) unsafe fn dot<V: Vector>(a: &[f32], b: &[f32]) -> f32 {
    let (n, a, b) = (a.len(), a.as_ptr(), b.as_ptr());
    unsafe {
        let mut sums = [V::splat(0.0); N_SUMS];
        let mut at = 0;
        while at + N_SUMS * LANES <= n {
            for (block, sum) in sums.iter_mut().enumerate() {
                let at = at + block * LANES;
                *sum = V::load(a.add(at)).mul_add(V::load(b.add(at)), *sum);
            }
            at += N_SUMS * LANES;
        }
        while at < n {
            let (x, y): (V, V) = (load_up_to(a.add(at), n - at), load_up_to(b.add(at), n - at));
            sums[0] = x.mul_add(y, sums[0]);
            at += LANES;
        }
        sums[0].add(sums[1]).add(sums[2].add(sums[3])).sum()
    }
}

/// The next numbers of eight bits of a row, zeros beyond.
#[inline(always)]
unsafe fn load_eight<V: Vector>(rest: &[i8]) -> V {
    unsafe {
        if LANES <= rest.len() {
            return V::load_eight(rest.as_ptr());
        }
        let mut all = [0; LANES];
        all[..rest.len()].copy_from_slice(rest);
        V::load_eight(all.as_ptr())
    }
}

#[inline(always)]
pub(super) unsafe fn dot_eight<V: Vector>(a: &[i8], b: &[f32]) -> f32 {
    let (n, b) = (a.len(), b.as_ptr());
    unsafe {
        let mut sums = [V::splat(0.0); N_SUMS];
        let mut at = 0;
        while at + N_SUMS * LANES <= n {
            for (block, sum) in sums.iter_mut().enumerate() {
                let at = at + block * LANES;
                *sum = V::load_eight(a.as_ptr().add(at)).mul_add(V::load(b.add(at)), *sum);
            }
            at += N_SUMS * LANES;
        }
        while at < n {
            let y: V = load_up_to(b.add(at), n - at);
            sums[0] = load_eight::<V>(&a[at..]).mul_add(y, sums[0]);
            at += LANES;
        }
        sums[0].add(sums[1]).add(sums[2].add(sums[3])).sum()
    }
}

#[inline(always)]
pub(super) unsafe fn axpy<V: Vector>(alpha: f32, x: &[f32], y: &mut [f32]) {
    let (n, x, y) = (x.len(), x.as_ptr(), y.as_mut_ptr());
    unsafe {
        let factor = V::splat(alpha);
        for at in (0..n).step_by(LANES) {
            let term: V = load_up_to(y.add(at), n - at);
            let sum = factor.mul_add(load_up_to(x.add(at), n - at), term);
            store_up_to(sum, y.add(at), n - at);
        }
    }
}

#[inline(always)]
pub(super) unsafe fn axpy_eight<V: Vector>(alpha: f32, x: &[i8], y: &mut [f32]) {
    let (n, y) = (x.len(), y.as_mut_ptr());
    unsafe {
        let factor = V::splat(alpha);
        for at in (0..n).step_by(LANES) {
            let term: V = load_up_to(y.add(at), n - at);
            let sum = factor.mul_add(load_eight(&x[at..]), term);
            store_up_to(sum, y.add(at), n - at);
        }
    }
}

#[inline(always)]
pub(super) unsafe fn sum_rows<V: Vector>(
    coefficients: &[f32],
    matrix: &[f32],
    rows: &[u32],
    out: &mut [f32],
) {
    let width = out.len();
    let mut at = 0;
    unsafe {
        if V::N_REGISTERS >= 32 {
            while at + 16 * LANES <= width {
                sum_block::<V, 16>(coefficients, matrix, rows, (out, at));
                at += 16 * LANES;
            }
        }
        while at + 4 * LANES <= width {
            sum_block::<V, 4>(coefficients, matrix, rows, (out, at));
            at += 4 * LANES;
        }
        while at < width {
            let mut sum = V::splat(0.0);
            for (&row, &coefficient) in rows.iter().zip(coefficients) {
                let row = matrix.as_ptr().add(row as usize * width + at);
                sum = V::splat(coefficient).mul_add(load_up_to(row, width - at), sum);
            }
            store_up_to(sum, out.as_mut_ptr().add(at), width - at);
            at += LANES;
        }
    }
}

/// Columns from `at` on, of which N vectors stay in registers while looping over the rows.
#[inline(always)]
unsafe fn sum_block<V: Vector, const N: usize>(
    coefficients: &[f32],
    matrix: &[f32],
    rows: &[u32],
    (out, at): (&mut [f32], usize),
) {
    let width = out.len();
    unsafe {
        let mut sums = [V::splat(0.0); N];
        for (&row, &coefficient) in rows.iter().zip(coefficients) {
            let row = matrix.as_ptr().add(row as usize * width + at);
            let factor = V::splat(coefficient);
            for (block, sum) in sums.iter_mut().enumerate() {
                *sum = factor.mul_add(V::load(row.add(block * LANES)), *sum);
            }
        }
        for (block, sum) in sums.into_iter().enumerate() {
            sum.store(out.as_mut_ptr().add(at + block * LANES));
        }
    }
}

#[inline(always)]
pub(super) unsafe fn integer_dots<V: Vector>(
    x: &[i16],
    matrix: &[i8],
    rows: &[u32],
    out: &mut [i32],
) {
    let width = x.len();
    let row = |row: u32| &matrix[row as usize * width..][..width];
    for (at, (&row_idx, out)) in rows.iter().zip(out).enumerate() {
        if let Some(&next) = rows.get(at + AHEAD) {
            prefetch(row(next));
        }
        *out = unsafe { V::integer_dot(x, row(row_idx)) };
    }
}
