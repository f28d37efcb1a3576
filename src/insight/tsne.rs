//! t-SNE: lays out a few hundred embeddings in the plane, neighbours near each other.
//!
//! The exact method of van der Maaten and Hinton: P from Gaussians of a given perplexity over squared distances, Q
//! from Student's t in the plane, gradient descent on KL(P‖Q) with momentum, gains and early exaggeration. O(n²)
//! per step, which for small maps is faster than a tree. Deterministic, unlike the available crates: the same points
//! give the same map.

use rayon::prelude::*;

use crate::kernels::Kernels;
use crate::matrix::Matrix;
use crate::random::Random;

/// Options of the layout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TsneOptions {
    /// The effective number of neighbours; limited to a third of the points.
    pub(super) perplexity: f64,
    /// Steps.
    pub(super) n_steps: usize,
    /// Seeds the initial positions.
    pub(super) seed: u64,
}

/// Steps with exaggerated attraction.
const N_EARLY: usize = 100;
const EXAGGERATION: f64 = 12.0;

/// Positions of the rows in the plane; rows are compared by the angle between them.
pub(super) fn tsne(rows: &Matrix, options: TsneOptions) -> Vec<[f64; 2]> {
    let n = rows.n_rows();
    let mut random = Random::new(options.seed, "t-SNE", 0);
    let mut first = || f64::from(random.normal()) * 1e-2;
    let mut positions: Vec<[f64; 2]> = (0..n).map(|_| [first(), first()]).collect();
    if n < 4 {
        return positions;
    }
    let affinities = affinities(rows, options.perplexity.min((n - 1) as f64 / 3.0));
    let mut speeds = vec![[0.0; 2]; n];
    let mut gains = vec![[1.0; 2]; n];
    // With higher rates single points of small maps fly off.
    let rate = (n as f64 / EXAGGERATION).max(10.0);
    for step in 0..options.n_steps {
        let is_early = step < N_EARLY.min(options.n_steps / 3);
        let (exaggeration, momentum) = if is_early {
            (EXAGGERATION, 0.5)
        } else {
            (1.0, 0.8)
        };
        let gradients = gradients(&affinities, &positions, exaggeration);
        for point in 0..n {
            for axis in 0..2 {
                let (gradient, speed) = (gradients[point][axis], &mut speeds[point][axis]);
                let gain = &mut gains[point][axis];
                let agrees = (gradient > 0.0) == (*speed > 0.0);
                *gain = f64::max(if agrees { *gain * 0.8 } else { *gain + 0.2 }, 0.01);
                *speed = momentum * *speed - rate * *gain * gradient;
                positions[point][axis] += *speed;
            }
        }
    }
    positions
}

/// P, n×n, symmetric, summing to 1.
fn affinities(rows: &Matrix, perplexity: f64) -> Vec<f64> {
    let n = rows.n_rows();
    let kernels = Kernels::detect();
    let lengths: Vec<f32> = (0..n)
        .map(|row| kernels.dot(rows.row(row), rows.row(row)).sqrt())
        .collect();
    let conditional: Vec<Vec<f64>> = (0..n)
        .into_par_iter()
        .map(|a| {
            // ‖x/|x| − y/|y|‖² = 2 − 2 cos
            let distance = |b: usize| {
                let lengths = (lengths[a] * lengths[b]).max(f32::MIN_POSITIVE);
                2.0 - 2.0 * f64::from(kernels.dot(rows.row(a), rows.row(b)) / lengths)
            };
            let distances: Vec<f64> = (0..n).map(distance).collect();
            with_perplexity(&distances, a, perplexity)
        })
        .collect();
    let mut joint = vec![0.0; n * n];
    for a in 0..n {
        for b in 0..n {
            joint[a * n + b] = (conditional[a][b] + conditional[b][a]) / (2 * n) as f64;
        }
    }
    joint
}

/// p(b|a) of a Gaussian with the given perplexity; its width is found by bisection.
fn with_perplexity(distances: &[f64], own: usize, perplexity: f64) -> Vec<f64> {
    let (mut low, mut high, mut precision) = (0.0, f64::INFINITY, 1.0);
    let nearest = distances
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != own)
        .map(|(_, &d)| d)
        .fold(f64::INFINITY, f64::min);
    let mut shares = vec![0.0; distances.len()];
    for _ in 0..60 {
        let mut sum = 0.0;
        for (at, share) in shares.iter_mut().enumerate() {
            *share = if at == own {
                0.0
            } else {
                (-precision * (distances[at] - nearest)).exp()
            };
            sum += *share;
        }
        shares.iter_mut().for_each(|share| *share /= sum);
        let terms = shares.iter().filter(|share| **share > 1e-12);
        let entropy: f64 = terms.map(|share| -share * share.ln()).sum();
        let excess = entropy - perplexity.ln();
        if excess.abs() < 1e-5 {
            break;
        }
        if excess > 0.0 {
            low = precision;
            precision = if high.is_finite() {
                (low + high) / 2.0
            } else {
                2.0 * precision
            };
        } else {
            high = precision;
            precision = (low + high) / 2.0;
        }
    }
    shares
}

/// ∂KL/∂y = 4 Σ (p − q)(y_a − y_b)/(1 + ‖y_a − y_b‖²).
fn gradients(affinities: &[f64], positions: &[[f64; 2]], exaggeration: f64) -> Vec<[f64; 2]> {
    let n = positions.len();
    let near = |a: usize, b: usize| {
        let (dx, dy) = (
            positions[a][0] - positions[b][0],
            positions[a][1] - positions[b][1],
        );
        (1.0 / (1.0 + dx * dx + dy * dy), dx, dy)
    };
    // Row sums first, then their sum in order: the same on any number of threads.
    let sums: Vec<f64> = (0..n)
        .into_par_iter()
        .map(|a| (0..n).filter(|&b| b != a).map(|b| near(a, b).0).sum())
        .collect();
    let total: f64 = sums.iter().sum();
    (0..n)
        .into_par_iter()
        .map(|a| {
            let (mut gx, mut gy) = (0.0, 0.0);
            for b in (0..n).filter(|&b| b != a) {
                let (kernel, dx, dy) = near(a, b);
                let pull = exaggeration * affinities[a * n + b] - kernel / total;
                gx += 4.0 * pull * kernel * dx;
                gy += 4.0 * pull * kernel * dy;
            }
            [gx, gy]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_groups_are_apart_and_the_map_is_deterministic() {
        let mut random = Random::new(3, "groups", 0);
        let mut values = Vec::new();
        for point in 0..60 {
            let centre = if point < 30 { 1.0 } else { -1.0 };
            values.extend((0..8).map(|_| centre + 0.2 * random.normal()));
        }
        let rows = Matrix::from_vec(values, 60, 8);
        let options = TsneOptions {
            perplexity: 10.0,
            n_steps: 200,
            seed: 1,
        };
        let map = tsne(&rows, options);
        let mean = |points: &[[f64; 2]]| {
            let sum = points
                .iter()
                .fold([0.0, 0.0], |s, p| [s[0] + p[0], s[1] + p[1]]);
            sum.map(|value| value / points.len() as f64)
        };
        let distance = |a: [f64; 2], b: [f64; 2]| (a[0] - b[0]).hypot(a[1] - b[1]);
        let (first, second) = (mean(&map[..30]), mean(&map[30..]));
        let radius = map[..30]
            .iter()
            .map(|&p| distance(p, first))
            .fold(0.0, f64::max);
        assert!(
            radius < distance(first, second),
            "{radius} {first:?} {second:?}"
        );
        assert_eq!(map, tsne(&rows, options));
    }
}
