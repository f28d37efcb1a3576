//! Sixteen sparse linear classifiers at once: their weights of a word lie side by side.
//!
//! Products and sums are rounded one by one, and every lane has its own sums in the order of the row.

use super::vector::Vector;
use super::{Kernels, run};

/// Classifiers that are trained together.
pub(crate) const LANES: usize = super::vector::LANES;
/// A number of each.
pub(crate) type Lanes = [f32; LANES];

impl Kernels {
    /// `Σ_j values[j] · weights[columns[j]]` of every lane.
    #[inline]
    pub(crate) fn lane_dots(self, columns: &[u32], values: &[f32], weights: &[Lanes]) -> Lanes {
        run!(self, lane_dots(columns: &[u32], values: &[f32], weights: &[Lanes]) -> Lanes)
    }

    /// `weights[columns[j]] += steps · values[j]` for every j and lane.
    #[inline]
    pub(crate) fn lane_axpy(
        self,
        steps: &Lanes,
        columns: &[u32],
        values: &[f32],
        weights: &mut [Lanes],
    ) {
        run!(self, lane_axpy(steps: &Lanes, columns: &[u32], values: &[f32], weights: &mut [Lanes]))
    }
}

/// SAFETY: the caller has the instructions of `V`.
#[inline(always)]
unsafe fn lane_dots<V: Vector>(columns: &[u32], values: &[f32], weights: &[Lanes]) -> Lanes {
    unsafe {
        // Two sums, so that additions need not wait for each other.
        let mut sums = [V::splat(0.0); 2];
        let (column_pairs, column_rest) = columns.as_chunks::<2>();
        let (value_pairs, value_rest) = values.as_chunks::<2>();
        for (columns, values) in column_pairs.iter().zip(value_pairs) {
            for at in 0..2 {
                let weights = V::load(weights[columns[at] as usize].as_ptr());
                sums[at] = sums[at].add(V::splat(values[at]).mul(weights));
            }
        }
        for (&column, &value) in column_rest.iter().zip(value_rest) {
            let weights = V::load(weights[column as usize].as_ptr());
            sums[0] = sums[0].add(V::splat(value).mul(weights));
        }
        let mut out = [0.0; LANES];
        sums[0].add(sums[1]).store(out.as_mut_ptr());
        out
    }
}

/// SAFETY: the caller has the instructions of `V`.
#[inline(always)]
unsafe fn lane_axpy<V: Vector>(
    steps: &Lanes,
    columns: &[u32],
    values: &[f32],
    weights: &mut [Lanes],
) {
    unsafe {
        let steps = V::load(steps.as_ptr());
        for (&column, &value) in columns.iter().zip(values) {
            let weights = weights[column as usize].as_mut_ptr();
            V::load(weights)
                .add(steps.mul(V::splat(value)))
                .store(weights);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_lane_is_a_product_of_its_own_on_every_machine(seed in 0u64..1000, n_columns in 1usize..9, n_entries in 0usize..30) {
            let mut random = Random::new(seed, "lanes", 0);
            let mut lanes = || -> Lanes { std::array::from_fn(|_| random.normal()) };
            let mut weights: Vec<Lanes> = (0..n_columns).map(|_| lanes()).collect();
            let steps = lanes();
            let columns: Vec<u32> = (0..n_entries).map(|_| random.below(n_columns) as u32).collect();
            let values: Vec<f32> = (0..n_entries).map(|_| random.normal()).collect();
            let dots = Kernels::detect().lane_dots(&columns, &values, &weights);
            prop_assert_eq!(dots, Kernels::Scalar.lane_dots(&columns, &values, &weights));
            for (lane, &dot) in dots.iter().enumerate() {
                let terms = columns.iter().zip(&values).map(|(&column, &value)| {
                    f64::from(value) * f64::from(weights[column as usize][lane])
                });
                prop_assert!((f64::from(dot) - terms.sum::<f64>()).abs() < 1e-4);
            }
            let mut scalar = weights.clone();
            let before = weights.clone();
            Kernels::detect().lane_axpy(&steps, &columns, &values, &mut weights);
            Kernels::Scalar.lane_axpy(&steps, &columns, &values, &mut scalar);
            prop_assert_eq!(&weights, &scalar);
            for (column, (after, before)) in weights.iter().zip(&before).enumerate() {
                let of_column = columns.iter().zip(&values).filter(|(at, _)| **at as usize == column);
                let sum: f64 = of_column.map(|(_, value)| f64::from(*value)).sum();
                for lane in 0..LANES {
                    let expected = f64::from(before[lane]) + f64::from(steps[lane]) * sum;
                    prop_assert!((f64::from(after[lane]) - expected).abs() < 1e-4);
                }
            }
        }
    }
}
