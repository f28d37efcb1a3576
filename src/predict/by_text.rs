//! Answers that are known by their texts alone, beside those of the members.

use super::{Level, Predictor};
use crate::candidates::{ByText, N_KIN, Point, RankedPoint, TextScratch, Walk};
use crate::error::Result;
use crate::ids::{LabelId, Scored};
use crate::matrix::top_k;
use crate::neighbours::{NeighbourScratch, Vote};

/// Buffers of [`Predictor::complete`].
#[derive(Default)]
pub(crate) struct CompletionScratch {
    by_text: TextScratch,
    /// Buffer of the search through rejected texts.
    neighbours: NeighbourScratch,
    votes: Vec<Vote>,
}

impl Predictor {
    /// Completes the merged candidates of a point: labels that are known by their texts alone are added, rejected ones
    /// lowered, retired ones replaced, and those that may not be answers dropped.
    ///
    /// # Errors
    /// [`crate::Error::CannotPredict`] if the model is damaged.
    pub(crate) fn complete(
        &self,
        walk: &Walk<'_>,
        point: &Point<'_>,
        scratch: &mut CompletionScratch,
        merged: &mut Vec<Scored>,
    ) -> Result<()> {
        self.add_by_text(walk, point, &mut scratch.by_text, merged)?;
        self.lower_rejected(point, scratch, merged)?;
        self.parts.retired.replace(merged);
        walk.keep_allowed(merged);
        Ok(())
    }

    /// Lowers the scores of labels that were rejected of similar texts, to nothing where the texts are the same.
    fn lower_rejected(
        &self,
        point: &Point<'_>,
        scratch: &mut CompletionScratch,
        merged: &mut [Scored],
    ) -> Result<()> {
        let Some(rejected) = &self.parts.rejected else {
            return Ok(());
        };
        let CompletionScratch {
            neighbours, votes, ..
        } = scratch;
        rejected.votes(point.words, neighbours, votes);
        for &Vote { label, nearest, .. } in votes.iter() {
            if let Some(scored) = merged.iter_mut().find(|scored| scored.label == label) {
                scored.score *= 1.0 - nearest.clamp(0.0, 1.0).powi(4);
            }
        }
        Ok(())
    }

    fn add_by_text(
        &self,
        walk: &Walk<'_>,
        point: &Point<'_>,
        scratch: &mut TextScratch,
        merged: &mut Vec<Scored>,
    ) -> Result<()> {
        let (Some(by_text), Some(names)) = (&self.parts.by_text, &self.parts.names) else {
            return Ok(());
        };
        let has_scores = matches!(walk.level, Level::Calibrated | Level::Ensemble);
        if by_text.forms.n_labels() == 0 || !has_scores {
            return Ok(());
        }
        let mut best = merged.clone();
        top_k(&mut best, N_KIN);
        let n_trained = self.n_trained_labels();
        let labels = ByText {
            first: LabelId(n_trained as u32),
            listed: walk.listed(),
            n_points: &self.parts.label_counts[n_trained..],
        };
        let ranked = RankedPoint {
            point,
            best: &best,
            names,
        };
        by_text.add(ranked, labels, scratch, merged);
        Ok(())
    }
}
