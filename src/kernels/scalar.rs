//! Sixteen numbers without vector instructions: the readable version, which the others are held to.
//!
//! Where the machine has no fused multiply-add, `mul_add` is a function call and slow, but has the same bits.

use super::vector::{LANES, Vector};

#[derive(Clone, Copy)]
pub(super) struct Sixteen([f32; LANES]);

impl Sixteen {
    #[inline(always)]
    fn with(self, other: Sixteen, operation: impl Fn(f32, f32) -> f32) -> Sixteen {
        Sixteen(std::array::from_fn(|lane| {
            operation(self.0[lane], other.0[lane])
        }))
    }
}

impl Vector for Sixteen {
    const N_REGISTERS: usize = 4;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Sixteen([x; LANES])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller has sixteen numbers.
        Sixteen(unsafe { from.cast::<[f32; LANES]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn load_first(from: *const f32, n: usize) -> Self {
        let mut all = [0.0; LANES];
        // SAFETY: the caller has `n` numbers.
        all[..n].copy_from_slice(unsafe { std::slice::from_raw_parts(from, n) });
        Sixteen(all)
    }

    #[inline(always)]
    unsafe fn load_eight(from: *const i8) -> Self {
        // SAFETY: the caller has sixteen numbers.
        Sixteen(unsafe { from.cast::<[i8; LANES]>().read() }.map(f32::from))
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller has room for sixteen numbers.
        unsafe { to.cast::<[f32; LANES]>().write_unaligned(self.0) };
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, n: usize) {
        // SAFETY: the caller has room for `n` numbers.
        unsafe { std::slice::from_raw_parts_mut(to, n) }.copy_from_slice(&self.0[..n]);
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.with(other, |a, b| a + b)
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.with(other, |a, b| a - b)
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self.with(other, |a, b| a * b)
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        self.with(other, |a, b| a / b)
    }

    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
        Sixteen(std::array::from_fn(|lane| {
            self.0[lane].mul_add(factor.0[lane], term.0[lane])
        }))
    }

    #[inline(always)]
    unsafe fn sqrt(self) -> Self {
        Sixteen(self.0.map(f32::sqrt))
    }

    #[inline(always)]
    unsafe fn round(self) -> Self {
        Sixteen(self.0.map(f32::round_ties_even))
    }

    #[inline(always)]
    unsafe fn power_of_two(self) -> Self {
        let power = |x: f32| f32::from_bits(((x as i32).wrapping_add(127) as u32) << 23);
        Sixteen(self.0.map(power))
    }

    #[inline(always)]
    unsafe fn select_less(self, other: Self, then: Self, otherwise: Self) -> Self {
        Sixteen(std::array::from_fn(|lane| {
            match self.0[lane] < other.0[lane] {
                true => then.0[lane],
                false => otherwise.0[lane],
            }
        }))
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        let mut lanes = self.0;
        for apart in [8, 4, 2, 1] {
            for lane in 0..apart {
                lanes[lane] += lanes[lane + apart];
            }
        }
        lanes[0]
    }

    #[inline(always)]
    unsafe fn set_between(self, low: Self, high: Self) -> u32 {
        let is_between = |lane: usize| low.0[lane] <= self.0[lane] && self.0[lane] < high.0[lane];
        (0..LANES).fold(0, |set, lane| set | u32::from(is_between(lane)) << lane)
    }
}
