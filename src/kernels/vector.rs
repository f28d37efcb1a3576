//! Sixteen numbers side by side: the unit in which every kernel is written.
//!
//! An instruction set says how it loads, stores and computes them, in one register or in several. Each operation is that
//! of IEEE 754, rounded once, and sums over the lanes have one order, so a kernel has the same bits on every machine.

/// Numbers of a vector.
pub(super) const LANES: usize = 16;

/// Sixteen numbers of an instruction set.
///
/// # Safety
/// Methods may be called only inside of a function that enables the instructions, on a machine that has them.
pub(super) trait Vector: Copy {
    /// Vectors that the machine's registers hold.
    const N_REGISTERS: usize;

    /// The same number in every lane.
    unsafe fn splat(x: f32) -> Self;
    /// Sixteen numbers from memory.
    unsafe fn load(from: *const f32) -> Self;
    /// The first `n` numbers from memory, with `n` below sixteen, and zeros.
    unsafe fn load_first(from: *const f32, n: usize) -> Self;
    /// Sixteen integers of eight bits from memory.
    unsafe fn load_eight(from: *const i8) -> Self;
    /// Writes sixteen numbers.
    unsafe fn store(self, to: *mut f32);
    /// Writes the first `n` numbers, with `n` below sixteen.
    unsafe fn store_first(self, to: *mut f32, n: usize);

    /// self + other.
    unsafe fn add(self, other: Self) -> Self;
    /// self − other.
    unsafe fn sub(self, other: Self) -> Self;
    /// self · other.
    unsafe fn mul(self, other: Self) -> Self;
    /// self / other.
    unsafe fn div(self, other: Self) -> Self;
    /// self · factor + term, rounded once.
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self;
    /// √self.
    unsafe fn sqrt(self) -> Self;
    /// The nearest integers, the even ones on ties.
    unsafe fn round(self) -> Self;
    /// 2^self of integers from −126 to 127.
    unsafe fn power_of_two(self) -> Self;
    /// `then` in the lanes where self < other, `otherwise` in the rest.
    unsafe fn select_less(self, other: Self, then: Self, otherwise: Self) -> Self;

    /// Sum of the lanes, pairwise: those eight apart, then four, two and one.
    unsafe fn sum(self) -> f32;
    /// [`Vector::sum`] of four vectors.
    #[inline(always)]
    unsafe fn sums(four: [Self; 4]) -> [f32; 4] {
        // SAFETY: that of the caller.
        unsafe { [four[0].sum(), four[1].sum(), four[2].sum(), four[3].sum()] }
    }

    /// The set of lanes with low ≤ x < high, one bit per lane.
    unsafe fn set_between(self, low: Self, high: Self) -> u32;
    /// Writes `first` + lane for every lane of a set, in order; up to sixteen places may be overwritten.
    #[inline(always)]
    unsafe fn write_set(mut set: u32, first: u32, mut to: *mut u32) {
        while set != 0 {
            // SAFETY: the caller has sixteen places, and a set has sixteen lanes.
            unsafe {
                to.write(first + set.trailing_zeros());
                to = to.add(1);
            }
            set &= set - 1;
        }
    }

    /// Σ x·row in integers.
    #[inline(always)]
    unsafe fn integer_dot(x: &[i16], row: &[i8]) -> i32 {
        let products = x.iter().zip(row);
        products.map(|(&x, &w)| i32::from(x) * i32::from(w)).sum()
    }
}

/// The next numbers of `n_left`, which is not 0; zeros beyond.
#[inline(always)]
pub(super) unsafe fn load_up_to<V: Vector>(from: *const f32, n_left: usize) -> V {
    // SAFETY: that of the caller.
    unsafe {
        match n_left < LANES {
            true => V::load_first(from, n_left),
            false => V::load(from),
        }
    }
}

/// Writes the next numbers of `n_left`, which is not 0.
#[inline(always)]
pub(super) unsafe fn store_up_to<V: Vector>(x: V, to: *mut f32, n_left: usize) {
    // SAFETY: that of the caller.
    unsafe {
        match n_left < LANES {
            true => x.store_first(to, n_left),
            false => x.store(to),
        }
    }
}
