//! Sixteen numbers in two registers of AVX2, with fused multiply-add.

use std::arch::x86_64::*;

use super::vector::{LANES, Vector};

#[derive(Clone, Copy)]
pub(super) struct Sixteen([__m256; 2]);

/// Numbers of a register.
const HALF: usize = LANES / 2;

/// A mask of the first `n` of eight lanes.
#[inline(always)]
unsafe fn first(n: usize) -> __m256i {
    // SAFETY: the caller has the instructions.
    unsafe {
        let lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), lane)
    }
}

/// Permutations that pack a set of lanes to the front, by the bits of the set.
static PACKED: [[u32; HALF]; 256] = packed();

const fn packed() -> [[u32; HALF]; 256] {
    let mut table = [[0; HALF]; 256];
    let mut set = 0;
    while set < table.len() {
        let (mut lane, mut n_packed) = (0, 0);
        while lane < HALF {
            if set >> lane & 1 == 1 {
                table[set][n_packed] = lane as u32;
                n_packed += 1;
            }
            lane += 1;
        }
        set += 1;
    }
    table
}

impl Sixteen {
    #[inline(always)]
    fn map(self, operation: impl Fn(__m256) -> __m256) -> Sixteen {
        Sixteen([operation(self.0[0]), operation(self.0[1])])
    }

    #[inline(always)]
    fn with(self, other: Sixteen, operation: impl Fn(__m256, __m256) -> __m256) -> Sixteen {
        let ([a, b], [c, d]) = (self.0, other.0);
        Sixteen([operation(a, c), operation(b, d)])
    }

    /// Numbers that are eight apart added up.
    #[inline(always)]
    unsafe fn fold(self) -> __m256 {
        // SAFETY: the caller has the instructions.
        unsafe { _mm256_add_ps(self.0[0], self.0[1]) }
    }
}

// SAFETY of all blocks: the caller has the instructions, and the memory that it names.
impl Vector for Sixteen {
    const N_REGISTERS: usize = 8;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Sixteen([unsafe { _mm256_set1_ps(x) }; 2])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        Sixteen(unsafe { [_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(HALF))] })
    }

    #[inline(always)]
    unsafe fn load_first(from: *const f32, n: usize) -> Self {
        // A load under an empty mask touches nothing, but the pointer must stay inside of its allocation.
        let (low, high) = (n.min(HALF), n.saturating_sub(HALF));
        Sixteen(unsafe {
            [
                _mm256_maskload_ps(from, first(low)),
                _mm256_maskload_ps(from.add(low), first(high)),
            ]
        })
    }

    #[inline(always)]
    unsafe fn load_eight(from: *const i8) -> Self {
        unsafe {
            let half = |from: *const i8| {
                let bytes = _mm_loadl_epi64(from.cast());
                _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))
            };
            Sixteen([half(from), half(from.add(HALF))])
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe {
            _mm256_storeu_ps(to, self.0[0]);
            _mm256_storeu_ps(to.add(HALF), self.0[1]);
        }
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, n: usize) {
        let (low, high) = (n.min(HALF), n.saturating_sub(HALF));
        unsafe {
            _mm256_maskstore_ps(to, first(low), self.0[0]);
            _mm256_maskstore_ps(to.add(low), first(high), self.0[1]);
        }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.with(other, |a, b| unsafe { _mm256_add_ps(a, b) })
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.with(other, |a, b| unsafe { _mm256_sub_ps(a, b) })
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self.with(other, |a, b| unsafe { _mm256_mul_ps(a, b) })
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        self.with(other, |a, b| unsafe { _mm256_div_ps(a, b) })
    }

    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
        let ([a, b], [c, d], [e, f]) = (self.0, factor.0, term.0);
        Sixteen(unsafe { [_mm256_fmadd_ps(a, c, e), _mm256_fmadd_ps(b, d, f)] })
    }

    #[inline(always)]
    unsafe fn sqrt(self) -> Self {
        self.map(|x| unsafe { _mm256_sqrt_ps(x) })
    }

    #[inline(always)]
    unsafe fn round(self) -> Self {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        self.map(|x| unsafe { _mm256_round_ps::<NEAREST>(x) })
    }

    #[inline(always)]
    unsafe fn power_of_two(self) -> Self {
        self.map(|x| unsafe {
            let biased = _mm256_add_epi32(_mm256_cvtps_epi32(x), _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased))
        })
    }

    #[inline(always)]
    unsafe fn select_less(self, other: Self, then: Self, otherwise: Self) -> Self {
        let is_less = self.with(other, |a, b| unsafe { _mm256_cmp_ps::<_CMP_LT_OQ>(a, b) });
        let [a, b] = is_less.0;
        Sixteen(unsafe {
            [
                _mm256_blendv_ps(otherwise.0[0], then.0[0], a),
                _mm256_blendv_ps(otherwise.0[1], then.0[1], b),
            ]
        })
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        unsafe {
            let eight = self.fold();
            let (low, high) = (
                _mm256_castps256_ps128(eight),
                _mm256_extractf128_ps::<1>(eight),
            );
            let quad = _mm_add_ps(low, high);
            let pair = _mm_add_ps(quad, _mm_movehl_ps(quad, quad));
            _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps::<1>(pair, pair)))
        }
    }

    #[inline(always)]
    unsafe fn sums(four: [Self; 4]) -> [f32; 4] {
        unsafe {
            let [a, b, c, d] = [
                four[0].fold(),
                four[1].fold(),
                four[2].fold(),
                four[3].fold(),
            ];
            // Four of a and of b, then of c and of d.
            let quads = |a, b| {
                let (low, high) = (
                    _mm256_permute2f128_ps::<0x20>(a, b),
                    _mm256_permute2f128_ps::<0x31>(a, b),
                );
                _mm256_add_ps(low, high)
            };
            let (ab, cd) = (quads(a, b), quads(c, d));
            // Two of a and of c, then of b and of d.
            let pairs = _mm256_add_ps(
                _mm256_shuffle_ps::<0b01_00_01_00>(ab, cd),
                _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd),
            );
            let ones = _mm256_add_ps(pairs, _mm256_permute_ps::<0b10_11_00_01>(pairs));
            let (ac, bd) = (
                _mm256_castps256_ps128(ones),
                _mm256_extractf128_ps::<1>(ones),
            );
            let mut sums = [0.0; 4];
            // a and c are lanes 0 and 2 of the one, b and d lanes 1 and 3 of the other, each number being there twice.
            _mm_storeu_ps(sums.as_mut_ptr(), _mm_blend_ps::<0b1010>(ac, bd));
            sums
        }
    }

    #[inline(always)]
    unsafe fn set_between(self, low: Self, high: Self) -> u32 {
        unsafe {
            let half = |at: usize| {
                let is_between = _mm256_and_ps(
                    _mm256_cmp_ps::<_CMP_LE_OQ>(low.0[at], self.0[at]),
                    _mm256_cmp_ps::<_CMP_LT_OQ>(self.0[at], high.0[at]),
                );
                _mm256_movemask_ps(is_between) as u32
            };
            half(0) | half(1) << HALF
        }
    }

    #[inline(always)]
    unsafe fn write_set(set: u32, first: u32, to: *mut u32) {
        unsafe {
            let write = |set: u32, first: u32, to: *mut u32| {
                let lanes = _mm256_loadu_si256(PACKED[set as usize].as_ptr().cast());
                let positions = _mm256_add_epi32(_mm256_set1_epi32(first as i32), lanes);
                _mm256_storeu_si256(to.cast(), positions);
            };
            let low = set & 0xFF;
            write(low, first, to);
            let n_low = low.count_ones() as usize;
            write(set >> HALF, first + HALF as u32, to.add(n_low));
        }
    }

    #[inline(always)]
    unsafe fn integer_dot(x: &[i16], row: &[i8]) -> i32 {
        let (x_blocks, x_rest) = x.as_chunks::<LANES>();
        let (row_blocks, row_rest) = row.as_chunks::<LANES>();
        unsafe {
            let mut sums = [_mm256_setzero_si256(); 2];
            for (block, (x, row)) in x_blocks.iter().zip(row_blocks).enumerate() {
                let x = _mm256_loadu_si256(x.as_ptr().cast());
                let row = _mm256_cvtepi8_epi16(_mm_loadu_si128(row.as_ptr().cast()));
                let sum = &mut sums[block % 2];
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(x, row));
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
    }
}
