//! Vectors from outside, as an encoder reads them: of words, or of whole texts.
//!
//! Each word of the vocabulary has the mean vector of its parts, each part its own. They are shifted and scaled, all alike, so
//! that the points' vectors u = Σ_w tfidf_w·v_w have the mean 0 and, on average, the squared length m·σ². They stay as they are;
//! what is trained is a linear map of them, see [`super::BagEncoder`].

use rayon::prelude::*;

use crate::data::WordVectors;
use crate::error::Result;
use crate::features::{PointSet, Vectorizer, WordParts};
use crate::kernels::Kernels;
use crate::matrix::{CsrMatrix, Matrix};

/// σ: standard deviation of an entry of u.
const SCALE: f32 = 0.2;

/// Vectors of the words of a vocabulary, then of the parts of other words.
#[derive(Debug)]
pub(crate) struct Outside {
    /// (V + parts)×m.
    vectors: Matrix,
    n_words: usize,
}

impl Outside {
    /// The vectors for a vocabulary and the parts of other words, by the points of the training texts.
    ///
    /// # Errors
    /// As [`WordParts::new`].
    pub(crate) fn new(
        words: &Vectorizer,
        n_parts: usize,
        given: &WordVectors,
        points: &PointSet,
    ) -> Result<Self> {
        let (n_words, dim) = (words.n_columns(), given.dim());
        let known = WordParts::new(given.entries().clone())?;
        let mut vectors = Matrix::zeros(n_words + n_parts, dim);
        let (of_words, of_parts) = vectors.values_mut().split_at_mut(n_words * dim);
        let all = given.vectors();
        of_words
            .par_chunks_mut(dim)
            .enumerate()
            .for_each(|(word, out)| {
                let mut parts = Vec::new();
                known.cut(words.vocabulary().get(word), &mut parts);
                let share = 1.0 / parts.len().max(1) as f32;
                let shares = vec![share; parts.len()];
                Kernels::detect().sum_rows(&shares, all.values(), &parts, out);
            });
        of_parts.copy_from_slice(&all.values()[..n_parts * dim]);
        let mut outside = Outside { vectors, n_words };
        outside.standardise(points);
        Ok(outside)
    }

    /// Values of a vector, m.
    pub(crate) fn dim(&self) -> usize {
        self.vectors.n_cols()
    }

    /// All vectors, (V + parts)×m.
    pub(crate) fn vectors(&self) -> &Matrix {
        &self.vectors
    }

    /// u of all points. result: N×m
    pub(crate) fn embed(&self, points: &PointSet) -> Matrix {
        let mut embedded = Matrix::zeros(points.len(), self.dim());
        let rows = embedded.values_mut().par_chunks_mut(self.dim()).enumerate();
        rows.for_each(|(row, out)| {
            let unseen = points.unseen.as_ref().map(|unseen| unseen.row(row));
            let (words, values) = joined(points.features.row(row), unseen, self.n_words);
            Kernels::detect().sum_rows(&values, self.vectors.values(), &words, out);
        });
        embedded
    }

    fn standardise(&mut self, points: &PointSet) {
        let dim = self.dim();
        let mut mean = vec![0.0f64; dim];
        let mut weight = 0.0f64;
        let parts = points.unseen.as_ref();
        let matrices = [(Some(&points.features), 0), (parts, self.n_words)];
        for (matrix, first) in matrices {
            for (word, sum) in column_sums(matrix).into_iter().enumerate() {
                weight += sum;
                let vector = self.vectors.row(first + word);
                for (mean, &value) in mean.iter_mut().zip(vector) {
                    *mean += sum * f64::from(value);
                }
            }
        }
        let weight = weight.max(f64::MIN_POSITIVE);
        let mean: Vec<f32> = mean.iter().map(|sum| (sum / weight) as f32).collect();
        let rows = self.vectors.values_mut().par_chunks_mut(dim);
        rows.for_each(|row| {
            // A word without a vector stays without.
            if row.iter().any(|&value| value != 0.0) {
                row.iter_mut()
                    .zip(&mean)
                    .for_each(|(value, mean)| *value -= mean);
            }
        });
        let embedded = self.embed(points);
        let squares = embedded.values().chunks_exact(dim);
        let squares: f64 = squares
            .map(|row| f64::from(Kernels::detect().dot(row, row)))
            .sum();
        let variance = squares / embedded.values().len().max(1) as f64;
        let scale = SCALE / (variance.sqrt() as f32).max(f32::MIN_POSITIVE);
        let values = self.vectors.values_mut();
        values.iter_mut().for_each(|value| *value *= scale);
    }
}

/// The shift and the scale of embeddings of texts: their entries then have the mean 0 and the standard deviation σ on average.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Standard {
    mean: Vec<f32>,
    scale: f32,
}

impl Standard {
    /// The shift and the scale of these embeddings. embeddings: N×m
    pub(crate) fn of(embeddings: &Matrix) -> Self {
        let (n_rows, dim) = (embeddings.n_rows().max(1) as f64, embeddings.n_cols());
        let mut sums = vec![0.0f64; dim];
        for row in embeddings.values().chunks_exact(dim) {
            let row = row.iter().map(|&value| f64::from(value));
            sums.iter_mut()
                .zip(row)
                .for_each(|(sum, value)| *sum += value);
        }
        let mean: Vec<f32> = sums.iter().map(|sum| (sum / n_rows) as f32).collect();
        let rows = embeddings
            .values()
            .chunks_exact(dim)
            .flat_map(|row| row.iter().zip(&mean));
        let squares: f64 = rows
            .map(|(value, mean)| f64::from(value - mean).powi(2))
            .sum();
        let deviation = (squares / (n_rows * dim as f64)).sqrt() as f32;
        let scale = SCALE / deviation.max(f32::MIN_POSITIVE.sqrt());
        Standard { mean, scale }
    }

    /// The mean embedding, which stands for one that is not known.
    pub(crate) fn mean(&self) -> &[f32] {
        &self.mean
    }

    /// The mean, then the scale.
    pub(super) fn to_values(&self) -> Vec<f32> {
        [&self.mean[..], &[self.scale]].concat()
    }

    /// The shift and scale of [`Standard::to_values`].
    pub(super) fn from_values(values: &[f32]) -> Self {
        let (scale, mean) = values.split_last().unwrap_or((&1.0, &[]));
        Standard {
            mean: mean.to_vec(),
            scale: *scale,
        }
    }

    /// Shifts and scales rows.
    pub(super) fn apply(&self, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(self.mean.len()) {
            let entries = row.iter_mut().zip(&self.mean);
            entries.for_each(|(value, mean)| *value = self.scale * (*value - mean));
        }
    }
}

/// Words and parts of one row: parts are numbered behind the words.
pub(super) fn joined(
    words: (&[u32], &[f32]),
    parts: Option<(&[u32], &[f32])>,
    n_words: usize,
) -> (Vec<u32>, Vec<f32>) {
    let (mut columns, mut values) = (words.0.to_vec(), words.1.to_vec());
    if let Some((parts, weights)) = parts {
        columns.extend(parts.iter().map(|part| n_words as u32 + part));
        values.extend_from_slice(weights);
    }
    (columns, values)
}

fn column_sums(matrix: Option<&CsrMatrix>) -> Vec<f64> {
    let Some(matrix) = matrix else {
        return Vec::new();
    };
    let mut sums = vec![0.0; matrix.n_cols()];
    for (&column, &value) in matrix.indices().iter().zip(matrix.values()) {
        sums[column as usize] += f64::from(value);
    }
    sums
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::{Config, Precision};
    use crate::data::Dataset;
    use crate::encoder::{BagEncoder, Encoder, Gradient, StepSeed, TrainableEncoder};
    use crate::features::{Featurizer, Points};

    /// Points of texts with vectors of most of their words, one word of the vocabulary with none.
    fn points() -> (PointSet, Arc<Outside>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("words.vec");
        std::fs::write(
            &path,
            "red 1 0 2\nblue 0.5 -1 0\ncar 0 1 1\nonce -1 0 0.5\n",
        )
        .unwrap();
        let vectors = WordVectors::read(path).unwrap();
        let texts = ["red car", "blue car zzz", "red red zzz", "blue", "once red"];
        let data = Dataset::from_texts(texts.map(|text| (text, ["label"])));
        let data = data.with_word_vectors(vectors.clone());
        let (featurizer, mut points) = Featurizer::fit(&data, &Config::default(), None).unwrap();
        let words = featurizer.words().unwrap();
        assert_eq!(words.n_columns(), 4, "once is in one text alone");
        let outside = Outside::new(words, featurizer.n_parts(), &vectors, &points).unwrap();
        points.embedded = Some(outside.embed(&points));
        (points, outside.into())
    }

    fn encoder(outside: &Arc<Outside>) -> BagEncoder {
        let config = Config::default().with_value("encoder.dim=5").unwrap();
        BagEncoder::new(4, &config.encoder, 7).with_outside(Arc::clone(outside), 7)
    }

    const ROWS: [u32; 5] = [0, 1, 2, 3, 4];

    fn encoded(encoder: &dyn Encoder, points: Points<'_>) -> Matrix {
        let mut out = Matrix::default();
        encoder.encode(points, &ROWS, &mut out);
        out
    }

    #[test]
    fn vectors_of_points_have_the_mean_0_and_the_scale_of_the_encoder() {
        let (points, _) = points();
        let embedded = points.embedded.unwrap();
        let n_values = embedded.values().len() as f32;
        let squares: f32 = embedded.values().iter().map(|value| value * value).sum();
        assert!(((squares / n_values).sqrt() - SCALE).abs() < 1e-5);
    }

    #[test]
    fn a_finished_encoder_gives_the_embeddings_it_was_trained_to_give() {
        let (points, outside) = points();
        let mut encoder = encoder(&outside);
        let before = encoded(&encoder, points.points());
        assert!(
            points
                .unseen
                .as_ref()
                .is_some_and(|unseen| !unseen.row(4).0.is_empty())
        );
        encoder.narrow(Precision::Full);
        // What it needs of the vectors is among its own rows now.
        let later = PointSet {
            embedded: None,
            ..points
        };
        let after = encoded(&encoder, later.points());
        let pairs = before.values().iter().zip(after.values());
        pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-5, "{a} {b}"));
        assert_eq!(encoder.tensors()[0].shape, (8, 5));
    }

    #[test]
    fn the_gradient_of_the_map_is_that_of_finite_differences() {
        let (points, outside) = points();
        let mut encoder = encoder(&outside);
        let step = StepSeed { seed: 0, step: 0 };
        let mut out = Matrix::default();
        // The loss is Σ c·φ, so its gradient in φ is c.
        let weights: Vec<f32> = (0..25).map(|n| ((n * 7 % 11) as f32 - 5.0) / 3.0).collect();
        let gradient = Matrix::from_vec(weights.clone(), 5, 5);
        encoder.forward(points.points(), &ROWS, step, &mut out);
        encoder.backward(points.points(), &ROWS, &gradient);
        let parameters = encoder.parameters();
        let Gradient::Dense(found) = parameters[2].gradient else {
            panic!("the map is dense")
        };
        let found = found.to_vec();
        let mut loss = |at: usize, by: f32| {
            encoder.parameters()[2].values[at] += by;
            let out = encoded(&encoder, points.points());
            encoder.parameters()[2].values[at] -= by;
            let terms = out.values().iter().zip(&weights);
            terms.map(|(a, b)| f64::from(a * b)).sum::<f64>()
        };
        for (at, found) in found.into_iter().enumerate() {
            let expected = (loss(at, 0.5) - loss(at, -0.5)) as f32;
            assert!((found - expected).abs() < 1e-4, "{at}: {found} {expected}");
        }
    }

    #[test]
    fn embeddings_of_texts_are_shifted_and_scaled_alike_after_they_were_stored() {
        let embeddings = Matrix::from_vec(vec![1.0, 10.0, 3.0, 20.0, 5.0, 60.0], 3, 2);
        let standard = Standard::of(&embeddings);
        assert_eq!(standard.mean(), [3.0, 30.0]);
        let mut values = embeddings.values().to_vec();
        standard.apply(&mut values);
        let squares: f32 = values.iter().map(|value| value * value).sum();
        assert!(((squares / 6.0).sqrt() - SCALE).abs() < 1e-6);
        assert_eq!(Standard::from_values(&standard.to_values()), standard);
        // One that is always the same says nothing, and divides by nothing.
        let same = Matrix::from_vec(vec![2.0; 4], 2, 2);
        let (standard, mut values) = (Standard::of(&same), same.values().to_vec());
        standard.apply(&mut values);
        assert_eq!(values, [0.0; 4]);
    }
}
