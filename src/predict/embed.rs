//! Vectors of texts and of labels, for stores of vectors and programs of one's own.
//!
//! The vector of a text is φ, that of a label its row of W_L: their inner product, with the label's bias, is the
//! network's score of the label before σ. Vectors of several members follow each other, so that inner products add up.
//! Ranker, similar training points and final score, which come after the network, have no vectors.

use rayon::prelude::*;

use super::{CHUNK, Inputs, Predictor};
use crate::error::Result;
use crate::ids::LabelId;
use crate::matrix::Matrix;

/// Vectors of the same length, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Embeddings {
    /// All values, row by row.
    pub values: Vec<f32>,
    /// Values per vector.
    pub dim: usize,
}

impl Predictor {
    /// The vectors of inputs, on the caller's thread pool.
    ///
    /// # Examples
    /// ```
    /// # use elias::{Config, Dataset, Trainer};
    /// # let data = Dataset::from_texts((0..40).map(|n| (format!("word{n}"), [format!("label{n}")])));
    /// # let config = Config::from_toml("stage1.epochs = 1\nstage2.epochs = 1")?;
    /// let predictor = Trainer::new(config).train(&data)?;
    /// let vectors = predictor.embed(&["word1", "word2"])?;
    /// assert_eq!(vectors.values.len(), 2 * vectors.dim);
    /// # Ok::<(), elias::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Predictor::predict_batch`].
    pub fn embed<'a>(&self, inputs: impl Into<Inputs<'a>>) -> Result<Embeddings> {
        self.integrity.0.check()?;
        let points = self.points(inputs)?;
        let dim = self.embedding_dim();
        let rows: Vec<u32> = (0..points.len() as u32).collect();
        let mut values = vec![0.0; rows.len() * dim];
        let chunks = values.par_chunks_mut(CHUNK * dim);
        chunks.zip(rows.par_chunks(CHUNK)).for_each(|(out, rows)| {
            let mut embedded = Matrix::default();
            let mut first = 0;
            for member in self.members() {
                member.encoder.encode(points.points(), rows, &mut embedded);
                let end = first + embedded.n_cols();
                for (row, out) in out.chunks_exact_mut(dim).enumerate() {
                    out[first..end].copy_from_slice(embedded.row(row));
                }
                first = end;
            }
        });
        Ok(Embeddings { values, dim })
    }

    /// The vectors of all trained labels, in the order of their ids; those known by their texts alone have none.
    ///
    /// # Errors
    /// [`crate::Error::CannotPredict`] once a file of the model is known to be damaged.
    pub fn embed_labels(&self) -> Result<Embeddings> {
        self.integrity.0.check()?;
        let dim = self.embedding_dim();
        let mut values = Vec::with_capacity(self.n_trained_labels() * dim);
        for label in (0..self.n_trained_labels() as u32).map(LabelId) {
            for member in self.members() {
                let row = member.model.numbering.row(label);
                values.extend_from_slice(&member.model.classifiers.weights.row(row.idx()));
            }
        }
        Ok(Embeddings { values, dim })
    }

    fn embedding_dim(&self) -> usize {
        let dims = self.members().iter().map(|member| member.encoder.dim());
        dims.sum()
    }
}

#[cfg(test)]
mod tests {
    use crate::classifiers::sigmoid;
    use crate::config::Config;
    use crate::data::Dataset;
    use crate::ids::LabelId;
    use crate::training::Trainer;

    #[test]
    fn inner_products_of_vectors_are_the_scores_of_the_network() {
        let points = (0..60).map(|n| {
            (
                format!("word{} common", n % 12),
                [format!("label{}", n % 12)],
            )
        });
        let data = Dataset::from_texts(points);
        let config = Config::from_toml("stage1.epochs = 2\nstage2.epochs = 1").unwrap();
        let predictor = Trainer::new(config).train(&data).unwrap();
        let texts = ["word3 common", "", "word7"];
        let (texts_of, labels_of) = (
            predictor.embed(&texts).unwrap(),
            predictor.embed_labels().unwrap(),
        );
        assert_eq!(labels_of.values.len(), 12 * labels_of.dim);
        let model = &predictor.members()[0].model;
        for vector in texts_of.values.chunks_exact(texts_of.dim) {
            for label in (0..12).map(LabelId) {
                let row = model.numbering.row(label);
                let of_label = &labels_of.values[label.idx() * labels_of.dim..];
                let product: f32 = vector.iter().zip(of_label).map(|(a, b)| a * b).sum();
                let score = sigmoid(product + model.classifiers.bias[row.idx()]);
                assert!((model.classifiers.score(row, vector) - score).abs() < 1e-4);
            }
        }
        assert_eq!(texts_of.values.len(), 3 * texts_of.dim);
    }
}
