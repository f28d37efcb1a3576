//! Searching for values in a range, eight at a time and without data-dependent branches.

use std::arch::x86_64::*;
use std::ops::Range;

const LANES: usize = 8;

/// Permutations that pack a set of lanes to the front, by the bits of the set.
static PACKED: [[u32; LANES]; 256] = packed();

const fn packed() -> [[u32; LANES]; 256] {
    let mut table = [[0; LANES]; 256];
    let mut set = 0;
    while set < table.len() {
        let (mut lane, mut n_packed) = (0, 0);
        while lane < LANES {
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

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn find_between(factor: f32, x: &[f32], range: Range<f32>, found: &mut Vec<u32>) {
    found.clear();
    found.reserve(x.len() + LANES);
    let (factor8, low8, high8) = (
        _mm256_set1_ps(factor),
        _mm256_set1_ps(range.start),
        _mm256_set1_ps(range.end),
    );
    let (blocks, rest) = x.as_chunks::<LANES>();
    let out = found.as_mut_ptr();
    let mut n_found = 0;
    for (block_idx, block) in blocks.iter().enumerate() {
        // SAFETY: a block has eight values.
        let product = _mm256_mul_ps(factor8, unsafe { _mm256_loadu_ps(block.as_ptr()) });
        let is_between = _mm256_and_ps(
            _mm256_cmp_ps::<_CMP_LE_OQ>(low8, product),
            _mm256_cmp_ps::<_CMP_LT_OQ>(product, high8),
        );
        let set = _mm256_movemask_ps(is_between) as usize;
        let first = _mm256_set1_epi32((block_idx * LANES) as i32);
        // SAFETY: `n_found` is at most the number of values in earlier blocks, so eight more fit in the reserved space.
        unsafe {
            let lanes = _mm256_loadu_si256(PACKED[set].as_ptr().cast());
            _mm256_storeu_si256(out.add(n_found).cast(), _mm256_add_epi32(first, lanes));
        }
        n_found += set.count_ones() as usize;
    }
    // SAFETY: the first `n_found` values were written above.
    unsafe { found.set_len(n_found) };
    let positions = rest.iter().zip((blocks.len() * LANES) as u32..);
    found.extend(
        positions
            .filter(|(x, _)| range.contains(&(factor * **x)))
            .map(|(_, position)| position),
    );
}
