//! How much memory a training will take, before anything large is allocated.
//!
//! Every part counts its own bytes; this file alone adds them up. Clustering, training, the ranker and the final scorer do not
//! overlap, so only the largest of them counts. What is freed is taken to be gone, which holds where the allocator returns it
//! to the system, as the command line asks it to. `docs/performance.md` compares the sum with measured peaks.

use super::by_text;
use crate::candidates::{Examples, MAX_ADDED};
use crate::classifiers::{CoarseRows, LabelClassifiers};
use crate::clustering;
use crate::config::{EdgeStart, FinalScoreKind, IndexMode, Plan, RankerNegatives};
use crate::encoder::{BagEncoder, EncoderSizes};
use crate::events::POINTS_PER_EVENT;
use crate::features::{Pairs, Vectorizer};
use crate::index::{Adjacency, ClusterClassifiers};
use crate::neighbours::Neighbours;
use crate::ranker::{CandidateLists, Ranker};
use crate::train;

/// Predicted memory in bytes, part by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryEstimate {
    /// The program itself.
    pub program: usize,
    /// Texts, labels, names.
    pub data: usize,
    /// tf-idf rows and the vocabulary.
    pub features: usize,
    /// Centroids of the labels while they are clustered, and all else that is there in the meantime.
    pub clustering: usize,
    /// Encoder, clusters, edges and label classifiers.
    pub parameters: usize,
    /// AdamW's moments, gradients that wait to be applied, and means and best weights where the recipe has them.
    pub moments: usize,
    /// Buffers of a training step.
    pub step: usize,
    /// Candidates, embeddings and weights while the ranker is trained, when the moments are gone.
    pub ranker: usize,
    /// Features of the candidates of held-out points, and the points by their words, while final scorers are fitted.
    pub final_scorer: usize,
    /// Finished members of an ensemble.
    pub members: usize,
}

impl MemoryEstimate {
    /// The most that is in use at once.
    pub fn total(&self) -> usize {
        let training = self.parameters + self.moments + self.step;
        let ranker = self.parameters + self.ranker;
        let final_scorer = self.parameters + self.final_scorer;
        let largest = training.max(self.clustering).max(ranker).max(final_scorer);
        let parts = self.program + self.data + self.features + largest;
        parts.saturating_add(self.members)
    }
}

/// Code and stacks, as measured on the smallest data.
const PROGRAM: usize = 12 << 20;

/// The sizes of the data that memory depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DataSizes {
    /// Bytes of all texts, those for validation included.
    pub(super) n_text_bytes: usize,
    /// Entries of the feature matrices, the copy of the points that are not held out included.
    pub(super) n_feature_entries: usize,
    /// Entries of the rows of pairs of words, the copy included.
    pub(super) n_pair_entries: usize,
    /// Entries of the label matrices.
    pub(super) n_label_entries: usize,
    /// Points of all these matrices.
    pub(super) n_points: usize,
    /// Entries of the label centroids.
    pub(super) n_centroid_entries: usize,
    /// Whether labels are scored by their texts.
    pub(super) scores_by_text: bool,
    /// Mean number of words per point.
    pub(super) words_per_point: usize,
    /// Threads that will work.
    pub(super) n_threads: usize,
    /// Processes that share the labels.
    pub(super) n_processes: usize,
    /// Dimensions of vectors of words, or of embeddings of texts, from outside.
    pub(super) outside_dim: usize,
    /// Sizes of the encoder, if it is not a bag of words.
    pub(super) transformer: Option<EncoderSizes>,
}

/// Adds up all parts.
pub(super) fn estimate(plan: &Plan, sizes: &DataSizes) -> MemoryEstimate {
    Estimator::new(plan, sizes).estimate()
}

/// The sizes that several parts depend on.
struct Estimator<'a> {
    plan: &'a Plan,
    sizes: &'a DataSizes,
    encoder: EncoderSizes,
    n_edges: usize,
    /// Of what belongs to labels and edges a process has its share.
    own_labels: usize,
    own_edges: usize,
}

/// The ranker while it is trained, and afterwards.
#[derive(Default)]
struct RankerBytes {
    training: usize,
    weights: usize,
}

impl<'a> Estimator<'a> {
    fn new(plan: &'a Plan, sizes: &'a DataSizes) -> Self {
        let config = plan.config();
        let counts = plan.counts();
        let n_edges = match config.index.mode {
            IndexMode::Fixed | IndexMode::Ova => counts.n_labels,
            IndexMode::Learned => (plan.n_clusters() * plan.kappa()).max(counts.n_labels),
        };
        let batch_words = plan.batch_size() * sizes.words_per_point;
        let bag = || {
            let of_outside = (sizes.outside_dim, sizes.n_points);
            BagEncoder::sizes(counts, &config.encoder, batch_words, of_outside)
        };
        Estimator {
            plan,
            sizes,
            encoder: sizes.transformer.unwrap_or_else(bag),
            n_edges,
            own_labels: counts.n_labels.div_ceil(sizes.n_processes),
            own_edges: n_edges.div_ceil(sizes.n_processes),
        }
    }

    fn estimate(&self) -> MemoryEstimate {
        let (config, counts, sizes) = (self.plan.config(), self.plan.counts(), self.sizes);
        let trained = self.trained();
        let recipe = self.plan.recipe();
        let moments = trained.moment_bytes(recipe.second_moments)
            + trained.waiting_bytes(recipe)
            + trained.chosen_bytes(recipe);
        let parameters = self.parameters();
        let ranker = self.ranker();
        // Y, its renumbered copy, and the rows of it that are not held out.
        let n_label_copies = 2 + usize::from(self.plan.recipe().final_score.is_fitted());
        MemoryEstimate {
            program: PROGRAM,
            // 48 bytes per label for names and counts, 32 per point for offsets.
            data: sizes.n_text_bytes
                + n_label_copies * 8 * sizes.n_label_entries
                + 32 * sizes.n_points
                + 48 * counts.n_labels,
            features: 8 * (sizes.n_feature_entries + sizes.n_pair_entries)
                + 8 * sizes.n_points
                + Vectorizer::n_bytes(counts.n_features)
                + Pairs::n_bytes(counts.n_pairs)
                + 4 * self.encoder.n_embedded,
            clustering: self.clustering(parameters + moments),
            parameters,
            moments,
            step: self.step(&trained).max(self.matches(moments)),
            ranker: ranker.training,
            final_scorer: self.final_scorer(ranker.weights),
            members: (parameters + self.coarse() + ranker.weights)
                .saturating_mul(config.ensemble.members - 1),
        }
    }

    /// Clustering on features, or once more on features and embeddings, beside the model that embeds.
    fn clustering(&self, n_model_bytes: usize) -> usize {
        let (sizes, counts) = (self.sizes, self.plan.counts());
        let of = |n_entries, n_columns| {
            let n_label_entries = sizes.n_label_entries;
            clustering::n_bytes(n_entries, n_label_entries, n_columns, sizes.n_threads)
        };
        if self.plan.recipe().warmup_epochs == 0 {
            return of(sizes.n_centroid_entries, counts.n_features);
        }
        let dim = self.plan.config().encoder.dim;
        let n_entries = sizes.n_centroid_entries + counts.n_labels * dim;
        n_model_bytes + 4 * sizes.n_points * dim + of(n_entries, counts.n_features + dim)
    }

    fn parameters(&self) -> usize {
        let config = self.plan.config();
        let dim = config.encoder.dim;
        let head = LabelClassifiers::n_bytes(self.own_labels, dim)
            + ClusterClassifiers::n_bytes(self.plan.n_clusters(), dim);
        // Stage 1 is kept beside the rest where that is asked for; a pretrained encoder is kept as it was.
        let n_kept = usize::from(config.train.keep_stage1);
        let n_encoders = 1 + n_kept + usize::from(self.sizes.transformer.is_some());
        (1 + n_kept) * head
            + n_encoders * 4 * self.encoder.n_parameters
            + Adjacency::n_bytes(self.own_edges)
    }

    /// The parameters that a training changes.
    fn trained(&self) -> train::ParameterCounts {
        let n_words = self.plan.counts().n_features;
        let is_transformer = self.sizes.transformer.is_some();
        train::ParameterCounts {
            n_labels: self.own_labels,
            n_clusters: self.plan.n_clusters(),
            dim: self.plan.config().encoder.dim,
            n_edges: self.own_edges,
            n_encoder: self.encoder.n_trained,
            shared_words: if is_transformer { 0 } else { n_words },
        }
    }

    fn step(&self, trained: &train::ParameterCounts) -> usize {
        let step = train::StepSizes {
            batch_size: self.plan.batch_size(),
            shortlist_size: self.plan.shortlist_size(),
            n_labels: self.plan.counts().n_labels,
            n_words: self.plan.counts().n_features,
            n_threads: self.sizes.n_threads,
            n_processes: self.sizes.n_processes,
            n_encoder: self.encoder.n_step,
        };
        step.n_bytes(trained)
    }

    /// The clusters of all points, while A is counted.
    fn matches(&self, moments: usize) -> usize {
        let index = &self.plan.config().index;
        let matches = train::match_bytes(self.plan.counts().n_points, self.plan.beam_size());
        match (index.mode, self.plan.recipe().edge_start) {
            (IndexMode::Fixed | IndexMode::Ova, _) => 0,
            // Beside the moments, with the edges that follow from them.
            (IndexMode::Learned, EdgeStart::Recounts) => matches + Adjacency::n_bytes(self.n_edges),
            // They are gone before the moments of stage 2 are there.
            (IndexMode::Learned, EdgeStart::Counts | EdgeStart::Random) => {
                matches.saturating_sub(moments)
            }
        }
    }

    fn coarse(&self) -> usize {
        CoarseRows::n_bytes(self.own_labels, self.plan.config().encoder.dim)
    }

    fn ranker(&self) -> RankerBytes {
        let (sizes, counts) = (self.sizes, self.plan.counts());
        let (config, recipe) = (&self.plan.config().ranker, self.plan.recipe());
        if !config.enabled {
            return RankerBytes::default();
        }
        let dim = self.plan.config().encoder.dim;
        let dim = if recipe.ranker_embedding { dim } else { 0 };
        // About as many terms keep a weight as the points of a label have words.
        let of_labels = Ranker::n_bytes(counts.n_labels, sizes.n_centroid_entries, dim);
        let n_candidates = config.n_candidates.min(counts.n_labels) * counts.n_points;
        let (negatives, of_clusters) = match recipe.ranker_negatives {
            // Clusters have between half as many weights as labels, and as many.
            RankerNegatives::Clusters => (
                Ranker::n_point_bytes(sizes.n_label_entries)
                    + sizes.n_threads * self.ranker_scratch(),
                Ranker::n_bytes(0, sizes.n_centroid_entries, 0) * 3 / 4,
            ),
            RankerNegatives::Candidates => (CandidateLists::n_bytes(n_candidates), 0),
        };
        let weights = of_labels + of_clusters;
        let mut embeddings = 4 * counts.n_points * dim;
        if sizes.n_processes > 1 {
            // While they are gathered, a process's own are there twice.
            embeddings += embeddings.div_ceil(sizes.n_processes);
        }
        // Rows of their own, of which a process has its share, before they are one matrix on process 0.
        let own_weights = of_labels.div_ceil(sizes.n_processes);
        // Words and pairs side by side, of which half the entries are a copy.
        let terms = match sizes.n_pair_entries {
            0 => 0,
            n_pairs => 8 * (sizes.n_feature_entries + n_pairs) / 2,
        };
        RankerBytes {
            training: self.coarse() + negatives + embeddings + terms + own_weights + weights,
            weights,
        }
    }

    fn ranker_scratch(&self) -> usize {
        let counts = self.plan.counts();
        Ranker::n_scratch_bytes(counts.n_points, counts.n_features + counts.n_pairs)
    }

    fn final_scorer(&self, ranker_weights: usize) -> usize {
        let (config, counts, sizes) = (self.plan.config(), self.plan.counts(), self.sizes);
        if self.plan.recipe().final_score != FinalScoreKind::Boosted {
            return 0;
        }
        let most = counts.n_labels.min(config.ranker.n_candidates + MAX_ADDED);
        let n_points = self.plan.n_points_to_fit();
        // Half of the entries are a copy.
        let neighbours = Neighbours::n_bytes(sizes.n_feature_entries / 2, sizes.n_label_entries);
        let examples = Examples::n_bytes(n_points * most);
        let unadded = Examples::n_feature_bytes(n_points.min(POINTS_PER_EVENT) * most);
        let by_text = if sizes.scores_by_text {
            by_text::n_bytes(n_points)
        } else {
            0
        };
        self.coarse() + ranker_weights + (examples + unadded).max(by_text) + neighbours
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
            n_pairs: 0,
            n_parts: 0,
            embedding_dim: 0,
        };
        config.resolve(counts).unwrap()
    }

    const SIZES: DataSizes = DataSizes {
        scores_by_text: false,
        n_text_bytes: 10 << 20,
        n_feature_entries: 2_000_000,
        n_pair_entries: 0,
        n_label_entries: 200_000,
        n_points: 50_000,
        n_centroid_entries: 4_000_000,
        words_per_point: 40,
        n_threads: 2,
        n_processes: 1,
        outside_dim: 0,
        transformer: None,
    };

    #[test]
    fn parameters_are_counted_to_the_byte() {
        let plan = plan(&["encoder.dim=10", "ablation.second_moments=coordinate"]);
        let found = estimate(&plan, &SIZES);
        let n_edges = plan.n_clusters() * plan.kappa();
        let n_values = 40_000 * 10 + (30_000 + plan.n_clusters()) * 11;
        assert_eq!(found.parameters, 4 * n_values + 12 * n_edges);
        assert_eq!(found.moments, 8 * (n_values + n_edges));
    }

    #[test]
    fn gradients_that_wait_and_a_second_clustering_are_counted() {
        let coordinate = "ablation.second_moments=coordinate";
        let of = |settings: &[&str]| {
            estimate(
                &plan(&[&[coordinate, "encoder.dim=10"], settings].concat()),
                &SIZES,
            )
        };
        let (plain, waiting) = (of(&[]), of(&["ablation.update_every=10"]));
        let plan = plan(&[]);
        let of_labels = 30_000 * (4 * 11 + 1);
        let of_clusters = plan.n_clusters() * 4 * 11;
        assert_eq!(waiting.moments - plain.moments, of_labels + of_clusters);
        let all_rows = of(&["ablation.row_updates=all"]);
        assert_eq!(all_rows.moments - plain.moments, of_labels);
        let (n_edges, n_values) = (plan.n_clusters() * plan.kappa(), plain.parameters / 4);
        let n_values = n_values - 3 * n_edges;
        let averaged = of(&["ablation.average_every=1"]);
        assert_eq!(averaged.moments - plain.moments, 4 * n_values);
        let best = of(&["ablation.best_epoch=true"]);
        assert_eq!(best.moments - plain.moments, 4 * (n_values + n_edges));
        let warm = of(&["ablation.warmup_epochs=1"]);
        let beside = plain.parameters + plain.moments + 4 * 50_000 * 10;
        assert!(plain.clustering + beside < warm.clustering);
    }

    #[test]
    fn ranks_share_what_grows_with_labels() {
        let plan = plan(&["ranker.enabled=false", "final_score.kind=product"]);
        let of = |n_processes| {
            estimate(
                &plan,
                &DataSizes {
                    n_processes,
                    ..SIZES
                },
            )
        };
        let (one, four) = (of(1), of(4));
        let words = 4 * 40_000 * plan.config().encoder.dim;
        assert!(4 * (four.parameters - words) < 2 * (one.parameters - words));
        assert!(four.moments < one.moments && four.step < one.step);
        assert_eq!(four.data, one.data);
    }

    #[test]
    fn the_keys_that_advice_names_lower_the_estimate() {
        // Without the ranker and the final scorer, which may outweigh a step.
        let without = ["ranker.enabled=false", "final_score.kind=product"];
        let whole = estimate(&plan(&without), &SIZES).total();
        for assignment in [
            "encoder.dim=64",
            "index.kappa=20",
            "index.shortlist_size=100",
            "train.batch_size=64",
        ] {
            let less = estimate(&plan(&[without[0], without[1], assignment]), &SIZES).total();
            assert!(less < whole, "{assignment}: {less} {whole}");
        }
    }
}
