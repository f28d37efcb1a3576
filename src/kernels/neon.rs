//! Sixteen numbers in four registers of NEON, which every 64-bit ARM machine has.

use std::arch::aarch64::*;

use super::vector::{LANES, Vector};

#[derive(Clone, Copy)]
pub(super) struct Sixteen([float32x4_t; 4]);

/// Numbers of a register.
const QUARTER: usize = LANES / 4;

impl Sixteen {
    #[inline(always)]
    fn map(self, operation: impl Fn(float32x4_t) -> float32x4_t) -> Sixteen {
        let [a, b, c, d] = self.0;
        Sixteen([operation(a), operation(b), operation(c), operation(d)])
    }

    #[inline(always)]
    fn with<T>(self, other: Sixteen, operation: impl Fn(float32x4_t, float32x4_t) -> T) -> [T; 4] {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        [
            operation(a, e),
            operation(b, f),
            operation(c, g),
            operation(d, h),
        ]
    }
}

// SAFETY of all blocks: the caller has the instructions, and the memory that it names.
impl Vector for Sixteen {
    const N_REGISTERS: usize = 8;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Sixteen([unsafe { vdupq_n_f32(x) }; 4])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        let quarter = |at: usize| unsafe { vld1q_f32(from.add(at * QUARTER)) };
        Sixteen([quarter(0), quarter(1), quarter(2), quarter(3)])
    }

    #[inline(always)]
    unsafe fn load_first(from: *const f32, n: usize) -> Self {
        let mut all = [0.0; LANES];
        unsafe {
            std::ptr::copy_nonoverlapping(from, all.as_mut_ptr(), n);
            Self::load(all.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn load_eight(from: *const i8) -> Self {
        unsafe {
            let bytes = vld1q_s8(from);
            let (low, high) = (vmovl_s8(vget_low_s8(bytes)), vmovl_s8(vget_high_s8(bytes)));
            let quarter = |half| vcvtq_f32_s32(vmovl_s16(half));
            Sixteen([
                quarter(vget_low_s16(low)),
                quarter(vget_high_s16(low)),
                quarter(vget_low_s16(high)),
                quarter(vget_high_s16(high)),
            ])
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        for (at, quarter) in self.0.into_iter().enumerate() {
            unsafe { vst1q_f32(to.add(at * QUARTER), quarter) };
        }
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, n: usize) {
        let mut all = [0.0; LANES];
        unsafe {
            self.store(all.as_mut_ptr());
            std::ptr::copy_nonoverlapping(all.as_ptr(), to, n);
        }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Sixteen(self.with(other, |a, b| unsafe { vaddq_f32(a, b) }))
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        Sixteen(self.with(other, |a, b| unsafe { vsubq_f32(a, b) }))
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        Sixteen(self.with(other, |a, b| unsafe { vmulq_f32(a, b) }))
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        Sixteen(self.with(other, |a, b| unsafe { vdivq_f32(a, b) }))
    }

    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
        let one = |at: usize| unsafe { vfmaq_f32(term.0[at], self.0[at], factor.0[at]) };
        Sixteen([one(0), one(1), one(2), one(3)])
    }

    #[inline(always)]
    unsafe fn sqrt(self) -> Self {
        self.map(|x| unsafe { vsqrtq_f32(x) })
    }

    #[inline(always)]
    unsafe fn round(self) -> Self {
        self.map(|x| unsafe { vrndnq_f32(x) })
    }

    #[inline(always)]
    unsafe fn power_of_two(self) -> Self {
        self.map(|x| unsafe {
            let biased = vaddq_s32(vcvtq_s32_f32(x), vdupq_n_s32(127));
            vreinterpretq_f32_s32(vshlq_n_s32::<23>(biased))
        })
    }

    #[inline(always)]
    unsafe fn select_less(self, other: Self, then: Self, otherwise: Self) -> Self {
        let is_less = self.with(other, |a, b| unsafe { vcltq_f32(a, b) });
        let one = |at: usize| unsafe { vbslq_f32(is_less[at], then.0[at], otherwise.0[at]) };
        Sixteen([one(0), one(1), one(2), one(3)])
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        let [a, b, c, d] = self.0;
        unsafe {
            let quad = vaddq_f32(vaddq_f32(a, c), vaddq_f32(b, d));
            let pair = vadd_f32(vget_low_f32(quad), vget_high_f32(quad));
            vget_lane_f32::<0>(pair) + vget_lane_f32::<1>(pair)
        }
    }

    #[inline(always)]
    unsafe fn set_between(self, low: Self, high: Self) -> u32 {
        let is_above = low.with(self, |low, x| unsafe { vcleq_f32(low, x) });
        let is_below = self.with(high, |x, high| unsafe { vcltq_f32(x, high) });
        let quarter = |at: usize| unsafe {
            let bits = vld1q_u32([1, 2, 4, 8].as_ptr());
            let is_between = vandq_u32(is_above[at], is_below[at]);
            vaddvq_u32(vandq_u32(is_between, bits)) << (at * QUARTER)
        };
        quarter(0) | quarter(1) | quarter(2) | quarter(3)
    }
}
