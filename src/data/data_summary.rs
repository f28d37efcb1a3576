//! The counts and the fingerprint of a data set, as a model keeps them of its training data.

use sha2::{Digest, Sha256};

use crate::data::Dataset;
use crate::matrix::CsrMatrix;

/// Counts and fingerprint of a data set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataSummary {
    /// Points.
    pub n_points: usize,
    /// Labels.
    pub n_labels: usize,
    /// Pairs of a point and its label.
    pub n_positives: usize,
    /// SHA-256 over texts or features, labels and label names, in hexadecimal digits.
    pub sha256: String,
}

impl DataSummary {
    /// The summary of this data and more points, whose labels are counted already.
    pub(crate) fn with(&self, more: &Dataset) -> Self {
        let more = DataSummary::of(more);
        let both = Sha256::digest(format!("{}{}", self.sha256, more.sha256));
        DataSummary {
            n_points: self.n_points + more.n_points,
            n_labels: self.n_labels,
            n_positives: self.n_positives + more.n_positives,
            sha256: in_digits(&both),
        }
    }

    /// The summary of a data set; the same whatever format or place it was read from.
    pub fn of(data: &Dataset) -> Self {
        let mut hash = Sha256::new();
        let number = |hash: &mut Sha256, number: usize| hash.update((number as u64).to_le_bytes());
        number(&mut hash, data.label_set().len());
        for name in data.label_set().names().iter() {
            number(&mut hash, name.len());
            hash.update(name);
        }
        hash_matrix(&mut hash, data.labels());
        for texts in [data.texts(), data.label_texts()].into_iter().flatten() {
            number(&mut hash, texts.len());
            for text in texts.iter() {
                number(&mut hash, text.len());
                hash.update(text);
            }
        }
        let more = data.more_labels();
        let more = more.labels().names().iter().zip(more.texts().iter());
        let more = more.flat_map(|(name, text)| [name, text]);
        for text in more {
            number(&mut hash, text.len());
            hash.update(text);
        }
        for (phrase, words) in data.synonyms().iter().flat_map(|list| list.iter()) {
            for text in [phrase, words] {
                number(&mut hash, text.len());
                hash.update(text);
            }
        }
        if let Some(vectors) = data.word_vectors() {
            for entry in vectors.entries().iter() {
                number(&mut hash, entry.len());
                hash.update(entry);
            }
            hash.update(bytemuck::cast_slice::<f32, u8>(vectors.vectors().values()));
        }
        if let Some(embeddings) = data.embeddings() {
            number(&mut hash, embeddings.dim());
            hash.update(bytemuck::cast_slice::<f32, u8>(
                embeddings.matrix().values(),
            ));
        }
        if let Some(features) = data.features() {
            hash_matrix(&mut hash, features);
        }
        if let Some(weights) = data.weights() {
            hash.update(bytemuck::cast_slice::<f32, u8>(weights));
        }
        if let Some(rejected) = data.rejected() {
            hash_matrix(&mut hash, rejected);
        }
        DataSummary {
            n_points: data.n_points(),
            n_labels: data.n_labels(),
            n_positives: data.labels().indices().len(),
            sha256: in_digits(&hash.finalize()),
        }
    }
}

fn in_digits(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash_matrix(hash: &mut Sha256, matrix: &CsrMatrix) {
    hash.update((matrix.n_cols() as u64).to_le_bytes());
    hash.update((matrix.n_rows() as u64).to_le_bytes());
    for row_idx in 0..matrix.n_rows() {
        let (columns, values) = matrix.row(row_idx);
        hash.update((columns.len() as u64).to_le_bytes());
        hash.update(bytemuck::cast_slice::<u32, u8>(columns));
        hash.update(bytemuck::cast_slice::<f32, u8>(values));
    }
}
