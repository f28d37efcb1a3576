//! How much a training has to do, and the sizes that its memory depends on.

use super::memory::{self, DataSizes, MemoryEstimate};
use super::prepare::PreparedTraining;
use super::split::LabelPoints;
use crate::config::Refit;
use crate::data::{Dataset, Texts, WordVectors};
use crate::encoder::EncoderSizes;
use crate::matrix::CsrMatrix;
use crate::train::points_per_epoch;

/// How much a training has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Workload {
    /// Points that an epoch visits if all of them train: texts, and some of the label texts.
    pub points_per_epoch: usize,
    /// Words of a text, on average.
    pub words_per_point: f64,
    /// Words and pairs of words of a text that the ranker reads, on average.
    pub terms_per_point: f64,
    /// Labels of a text, on average.
    pub labels_per_point: f64,
    /// The part of each member that is trained again on all points, if some are held out at first, which is assumed of
    /// data that has enough of them.
    pub refit: Refit,
    /// Times that the network of a member is trained, if as many points as are wanted can be held out.
    pub n_passes: usize,
    /// Whether labels are learned from their names, or from what else is known about them.
    pub learns_label_texts: bool,
    /// Parameters of the transformer, if there is one.
    pub n_transformer_parameters: Option<usize>,
    /// Multiplications and additions of the transformer's forward pass over all points.
    pub transformer_flops: f64,
}

impl PreparedTraining<'_> {
    /// How much there is to do.
    pub fn workload(&self) -> Workload {
        let n_points = self.plan.counts().n_points;
        let label_texts = self.label_texts.as_ref().map(LabelPoints::labels_of);
        let n_label_texts = label_texts.map_or(0, |labels| labels.len());
        let is_calibrated = self.plan.n_points_to_fit() > 0;
        let per_point = |n: usize| n as f64 / self.data.n_points().max(1) as f64;
        let words_per_point = per_point(self.points.features.nnz());
        let n_pairs = self.points.pairs.as_ref().map_or(0, CsrMatrix::nnz);
        Workload {
            points_per_epoch: points_per_epoch(n_points, n_label_texts),
            words_per_point,
            terms_per_point: words_per_point + per_point(n_pairs),
            labels_per_point: per_point(self.data.labels().nnz()),
            refit: if is_calibrated {
                self.plan.refit()
            } else {
                Refit::Nothing
            },
            n_passes: self.plan.n_passes(),
            learns_label_texts: self.label_texts.is_some(),
            n_transformer_parameters: self.transformer_sizes(0, 1).map(|sizes| sizes.n_parameters),
            transformer_flops: self.transformer_flops(),
        }
    }

    /// Predicts the peak memory of the training on this many threads, on one of its processes.
    pub fn peak_memory(&self, n_threads: usize) -> MemoryEstimate {
        let (data, validation) = (self.data, self.trainer.validation);
        let n_points = data.n_points();
        let features = &self.points.features;
        let words_per_point = features.nnz().div_ceil(n_points.max(1));
        let mut sizes = DataSizes {
            n_feature_entries: features.nnz(),
            n_centroid_entries: count_centroid_entries(data.labels(), features),
            words_per_point,
            n_threads,
            n_processes: self.trainer.communicator.n_processes(),
            outside_dim: data
                .word_vectors()
                .map_or(self.plan.counts().embedding_dim, WordVectors::dim),
            transformer: self.transformer_sizes(validation.map_or(0, Dataset::n_points), n_threads),
            ..DataSizes::default()
        };
        for part in std::iter::once(data).chain(validation) {
            let given = part.features().map_or(0, CsrMatrix::nnz);
            sizes.n_text_bytes += part.texts().map_or(0, Texts::n_bytes);
            sizes.n_text_bytes += part.ids().map_or(0, Texts::n_bytes);
            sizes.n_feature_entries += given;
            sizes.n_label_entries += part.labels().nnz();
            sizes.n_points += part.n_points();
        }
        // Every fold has a copy of the points that train.
        let n_copies = self.plan.n_passes().max(2) - 1;
        if self.plan.recipe().final_score.is_fitted() {
            sizes.n_feature_entries += n_copies * features.nnz();
        }
        let n_pairs = self.points.pairs.as_ref().map_or(0, CsrMatrix::nnz);
        sizes.n_pair_entries = (1 + n_copies) * n_pairs;
        // Validation points are assumed to be as long as the others.
        sizes.n_feature_entries += words_per_point * (sizes.n_points - n_points);
        if let Some(texts) = &self.label_texts {
            // Their own rows, and beside the points that train, once and again.
            sizes.n_feature_entries += 3 * texts.features.nnz();
            sizes.n_points += 2 * texts.len();
            sizes.n_label_entries += texts.len();
        }
        if let Some(forms) = &self.forms {
            // Words and index of the forms, and of each part of them.
            let n_entries = forms.iter().map(|forms| forms.words().nnz());
            sizes.n_feature_entries += 4 * n_entries.sum::<usize>();
            sizes.scores_by_text = true;
        }
        memory::estimate(&self.plan, &sizes)
    }

    /// Sizes of the transformer, if there is one.
    fn transformer_sizes(&self, n_validation: usize, n_threads: usize) -> Option<EncoderSizes> {
        let tokens = self.points.tokens.as_ref()?;
        let prepared = self.transformer.as_ref()?;
        let n_points = tokens.n_rows() + n_validation;
        let n_tokens = tokens.n_tokens().div_ceil(tokens.n_rows().max(1));
        let n_texts = self.plan.batch_size();
        Some(EncoderSizes {
            n_embedded: prepared.n_embedded(n_points),
            ..prepared.transformer.sizes(n_texts, n_tokens, n_threads)
        })
    }

    fn transformer_flops(&self) -> f64 {
        let tokens = self.points.tokens.as_ref();
        let Some((tokens, prepared)) = tokens.zip(self.transformer.as_ref()) else {
            return 0.0;
        };
        (0..tokens.n_rows())
            .map(|row| prepared.transformer.shape().flops(tokens.row(row).len()))
            .sum()
    }
}

/// Labels whose centroids are counted; the rest is extrapolated.
const MAX_COUNTED_LABELS: usize = 4096;

/// Distinct words over the points of each label, summed over the labels.
fn count_centroid_entries(labels: &CsrMatrix, features: &CsrMatrix) -> usize {
    let points_of = labels.transpose();
    let stride = points_of.n_rows().div_ceil(MAX_COUNTED_LABELS).max(1);
    let mut last_seen = vec![u32::MAX; features.n_cols()];
    let (mut n_entries, mut n_counted) = (0, 0);
    for label in (0..points_of.n_rows()).step_by(stride) {
        n_counted += 1;
        for &point in points_of.row(label).0 {
            for &word in features.row(point as usize).0 {
                let seen = &mut last_seen[word as usize];
                n_entries += usize::from(*seen != label as u32);
                *seen = label as u32;
            }
        }
    }
    (n_entries as f64 * points_of.n_rows() as f64 / f64::from(n_counted.max(1))) as usize
}
