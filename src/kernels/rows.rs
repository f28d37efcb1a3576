//! Row operations of a transformer: softmax, layer norm and GELU with what their backward passes need.
//!
//! Each is one walk over a row or two, so that a row is in the cache while it is worked on.

#[cfg(target_arch = "x86_64")]
use super::avx2_rows;
use super::{Kernels, scalar_rows};

impl Kernels {
    /// row = softmax(scale·row); nothing happens to an empty row.
    #[inline]
    pub(crate) fn softmax(self, row: &mut [f32], scale: f32) {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist.
            Kernels::Avx2(_) => unsafe { avx2_rows::softmax(row, scale) },
            _ => scalar_rows::softmax(row, scale),
        }
    }

    /// From ∂L/∂p to ∂L/∂s of p = softmax(scale·s): scale·p∘(d − Σ p·d).
    #[inline]
    pub(crate) fn softmax_backward(self, p: &[f32], gradient: &mut [f32], scale: f32) {
        assert_eq!(p.len(), gradient.len());
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist; lengths are equal.
            Kernels::Avx2(_) => unsafe { avx2_rows::softmax_backward(p, gradient, scale) },
            _ => scalar_rows::softmax_backward(p, gradient, scale),
        }
    }

    /// row = x̂ = (row − mean)/√(variance + ε), out = γ∘x̂ + β; returns 1/√(variance + ε).
    #[inline]
    pub(crate) fn layer_norm(
        self,
        row: &mut [f32],
        scale: (&[f32], &[f32], f32),
        out: &mut [f32],
    ) -> f32 {
        let n = row.len();
        assert!(scale.0.len() == n && scale.1.len() == n && out.len() == n);
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist; lengths are equal.
            Kernels::Avx2(_) => unsafe { avx2_rows::layer_norm(row, scale, out) },
            _ => scalar_rows::layer_norm(row, scale, out),
        }
    }

    /// From ∂L/∂y to ∂L/∂x of a layer norm, whose x̂ and 1/√(variance + ε) are `normed`; adds to ∂L/∂γ and ∂L/∂β.
    ///
    /// With g = γ∘∂L/∂y: ∂L/∂x = (g − mean(g) − x̂·mean(g∘x̂))/√(variance + ε).
    #[inline]
    pub(crate) fn layer_norm_backward(
        self,
        gradient: &mut [f32],
        normed: (&[f32], f32),
        gamma: &[f32],
        d_gamma: &mut [f32],
        d_beta: &mut [f32],
    ) {
        let n = gradient.len();
        assert!(normed.0.len() == n && gamma.len() == n);
        assert!(d_gamma.len() == n && d_beta.len() == n);
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist; lengths are equal.
            Kernels::Avx2(_) => unsafe {
                avx2_rows::layer_norm_backward(gradient, normed, gamma, d_gamma, d_beta);
            },
            _ => scalar_rows::layer_norm_backward(gradient, normed, gamma, d_gamma, d_beta),
        }
    }

    /// out = GELU(x + bias) = (x + bias)·Φ(x + bias), and x becomes the derivative; Φ within 1e-6.
    #[inline]
    pub(crate) fn gelu(self, x: &mut [f32], bias: &[f32], out: &mut [f32]) {
        assert!(x.len() == bias.len() && x.len() == out.len());
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist; lengths are equal.
            Kernels::Avx2(_) => unsafe { avx2_rows::gelu(x, bias, out) },
            _ => scalar_rows::gelu(x, bias, out),
        }
    }

    /// x ∘= factors, sums += x.
    #[inline]
    pub(crate) fn multiply_and_sum(self, x: &mut [f32], factors: &[f32], sums: &mut [f32]) {
        assert!(x.len() == factors.len() && x.len() == sums.len());
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` proves the instructions exist; lengths are equal.
            Kernels::Avx2(_) => unsafe { avx2_rows::multiply_and_sum(x, factors, sums) },
            _ => scalar_rows::multiply_and_sum(x, factors, sums),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A backward pass over a gradient and the sums for γ and β.
    type Backward<'a> = &'a dyn Fn(&mut [f32], &mut [f32], &mut [f32]);

    fn all_close(fast: &[f32], slow: &[f32]) -> bool {
        let mut pairs = fast.iter().zip(slow);
        pairs.all(|(a, b)| (a - b).abs() <= 3e-5 * (1.0 + a.abs().max(b.abs())))
    }

    /// Rows of one length, each one float off alignment.
    fn rows<const N: usize>() -> impl Strategy<Value = [Vec<f32>; N]> {
        (1usize..70).prop_flat_map(|n| {
            let row = prop::collection::vec(-3.0f32..3.0, n + 1);
            prop::collection::vec(row, N)
                .prop_map(|rows| rows.try_into().expect("as many rows as asked for"))
        })
    }

    proptest! {
        #[test]
        fn softmax_and_its_backward_agree_with_the_scalar_version([row, gradient] in rows::<2>(), scale in 0.1f32..2.0) {
            let (mut fast, mut slow) = (row.clone(), row);
            Kernels::detect().softmax(&mut fast[1..], scale);
            scalar_rows::softmax(&mut slow[1..], scale);
            prop_assert!(all_close(&fast, &slow), "{fast:?} {slow:?}");
            prop_assert!((slow[1..].iter().sum::<f32>() - 1.0).abs() < 1e-5);
            let (mut d_fast, mut d_slow) = (gradient.clone(), gradient);
            Kernels::detect().softmax_backward(&fast[1..], &mut d_fast[1..], scale);
            scalar_rows::softmax_backward(&slow[1..], &mut d_slow[1..], scale);
            prop_assert!(all_close(&d_fast, &d_slow), "{d_fast:?} {d_slow:?}");
        }

        #[test]
        fn layer_norm_and_its_backward_agree_with_the_scalar_version([row, gamma, beta, gradient] in rows::<4>()) {
            // Rows of nearly one value would blow up rounding.
            let row: Vec<f32> = row.iter().zip(0..).map(|(x, at)| x + 4.0 * (at % 3) as f32).collect();
            let scale = (&gamma[1..], &beta[1..], 1e-5);
            let (mut fast, mut slow, mut y_fast, mut y_slow) = (row.clone(), row, beta.clone(), beta.clone());
            let inverse = Kernels::detect().layer_norm(&mut fast[1..], scale, &mut y_fast[1..]);
            let inverse_slow = scalar_rows::layer_norm(&mut slow[1..], scale, &mut y_slow[1..]);
            prop_assert!(all_close(&[inverse.recip()], &[inverse_slow.recip()]));
            prop_assert!(all_close(&fast, &slow) && all_close(&y_fast, &y_slow));
            let run = |backward: Backward<'_>| {
                let mut parts = (gradient.clone(), beta.clone(), gamma.clone());
                backward(&mut parts.0[1..], &mut parts.1[1..], &mut parts.2[1..]);
                [parts.0, parts.1, parts.2].concat()
            };
            let normed = (&slow[1..], inverse_slow.min(1.0));
            let fast = run(&|d, dg, db| Kernels::detect().layer_norm_backward(d, normed, &gamma[1..], dg, db));
            let slow = run(&|d, dg, db| scalar_rows::layer_norm_backward(d, normed, &gamma[1..], dg, db));
            prop_assert!(all_close(&fast, &slow), "{fast:?} {slow:?}");
        }

        #[test]
        fn gelu_agrees_with_the_scalar_version([x, bias, factors] in rows::<3>()) {
            let (mut fast, mut slow, mut y_fast, mut y_slow) = (x.clone(), x, bias.clone(), bias.clone());
            Kernels::detect().gelu(&mut fast[1..], &bias[1..], &mut y_fast[1..]);
            scalar_rows::gelu(&mut slow[1..], &bias[1..], &mut y_slow[1..]);
            prop_assert!(all_close(&fast, &slow) && all_close(&y_fast, &y_slow));
            Kernels::detect().multiply_and_sum(&mut fast[1..], &factors[1..], &mut y_fast[1..]);
            scalar_rows::multiply_and_sum(&mut slow[1..], &factors[1..], &mut y_slow[1..]);
            prop_assert!(all_close(&fast, &slow) && all_close(&y_fast, &y_slow));
        }
    }

    #[test]
    fn gelu_has_the_published_values() {
        // From scipy.stats.norm: x·cdf(x) and cdf(x) + x·pdf(x).
        let cases = [
            (-3.0, -0.004_049_694, -0.011_945_647),
            (-0.5, -0.154_268_77, 0.132_504_88),
            (0.0, 0.0, 0.5),
            (1.0, 0.841_344_8, 1.083_315_5),
            (6.0, 6.0, 1.0),
        ];
        for (x, value, slope) in cases {
            let (mut derivative, mut out) = ([x], [0.0]);
            Kernels::detect().gelu(&mut derivative, &[0.0], &mut out);
            assert!((out[0] - value).abs() < 1e-6, "{x}: {}", out[0]);
            assert!(
                (derivative[0] - slope).abs() < 1e-6,
                "{x}: {}",
                derivative[0]
            );
        }
    }
}
