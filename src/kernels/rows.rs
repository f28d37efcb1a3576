//! Row operations of a transformer: softmax, layer norm and GELU, forward and backward.
//!
//! Each makes one or two passes over a row, which stays in the cache meanwhile.

use super::{Kernels, run, transformer};

/// The parameters of a layer norm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NormScale<'a> {
    /// γ.
    pub gamma: &'a [f32],
    /// β.
    pub beta: &'a [f32],
    /// ε.
    pub epsilon: f32,
}

/// A normalised row, kept for the backward pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Normed<'a> {
    /// x̂.
    pub values: &'a [f32],
    /// 1/√(variance + ε).
    pub inverse: f32,
}

impl Kernels {
    /// row = softmax(scale·row); an empty row stays empty.
    #[inline]
    pub(crate) fn softmax(self, row: &mut [f32], scale: f32) {
        run!(self, transformer::softmax(row: &mut [f32], scale: f32))
    }

    /// From ∂L/∂p to ∂L/∂s of p = softmax(scale·s): scale·p∘(d − Σ p·d).
    #[inline]
    pub(crate) fn softmax_backward(self, p: &[f32], gradient: &mut [f32], scale: f32) {
        assert_eq!(p.len(), gradient.len());
        run!(self, transformer::softmax_backward(p: &[f32], gradient: &mut [f32], scale: f32))
    }

    /// row = x̂ = (row − mean)/√(variance + ε), out = γ∘x̂ + β; returns 1/√(variance + ε).
    #[inline]
    pub(crate) fn layer_norm(self, row: &mut [f32], scale: NormScale<'_>, out: &mut [f32]) -> f32 {
        let n = row.len();
        assert!(scale.gamma.len() == n && scale.beta.len() == n && out.len() == n);
        run!(self, transformer::layer_norm(row: &mut [f32], scale: NormScale<'_>, out: &mut [f32]) -> f32)
    }

    /// From ∂L/∂y to ∂L/∂x of a layer norm; adds to ∂L/∂γ and ∂L/∂β.
    ///
    /// With g = γ∘∂L/∂y: ∂L/∂x = (g − mean(g) − x̂·mean(g∘x̂))/√(variance + ε).
    #[inline]
    pub(crate) fn layer_norm_backward(
        self,
        gradient: &mut [f32],
        normed: Normed<'_>,
        gamma: &[f32],
        d_gamma: &mut [f32],
        d_beta: &mut [f32],
    ) {
        let n = gradient.len();
        assert!(normed.values.len() == n && gamma.len() == n);
        assert!(d_gamma.len() == n && d_beta.len() == n);
        run!(self, transformer::layer_norm_backward(gradient: &mut [f32], normed: Normed<'_>, gamma: &[f32], d_gamma: &mut [f32], d_beta: &mut [f32]))
    }

    /// out = GELU(x + bias) = (x + bias)·Φ(x + bias), and x becomes the derivative; Φ within 1e-6.
    #[inline]
    pub(crate) fn gelu(self, x: &mut [f32], bias: &[f32], out: &mut [f32]) {
        assert!(x.len() == bias.len() && x.len() == out.len());
        run!(self, transformer::gelu(x: &mut [f32], bias: &[f32], out: &mut [f32]))
    }

    /// x ∘= factors, sums += x.
    #[inline]
    pub(crate) fn multiply_and_sum(self, x: &mut [f32], factors: &[f32], sums: &mut [f32]) {
        assert!(x.len() == factors.len() && x.len() == sums.len());
        run!(self, transformer::multiply_and_sum(x: &mut [f32], factors: &[f32], sums: &mut [f32]))
    }
}
