//! The kernels over tiles of labels, with AVX2 and FMA.
//!
//! Every load of a point's row serves four labels, so that arithmetic, not the L2 cache, is the bottleneck.

use std::arch::x86_64::*;

use super::TILE;
use super::avx2::{LANES, sum_lanes, tail_mask};

/// Points per iteration of `dot_tile`: with four labels they fill eight accumulators.
const POINTS: usize = 2;

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn dot_tile(w: [&[f32]; TILE], matrix: &[f32], rows: &[u32], out: &mut [f32]) {
    let width = w[0].len();
    let w = w.map(<[f32]>::as_ptr);
    for (rows, out) in rows.chunks(POINTS).zip(out.chunks_mut(POINTS * TILE)) {
        // An odd last point is computed twice and written once.
        let first = rows[0] as usize * width;
        let second = rows[rows.len() - 1] as usize * width;
        let mut sums = [[_mm256_setzero_ps(); TILE]; POINTS];
        let mut at = 0;
        // SAFETY: the caller has checked that rows lie inside `matrix`; `at` stays below `width`, the length of
        // every row, the tail by its mask.
        unsafe {
            let points = [matrix.as_ptr().add(first), matrix.as_ptr().add(second)];
            while at + LANES <= width {
                let x = points.map(|point| _mm256_loadu_ps(point.add(at)));
                for (label, w) in w.iter().enumerate() {
                    let w = _mm256_loadu_ps(w.add(at));
                    sums[0][label] = _mm256_fmadd_ps(w, x[0], sums[0][label]);
                    sums[1][label] = _mm256_fmadd_ps(w, x[1], sums[1][label]);
                }
                at += LANES;
            }
            if at < width {
                let mask = tail_mask(width - at);
                let x = points.map(|point| _mm256_maskload_ps(point.add(at), mask));
                for (label, w) in w.iter().enumerate() {
                    let w = _mm256_maskload_ps(w.add(at), mask);
                    sums[0][label] = _mm256_fmadd_ps(w, x[0], sums[0][label]);
                    sums[1][label] = _mm256_fmadd_ps(w, x[1], sums[1][label]);
                }
            }
        }
        for (out, sums) in out.chunks_exact_mut(TILE).zip(sums) {
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = sum_lanes(sum);
            }
        }
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn sum_tile(coefficients: &[f32], matrix: &[f32], rows: &[u32], out: &mut [f32]) {
    // Sixteen columns of four labels stay in registers while looping over the points.
    const BLOCK: usize = 2;
    let width = out.len() / TILE;
    let mut at = 0;
    // SAFETY: the caller has checked that rows lie inside `matrix`; columns stay below `width`, the tail by its
    // mask; `coefficients` has TILE entries per row and `out` TILE rows of `width`.
    unsafe {
        while at + BLOCK * LANES <= width {
            let mut sums = [[_mm256_setzero_ps(); BLOCK]; TILE];
            let mut coefficient = coefficients.as_ptr();
            for &row_idx in rows {
                let row = matrix.as_ptr().add(row_idx as usize * width + at);
                let x = [_mm256_loadu_ps(row), _mm256_loadu_ps(row.add(LANES))];
                for sums in &mut sums {
                    let factor = _mm256_broadcast_ss(&*coefficient);
                    sums[0] = _mm256_fmadd_ps(factor, x[0], sums[0]);
                    sums[1] = _mm256_fmadd_ps(factor, x[1], sums[1]);
                    coefficient = coefficient.add(1);
                }
            }
            for (label, sums) in sums.iter().enumerate() {
                let out = out.as_mut_ptr().add(label * width + at);
                _mm256_storeu_ps(out, sums[0]);
                _mm256_storeu_ps(out.add(LANES), sums[1]);
            }
            at += BLOCK * LANES;
        }
        while at < width {
            let mask = tail_mask((width - at).min(LANES));
            let mut sums = [_mm256_setzero_ps(); TILE];
            let mut coefficient = coefficients.as_ptr();
            for &row_idx in rows {
                let row = matrix.as_ptr().add(row_idx as usize * width + at);
                let x = _mm256_maskload_ps(row, mask);
                for sum in &mut sums {
                    *sum = _mm256_fmadd_ps(_mm256_broadcast_ss(&*coefficient), x, *sum);
                    coefficient = coefficient.add(1);
                }
            }
            for (label, sum) in sums.iter().enumerate() {
                _mm256_maskstore_ps(out.as_mut_ptr().add(label * width + at), mask, *sum);
            }
            at += LANES;
        }
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn add_tile(
    coefficients: &[f32],
    w: [&[f32]; TILE],
    matrix: &mut [f32],
    rows: &[u32],
) {
    let width = w[0].len();
    let w = w.map(<[f32]>::as_ptr);
    for (&row_idx, coefficients) in rows.iter().zip(coefficients.chunks_exact(TILE)) {
        let row = matrix[row_idx as usize * width..][..width].as_mut_ptr();
        let factors: [__m256; TILE] =
            std::array::from_fn(|label| _mm256_set1_ps(coefficients[label]));
        let mut at = 0;
        // SAFETY: `at` stays below `width`, the length of every row, the tail by its mask.
        unsafe {
            while at + LANES <= width {
                let mut sum = _mm256_loadu_ps(row.add(at));
                for (w, factor) in w.iter().zip(factors) {
                    sum = _mm256_fmadd_ps(factor, _mm256_loadu_ps(w.add(at)), sum);
                }
                _mm256_storeu_ps(row.add(at), sum);
                at += LANES;
            }
            if at < width {
                let mask = tail_mask(width - at);
                let mut sum = _mm256_maskload_ps(row.add(at), mask);
                for (w, factor) in w.iter().zip(factors) {
                    sum = _mm256_fmadd_ps(factor, _mm256_maskload_ps(w.add(at), mask), sum);
                }
                _mm256_maskstore_ps(row.add(at), mask, sum);
            }
        }
    }
}
