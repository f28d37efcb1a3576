//! Sixteen numbers in one register of AVX-512.

use std::arch::x86_64::*;

use super::vector::{LANES, Vector};

#[derive(Clone, Copy)]
pub(super) struct Sixteen(__m512);

/// The first `n` lanes.
#[inline(always)]
fn first(n: usize) -> __mmask16 {
    ((1u32 << n) - 1) as __mmask16
}

/// Sum of the eight numbers of half a register, pairwise.
#[inline(always)]
unsafe fn sum_half(x: __m256) -> f32 {
    // SAFETY: the caller has the instructions.
    unsafe {
        let quad = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
        let pair = _mm_add_ps(quad, _mm_movehl_ps(quad, quad));
        _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps::<1>(pair, pair)))
    }
}

/// Numbers of `a` that are eight apart added up, then those of `b`.
#[inline(always)]
unsafe fn fold(a: __m512, b: __m512) -> __m512 {
    // SAFETY: the caller has the instructions.
    unsafe {
        _mm512_add_ps(
            _mm512_shuffle_f32x4::<0b01_00_01_00>(a, b),
            _mm512_shuffle_f32x4::<0b11_10_11_10>(a, b),
        )
    }
}

// SAFETY of all blocks: the caller has the instructions, and the memory that it names.
impl Vector for Sixteen {
    const N_REGISTERS: usize = 32;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Sixteen(unsafe { _mm512_set1_ps(x) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        Sixteen(unsafe { _mm512_loadu_ps(from) })
    }

    #[inline(always)]
    unsafe fn load_first(from: *const f32, n: usize) -> Self {
        Sixteen(unsafe { _mm512_maskz_loadu_ps(first(n), from) })
    }

    #[inline(always)]
    unsafe fn load_eight(from: *const i8) -> Self {
        Sixteen(unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast()))) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm512_storeu_ps(to, self.0) };
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, n: usize) {
        unsafe { _mm512_mask_storeu_ps(to, first(n), self.0) };
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Sixteen(unsafe { _mm512_add_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        Sixteen(unsafe { _mm512_sub_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        Sixteen(unsafe { _mm512_mul_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        Sixteen(unsafe { _mm512_div_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
        Sixteen(unsafe { _mm512_fmadd_ps(self.0, factor.0, term.0) })
    }

    #[inline(always)]
    unsafe fn sqrt(self) -> Self {
        Sixteen(unsafe { _mm512_sqrt_ps(self.0) })
    }

    #[inline(always)]
    unsafe fn round(self) -> Self {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        Sixteen(unsafe { _mm512_roundscale_ps::<NEAREST>(self.0) })
    }

    #[inline(always)]
    unsafe fn power_of_two(self) -> Self {
        Sixteen(unsafe {
            let biased = _mm512_add_epi32(_mm512_cvtps_epi32(self.0), _mm512_set1_epi32(127));
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(biased))
        })
    }

    #[inline(always)]
    unsafe fn select_less(self, other: Self, then: Self, otherwise: Self) -> Self {
        Sixteen(unsafe {
            let is_less = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, other.0);
            _mm512_mask_blend_ps(is_less, otherwise.0, then.0)
        })
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        unsafe {
            let low = _mm512_castps512_ps256(self.0);
            let high = _mm512_extractf64x4_pd::<1>(_mm512_castps_pd(self.0));
            sum_half(_mm256_add_ps(low, _mm256_castpd_ps(high)))
        }
    }

    #[inline(always)]
    unsafe fn sums(four: [Self; 4]) -> [f32; 4] {
        let [Sixteen(a), Sixteen(b), Sixteen(c), Sixteen(d)] = four;
        unsafe {
            // Eight of each, then four of each, side by side.
            let (ab, cd) = (fold(a, b), fold(c, d));
            let quads = _mm512_add_ps(
                _mm512_shuffle_f32x4::<0b10_00_10_00>(ab, cd),
                _mm512_shuffle_f32x4::<0b11_01_11_01>(ab, cd),
            );
            let pairs = _mm512_add_ps(quads, _mm512_permute_ps::<0b01_00_11_10>(quads));
            let ones = _mm512_add_ps(pairs, _mm512_permute_ps::<0b10_11_00_01>(pairs));
            let starts = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
            let ones = _mm512_castps512_ps128(_mm512_permutexvar_ps(starts, ones));
            let mut sums = [0.0; 4];
            _mm_storeu_ps(sums.as_mut_ptr(), ones);
            sums
        }
    }

    #[inline(always)]
    unsafe fn set_between(self, low: Self, high: Self) -> u32 {
        unsafe {
            let is_above = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(low.0, self.0);
            u32::from(_mm512_mask_cmp_ps_mask::<_CMP_LT_OQ>(
                is_above, self.0, high.0,
            ))
        }
    }

    #[inline(always)]
    unsafe fn write_set(set: u32, first: u32, to: *mut u32) {
        unsafe {
            let lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            let positions = _mm512_add_epi32(_mm512_set1_epi32(first as i32), lane);
            // Packed in a register: packing into memory is slow on some machines.
            let packed = _mm512_maskz_compress_epi32(set as __mmask16, positions);
            _mm512_storeu_si512(to.cast(), packed);
        }
    }

    #[inline(always)]
    unsafe fn integer_dot(x: &[i16], row: &[i8]) -> i32 {
        let (x_blocks, x_rest) = x.as_chunks::<{ 2 * LANES }>();
        let (row_blocks, row_rest) = row.as_chunks::<{ 2 * LANES }>();
        unsafe {
            let mut sums = [_mm512_setzero_si512(); 2];
            for (block, (x, row)) in x_blocks.iter().zip(row_blocks).enumerate() {
                let x = _mm512_loadu_si512(x.as_ptr().cast());
                let row = _mm512_cvtepi8_epi16(_mm256_loadu_si256(row.as_ptr().cast()));
                let sum = &mut sums[block % 2];
                *sum = _mm512_dpwssd_epi32(*sum, x, row);
            }
            let rest = x_rest.iter().zip(row_rest);
            _mm512_reduce_add_epi32(_mm512_add_epi32(sums[0], sums[1]))
                + rest
                    .map(|(&x, &w)| i32::from(x) * i32::from(w))
                    .sum::<i32>()
        }
    }
}
