//! Gradient accumulation: the sum of gradients between two updates (`update_every`).

use crate::encoder::{Gradient, Parameter};
use crate::kernels::Kernels;
use crate::optim::{Moments, StepRates, update_parameter};

/// The sum of a parameter's gradients since its last update.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GradientSum {
    /// One entry per value.
    pub sums: Vec<f32>,
    /// Which rows have a gradient; empty for a dense parameter.
    pub touched: Vec<bool>,
}

impl GradientSum {
    /// A zero sum for a parameter.
    pub fn for_parameter(parameter: &Parameter<'_>) -> Self {
        let n_rows = match parameter.gradient {
            Gradient::Dense(_) => 0,
            Gradient::Rows(..) => parameter.shape.0,
        };
        GradientSum {
            sums: vec![0.0; parameter.values.len()],
            touched: vec![false; n_rows],
        }
    }

    /// Adds a gradient.
    pub fn add(&mut self, gradient: &Gradient<'_>) {
        let kernels = Kernels::detect();
        match gradient {
            Gradient::Dense(values) => kernels.axpy(1.0, values, &mut self.sums),
            Gradient::Rows(rows, values) => {
                let width = self.sums.len() / self.touched.len().max(1);
                for (&row, values) in rows.iter().zip(values.chunks_exact(width.max(1))) {
                    let sums = &mut self.sums[row as usize * width..][..width];
                    kernels.axpy(1.0, values, sums);
                    self.touched[row as usize] = true;
                }
            }
        }
    }

    /// Updates the parameter with the sum and starts a new one.
    pub fn apply(&mut self, parameter: Parameter<'_>, moments: &mut Moments, rates: &StepRates) {
        if self.touched.is_empty() {
            let gradient = Gradient::Dense(&self.sums);
            update_parameter(
                Parameter {
                    gradient,
                    ..parameter
                },
                moments,
                rates,
            );
            self.sums.fill(0.0);
            return;
        }
        let width = self.sums.len() / self.touched.len();
        let touched = (0..self.touched.len() as u32).filter(|&row| self.touched[row as usize]);
        let rows: Vec<u32> = touched.collect();
        let mut gathered = Vec::with_capacity(rows.len() * width);
        for &row in &rows {
            let sums = &mut self.sums[row as usize * width..][..width];
            gathered.extend_from_slice(sums);
            sums.fill(0.0);
        }
        self.touched.fill(false);
        let gradient = Gradient::Rows(&rows, &gathered);
        update_parameter(
            Parameter {
                gradient,
                ..parameter
            },
            moments,
            rates,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{LearningRates, OptimConfig, SecondMoments};
    use crate::optim::Schedule;

    fn parameter<'a>(values: &'a mut [f32], gradient: Gradient<'a>) -> Parameter<'a> {
        Parameter {
            name: "weights",
            shape: (3, 2),
            values,
            gradient,
            decays: true,
            rate_factor: 1.0,
        }
    }

    #[test]
    fn two_halves_of_a_gradient_update_a_parameter_like_the_whole() {
        let rates =
            Schedule::new(10, 0.0).rates(0, &LearningRates::default(), &OptimConfig::default());
        let start = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let halves = [
            Gradient::Rows(&[0, 2], &[0.5, 0.5, -1.0, 2.0]),
            Gradient::Rows(&[2], &[-1.0, 2.0]),
        ];
        let whole = Gradient::Rows(&[0, 2], &[0.5, 0.5, -2.0, 4.0]);

        let mut expected = start;
        let mut moments = Moments::for_parameter(
            &parameter(&mut start.clone(), Gradient::Rows(&[], &[])),
            SecondMoments::Shared,
        );
        let mut moments_of_sum = moments.clone();
        update_parameter(parameter(&mut expected, whole), &mut moments, &rates);

        let mut values = start;
        let mut sum = GradientSum::for_parameter(&parameter(&mut values, Gradient::Rows(&[], &[])));
        halves.iter().for_each(|half| sum.add(half));
        sum.apply(
            parameter(&mut values, Gradient::Rows(&[], &[])),
            &mut moments_of_sum,
            &rates,
        );
        assert_eq!((values, moments_of_sum), (expected, moments));
        assert_eq!(values[2..4], start[2..4], "a row without a gradient stays");
        assert!(sum.sums.iter().all(|&x| x == 0.0) && !sum.touched.contains(&true));
    }
}
