//! How much memory a plan will take, before anything large is allocated.
//!
//! The sum follows what the code allocates, part by part; clustering, training and the ranker do not overlap, so only
//! the largest of the three counts. `docs/performance.md` compares it with measured peaks.

use crate::config::{IndexMode, Plan, SecondMoments};

/// What has to be known of the data besides its counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataSizes {
    /// Bytes of all texts that stay in memory, those that are only watched included.
    pub n_text_bytes: usize,
    /// Entries of all feature matrices that stay in memory.
    pub n_feature_entries: usize,
    /// Entries of all label matrices that stay in memory.
    pub n_label_entries: usize,
    /// Points of all these matrices.
    pub n_points: usize,
    /// Entries of the label centroids.
    pub n_centroid_entries: usize,
    /// Most words a batch can touch: points of a batch times words of a point.
    pub n_words_a_point: usize,
    /// Threads that will work.
    pub n_threads: usize,
    /// Sizes of the encoder, if it is not a bag of words.
    pub encoder: Option<EncoderSizes>,
}

/// What an encoder needs, in values of four bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncoderSizes {
    /// Parameters.
    pub n_parameters: usize,
    /// Those that are trained.
    pub n_trained: usize,
    /// What a training step works in, gradients included.
    pub n_step: usize,
    /// What was embedded once, before training.
    pub n_embedded: usize,
}

/// Predicted memory in bytes, part by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryEstimate {
    /// The program itself.
    pub program: usize,
    /// Texts, labels, names.
    pub data: usize,
    /// tf-idf rows and the vocabulary.
    pub features: usize,
    /// Centroids of the labels while they are clustered.
    pub clustering: usize,
    /// Encoder, clusters, edges and label classifiers.
    pub parameters: usize,
    /// AdamW's two moments of each parameter.
    pub moments: usize,
    /// What a training step works in.
    pub step: usize,
    /// What the allocator keeps for itself after the features and the clustering.
    pub held_back: usize,
    /// Candidates, embeddings and weights while the ranker is trained, when the moments are gone.
    pub ranker: usize,
    /// Members of the ensemble that have finished.
    pub members: usize,
}

impl MemoryEstimate {
    /// The most that is in use at once.
    pub fn total(&self) -> usize {
        let training = self.parameters + self.moments + self.step + self.held_back;
        let ranker = self.parameters + self.ranker + self.held_back;
        let largest = training.max(self.clustering).max(ranker);
        let parts = self.program + self.data + self.features + largest;
        parts.saturating_add(self.members)
    }
}

/// Code and stacks, as measured on the smallest data.
const PROGRAM: usize = 12 << 20;
/// Ranges of labels that a step works on side by side, each with gradients of all embeddings.
const N_RANGES: usize = 16;

impl Plan {
    /// The most points a step has.
    pub fn largest_batch(&self) -> usize {
        self.config().train.batch_size.min(self.counts().n_points)
    }

    /// Predicts the most memory that training will take.
    pub fn peak_memory(&self, sizes: &DataSizes) -> MemoryEstimate {
        const VALUE: usize = size_of::<f32>();
        let counts = self.counts();
        let (n_labels, n_words) = (counts.n_labels, counts.n_features);
        let n_clusters = self.n_clusters();
        let dim = self.config().encoder.dim;
        let n_edges = match self.config().index.mode {
            IndexMode::Ova => n_labels,
            IndexMode::Learned => (n_clusters * self.kappa()).max(n_labels),
        };

        let batch = self.largest_batch();
        let residual = if self.config().encoder.residual {
            dim * dim
        } else {
            0
        };
        let head = (n_labels + n_clusters) * (dim + 1);
        let bag = n_words * dim + residual;
        let encoder = sizes.encoder.unwrap_or(EncoderSizes {
            n_parameters: bag,
            n_trained: bag,
            n_step: dim * n_words.min(batch * sizes.n_words_a_point),
            n_embedded: 0,
        });
        // What stage 1 leaves is kept beside the parameters, where it is asked for.
        let n_stages = 1 + usize::from(self.config().train.keep_stage1);
        // Labels, weights and scores of edges; weights alone have moments. A transformer is kept as it was, too.
        let n_copies = n_stages + usize::from(sizes.encoder.is_some());
        let values = n_stages * head + n_copies * encoder.n_parameters;
        let parameters = VALUE * values + 12 * n_edges;
        // Rows share one second moment; a transformer's are those of its word pieces.
        let n_word_rows = sizes.encoder.map_or(n_words * dim, |_| 0);
        let shared = match self.config().optim.second_moments {
            SecondMoments::Coordinate => 0,
            SecondMoments::Shared => n_word_rows + n_labels * dim,
        };
        let moments = VALUE * (2 * (head + encoder.n_trained + n_edges) - shared);

        let n_pairs = batch * self.shortlist_size();
        // A pair takes 16 bytes, by shard and by range, and 8 for the gradient of its edge.
        let pairs = n_pairs * (16 + 16 + 8);
        let embeddings = VALUE * batch * dim * (N_RANGES + 8);
        let clusters = VALUE * (2 * batch * n_clusters + n_clusters * dim);
        let words = VALUE * encoder.n_step;
        let searchers = sizes.n_threads * 8 * n_labels + 4 * (n_labels + n_words);
        let edges = VALUE * n_edges;
        // M and its transpose: clusters of each point with their scores.
        let matches = 2 * counts.n_points * (8 * self.beam_size() + 24);
        // The matches are gone before the moments of stage 2 are there.
        let step = pairs + embeddings + clusters + words + searchers + edges;
        let step = step.max(matches.saturating_sub(moments));

        // Rows of their own first, then one matrix; and dense sums of all columns.
        let clustering = 16 * sizes.n_centroid_entries
            + 8 * sizes.n_label_entries
            + VALUE * n_words * (4 * sizes.n_threads + 16);
        let config = self.config();
        // About as many words have a weight that is kept as the points of a label have words.
        let n_weights = match config.ranker.enabled {
            true => sizes.n_centroid_entries,
            false => 0,
        };
        let ranker_dim = match config.ranker.enabled && config.ranker.use_embedding {
            true => dim,
            false => 0,
        };
        let ranker_weights = 8 * n_weights + VALUE * n_labels * ranker_dim;
        let n_candidates = config.ranker.n_candidates.min(n_labels) * counts.n_points;
        // W_L in eight bits, with two numbers a row.
        let coarse = n_labels * (dim + 2 * VALUE);
        // Lists and their inversion; rows of their own before they are one matrix.
        let ranker = match config.ranker.enabled {
            true => {
                let embeddings = VALUE * counts.n_points * ranker_dim;
                coarse + 2 * VALUE * n_candidates + embeddings + 2 * ranker_weights
            }
            false => 0,
        };
        // Y, its renumbered copy, and the rows of it that are not held out.
        let n_copies = if config.calibration.enabled { 3 } else { 2 };
        // What is not held out is a copy beside the whole, if members are trained again on that.
        let is_refitted = config.calibration.enabled && config.calibration.refit;
        let n_feature_copies = 1 + usize::from(is_refitted);
        MemoryEstimate {
            program: PROGRAM,
            // 16 bytes a label for names and counts.
            data: sizes.n_text_bytes
                + n_copies * 8 * sizes.n_label_entries
                + 32 * sizes.n_points
                + 48 * n_labels,
            features: n_feature_copies * 8 * sizes.n_feature_entries
                + 8 * sizes.n_points
                + 48 * n_words
                + VALUE * encoder.n_embedded,
            clustering,
            parameters,
            moments,
            step,
            // Many small rows leave holes; the share is what three data sets showed.
            held_back: clustering * 4 / 5,
            ranker,
            members: (parameters + coarse + ranker_weights)
                .saturating_mul(config.ensemble.members - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, DataCounts};

    fn plan(assignments: &[&str]) -> Plan {
        let config = assignments.iter().fold(Config::default(), |config, one| {
            config.with_value(one).unwrap()
        });
        let counts = DataCounts {
            n_points: 50_000,
            n_labels: 30_000,
            n_features: 40_000,
        };
        config.resolve(counts).unwrap()
    }

    const SIZES: DataSizes = DataSizes {
        n_text_bytes: 10 << 20,
        n_feature_entries: 2_000_000,
        n_label_entries: 200_000,
        n_points: 50_000,
        n_centroid_entries: 4_000_000,
        n_words_a_point: 40,
        n_threads: 2,
        encoder: None,
    };

    #[test]
    fn parameters_are_counted_to_the_byte() {
        let keys = [
            "encoder.residual=false",
            "encoder.dim=10",
            "optim.second_moments=coordinate",
        ];
        let plan = plan(&keys);
        let estimate = plan.peak_memory(&SIZES);
        let n_edges = plan.n_clusters() * plan.kappa();
        let n_values = 40_000 * 10 + (30_000 + plan.n_clusters()) * 11;
        assert_eq!(estimate.parameters, 4 * n_values + 12 * n_edges);
        assert_eq!(estimate.moments, 8 * (n_values + n_edges));
    }

    #[test]
    fn the_keys_that_advice_names_lower_the_estimate() {
        // Without the ranker, whose candidates may outweigh what a step needs.
        let without = "ranker.enabled=false";
        let whole = plan(&[without]).peak_memory(&SIZES).total();
        for assignment in [
            "encoder.dim=64",
            "index.kappa=20",
            "index.shortlist_size=100",
        ] {
            let less = plan(&[without, assignment]).peak_memory(&SIZES).total();
            assert!(less < whole, "{assignment}: {less} {whole}");
        }
    }
}
