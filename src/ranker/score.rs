//! Scoring candidates of one text, and saying which words made a score.
//!
//! The text's words are scattered into an array of V floats, where a candidate with few words finds its own. In the long
//! row of a frequent label the text's words are searched for instead: a score costs what the shorter side has.

use crate::ids::LabelId;
use crate::matrix::Kernels;

use super::rows::{inverse_norm, sparse_dot};
use super::weights::Ranker;

/// The features of one point; neither part need be normalised.
#[derive(Clone, Copy, Debug)]
pub struct PointView<'a> {
    /// Words, ascending and distinct, and their values. Words the ranker does not know are ignored, but count
    /// for the norm.
    pub bow: (&'a [u32], &'a [f32]),
    /// The embedding; not read by a ranker over words only.
    pub dense: &'a [f32],
}

/// Memory for scoring, kept from text to text; one a thread.
#[derive(Clone, Debug, Default)]
pub struct RankerScratch {
    /// All zero between calls.
    words: Vec<f32>,
    dense: Vec<f32>,
}

/// A row with so many words for each of the text's is searched instead of read.
const SEARCHED_FROM: usize = 16;

/// What made a margin: intercept + dense + Σ words (those listed and the weaker ones left out).
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Words and what each adds, the largest magnitude first; ties to the lower word.
    pub words: Vec<(u32, f32)>,
    /// What the embedding adds.
    pub dense: f32,
    /// The label's intercept.
    pub intercept: f32,
}

impl Ranker {
    /// The margins z of the candidates, in their order, in `out` (what it held is lost).
    ///
    /// # Panics
    /// If a candidate is not a label of the ranker, or the embedding has another size than the ranker's.
    pub fn score(
        &self,
        point: PointView<'_>,
        candidates: &[LabelId],
        scratch: &mut RankerScratch,
        out: &mut Vec<f32>,
    ) {
        self.scatter(point, scratch);
        let kernels = Kernels::detect();
        let scale = inverse_norm(point.bow.1);
        let longest = SEARCHED_FROM.saturating_mul(point.bow.0.len());
        out.clear();
        out.extend(candidates.iter().map(|&label| {
            let (columns, weights, dense, intercept) = self.label(label);
            let words = match columns.len() <= longest {
                true => sparse_dot(columns, weights, &scratch.words),
                false => scale * searched_dot(columns, weights, point.bow),
            };
            words + kernels.dot(dense, &scratch.dense) + intercept
        }));
        for &column in point.bow.0 {
            if let Some(value) = scratch.words.get_mut(column as usize) {
                *value = 0.0;
            }
        }
    }

    /// The `n_words` words of the point that contribute most to its margin for the label.
    ///
    /// # Panics
    /// As [`Ranker::score`].
    pub fn explain(&self, point: PointView<'_>, label: LabelId, n_words: usize) -> Explanation {
        let (columns, weights, dense_weights, intercept) = self.label(label);
        let scale = inverse_norm(point.bow.1);
        let mut words: Vec<(u32, f32)> = std::iter::zip(point.bow.0, point.bow.1)
            .filter_map(|(&column, &value)| {
                let place = columns.binary_search(&column).ok()?;
                Some((column, weights[place] * value * scale))
            })
            .collect();
        words.sort_unstable_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
        words.truncate(n_words);
        let dense = if self.n_dense() == 0 {
            0.0
        } else {
            self.check_embedding(point.dense);
            Kernels::detect().dot(dense_weights, point.dense) * inverse_norm(point.dense)
        };
        Explanation {
            words,
            dense,
            intercept,
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
        if 0 < self.n_dense() {
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

/// Σ w·x over the words that both sides have; both are ascending, and only the second is read as a whole.
fn searched_dot(columns: &[u32], weights: &[f32], (words, values): (&[u32], &[f32])) -> f32 {
    let mut at = 0;
    let mut sum = 0.0;
    for (word, value) in std::iter::zip(words, values) {
        at += columns[at..].partition_point(|column| column < word);
        if columns.get(at) == Some(word) {
            sum += weights[at] * value;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RankerLoss;
    use crate::matrix::{CsrBuilder, Matrix};
    use crate::random::Random;
    use crate::ranker::RankerParts;
    use proptest::prelude::*;

    const N_WORDS: usize = 400;

    fn words(random: &mut Random, share: f32) -> Vec<(u32, f32)> {
        let all = 0..N_WORDS as u32;
        let chosen: Vec<u32> = all.filter(|_| random.f32() < share).collect();
        chosen
            .into_iter()
            .map(|word| (word, random.normal()))
            .collect()
    }

    proptest! {
        #[test]
        fn rows_that_are_searched_score_as_those_that_are_read(seed in 0u64..10_000, n_listed in 0usize..40) {
            let mut random = Random::new(seed, "ranker", 0);
            let rows: Vec<_> = [0.0, 0.01, 0.2, 0.9].map(|share| words(&mut random, share)).into();
            let mut builder = CsrBuilder::default();
            rows.iter().for_each(|row| builder.push_row(row.iter().copied()));
            let ranker = Ranker::from_parts(RankerParts {
                loss: RankerLoss::SquaredHinge,
                words: builder.finish(N_WORDS).unwrap(),
                dense: Matrix::zeros(rows.len(), 0),
                intercepts: vec![0.5; rows.len()],
            }).unwrap();
            let mut text = words(&mut random, 0.1);
            text.truncate(n_listed);
            // A word that the ranker does not know counts for the norm.
            text.push((N_WORDS as u32 + 3, 0.5));
            let (columns, values): (Vec<u32>, Vec<f32>) = text.iter().copied().unzip();
            let bow = (&columns[..], &values[..]);
            let labels: Vec<LabelId> = (0..rows.len() as u32).map(LabelId).collect();
            let mut scores = Vec::new();
            ranker.score(PointView { bow, dense: &[] }, &labels, &mut RankerScratch::default(), &mut scores);

            let norm = values.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
            for (row, score) in rows.iter().zip(scores) {
                let products = row.iter().flat_map(|(word, weight)| {
                    let same = text.iter().filter(move |entry| entry.0 == *word);
                    same.map(move |entry| f64::from(*weight) * f64::from(entry.1))
                });
                let expected = products.sum::<f64>() / norm + 0.5;
                prop_assert!((f64::from(score) - expected).abs() < 1e-5, "{score} {expected}");
            }
        }
    }
}
