//! Single parts of the method, to be compared with other implementations.

use crate::clustering::{self, PointFeatures, label_centroids};
use crate::communicator::{SingleProcess, shares_clusters};
use crate::error::Result;
use crate::matrix::CsrMatrix;
use crate::predict::Predictor;
use crate::training::PreparedTraining;

/// The initial cluster of each label, from features and labels of the same points.
///
/// # Errors
/// [`Error::Config`](crate::Error::Config) if there are no clusters, or more than labels.
pub fn cluster_labels(
    features: &CsrMatrix,
    labels: &CsrMatrix,
    n_clusters: usize,
    seed: u64,
) -> Result<Vec<u32>> {
    let points = PointFeatures {
        sparse: features,
        dense: None,
    };
    let centroids = label_centroids(labels, points);
    let clustering = clustering::cluster_labels(&centroids, n_clusters, seed, &SingleProcess)?;
    let clusters = clustering.cluster_of().iter();
    Ok(clusters.map(|cluster| cluster.0).collect())
}

/// The clusters that each of so many processes scores in a training step: all, unless they are enough to be shared.
pub fn clusters_per_process(n_clusters: usize, n_processes: usize) -> f64 {
    let n_sharing = if shares_clusters(n_clusters) {
        n_processes
    } else {
        1
    };
    n_clusters as f64 / n_sharing as f64
}

/// Trains the stages of one member, on any number of processes, and keeps nothing of it.
///
/// An epoch ends after `max_steps` steps, so that steps of both stages can be measured where an epoch takes an hour.
///
/// # Errors
/// As [`Trainer::train`](crate::Trainer::train).
pub fn train_stages(prepared: PreparedTraining<'_>, max_steps: Option<usize>) -> Result<()> {
    prepared.measure_stages(max_steps)
}

/// Trains to the end with epochs of at most so many steps, so that every phase can be measured where an epoch takes an
/// hour.
///
/// # Errors
/// As [`Trainer::train`](crate::Trainer::train).
pub fn train_cut(prepared: PreparedTraining<'_>, max_steps: usize) -> Result<Predictor> {
    prepared.train_cut(Some(max_steps))
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::sync::Mutex;

    use super::*;
    use crate::config::Config;
    use crate::data::Dataset;
    use crate::events::{Event, Phase};
    use crate::training::Trainer;

    #[test]
    fn labels_of_the_same_words_share_a_cluster() {
        let data = Dataset::from_texts([
            ("red apple", ["apple", "fruit"]),
            ("fast car", ["car", "vehicle"]),
        ]);
        let (_, features) = crate::features::TfIdf::fit_transform(data.texts().unwrap()).unwrap();
        let clusters = cluster_labels(&features, data.labels(), 2, 0).unwrap();
        assert_eq!((clusters[0], clusters[2]), (clusters[1], clusters[3]));
        assert_ne!(clusters[0], clusters[2]);
    }

    #[test]
    fn an_epoch_of_both_stages_ends_after_some_steps() {
        let names = |point: usize| {
            (
                format!("word{}", point % 20),
                [format!("label{}", point % 20)],
            )
        };
        let data = Dataset::from_texts((0..60).map(names));
        let settings = ["train.batch_size=4", "stage1.epochs=2", "stage2.epochs=1"];
        let config = settings.iter().fold(Config::default(), |config, one| {
            config.with_value(one).unwrap()
        });
        let steps = Mutex::new(Vec::new());
        let observer = |event: &Event| {
            if let Event::Step { phase, step, .. } = event
                && *phase != Phase::Adjacency
            {
                steps.lock().unwrap().push((*phase, *step));
            }
            ControlFlow::Continue(())
        };
        let trainer = Trainer::new(config).observer(&observer);
        train_stages(trainer.prepare(&data).unwrap(), Some(3)).unwrap();
        let expected = (1..=6).map(|step| (Phase::Stage1, step));
        let expected = expected.chain((1..=3).map(|step| (Phase::Stage2, step)));
        assert_eq!(*steps.lock().unwrap(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_cut_training_goes_through_every_phase() {
        let names = |point: usize| (format!("word{}", point % 20), [format!("l{}", point % 20)]);
        let data = Dataset::from_texts((0..60).map(names));
        let settings = ["train.batch_size=4", "hold_out.min_points=3"];
        let settings = settings.iter().chain(&["hold_out.refit=ranker"]);
        let config = settings.fold(Config::default(), |config, one| {
            config.with_value(one).unwrap()
        });
        let phases = Mutex::new(Vec::new());
        let observer = |event: &Event| {
            if let Event::PhaseStarted { phase, .. } = event {
                phases.lock().unwrap().push(phase.name());
            }
            if let Event::Step {
                phase: Phase::Stage1 | Phase::Stage2,
                step,
                ..
            } = event
            {
                assert!(*step <= 2 * 4);
            }
            ControlFlow::Continue(())
        };
        let trainer = Trainer::new(config).observer(&observer);
        train_cut(trainer.prepare(&data).unwrap(), 2).unwrap();
        let stages = ["clustering", "stage 1", "adjacency", "stage 2", "ranker"];
        let after = ["neighbours", "calibration", "ranker", "neighbours"];
        let expected = [&["features", "hold-out"][..], &stages, &after].concat();
        assert_eq!(*phases.lock().unwrap(), expected);
    }
}
