//! Probabilities of a model's scores, fitted on points that its user held out.
//!
//! The members and their scores stay as they are; only the map from scores to probabilities is new. As in a training,
//! near duplicates of training points do not calibrate; without an index of the training points in the model, only
//! the training data as a whole is recognised.

use super::final_fit::{N_SEEN, SeenAnswers};
use super::split::HeldOut;
use crate::data::{DataSummary, Dataset};
use crate::error::{Error, Result};
use crate::events::Event;
use crate::features::PointSet;
use crate::neighbours::NeighbourScratch;
use crate::predict::{EnsembleCalibration, Predictor};

/// The use of points that were given to calibrate on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenHoldOut {
    /// Points given.
    pub n_points: usize,
    /// Those that probabilities were fitted on: the others have no label, or are near duplicates of training points.
    pub n_used: usize,
}

/// Fits the probabilities of a model's scores on points that none of its members was trained on.
///
/// Labels of the data have the ids of the model's: read it with `known_labels`.
///
/// # Errors
/// [`Error::CannotTrain`] if the data is the model's training data, numbers its labels in another way, or has fewer
/// usable points than `hold_out.min_points`; [`Error::CannotPredict`] if the model cannot answer it.
pub(super) fn calibrate(predictor: &mut Predictor, data: &Dataset) -> Result<GivenHoldOut> {
    let known = predictor.labels().names();
    let given = data.label_set().names();
    if !known.iter().eq(given.iter().take(known.len())) {
        let problem = "the data to calibrate on numbers its labels in another way than the model";
        return Err(Error::CannotTrain(problem.into()));
    }
    if DataSummary::of(data).sha256 == predictor.training_data().sha256 {
        return Err(Error::CannotTrain(
            "the data to calibrate on is what the model was trained on: hold other points out"
                .into(),
        ));
    }
    let points = predictor.featurizer().points(data)?;
    let nearest = nearest_training_points(predictor, &points)?;
    let plan = predictor.plan();
    let near_duplicates = plan.recipe().near_duplicates;
    let held_out = HeldOut::given(&points, data.labels(), &nearest, near_duplicates);
    let given = GivenHoldOut {
        n_points: data.n_points(),
        n_used: held_out.points().len(),
    };
    let n_needed = plan.config().hold_out.min_points.max(1);
    if given.n_used < n_needed {
        return Err(Error::CannotTrain(format!(
            "found {} of {} points to calibrate on that have labels and are no near duplicates of training points, \
             expected at least {n_needed}",
            given.n_used, given.n_points
        )));
    }
    let (calibration, event) = fit(predictor, &held_out)?;
    predictor.set_calibration(calibration, event);
    Ok(given)
}

/// The cosine of each point with the training point nearest to it; 0 where the model does not hold them.
fn nearest_training_points(predictor: &Predictor, points: &PointSet) -> Result<Vec<f32>> {
    let mut nearest = vec![0.0; points.len()];
    let Some(neighbours) = predictor.knowledge().neighbours else {
        return Ok(nearest);
    };
    let (mut scratch, mut votes) = (NeighbourScratch::default(), Vec::new());
    for (point, nearest) in nearest.iter_mut().enumerate() {
        neighbours.votes(points.features.row(point), &mut scratch, &mut votes);
        *nearest = votes.iter().map(|vote| vote.nearest).fold(0.0, f32::max);
    }
    Ok(nearest)
}

fn fit(predictor: &Predictor, held_out: &HeldOut<'_>) -> Result<(EnsembleCalibration, Event)> {
    let answers = predictor.rank_points(held_out.points().points(), &N_SEEN.into())?;
    let mut seen = SeenAnswers::default();
    for (point, answers) in answers.iter().enumerate() {
        seen.push(answers, |label| held_out.has(point, label));
    }
    let scorers = predictor
        .members()
        .iter()
        .map(|member| &member.final_scorer);
    let calibration = EnsembleCalibration {
        frequencies: predictor.knowledge().frequencies.to_vec(),
        probabilities: seen.fit(scorers)?,
    };
    Ok((calibration, seen.event()))
}
