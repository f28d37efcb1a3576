//! A data set made ready for training, and what training on it will take.

use super::transformer::PreparedTransformer;
use crate::config::{DataSizes, EncoderSizes, MemoryEstimate, Plan};
use crate::data::{Dataset, Texts};
use crate::features::PointSet;
use crate::features::Vectorizer;
use crate::matrix::CsrMatrix;

/// A data set made ready for training: features and what will run.
pub struct Prepared {
    pub(super) vectorizer: Option<Vectorizer>,
    pub(super) points: PointSet,
    pub(super) plan: Plan,
    pub(super) encoder: Option<PreparedTransformer>,
}

impl Prepared {
    /// What will run.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The features.
    pub fn features(&self) -> &CsrMatrix {
        &self.points.features
    }

    /// Predicts the most memory that training on the same data will take, on this many threads.
    pub fn peak_memory(
        &self,
        data: &Dataset,
        watched: Option<&Dataset>,
        n_threads: usize,
    ) -> MemoryEstimate {
        let n_points = data.n_points();
        let features = self.features();
        let n_words_a_point = features.nnz().div_ceil(n_points.max(1));
        let mut sizes = DataSizes {
            n_feature_entries: features.nnz(),
            n_centroid_entries: count_centroid_entries(data.labels(), features),
            n_words_a_point,
            n_threads,
            encoder: self.encoder_sizes(watched.map_or(0, Dataset::n_points), n_threads),
            ..DataSizes::default()
        };
        for part in std::iter::once(data).chain(watched) {
            let given = part.features().map_or(0, CsrMatrix::nnz);
            sizes.n_text_bytes += part.texts().map_or(0, Texts::n_bytes);
            sizes.n_text_bytes += part.ids().map_or(0, Texts::n_bytes);
            sizes.n_feature_entries += given;
            sizes.n_label_entries += part.labels().nnz();
            sizes.n_points += part.n_points();
        }
        if self.plan.config().calibration.enabled && self.plan.config().calibration.refit {
            sizes.n_feature_entries += features.nnz();
        }
        // Watched points are as long as the others.
        sizes.n_feature_entries += n_words_a_point * (sizes.n_points - n_points);
        self.plan.peak_memory(&sizes)
    }

    /// Sizes of the transformer, if there is one.
    fn encoder_sizes(&self, n_watched: usize, n_threads: usize) -> Option<EncoderSizes> {
        let tokens = self.points.tokens.as_ref()?;
        let n_tokens_a_point = tokens.n_tokens().div_ceil(tokens.n_rows().max(1));
        let n_points = tokens.n_rows() + n_watched;
        let step = (self.plan.largest_batch(), n_tokens_a_point, n_threads);
        let encoder = self.encoder.as_ref()?;
        Some(encoder.sizes(step, n_points))
    }

    /// Parameters of the transformer, if there is one.
    pub fn n_encoder_parameters(&self) -> Option<usize> {
        Some(self.encoder_sizes(0, 1)?.n_parameters)
    }

    /// Multiplications and additions that the transformer needs for all points once, forward.
    pub fn encoder_flops(&self) -> f64 {
        let tokens = self.points.tokens.as_ref();
        let Some((tokens, encoder)) = tokens.zip(self.encoder.as_ref()) else {
            return 0.0;
        };
        let lengths = (0..tokens.n_rows()).map(|row| tokens.row(row).len());
        lengths
            .map(|n_tokens| encoder.transformer.shape().flops(n_tokens))
            .sum()
    }
}

/// Labels whose centroids are counted; the rest is extrapolated.
const MOST_COUNTED_LABELS: usize = 4096;

/// How many words the points of each label have together, summed over the labels.
fn count_centroid_entries(labels: &CsrMatrix, features: &CsrMatrix) -> usize {
    let points_of = labels.transpose();
    let stride = points_of.n_rows().div_ceil(MOST_COUNTED_LABELS).max(1);
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
