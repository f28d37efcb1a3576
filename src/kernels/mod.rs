//! Vector kernels on rows: AVX2 with FMA where the machine has it, scalar code everywhere.
//!
//! [`Kernels::detect`] picks the implementation. Availability is a type: an [`Avx2`] exists only on a machine that
//! has the instructions. Tests hold every implementation to a plain `f64` reference, and the fast ones to the scalar
//! one. Rows may have any length and alignment. The order of a sum depends on its length only, so results do not
//! depend on the number of threads.

#![allow(unsafe_code)] // intrinsics live here only; every block states why it is sound

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx2_find;
#[cfg(target_arch = "x86_64")]
mod avx2_narrow;
#[cfg(all(target_arch = "x86_64", feature = "transformer"))]
mod avx2_rows;
#[cfg(target_arch = "x86_64")]
mod avx2_tile;
mod lanes;
#[cfg(feature = "transformer")]
mod rows;
mod scalar;
#[cfg(feature = "transformer")]
mod scalar_rows;

use std::ops::Range;

pub(crate) use lanes::{LANES, Lanes};
#[cfg(feature = "transformer")]
pub(crate) use rows::{NormScale, Normed};

/// Labels processed together: each load of a row then serves four products.
pub(crate) const TILE: usize = 4;

/// Proof that the machine has AVX2 and FMA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// `Some` where the instructions are available.
    pub(crate) fn new() -> Option<Avx2> {
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            return Some(Avx2(()));
        }
        None
    }
}

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
    /// 256-bit vectors with fused multiply-add.
    Avx2(Avx2),
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
    /// The fastest kernels this machine can run.
    pub(crate) fn detect() -> Kernels {
        Avx2::new().map_or(Kernels::Scalar, Kernels::Avx2)
    }

    /// Σ a·b.
    #[inline]
    pub(crate) fn dot(self, a: &[f32], b: &[f32]) -> f32 {
        assert_eq!(a.len(), b.len());
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist; lengths are equal.
            Kernels::Avx2(_) => unsafe { avx2::dot(a, b) },
            _ => scalar::dot(a, b),
        }
    }

    /// Σ a·b, where `a` has 8 bits per value.
    #[inline]
    pub(crate) fn dot_eight(self, a: &[i8], b: &[f32]) -> f32 {
        assert_eq!(a.len(), b.len());
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist; lengths are equal.
            Kernels::Avx2(_) => unsafe { avx2_narrow::dot_eight(a, b) },
            _ => scalar::dot_eight(a, b),
        }
    }

    /// y += alpha·x, where `x` has 8 bits per value.
    #[inline]
    pub(crate) fn axpy_eight(self, alpha: f32, x: &[i8], y: &mut [f32]) {
        assert_eq!(x.len(), y.len());
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist; lengths are equal.
            Kernels::Avx2(_) => unsafe { avx2_narrow::axpy_eight(alpha, x, y) },
            _ => scalar::axpy_eight(alpha, x, y),
        }
    }

    /// y += alpha·x.
    #[inline]
    pub(crate) fn axpy(self, alpha: f32, x: &[f32], y: &mut [f32]) {
        assert_eq!(x.len(), y.len());
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist; lengths are equal.
            Kernels::Avx2(_) => unsafe { avx2::axpy(alpha, x, y) },
            _ => scalar::axpy(alpha, x, y),
        }
    }

    /// `out[j] = Σ x · matrix[rows[j]]` in integers.
    ///
    /// The caller keeps `width · 128 · max |x|` below 2³¹, so that no sum overflows.
    #[inline]
    pub(crate) fn integer_dots(self, x: &[i16], matrix: &[i8], rows: &[u32], out: &mut [i32]) {
        check_rows(x.len(), matrix.len(), rows);
        assert_eq!(rows.len(), out.len());
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist; `check_rows` bounds every row.
            Kernels::Avx2(_) => unsafe { avx2_narrow::integer_dots(x, matrix, rows, out) },
            _ => scalar::integer_dots(x, matrix, rows, out),
        }
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
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist.
            Kernels::Avx2(_) => unsafe { avx2_find::find_between(factor, x, range, found) },
            _ => scalar::find_between(factor, x, range, found),
        }
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
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist; `check_rows` bounds every row.
            Kernels::Avx2(_) => unsafe { avx2::sum_rows(coefficients, matrix, rows, out) },
            _ => scalar::sum_rows(coefficients, matrix, rows, out),
        }
    }

    /// `out[j·TILE + i] = Σ w[i] · matrix[rows[j]]`: a tile of labels against the points that shortlisted one of them.
    ///
    /// `matrix` is row-major; its rows are as long as those of `w`.
    #[inline]
    pub(crate) fn dot_tile(self, w: [&[f32]; TILE], matrix: &[f32], rows: &[u32], out: &mut [f32]) {
        check_tile(w, matrix.len(), rows, out.len());
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist; `check_tile` bounds every row.
            Kernels::Avx2(_) => unsafe { avx2_tile::dot_tile(w, matrix, rows, out) },
            _ => scalar::dot_tile(w, matrix, rows, out),
        }
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
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist; `check_rows` bounds every row.
            Kernels::Avx2(_) => unsafe { avx2_tile::sum_tile(coefficients, matrix, rows, out) },
            _ => scalar::sum_tile(coefficients, matrix, rows, out),
        }
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
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist; `check_tile` bounds every row.
            Kernels::Avx2(_) => unsafe { avx2_tile::add_tile(coefficients, w, matrix, rows) },
            _ => scalar::add_tile(coefficients, w, matrix, rows),
        }
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
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist; lengths are equal.
            Kernels::Avx2(_) => unsafe { avx2::adamw(step, w, gradient, m, v) },
            _ => scalar::adamw(step, w, gradient, m, v),
        }
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
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist; lengths are equal.
            Kernels::Avx2(_) => unsafe { avx2::adamw_scaled(step, denominator, w, gradient, m) },
            _ => scalar::adamw_scaled(step, denominator, w, gradient, m),
        }
    }

    /// `x[i] = exp(x[i] − shift)`; returns their sum. The caller keeps `x[i] − shift` at most 88.
    ///
    /// The relative error of the exponential is below 1e-6; below e^−87 it may be 0.
    #[inline]
    pub(crate) fn exp_sum(self, x: &mut [f32], shift: f32) -> f32 {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist.
            Kernels::Avx2(_) => unsafe { avx2::exp_sum(x, shift) },
            _ => scalar::exp_sum(x, shift),
        }
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
