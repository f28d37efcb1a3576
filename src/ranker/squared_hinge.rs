//! L2-regularised squared hinge loss by dual coordinate descent.
//!
//! Primal: ½‖w‖² + Σ C_i·max(0, 1 − y_i·w·ψ_i)². Dual: min ½αᵀQα + Σ α_i²/(4C_i) − Σ α_i over α ≥ 0, with
//! Q_ij = y_i·y_j·ψ_i·ψ_j and w = Σ α_i·y_i·ψ_i (Hsieh et al., ICML 2008, algorithm 3, the method of LIBLINEAR).
//! A pass visits the active points in random order and solves for one α at a time; points whose α will likely stay 0
//! are shrunk: set aside until the others are solved.

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
    let n_rows = rows.len();
    solver.reset(n_rows);
    let Solver { alphas, order, .. } = solver;
    let mut n_active = n_rows;
    // A point at 0 whose gradient exceeds the largest violation of the last pass is set aside.
    let mut shrink_above = f64::INFINITY;

    for _ in 0..stopping.max_iterations {
        let mut largest = f64::NEG_INFINITY;
        let mut smallest = f64::INFINITY;
        random.shuffle(&mut order[..n_active]);

        let mut place = 0;
        while place < n_active {
            let row_idx = order[place] as usize;
            let alpha = alphas[row_idx];
            let sign = rows.sign(row_idx);
            let diagonal = 0.5 / costs(row_idx);
            let gradient = sign * rows.margin(row_idx, weights) - 1.0 + alpha * diagonal;
            if alpha == 0.0 && gradient > shrink_above {
                n_active -= 1;
                order.swap(place, n_active);
                continue;
            }
            let violation = if alpha == 0.0 {
                gradient.min(0.0)
            } else {
                gradient
            };
            largest = largest.max(violation);
            smallest = smallest.min(violation);
            if violation.abs() > 1e-12 {
                let curvature = rows.squared_norm(row_idx) + diagonal;
                let updated = (alpha - gradient / curvature).max(0.0);
                alphas[row_idx] = updated;
                rows.add_to(row_idx, (updated - alpha) * sign, weights);
            }
            place += 1;
        }

        if largest - smallest <= stopping.tolerance {
            if n_active == n_rows {
                return;
            }
            // The active points are solved: check all of them once more.
            n_active = n_rows;
            shrink_above = f64::INFINITY;
        } else {
            shrink_above = if largest <= 0.0 {
                f64::INFINITY
            } else {
                largest
            };
        }
    }
}
