//! L2-regularised logistic loss by dual coordinate descent.
//!
//! Primal: ½‖w‖² + Σ C_i·log(1 + exp(−y_i·w·ψ_i)). Dual: min ½αᵀQα + Σ α_i·log α_i + (C_i−α_i)·log(C_i−α_i)
//! over 0 < α_i < C_i, with w = Σ α_i·y_i·ψ_i (Yu, Huang and Lin, Machine Learning 2011).
//! We write α = C·σ(t). The condition for one α, the others fixed, is then
//!
//! ```text
//! t + ‖ψ‖²·(C·σ(t) − α) + y·w·ψ = 0
//! ```
//!
//! whose left side rises with slope between 1 and 1 + ‖ψ‖²·C/4: Newton's method inside a bracket needs a few
//! exponentials and no logarithm, and t loses no digits where α is close to 0 or to C.

use crate::random::Random;

use super::rows::{DualWeights, TrainingRows};
use super::solver::{Solver, Stopping};

/// Trains `weights`; where they are not zero, ‖w − w₀‖² takes the place of ‖w‖².
pub(super) fn solve(
    rows: &TrainingRows<'_>,
    weights: &mut DualWeights<'_>,
    costs: impl Fn(usize) -> f64,
    stopping: Stopping,
    random: &mut Random,
    solver: &mut Solver,
) {
    solver.reset(rows.len());
    let Solver {
        alphas,
        order,
        logits,
    } = solver;
    // A point this close to its optimum is skipped, which saves the update of its row.
    let close_enough = 0.1 * stopping.tolerance;

    for pass in 0..stopping.max_iterations {
        let mut largest = 0.0f64;
        random.shuffle(order);
        for &row_idx in order.iter() {
            let row_idx = row_idx as usize;
            let sign = rows.sign(row_idx);
            let signed_margin = sign * rows.margin(row_idx, weights);
            // Before its first visit a point has α = 0 and no logit, so it is not solved.
            let violation = if pass == 0 {
                f64::INFINITY
            } else {
                (logits[row_idx] + signed_margin).abs()
            };
            largest = largest.max(violation);
            if violation < close_enough {
                continue;
            }
            let alpha = alphas[row_idx];
            let cost = costs(row_idx);
            let curvature = rows.squared_norm(row_idx);
            let (logit, updated) =
                solve_one(logits[row_idx], alpha, cost, curvature, signed_margin);
            logits[row_idx] = logit;
            alphas[row_idx] = updated;
            rows.add_to(row_idx, (updated - alpha) * sign, weights);
        }
        if largest <= stopping.tolerance {
            return;
        }
    }
}

/// Solves t + a·(C·σ(t) − α) + m = 0 for t, from a first guess; returns t and C·σ(t).
fn solve_one(guess: f64, alpha: f64, cost: f64, curvature: f64, signed_margin: f64) -> (f64, f64) {
    // σ lies in (0, 1), so the root lies between these.
    let mut high = curvature * alpha - signed_margin;
    let mut low = high - curvature * cost;
    let mut logit = guess.clamp(low, high);
    let mut last_excess = f64::INFINITY;
    for _ in 0..50 {
        let sigmoid = 1.0 / (1.0 + (-logit).exp());
        let excess = logit + curvature * (cost * sigmoid - alpha) + signed_margin;
        if excess.abs() < 1e-7 {
            return (logit, cost * sigmoid);
        }
        if excess < 0.0 {
            low = logit;
        } else {
            high = logit;
        }
        let slope = 1.0 + curvature * cost * sigmoid * (1.0 - sigmoid);
        let newton = logit - excess / slope;
        // With a large cost Newton's steps can cycle: they must at least halve the excess.
        let halves = excess.abs() <= 0.5 * last_excess;
        last_excess = excess.abs();
        logit = if halves && low < newton && newton < high {
            newton
        } else {
            0.5 * (low + high)
        };
    }
    (logit, cost / (1.0 + (-logit).exp()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(guess: f64, share: f64, cost: f64, curvature: f64, signed_margin: f64) {
        let alpha = share * cost;
        let (logit, updated) = solve_one(guess, alpha, cost, curvature, signed_margin);
        let excess = logit + curvature * (updated - alpha) + signed_margin;
        assert!(excess.abs() < 1e-6, "excess {excess} at {logit}");
        assert!((0.0..=cost).contains(&updated));
    }

    #[test]
    fn steps_that_would_cycle_are_bisected() {
        check(-17.0, 0.018, 269.0, 1.57, 5.07);
    }

    proptest! {
        #[test]
        fn one_variable_is_solved_from_any_start(
            guess in -50.0f64..50.0, share in 0.0f64..1.0, cost in 1e-3f64..1e3, curvature in 0.0f64..5.0,
            signed_margin in -40.0f64..40.0,
        ) {
            check(guess, share, cost, curvature, signed_margin);
        }
    }
}
