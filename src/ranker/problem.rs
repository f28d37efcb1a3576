//! The data that a ranker is trained on, and the weights that it may start from.

use crate::communicator::Communicator;
use crate::error::{Error, Result};
use crate::matrix::{CsrMatrix, Matrix};

use super::training_points::Negatives;

/// The training data: N points, V words, d embedding dimensions, L labels.
#[derive(Clone, Copy)]
pub(crate) struct RankerProblem<'a> {
    /// Words of the points, N×V; need not be normalised.
    pub bow: &'a CsrMatrix,
    /// Embeddings of the points, N×d; need not be normalised.
    pub dense: Option<&'a Matrix>,
    /// Y, N×L: every stored entry is relevant.
    pub labels: &'a CsrMatrix,
    /// The same, and labels that were rejected, if any were: of their clusters the points are negatives.
    pub targets: Option<&'a CsrMatrix>,
    /// The factor of each point's losses, N.
    pub point_weights: &'a [f32],
    /// Source of the negatives.
    pub negatives: Negatives<'a>,
    /// Weights fitted on other points.
    pub prior: Option<Prior<'a>>,
    /// The processes that train together, on the same problem.
    pub communicator: &'a dyn Communicator,
}

/// Weights that training starts from and is drawn to in the place of zero, as the penalty is ½‖w − w₀‖²: what they were
/// fitted on need not be there any more.
#[derive(Clone, Copy)]
pub(crate) struct Prior<'a> {
    /// L×V.
    pub words: &'a CsrMatrix,
    /// L×d.
    pub dense: &'a Matrix,
    /// L.
    pub intercepts: &'a [f32],
    /// The factor of all losses of each label, L: the less, the more the prior holds against a point.
    pub shares: &'a [f32],
}

impl RankerProblem<'_> {
    /// Calls a function with the place of every word weight that the prior of a label has, and with its value; those
    /// without a place are returned.
    pub(super) fn take_prior(
        &self,
        label: u32,
        position: impl Fn(u32) -> Option<usize>,
        mut set: impl FnMut(usize, f32),
    ) -> Vec<(u32, f32)> {
        let Some(prior) = self.prior else {
            return Vec::new();
        };
        let (columns, values) = prior.words.row(label as usize);
        let mut others = Vec::new();
        for (&column, &value) in columns.iter().zip(values) {
            match position(column) {
                Some(position) => set(position, value),
                None => others.push((column, value)),
            }
        }
        others
    }

    /// The factor of all losses of a label.
    pub(super) fn share(&self, label: u32) -> f32 {
        self.prior.map_or(1.0, |prior| prior.shares[label as usize])
    }

    /// The weight of the constant feature in the prior of a label.
    pub(super) fn prior_bias(&self, label: u32, bias: f32) -> f32 {
        self.prior.map_or(0.0, |prior| match bias {
            0.0 => 0.0,
            bias => prior.intercepts[label as usize] / bias,
        })
    }

    /// d, or 0 without embeddings.
    pub(super) fn n_dense(&self) -> usize {
        self.dense.map_or(0, Matrix::n_cols)
    }

    pub(super) fn validate(&self) -> Result<()> {
        let n_points = self.labels.n_rows();
        let n_lists = match self.negatives {
            Negatives::Candidates(lists) => lists.len(),
            Negatives::Clusters(_) => n_points,
        };
        let counts = [
            ("word rows", self.bow.n_rows()),
            ("weights", self.point_weights.len()),
            ("candidate lists", n_lists),
            ("embeddings", self.dense.map_or(n_points, Matrix::n_rows)),
        ];
        for (what, count) in counts {
            if count != n_points {
                return Err(Error::CannotTrain(format!(
                    "{count} {what} for {n_points} label rows"
                )));
            }
        }
        if n_points >= u32::MAX as usize {
            return Err(Error::CannotTrain(format!(
                "{n_points} points, the ranker takes fewer than 2^32"
            )));
        }
        let finite = |dense: &Matrix| dense.values().iter().all(|value| value.is_finite());
        if !self.dense.is_none_or(finite) {
            let problem = "an embedding has a value that is not finite";
            return Err(Error::CannotTrain(problem.into()));
        }
        Ok(())
    }
}
