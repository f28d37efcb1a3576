//! How long a training will take: its operations, at shares of the matrix product's rate that were measured once, with
//! the rate itself measured on the machine.

use elias::Workload;
use elias::config::{EncoderKind, Plan, Refit};
use elias::internals::{Sgemm, median};

use crate::ui::time_left::PhaseWeights;

/// Rate of the matrix product with vectors of 256 bits, in operations per second, on the machine whose seconds are
/// constants here; it has wider ones.
const REFERENCE_RATE: f64 = 208e9;
/// Share of that rate at which labels are scored and trained.
const LABELS: f64 = 0.52;
/// The same for words of texts, whose rows are scattered.
const WORDS: f64 = 0.035;
/// The same for clusters, in stage 1 and in stage 2.
const CLUSTERS: [f64; 2] = [0.3, 0.2];
/// Seconds of the reference machine that a point takes besides, in stage 1 and in stage 2.
const POINT: [f64; 2] = [14e-6, 10e-6];
/// Seconds of the reference machine for a training point of a label of the ranker, and for each of its terms.
const RANKER_POINT: f64 = 0.24e-6;
const RANKER_TERM: f64 = 6.5e-9;
/// Seconds of the reference machine for a text, and for each of its words, outside of the phases named here: features,
/// clusters, adjacency, neighbours, saving.
const TEXT: f64 = 6e-6;
const TEXT_WORD: f64 = 0.5e-6;
/// Seconds of the reference machine for a held-out point: its candidates and the fit of the final score.
const HELD_OUT_POINT: f64 = 0.65e-3;
/// Share of the matrix product's rate of a transformer.
const TRANSFORMER: f64 = 0.9;
/// Labels that paths of a beam lead to, as a share of its edges: several lead to the same label.
const DISTINCT: f64 = 0.45;

/// Seconds of the phases of a training, all members and passes together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ExpectedTime {
    pub(crate) transformer: f64,
    pub(crate) stages: [f64; 2],
    pub(crate) ranker: f64,
    pub(crate) final_score: f64,
    /// Everything else.
    pub(crate) rest: f64,
}

impl ExpectedTime {
    /// The times on this machine, whose matrix product is measured now.
    pub(crate) fn measure(plan: &Plan, work: &Workload) -> Self {
        let mut sgemm = Sgemm::narrow();
        let rates = [(); 3].map(|()| sgemm.measure());
        ExpectedTime::at(median(&rates) * 1e9, plan, work)
    }

    /// The times on a machine with this rate of the matrix product.
    fn at(rate: f64, plan: &Plan, work: &Workload) -> Self {
        let (config, counts) = (plan.config(), plan.counts());
        let slowness = REFERENCE_RATE / rate;
        let n_members = config.ensemble.members as f64;
        let n_networks = n_members * work.n_passes as f64;
        let stages = plan.stages();
        let n_warmup = plan.recipe().warmup_epochs;
        let mut seconds = [0.0; 2];
        for (stage, planned) in stages.iter().enumerate() {
            let visit = seconds_of_visit(stage, plan, work) * slowness;
            let n_epochs = planned.epochs + if stage == 0 { n_warmup } else { 0 };
            seconds[stage] = n_networks * (n_epochs * work.points_per_epoch) as f64 * visit;
        }
        // A frozen encoder reads every text once, before any training; a trained one in every epoch, forward and
        // backward, which is three times the forward pass.
        let n_epochs = n_warmup + stages.iter().map(|stage| stage.epochs).sum::<usize>();
        let n_encodings = match (config.encoder.kind, config.encoder.trained_layers) {
            (EncoderKind::Bag, _) | (_, Some(0)) => 1.0,
            _ => 3.0 * n_networks * n_epochs as f64,
        };
        let n_rankers = match (config.ranker.enabled, work.refit) {
            (false, _) => 0.0,
            (true, Refit::Ranker) => 2.0 * n_members,
            (true, _) => n_networks,
        };
        let labels_per_cluster = counts.n_labels as f64 / plan.n_clusters() as f64;
        let n_points = counts.n_points as f64;
        let n_rows = n_points * work.labels_per_point * labels_per_cluster;
        let ranker = n_rows * (RANKER_POINT + RANKER_TERM * work.terms_per_point);
        let rest = n_points * (TEXT + TEXT_WORD * work.words_per_point);
        let n_held_out = plan.n_points_to_fit() as f64;
        ExpectedTime {
            transformer: n_encodings * work.transformer_flops / (TRANSFORMER * rate),
            stages: seconds,
            ranker: n_rankers * ranker * slowness,
            final_score: n_members * n_held_out * HELD_OUT_POINT * slowness,
            rest: rest * slowness,
        }
    }

    /// How the time of one training is divided, on any machine.
    pub(crate) fn weights(plan: &Plan, work: &Workload) -> PhaseWeights {
        let all = ExpectedTime::at(REFERENCE_RATE, plan, work);
        let n_networks = (plan.config().ensemble.members * work.n_passes) as f64;
        // Where the network is not trained again, the ranker is.
        let is_ranked_again = work.refit == Refit::Ranker;
        let n_rankers = n_networks * if is_ranked_again { 2.0 } else { 1.0 };
        let ranker = all.ranker / n_rankers;
        PhaseWeights {
            stages: all.stages.map(|seconds| seconds / n_networks),
            ranker,
            final_score: all.final_score / n_networks,
            ranker_again: if is_ranked_again { ranker } else { 0.0 },
        }
    }

    /// All of them together.
    pub(crate) fn total(&self) -> f64 {
        let stages: f64 = self.stages.iter().sum();
        self.transformer + stages + self.ranker + self.final_score + self.rest
    }
}

/// Seconds of the reference machine to train on one point in stage 1 (0) or 2 (1).
fn seconds_of_visit(stage: usize, plan: &Plan, work: &Workload) -> f64 {
    let (config, counts) = (plan.config(), plan.counts());
    let most = plan.shortlist_size().min(counts.n_labels) as f64;
    // Stage 1 scores the labels of the searched clusters, stage 2 those that their edges lead to.
    let labels_per_cluster = counts.n_labels as f64 / plan.n_clusters() as f64;
    let of_cluster = [labels_per_cluster, DISTINCT * plan.kappa() as f64][stage];
    let n_scored = (plan.beam_size() as f64 * of_cluster).min(most);
    let n_words = match config.encoder.kind {
        EncoderKind::Bag => work.words_per_point,
        EncoderKind::Transformer => 0.0,
    };
    let rows = n_scored / LABELS + plan.n_clusters() as f64 / CLUSTERS[stage] + n_words / WORDS;
    POINT[stage] + 6.0 * config.encoder.dim as f64 * rows / REFERENCE_RATE
}

#[cfg(test)]
mod tests {
    use super::*;
    use elias::config::{Config, DataCounts};

    /// gutenberg-lcsh took 3.4 s, 17.0 s, 1.7 s and 2.1 s on the reference machine, tibkat-en 4.9, 18.2, 11.5 and 2.3, before
    /// a step of stage 1 took 0.82 and 0.87, and one of stage 2 0.69 and 0.74 of its time then (`benchmarks/notebook/speed.md`).
    #[test]
    fn two_trainings_would_have_been_predicted_within_a_factor_of_1_4() {
        let check = |[n_points, n_labels, visits]: [usize; 3], per_point: [f64; 3], took: f64| {
            let counts = DataCounts {
                n_points,
                n_labels,
                n_features: 20_000,
                n_pairs: 0,
                n_parts: 0,
                embedding_dim: 0,
            };
            let plan = Config::default().resolve(counts).unwrap();
            let work = Workload {
                points_per_epoch: visits,
                refit: Refit::Ranker,
                n_passes: 1,
                words_per_point: per_point[0],
                terms_per_point: per_point[1],
                labels_per_point: per_point[2],
                ..Workload::default()
            };
            let expected = ExpectedTime::at(REFERENCE_RATE, &plan, &work).total();
            let factor = (expected / took).max(took / expected);
            assert!(factor < 1.4, "{expected} {took}");
            // Half of the rate takes twice the time.
            let slower = ExpectedTime::at(REFERENCE_RATE / 2.0, &plan, &work).total();
            assert!((slower / expected - 2.0).abs() < 1e-9);
        };
        // Epochs of warm-up are as long as those of stage 1.
        let stage1 = |warmup_epochs: usize| {
            let setting = format!("ablation.warmup_epochs={warmup_epochs}");
            let config = Config::default().with_value(&setting).unwrap();
            let counts = DataCounts {
                n_points: 1000,
                n_labels: 500,
                n_features: 900,
                n_pairs: 0,
                n_parts: 0,
                embedding_dim: 0,
            };
            let plan = config.resolve(counts).unwrap();
            let work = Workload {
                points_per_epoch: 1000,
                n_passes: 1,
                ..Workload::default()
            };
            ExpectedTime::at(REFERENCE_RATE, &plan, &work).stages[0]
        };
        assert!((stage1(6) / stage1(0) - 4.0).abs() < 1e-9);
        check([34_122, 10_146, 35_800], [8.0, 14.0, 2.2], 18.3);
        check([31_600, 10_583, 33_500], [70.0, 125.0, 2.5], 31.5);
    }
}
