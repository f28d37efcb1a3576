//! Products with rows of fewer bits: 8-bit integers and 16-bit floats.

use std::arch::x86_64::*;

use half::f16;

use super::avx2::{sum_lanes, tail_mask};
use super::prefetch;

/// 8-bit values widened at once.
const LANES: usize = 16;
/// Prefetch distance, in rows: they are scattered, so the hardware cannot predict them.
const AHEAD: usize = 8;

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn integer_dots(x: &[i16], matrix: &[i8], rows: &[u32], out: &mut [i32]) {
    let width = x.len();
    for (at, (&row_idx, out)) in rows.iter().zip(out).enumerate() {
        if let Some(&next) = rows.get(at + AHEAD) {
            prefetch(&matrix[next as usize * width..][..width]);
        }
        let row = &matrix[row_idx as usize * width..][..width];
        *out = dot(x, row);
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn dot(x: &[i16], row: &[i8]) -> i32 {
    let (x_blocks, x_rest) = x.as_chunks::<LANES>();
    let (row_blocks, row_rest) = row.as_chunks::<LANES>();
    let mut sums = [_mm256_setzero_si256(); 2];
    for (block, (x, row)) in x_blocks.iter().zip(row_blocks).enumerate() {
        // SAFETY: both blocks have sixteen values.
        let (x, row) = unsafe {
            (
                _mm256_loadu_si256(x.as_ptr().cast()),
                _mm_loadu_si128(row.as_ptr().cast()),
            )
        };
        let products = _mm256_madd_epi16(x, _mm256_cvtepi8_epi16(row));
        sums[block % 2] = _mm256_add_epi32(sums[block % 2], products);
    }
    let sum = _mm256_add_epi32(sums[0], sums[1]);
    let quad = _mm_add_epi32(
        _mm256_castsi256_si128(sum),
        _mm256_extracti128_si256::<1>(sum),
    );
    let pair = _mm_add_epi32(quad, _mm_shuffle_epi32::<0b1110>(quad));
    let one = _mm_add_epi32(pair, _mm_shuffle_epi32::<1>(pair));
    let rest = x_rest.iter().zip(row_rest);
    _mm_cvtsi128_si32(one)
        + rest
            .map(|(&x, &w)| i32::from(x) * i32::from(w))
            .sum::<i32>()
}

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn dot_half(a: &[f16], b: &[f32]) -> f32 {
    let (a_blocks, a_rest) = a.as_chunks::<8>();
    let (b_blocks, b_rest) = b.as_chunks::<8>();
    let mut sums = [_mm256_setzero_ps(); 4];
    for (block, (a, b)) in a_blocks.iter().zip(b_blocks).enumerate() {
        // SAFETY: both blocks have eight values.
        let (a, b) = unsafe {
            (
                _mm_loadu_si128(a.as_ptr().cast()),
                _mm256_loadu_ps(b.as_ptr()),
            )
        };
        sums[block % 4] = _mm256_fmadd_ps(_mm256_cvtph_ps(a), b, sums[block % 4]);
    }
    let mut last = [f16::ZERO; 8];
    last[..a_rest.len()].copy_from_slice(a_rest);
    // SAFETY: `last` has eight values; the mask keeps the other access inside the rest.
    let (a, b) = unsafe {
        (
            _mm_loadu_si128(last.as_ptr().cast()),
            _mm256_maskload_ps(b_rest.as_ptr(), tail_mask(b_rest.len())),
        )
    };
    sums[0] = _mm256_fmadd_ps(_mm256_cvtph_ps(a), b, sums[0]);
    sum_lanes(_mm256_add_ps(
        _mm256_add_ps(sums[0], sums[1]),
        _mm256_add_ps(sums[2], sums[3]),
    ))
}
