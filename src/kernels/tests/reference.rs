//! Arithmetic in `f64` with bounds on the error of `f32`.

/// Twice the relative rounding error of one `f32` operation.
pub(super) const U: f64 = f32::EPSILON as f64;
/// Absolute rounding error of one operation on denormals.
pub(super) const TINY: f64 = 1e-44;

/// A value and the error allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) value: f64,
    pub(super) tolerance: f64,
}

impl Expected {
    /// A value that must be met exactly.
    pub(super) fn exact(value: f64) -> Self {
        Expected {
            value,
            tolerance: 0.0,
        }
    }
}

/// A sum of terms in any order: its error is at most that of as many operations on the sum of magnitudes.
pub(super) fn sum(terms: impl IntoIterator<Item = f64>) -> Expected {
    let (mut value, mut magnitude, mut n) = (0.0, 0.0, 0.0);
    for term in terms {
        value += term;
        magnitude += f64::abs(term);
        n += 1.0;
    }
    Expected {
        value,
        tolerance: (n + 4.0) * (U * magnitude + TINY),
    }
}

/// Σ a·b.
pub(super) fn dot(a: &[f32], b: &[f32]) -> Expected {
    sum(a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)))
}

/// 2/√π e^{−x²} Σ 2ⁿx^{2n+1}/(1·3·…·(2n+1)): all terms have one sign, so none cancel.
pub(super) fn erf(x: f64) -> f64 {
    if x.abs() > 6.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
    }
    2.0 / std::f64::consts::PI.sqrt() * (-x * x).exp() * sum
}
