//! Products with rows of 8-bit integers.

use std::arch::x86_64::*;

use super::avx2::sum_lanes;
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

/// Eight integers as floats.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn widen(values: &[i8; 8]) -> __m256 {
    // SAFETY: eight bytes are read, and there are eight.
    let bytes = unsafe { _mm_loadl_epi64(values.as_ptr().cast()) };
    _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn dot_eight(a: &[i8], b: &[f32]) -> f32 {
    let (a_blocks, a_rest) = a.as_chunks::<8>();
    let (b_blocks, b_rest) = b.as_chunks::<8>();
    let mut sums = [_mm256_setzero_ps(); 4];
    for (block, (a, b)) in a_blocks.iter().zip(b_blocks).enumerate() {
        // SAFETY: the block has eight values.
        let b = unsafe { _mm256_loadu_ps(b.as_ptr()) };
        sums[block % 4] = _mm256_fmadd_ps(widen(a), b, sums[block % 4]);
    }
    let rest = a_rest.iter().zip(b_rest);
    sum_lanes(_mm256_add_ps(
        _mm256_add_ps(sums[0], sums[1]),
        _mm256_add_ps(sums[2], sums[3]),
    )) + rest.map(|(&a, b)| f32::from(a) * b).sum::<f32>()
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn axpy_eight(alpha: f32, x: &[i8], y: &mut [f32]) {
    let (x_blocks, x_rest) = x.as_chunks::<8>();
    let (y_blocks, y_rest) = y.as_chunks_mut::<8>();
    let factor = _mm256_set1_ps(alpha);
    for (x, y) in x_blocks.iter().zip(y_blocks) {
        // SAFETY: the block has eight values.
        unsafe {
            let sum = _mm256_fmadd_ps(factor, widen(x), _mm256_loadu_ps(y.as_ptr()));
            _mm256_storeu_ps(y.as_mut_ptr(), sum);
        }
    }
    for (&x, y) in x_rest.iter().zip(y_rest) {
        *y = alpha.mul_add(f32::from(x), *y);
    }
}
