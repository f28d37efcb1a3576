//! The exponential function, and searching for values in a range.
//!
//! SAFETY of every function: the caller has the instructions of `V`; accesses lie below the length of the slice, those
//! of a tail by their count.

use std::ops::Range;

use super::vector::{LANES, Vector, load_up_to, store_up_to};

/// e^x by range reduction to 2^n·e^r, |r| ≤ ln2/2, and a degree-6 polynomial; 0 below −87.
#[inline(always)]
pub(super) unsafe fn exp<V: Vector>(x: V) -> V {
    unsafe {
        let (low, high) = (V::splat(-87.0), V::splat(88.0));
        let clamped = x.select_less(low, low, x);
        let clamped = high.select_less(clamped, high, clamped);
        let n = clamped.mul(V::splat(std::f32::consts::LOG2_E)).round();
        // ln2 in two parts, so that the difference keeps its digits.
        let r = n.mul_add(V::splat(-0.693_359_4), clamped);
        let r = n.mul_add(V::splat(2.121_944_4e-4), r);
        let mut polynomial = V::splat(1.0 / 720.0);
        for coefficient in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
            polynomial = polynomial.mul_add(r, V::splat(coefficient));
        }
        let value = polynomial.mul(n.power_of_two());
        x.select_less(low, V::splat(0.0), value)
    }
}

#[inline(always)]
pub(super) unsafe fn exp_sum<V: Vector>(x: &mut [f32], shift: f32) -> f32 {
    let n = x.len();
    let x = x.as_mut_ptr();
    unsafe {
        let shift = V::splat(shift);
        let mut sum = V::splat(0.0);
        let mut at = 0;
        while at + LANES <= n {
            let value = exp(V::load(x.add(at)).sub(shift));
            value.store(x.add(at));
            sum = sum.add(value);
            at += LANES;
        }
        if at < n {
            let value = exp(V::load_first(x.add(at), n - at).sub(shift));
            value.store_first(x.add(at), n - at);
            sum = sum.add(V::load_first(x.add(at), n - at));
        }
        sum.sum()
    }
}

#[inline(always)]
pub(super) unsafe fn score_negatives<V: Vector>(
    x: &mut [f32],
    paths: &[f32],
    threshold: f32,
    found: &mut Vec<u32>,
) -> f32 {
    let n = x.len();
    found.clear();
    found.reserve(n + LANES);
    let (x, paths, out) = (x.as_mut_ptr(), paths.as_ptr(), found.as_mut_ptr());
    let mut n_found = 0;
    unsafe {
        let (zero, half, one) = (V::splat(0.0), V::splat(0.5), V::splat(1.0));
        let (lowest, limit) = (V::splat(f32::NEG_INFINITY), V::splat(threshold));
        let mut sum = zero;
        for at in (0..n).step_by(LANES) {
            let n_left = n - at;
            let e = exp(load_up_to::<V>(x.add(at), n_left));
            store_up_to(e, x.add(at), n_left);
            // Beyond the end ŷ = 0.
            let p = load_up_to::<V>(paths.add(at), n_left).div(one.add(e));
            let faint = p.select_less(limit, p, zero);
            // −log(1 − p) = p + p²/2 + …
            sum = faint.mul(half).mul_add(faint, sum.add(faint));
            let lanes = (1u32 << n_left.min(LANES)) - 1;
            let set = !p.set_between(lowest, limit) & lanes;
            // At most the values of earlier blocks were found, so sixteen more fit.
            V::write_set(set, at as u32, out.add(n_found));
            n_found += set.count_ones() as usize;
        }
        found.set_len(n_found);
        sum.sum()
    }
}

#[inline(always)]
pub(super) unsafe fn find_between<V: Vector>(
    factor: f32,
    x: &[f32],
    range: Range<f32>,
    found: &mut Vec<u32>,
) {
    found.clear();
    found.reserve(x.len() + LANES);
    let (blocks, rest) = x.as_chunks::<LANES>();
    let out = found.as_mut_ptr();
    let mut n_found = 0;
    unsafe {
        let (factor, low, high) = (V::splat(factor), V::splat(range.start), V::splat(range.end));
        for (block_idx, block) in blocks.iter().enumerate() {
            let set = factor.mul(V::load(block.as_ptr())).set_between(low, high);
            // At most the values of earlier blocks were found, so sixteen more fit.
            V::write_set(set, (block_idx * LANES) as u32, out.add(n_found));
            n_found += set.count_ones() as usize;
        }
        found.set_len(n_found);
    }
    let positions = rest.iter().zip((blocks.len() * LANES) as u32..);
    let is_between = |(x, _): &(&f32, u32)| range.contains(&(factor * **x));
    found.extend(positions.filter(is_between).map(|(_, position)| position));
}

/// The highest value; −∞ if there is none, NaN not counted.
#[cfg(feature = "transformer")]
#[inline(always)]
pub(super) unsafe fn highest<V: Vector>(x: &[f32]) -> f32 {
    let (blocks, rest) = x.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    unsafe {
        let mut highest = V::load(lanes.as_ptr());
        for block in blocks {
            let block = V::load(block.as_ptr());
            highest = highest.select_less(block, block, highest);
        }
        highest.store(lanes.as_mut_ptr());
    }
    lanes
        .iter()
        .chain(rest)
        .copied()
        .fold(f32::NEG_INFINITY, f32::max)
}

/// The first `n` lanes, zeros beyond.
#[cfg(feature = "transformer")]
#[inline(always)]
pub(super) unsafe fn keep_first<V: Vector>(x: V, n: usize) -> V {
    unsafe {
        if LANES <= n {
            return x;
        }
        let mut lanes = [0.0; LANES];
        x.store_first(lanes.as_mut_ptr(), n);
        V::load_first(lanes.as_ptr(), n)
    }
}
