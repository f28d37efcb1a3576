//! Products in whole numbers: four times as many values a byte read as with floats.

use std::arch::x86_64::*;

/// Values of eight bits that are widened at once.
const LANES: usize = 16;
/// How many rows ahead memory is asked for: they are scattered, so the machine cannot guess.
const AHEAD: usize = 8;
const CACHE_LINE: usize = 64;

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn whole_dots(x: &[i16], matrix: &[i8], rows: &[u32], out: &mut [i32]) {
    let width = x.len();
    for (at, (&row_idx, out)) in rows.iter().zip(out).enumerate() {
        if let Some(&next) = rows.get(at + AHEAD) {
            // SAFETY: the caller has checked that every row lies inside `matrix`.
            let next = unsafe { matrix.as_ptr().add(next as usize * width) };
            for line in (0..width).step_by(CACHE_LINE) {
                // SAFETY: `line < width`, so it lies in the row.
                _mm_prefetch::<_MM_HINT_T0>(unsafe { next.add(line) });
            }
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
    _mm_cvtsi128_si32(one) + rest.map(|(&x, &w)| i32::from(x) * i32::from(w)).sum::<i32>()
}
