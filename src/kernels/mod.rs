//! Vector kernels on rows, the same to the bit on every machine.
//!
//! A kernel is written once, over vectors of sixteen numbers (`vector`), and compiled for every instruction set: AVX-512,
//! AVX2 with FMA, NEON, and plain code. [`Kernels::detect`] picks the widest; availability is a type. The order of a sum
//! depends on its length only, and every product that is added to a sum is rounded once with it, so results depend neither
//! on the machine nor on the number of threads. Tests hold every kernel to a plain `f64` reference, and all instruction sets
//! to the same bits. Rows may have any length and alignment.

#![allow(unsafe_code)] // intrinsics live here only; every file states why its calls are sound

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod exponentials;
mod lanes;
#[cfg(target_arch = "aarch64")]
mod neon;
mod product;
#[cfg(feature = "transformer")]
mod rows;
mod scalar;
mod sums;
mod tiles;
#[cfg(feature = "transformer")]
mod transformer;
mod updates;
mod vector;

use std::ops::Range;
use std::sync::LazyLock;

pub(crate) use lanes::{LANES, Lanes};
#[cfg(feature = "transformer")]
pub(crate) use product::product_into;
pub(crate) use product::{Output, View, ViewMut, product};
#[cfg(feature = "transformer")]
pub(crate) use rows::{NormScale, Normed};

/// Calls a kernel, which is generic over the vector, in a function that enables the instructions.
macro_rules! run {
    ($kernels:expr, $($kernel:ident)::+ ($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma")]
        fn avx512($($argument: $type),*) $(-> $result)? {
            // SAFETY: the instructions are enabled; callers have checked the arguments.
            unsafe { $($kernel)::+::<$crate::kernels::avx512::Sixteen>($($argument),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn avx2($($argument: $type),*) $(-> $result)? {
            // SAFETY: the instructions are enabled; callers have checked the arguments.
            unsafe { $($kernel)::+::<$crate::kernels::avx2::Sixteen>($($argument),*) }
        }
        #[cfg(target_arch = "aarch64")]
        #[target_feature(enable = "neon")]
        fn neon($($argument: $type),*) $(-> $result)? {
            // SAFETY: the instructions are enabled; callers have checked the arguments.
            unsafe { $($kernel)::+::<$crate::kernels::neon::Sixteen>($($argument),*) }
        }
        match $kernels {
            // SAFETY: the variant proves that the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512(_) => unsafe { avx512($($argument),*) },
            // SAFETY: the variant proves that the machine has the instructions.
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2(_) => unsafe { avx2($($argument),*) },
            // SAFETY: the variant proves that the machine has the instructions.
            #[cfg(target_arch = "aarch64")]
            Kernels::Neon(_) => unsafe { neon($($argument),*) },
            // SAFETY: plain code runs everywhere; callers have checked the arguments.
            Kernels::Scalar => unsafe { $($kernel)::+::<$crate::kernels::scalar::Sixteen>($($argument),*) },
        }
    }};
}
use run;

/// Labels processed together: each load of a row then serves four products.
pub(crate) const TILE: usize = 4;

/// Rows that are prefetched ahead where they are scattered.
const AHEAD: usize = 8;

/// Proof that the machine has the instructions of a variant of [`Kernels`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Available(());

/// Bytes per cache line.
const CACHE_LINE: usize = 64;

/// Hints that this memory will be read soon, where the hardware cannot predict it.
#[inline]
pub(crate) fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in values.chunks(CACHE_LINE / size_of::<T>()) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 machine has the instruction, which never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// The parameters of one AdamW update.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdamWStep {
    /// Learning rate.
    pub learning_rate: f32,
    /// Decay of the first moment.
    pub beta1: f32,
    /// Decay of the second moment.
    pub beta2: f32,
    /// Added to the square root of the second moment.
    pub epsilon: f32,
    /// Decoupled weight decay, multiplied by the learning rate.
    pub weight_decay: f32,
    /// 1 − beta1^t.
    pub bias_correction1: f32,
    /// 1 − beta2^t.
    pub bias_correction2: f32,
}

/// An implementation of the kernels.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernels {
    /// 512-bit vectors, and products of 16-bit integers.
    #[cfg(target_arch = "x86_64")]
    Avx512(Available),
    /// 256-bit vectors with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2(Available),
    /// 128-bit vectors of ARM.
    #[cfg(target_arch = "aarch64")]
    Neon(Available),
    /// Plain loops.
    Scalar,
}

impl AdamWStep {
    /// Updates the second moment that a whole row shares; returns √v̂ + ε.
    pub(crate) fn row_denominator(&self, v: &mut f32, gradient: &[f32]) -> f32 {
        let square = Kernels::detect().dot(gradient, gradient);
        let mean = square / gradient.len().max(1) as f32;
        *v = self.beta2 * *v + (1.0 - self.beta2) * mean;
        (*v / self.bias_correction2).sqrt() + self.epsilon
    }
}

impl Kernels {
    /// All kernels that this machine can run, the fastest first.
    pub(crate) fn all() -> Vec<Kernels> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            use std::is_x86_feature_detected as has;
            let has_avx2 = has!("avx2") && has!("fma");
            let has_wide = has!("avx512f") && has!("avx512bw") && has!("avx512dq");
            if has_avx2 && has_wide && has!("avx512vl") && has!("avx512vnni") {
                all.push(Kernels::Avx512(Available(())));
            }
            if has_avx2 {
                all.push(Kernels::Avx2(Available(())));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            all.push(Kernels::Neon(Available(())));
        }
        all.push(Kernels::Scalar);
        all
    }

    /// The fastest kernels this machine can run.
    #[inline]
    pub(crate) fn detect() -> Kernels {
        static FASTEST: LazyLock<Kernels> = LazyLock::new(|| Kernels::all()[0]);
        #[cfg(test)]
        if let Some(forced) = tests::forced() {
            return forced;
        }
        *FASTEST
    }

    /// The name of the instruction set.
    pub(crate) fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512(_) => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2(_) => "AVX2",
            #[cfg(target_arch = "aarch64")]
            Kernels::Neon(_) => "NEON",
            Kernels::Scalar => "scalar",
        }
    }

    /// Σ a·b.
    #[inline]
    pub(crate) fn dot(self, a: &[f32], b: &[f32]) -> f32 {
        assert_eq!(a.len(), b.len());
        run!(self, sums::dot(a: &[f32], b: &[f32]) -> f32)
    }

    /// Σ a·b, where `a` has 8 bits per value.
    #[inline]
    pub(crate) fn dot_eight(self, a: &[i8], b: &[f32]) -> f32 {
        assert_eq!(a.len(), b.len());
        run!(self, sums::dot_eight(a: &[i8], b: &[f32]) -> f32)
    }

    /// y += alpha·x, where `x` has 8 bits per value.
    #[inline]
    pub(crate) fn axpy_eight(self, alpha: f32, x: &[i8], y: &mut [f32]) {
        assert_eq!(x.len(), y.len());
        run!(self, sums::axpy_eight(alpha: f32, x: &[i8], y: &mut [f32]))
    }

    /// y += alpha·x.
    #[inline]
    pub(crate) fn axpy(self, alpha: f32, x: &[f32], y: &mut [f32]) {
        assert_eq!(x.len(), y.len());
        run!(self, sums::axpy(alpha: f32, x: &[f32], y: &mut [f32]))
    }

    /// `out[j] = Σ x · matrix[rows[j]]` in integers.
    ///
    /// The caller keeps `width · 128 · max |x|` below 2³¹, so that no sum overflows.
    #[inline]
    pub(crate) fn integer_dots(self, x: &[i16], matrix: &[i8], rows: &[u32], out: &mut [i32]) {
        check_rows(x.len(), matrix.len(), rows);
        assert_eq!(rows.len(), out.len());
        run!(self, sums::integer_dots(x: &[i16], matrix: &[i8], rows: &[u32], out: &mut [i32]))
    }

    /// The positions, ascending, at which `factor·x[i]` lies in `range`. Overwrites `found`.
    #[inline]
    pub(crate) fn find_between(
        self,
        factor: f32,
        x: &[f32],
        range: Range<f32>,
        found: &mut Vec<u32>,
    ) {
        run!(self, exponentials::find_between(factor: f32, x: &[f32], range: Range<f32>, found: &mut Vec<u32>))
    }

    /// `out = Σ_j coefficients[j] · matrix[rows[j]]`.
    #[inline]
    pub(crate) fn sum_rows(
        self,
        coefficients: &[f32],
        matrix: &[f32],
        rows: &[u32],
        out: &mut [f32],
    ) {
        check_rows(out.len(), matrix.len(), rows);
        assert_eq!(rows.len(), coefficients.len());
        run!(self, sums::sum_rows(coefficients: &[f32], matrix: &[f32], rows: &[u32], out: &mut [f32]))
    }

    /// `out[j·TILE + i] = Σ w[i] · matrix[rows[j]]`: a tile of labels against the points that shortlisted one of them.
    ///
    /// `matrix` is row-major; its rows are as long as those of `w`.
    #[inline]
    pub(crate) fn dot_tile(self, w: [&[f32]; TILE], matrix: &[f32], rows: &[u32], out: &mut [f32]) {
        check_tile(w, matrix.len(), rows, out.len());
        run!(self, tiles::dot_tile(w: [&[f32]; TILE], matrix: &[f32], rows: &[u32], out: &mut [f32]))
    }

    /// `out[i][j] = Σ left[i] · right[j]` of row-major matrices whose rows have this width.
    pub(crate) fn dot_all(self, left: &[f32], right: &[f32], width: usize, out: &mut [f32]) {
        if width == 0 {
            return out.fill(0.0);
        }
        assert!(left.len().is_multiple_of(width) && right.len().is_multiple_of(width));
        assert_eq!(out.len(), left.len() / width * (right.len() / width));
        run!(self, tiles::dot_all(left: &[f32], right: &[f32], width: usize, out: &mut [f32]))
    }

    /// `out[i] = Σ_j coefficients[j·TILE + i] · matrix[rows[j]]`: the gradients of a tile of labels.
    #[inline]
    pub(crate) fn sum_tile(
        self,
        coefficients: &[f32],
        matrix: &[f32],
        rows: &[u32],
        out: &mut [f32],
    ) {
        check_rows(out.len() / TILE, matrix.len(), rows);
        assert!(rows.len() * TILE == coefficients.len() && out.len().is_multiple_of(TILE));
        run!(self, tiles::sum_tile(coefficients: &[f32], matrix: &[f32], rows: &[u32], out: &mut [f32]))
    }

    /// `matrix[rows[j]] += Σ_i coefficients[j·TILE + i] · w[i]` for every j: the gradients of the points.
    #[inline]
    pub(crate) fn add_tile(
        self,
        coefficients: &[f32],
        w: [&[f32]; TILE],
        matrix: &mut [f32],
        rows: &[u32],
    ) {
        check_tile(w, matrix.len(), rows, coefficients.len());
        run!(self, tiles::add_tile(coefficients: &[f32], w: [&[f32]; TILE], matrix: &mut [f32], rows: &[u32]))
    }

    /// One AdamW update of a row and its moments.
    #[inline]
    pub(crate) fn adamw(
        self,
        step: &AdamWStep,
        w: &mut [f32],
        gradient: &[f32],
        m: &mut [f32],
        v: &mut [f32],
    ) {
        assert!(w.len() == gradient.len() && w.len() == m.len() && w.len() == v.len());
        run!(self, updates::adamw(step: &AdamWStep, w: &mut [f32], gradient: &[f32], m: &mut [f32], v: &mut [f32]))
    }

    /// One AdamW update of a row that shares one second moment, given as `denominator` = √v̂ + ε.
    #[inline]
    pub(crate) fn adamw_scaled(
        self,
        step: &AdamWStep,
        denominator: f32,
        w: &mut [f32],
        gradient: &[f32],
        m: &mut [f32],
    ) {
        assert!(w.len() == gradient.len() && w.len() == m.len());
        run!(self, updates::adamw_scaled(step: &AdamWStep, denominator: f32, w: &mut [f32], gradient: &[f32], m: &mut [f32]))
    }

    /// Scores negatives: `x[i] = exp(x[i])`, of x = −z, and p = σ(z)·ŷ with `paths[i]` = ŷ.
    ///
    /// Overwrites `found` with the positions, ascending, where p is not below the threshold, and returns Σ −log(1 − p) of
    /// the others. The caller keeps x at most 88 and the threshold at most 1e-3.
    #[inline]
    pub(crate) fn score_negatives(
        self,
        x: &mut [f32],
        paths: &[f32],
        threshold: f32,
        found: &mut Vec<u32>,
    ) -> f32 {
        assert_eq!(x.len(), paths.len());
        run!(self, exponentials::score_negatives(x: &mut [f32], paths: &[f32], threshold: f32, found: &mut Vec<u32>) -> f32)
    }

    /// `x[i] = exp(x[i] − shift)`; returns their sum. The caller keeps `x[i] − shift` at most 88.
    ///
    /// The relative error of the exponential is below 1e-6; below e^−87 it may be 0.
    #[inline]
    pub(crate) fn exp_sum(self, x: &mut [f32], shift: f32) -> f32 {
        run!(self, exponentials::exp_sum(x: &mut [f32], shift: f32) -> f32)
    }
}

fn check_tile(w: [&[f32]; TILE], n_values: usize, rows: &[u32], n_products: usize) {
    let width = w[0].len();
    check_rows(width, n_values, rows);
    assert!(w.iter().all(|row| row.len() == width) && rows.len() * TILE == n_products);
}

fn check_rows(width: usize, n_values: usize, rows: &[u32]) {
    let n_rows = n_values.checked_div(width).unwrap_or(0);
    let n_needed = rows.iter().max().map_or(0, |&row| row as usize + 1);
    assert!(
        n_needed <= n_rows || width == 0,
        "row {} of {n_rows}",
        n_needed - 1
    );
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::with_each_implementation;
