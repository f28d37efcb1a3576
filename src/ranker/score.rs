//! Scoring the candidates of one text, and explaining a score by words.
//!
//! Weights that are held by term are added to the candidates they concern; for those held by label the text's words are
//! scattered into an array of V floats, and each candidate gathers its words from it.

use crate::ids::LabelId;
use crate::kernels::Kernels;

use super::rows::{inverse_norm, sparse_dot};
use super::weights::Ranker;

/// The features of one point; neither part need be normalised.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointView<'a> {
    /// Words, ascending and distinct, and their values. Unknown words only count for the norm.
    pub bow: (&'a [u32], &'a [f32]),
    /// The embedding; unused by a ranker over words only.
    pub dense: &'a [f32],
}

/// Reusable memory for scoring; one per thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct RankerScratch {
    /// All zero between calls.
    words: Vec<f32>,
    dense: Vec<f32>,
    /// The place of each label in `sums`; 0, where nobody looks, for all that are no candidates.
    places: Vec<u32>,
    sums: Vec<f32>,
}

/// The parts of a margin: intercept + dense + Σ words (only the strongest words are listed).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MarginExplanation {
    /// Words and their contributions, the largest magnitude first; ties to the lower word.
    pub words: Vec<(u32, f32)>,
    /// The contribution of the embedding.
    pub dense: f32,
    /// The label's intercept.
    pub intercept: f32,
}

impl Ranker {
    /// Writes the margins z of the candidates to `out`, in their order.
    ///
    /// # Panics
    /// If a candidate is not a label of the ranker, or the embedding does not have the ranker's size.
    pub(crate) fn score(
        &self,
        point: PointView<'_>,
        candidates: &[LabelId],
        scratch: &mut RankerScratch,
        out: &mut Vec<f32>,
    ) {
        self.scatter(point, scratch);
        self.sum_by_term(point, candidates, scratch);
        let kernels = Kernels::detect();
        out.clear();
        out.extend(candidates.iter().map(|&label| {
            let (words, weights) = self.by_label().row(label.idx());
            sparse_dot(words, weights, &scratch.words)
                + scratch.sums[scratch.places[label.idx()] as usize]
                + kernels.dot(self.dense().row(label.idx()), &scratch.dense)
                + self.intercepts()[label.idx()]
        }));
        for label in candidates {
            scratch.places[label.idx()] = 0;
        }
        for &column in point.bow.0 {
            if let Some(value) = scratch.words.get_mut(column as usize) {
                *value = 0.0;
            }
        }
    }

    /// Adds the weights that are held by term.
    fn sum_by_term(
        &self,
        point: PointView<'_>,
        candidates: &[LabelId],
        scratch: &mut RankerScratch,
    ) {
        let RankerScratch {
            words,
            places,
            sums,
            ..
        } = scratch;
        places.resize(self.n_labels(), 0);
        for (place, label) in (1..).zip(candidates) {
            places[label.idx()] = place;
        }
        sums.clear();
        sums.resize(candidates.len() + 1, 0.0);
        for &term in point.bow.0 {
            let Some(&value) = words.get(term as usize) else {
                continue;
            };
            let (labels, weights) = self.by_term().row(term as usize);
            for (&label, &weight) in labels.iter().zip(weights) {
                sums[places[label as usize] as usize] += value * weight;
            }
        }
    }

    /// The `n_words` words of the point that contribute most to its margin for the label.
    ///
    /// # Panics
    /// As [`Ranker::score`].
    pub(crate) fn explain(
        &self,
        point: PointView<'_>,
        label: LabelId,
        n_words: usize,
    ) -> MarginExplanation {
        let scale = inverse_norm(point.bow.1);
        let mut words: Vec<(u32, f32)> = std::iter::zip(point.bow.0, point.bow.1)
            .filter_map(|(&column, &value)| {
                Some((column, self.weight(column, label)? * value * scale))
            })
            .collect();
        words.sort_unstable_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
        words.truncate(n_words);
        let dense = if self.n_dense() == 0 {
            0.0
        } else {
            self.check_embedding(point.dense);
            let weights = self.dense().row(label.idx());
            Kernels::detect().dot(weights, point.dense) * inverse_norm(point.dense)
        };
        MarginExplanation {
            words,
            dense,
            intercept: self.intercepts()[label.idx()],
        }
    }

    fn scatter(&self, point: PointView<'_>, scratch: &mut RankerScratch) {
        scratch.words.resize(self.n_words(), 0.0);
        let scale = inverse_norm(point.bow.1);
        for (&column, &value) in std::iter::zip(point.bow.0, point.bow.1) {
            if let Some(place) = scratch.words.get_mut(column as usize) {
                *place = value * scale;
            }
        }
        scratch.dense.clear();
        if self.n_dense() > 0 {
            self.check_embedding(point.dense);
            let scale = inverse_norm(point.dense);
            scratch
                .dense
                .extend(point.dense.iter().map(|value| value * scale));
        }
    }

    fn check_embedding(&self, dense: &[f32]) {
        assert_eq!(
            dense.len(),
            self.n_dense(),
            "the ranker was trained on embeddings of another size"
        );
    }
}
