//! How much memory a training will take, before anything large is allocated.
//!
//! Every part counts its own bytes; this file alone adds them up. Clustering, training, the ranker and the judge do not
//! overlap, so only the largest of them counts. What is freed is taken to be gone, which holds where the allocator returns it
//! to the system, as the command line asks it to. `docs/performance.md` compares the sum with measured peaks.

use crate::classifiers::{CoarseRows, LabelClassifiers};
use crate::clustering;
use crate::config::{EdgeStart, FinalScoreKind, IndexMode, Plan, RankerNegatives};
use crate::data::HoldOut;
use crate::encoder::{BagEncoder, EncoderSizes};
use crate::events::POINTS_PER_EVENT;
use crate::features::{Pairs, Vectorizer};
use crate::index::{Adjacency, ClusterClassifiers};
use crate::judge::Examples;
use crate::neighbours::Neighbours;
use crate::predict::Member;
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
    /// Centroids of the labels while they are clustered.
    pub clustering: usize,
    /// Encoder, clusters, edges and label classifiers.
    pub parameters: usize,
    /// AdamW's moments.
    pub moments: usize,
    /// Buffers of a training step.
    pub step: usize,
    /// Candidates, embeddings and weights while the ranker is trained, when the moments are gone.
    pub ranker: usize,
    /// Evidence on the candidates of held-out points, and the points by their words, while the judge is fitted.
    pub judge: usize,
    /// Finished members of an ensemble.
    pub members: usize,
}

impl MemoryEstimate {
    /// The most that is in use at once.
    pub fn total(&self) -> usize {
        let training = self.parameters + self.moments + self.step;
        let ranker = self.parameters + self.ranker;
        let judge = self.parameters + self.judge;
        let largest = training.max(self.clustering).max(ranker).max(judge);
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
    /// Mean number of words per point.
    pub(super) words_per_point: usize,
    /// Threads that will work.
    pub(super) n_threads: usize,
    /// Processes that share the labels.
    pub(super) n_processes: usize,
    /// Sizes of the encoder, if it is not a bag of words.
    pub(super) transformer: Option<EncoderSizes>,
}

/// Adds up all parts.
pub(super) fn estimate(plan: &Plan, sizes: &DataSizes) -> MemoryEstimate {
    let (config, recipe) = (plan.config(), plan.recipe());
    let counts = plan.counts();
    let (n_labels, n_words) = (counts.n_labels, counts.n_features);
    let (n_clusters, dim) = (plan.n_clusters(), config.encoder.dim);
    let n_edges = match config.index.mode {
        IndexMode::Fixed | IndexMode::Ova => n_labels,
        IndexMode::Learned => (n_clusters * plan.kappa()).max(n_labels),
    };
    let batch_words = plan.batch_size() * sizes.words_per_point;
    let bag = || BagEncoder::sizes(n_words, &config.encoder, batch_words);
    let encoder = sizes.transformer.unwrap_or_else(bag);

    // Of what belongs to labels and edges a process has its share.
    let own_labels = n_labels.div_ceil(sizes.n_processes);
    let own_edges = n_edges.div_ceil(sizes.n_processes);
    let head =
        LabelClassifiers::n_bytes(own_labels, dim) + ClusterClassifiers::n_bytes(n_clusters, dim);
    let encoder_bytes = 4 * encoder.n_parameters;
    // Stage 1 is kept beside the rest where that is asked for; a pretrained encoder is kept as it was.
    let n_kept = usize::from(config.train.keep_stage1);
    let n_encoders = 1 + n_kept + usize::from(sizes.transformer.is_some());
    let parameters =
        (1 + n_kept) * head + n_encoders * encoder_bytes + Adjacency::n_bytes(own_edges);

    let is_transformer = sizes.transformer.is_some();
    let shared_words = if is_transformer { 0 } else { n_words };
    let trained = train::ParameterCounts {
        n_labels: own_labels,
        n_clusters,
        dim,
        n_edges: own_edges,
        n_encoder: encoder.n_trained,
        shared_words,
    };
    let moments = trained.moment_bytes(recipe.second_moments);
    let step = train::StepSizes {
        batch_size: plan.batch_size(),
        shortlist_size: plan.shortlist_size(),
        n_labels,
        n_words,
        n_threads: sizes.n_threads,
        n_processes: sizes.n_processes,
        n_encoder: encoder.n_step,
    };
    let step = step.n_bytes(&trained);
    let matches = train::match_bytes(counts.n_points, plan.beam_size());
    let matches = match (config.index.mode, recipe.edge_start) {
        (IndexMode::Fixed | IndexMode::Ova, _) => 0,
        // Beside the moments, with the edges that follow from them.
        (IndexMode::Learned, EdgeStart::Recounts) => matches + Adjacency::n_bytes(n_edges),
        // They are gone before the moments of stage 2 are there.
        (IndexMode::Learned, EdgeStart::Counts | EdgeStart::Random) => {
            matches.saturating_sub(moments)
        }
    };
    let step = step.max(matches);

    let clustering = clustering::n_bytes(
        sizes.n_centroid_entries,
        sizes.n_label_entries,
        n_words,
        sizes.n_threads,
    );
    let coarse = CoarseRows::n_bytes(own_labels, dim);
    let (mut ranker, mut ranker_weights) = (0, 0);
    if config.ranker.enabled {
        let ranker_dim = if recipe.ranker_embedding { dim } else { 0 };
        // About as many terms keep a weight as the points of a label have words.
        let of_labels = Ranker::n_bytes(n_labels, sizes.n_centroid_entries, ranker_dim);
        let n_candidates = config.ranker.n_candidates.min(n_labels) * counts.n_points;
        let (negatives, of_clusters) = match recipe.ranker_negatives {
            // Clusters have between half as many weights as labels, and as many.
            RankerNegatives::Clusters => (
                Ranker::n_point_bytes(sizes.n_label_entries),
                Ranker::n_bytes(0, sizes.n_centroid_entries, 0) * 3 / 4,
            ),
            RankerNegatives::Candidates => (CandidateLists::n_bytes(n_candidates), 0),
        };
        ranker_weights = of_labels + of_clusters;
        let mut embeddings = 4 * counts.n_points * ranker_dim;
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
        ranker = coarse + negatives + embeddings + terms + own_weights + ranker_weights;
    }
    let mut judge = 0;
    if recipe.final_score == FinalScoreKind::Boosted {
        let most = n_labels.min(config.ranker.n_candidates + Member::MAX_BROUGHT);
        let n_points = HoldOut::most_points(counts.n_points, &config.hold_out);
        // Half of the entries are a copy.
        let neighbours = Neighbours::n_bytes(sizes.n_feature_entries / 2, sizes.n_label_entries);
        let examples = Examples::n_bytes(n_points * most);
        let heard = Examples::n_heard_bytes(n_points.min(POINTS_PER_EVENT) * most);
        judge = coarse + ranker_weights + examples + heard + neighbours;
    }
    // Y, its renumbered copy, and the rows of it that are not held out.
    let n_label_copies = 2 + usize::from(recipe.final_score.is_fitted());
    MemoryEstimate {
        program: PROGRAM,
        // 48 bytes per label for names and counts, 32 per point for offsets.
        data: sizes.n_text_bytes
            + n_label_copies * 8 * sizes.n_label_entries
            + 32 * sizes.n_points
            + 48 * n_labels,
        features: 8 * (sizes.n_feature_entries + sizes.n_pair_entries)
            + 8 * sizes.n_points
            + Vectorizer::n_bytes(n_words)
            + Pairs::n_bytes(counts.n_pairs)
            + 4 * encoder.n_embedded,
        clustering,
        parameters,
        moments,
        step,
        ranker,
        judge,
        members: (parameters + coarse + ranker_weights).saturating_mul(config.ensemble.members - 1),
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
        };
        config.resolve(counts).unwrap()
    }

    const SIZES: DataSizes = DataSizes {
        n_text_bytes: 10 << 20,
        n_feature_entries: 2_000_000,
        n_pair_entries: 0,
        n_label_entries: 200_000,
        n_points: 50_000,
        n_centroid_entries: 4_000_000,
        words_per_point: 40,
        n_threads: 2,
        n_processes: 1,
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
        // Without the ranker and the judge, which may outweigh a step.
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
