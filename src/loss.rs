//! The loss of one shortlisted label and its derivatives: L = L_c + λ L_s (paper, Section 3.3).
//!
//! L_c is the binary cross entropy of p = σ(z)·ŷ; the paper's negative term has a misprint and means
//! (1−y)·log(1−p). L_s is −log ŷ over reached positives, before the cut at K. Derivatives are with respect to z and
//! log ŷ: log ŷ = log ŝ_c + log ŝ(c,ℓ) stays exact where the product underflows, and both factors receive the same
//! derivative.

/// One label's score and the derivatives of its loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LossTerm {
    /// The probability of the true outcome: p for a positive, 1 − p for a negative. L_c = −log score.
    pub score: f64,
    /// ∂L_c/∂z.
    pub d_logit: f32,
    /// ∂L_c/∂log ŷ.
    pub d_log_path: f32,
}

/// The term of a positive: −log σ(z) − log ŷ.
///
/// `e` is exp(−z).
#[inline]
pub(crate) fn positive(e: f32, path_score: f32) -> LossTerm {
    // ∂/∂z = −(1 − σ);   ∂/∂log ŷ = −1
    let sigma = 1.0 / (1.0 + f64::from(e));
    LossTerm {
        score: sigma * f64::from(path_score),
        d_logit: -e / (1.0 + e),
        d_log_path: -1.0,
    }
}

/// The probability p below which both derivatives of a negative's term are below `floor`, by a margin; at most 1e-3.
///
/// The larger one is ∂L_c/∂log ŷ = p/(1−p), so nearly all negatives are recognised by p alone.
#[inline]
pub(crate) fn faint_below(floor: f32) -> f32 {
    (0.99 * floor / (1.0 + floor)).min(1e-3)
}

/// The term of a negative: −log(1 − σ(z)·ŷ).
///
/// `e` is exp(−z).
#[inline]
pub(crate) fn negative(e: f32, path_score: f32) -> LossTerm {
    // 1 − p = (1 − σ) + σ(1 − ŷ), which keeps its digits as σ → 1 and ŷ → 1.
    let sigma = 1.0 / (1.0 + e);
    let sigma_complement = e * sigma;
    let complement = (sigma_complement + sigma * (1.0 - path_score)).max(f32::MIN_POSITIVE);
    let p = sigma * path_score;
    // ∂/∂z = ŷσ(1−σ)/(1−p);   ∂/∂ŷ = σ/(1−p), times ŷ for log ŷ. The latter is unbounded as p → 1: it is
    // capped by the resolution of f32.
    let d_log_path = p / complement.max(f32::EPSILON);
    let d_logit = p * (sigma_complement / complement).min(1.0);
    // In f32 a tiny p would vanish in 1 − p.
    let score = if p < 0.5 {
        1.0 - f64::from(p)
    } else {
        f64::from(complement)
    };
    LossTerm {
        score,
        d_logit,
        d_log_path,
    }
}

/// The sum of −log of many scores, with one logarithm for several of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogSum {
    product: f64,
    sum: f64,
}

impl Default for LogSum {
    fn default() -> Self {
        LogSum {
            product: 1.0,
            sum: 0.0,
        }
    }
}

impl LogSum {
    /// Adds −log of a score.
    #[inline]
    pub(crate) fn add(&mut self, score: f64) {
        self.product *= score.max(SMALLEST);
        if self.product < 1e-200 {
            self.sum -= self.product.ln();
            self.product = 1.0;
        }
    }

    /// The sum so far.
    pub(crate) fn sum(&self) -> f64 {
        self.sum - self.product.ln()
    }
}

/// An underflowed score counts as the smallest normal number of f32.
const SMALLEST: f64 = f32::MIN_POSITIVE as f64;

/// The shortlist loss of a reached positive: −log ŷ; its derivative with respect to log ŷ is −1.
#[inline]
pub(crate) fn shortlist(path_score: f32) -> f64 {
    -f64::from(path_score).max(SMALLEST).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// L_c in f64 from its definition.
    fn cross_entropy(z: f64, log_path: f64, is_positive: bool) -> f64 {
        let p = log_path.exp() / (1.0 + (-z).exp());
        if is_positive {
            -p.ln()
        } else {
            -(1.0 - p).ln()
        }
    }

    #[test]
    fn derivatives_agree_with_finite_differences() {
        let step = 1e-6;
        for z in [-8.0f64, -2.0, -0.1, 0.0, 1.5, 6.0] {
            for path_score in [1e-4f64, 0.03, 0.5, 0.97] {
                for is_positive in [true, false] {
                    let e = (-z).exp() as f32;
                    let term = if is_positive {
                        positive(e, path_score as f32)
                    } else {
                        negative(e, path_score as f32)
                    };
                    let log_path = path_score.ln();
                    let at = |z, log_path| cross_entropy(z, log_path, is_positive);
                    let d_logit = (at(z + step, log_path) - at(z - step, log_path)) / (2.0 * step);
                    let d_log_path =
                        (at(z, log_path + step) - at(z, log_path - step)) / (2.0 * step);
                    let check = |got: f32, expected: f64| {
                        let error = (f64::from(got) - expected).abs();
                        assert!(
                            error < 1e-4 * expected.abs() + 1e-9,
                            "{got} {expected} at {z} {path_score}"
                        );
                    };
                    let loss = -term.score.ln();
                    assert!(
                        (loss - at(z, log_path)).abs() < 1e-5 * (1e-5 + loss),
                        "{loss} at {z} {path_score}"
                    );
                    check(term.d_logit, d_logit);
                    check(term.d_log_path, d_log_path);
                }
            }
        }
    }

    #[test]
    fn sums_of_logarithms_survive_many_small_scores() {
        let mut sum = LogSum::default();
        (0..1000).for_each(|_| sum.add(1e-30));
        assert!((sum.sum() - 1000.0 * 30.0 * 10f64.ln()).abs() < 1e-6);
    }

    #[test]
    fn extreme_scores_stay_finite() {
        for e in [0.0f32, f32::MIN_POSITIVE, 1e30, 1.6e38] {
            for path_score in [0.0f32, 1e-38, 1.0] {
                for term in [positive(e, path_score), negative(e, path_score)] {
                    assert!(
                        term.score.is_finite()
                            && term.d_logit.is_finite()
                            && term.d_log_path.is_finite(),
                        "{term:?} at {e} {path_score}"
                    );
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_faint_negative_has_both_derivatives_below_the_floor(
            z in -30f32..8.0, path_score in 1e-6f32..=1.0, floor in 1e-4f32..2e-3, factor in 0.9f32..1.0,
        ) {
            // A path that makes p just faint, and the one that was drawn.
            let e = (-z).exp();
            let just_faint = (factor * faint_below(floor) * (1.0 + e)).min(1.0);
            for path_score in [just_faint, path_score] {
                let term = negative(e, path_score);
                let is_faint = path_score / (1.0 + e) < faint_below(floor);
                prop_assert!(!is_faint || term.d_log_path < floor && term.d_logit < floor);
            }
        }
    }

    #[test]
    fn nearly_every_negative_without_gradient_is_faint() {
        let (floor, path_score) = (1e-3, 0.5f32);
        let e_of = |p: f32| path_score / p - 1.0;
        assert!(negative(e_of(0.98 * floor), path_score).d_log_path < floor);
        assert!(0.98 * floor < faint_below(floor));
        assert!(faint_below(0.0) == 0.0);
    }
}
