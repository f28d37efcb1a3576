//! A training of several processes ends in the bytes of one process: with and without checkpoints, stopped and resumed.
//! So does one with other vector instructions.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::Trainer;
use crate::communicator::{Communicator, MIN_SHARED_CLUSTERS, threads};
use crate::config::Config;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::events::{Event, Phase};
use crate::kernels::with_each_implementation;

/// Texts of two or three words out of 60, with a label for each word.
fn data(n_points: usize) -> Dataset {
    Dataset::from_texts((0..n_points).map(|point| {
        let words = [
            point % 60,
            (point * 7 + point / 60) % 60,
            (point * point) % 60,
        ];
        let words = &words[..2 + point % 2];
        let text: Vec<String> = words.iter().map(|word| format!("word{word}")).collect();
        (
            text.join(" "),
            words
                .iter()
                .map(|word| format!("label{word}"))
                .collect::<Vec<_>>(),
        )
    }))
}

/// Small sizes; the shortlist is shorter than what the clusters lead to, so that it is cut on all processes together.
fn config(settings: &[&str]) -> Config {
    let small = [
        "encoder.dim=12",
        "index.n_clusters=6",
        "index.beam_size=3",
        "index.shortlist_size=20",
        "index.kappa=25",
        "stage1.epochs=3",
        "stage2.epochs=3",
        "train.batch_size=40",
        "hold_out.min_points=10",
    ];
    let settings = small.iter().chain(settings);
    settings.fold(Config::default(), |config, one| {
        config.with_value(one).unwrap()
    })
}

/// Every file of a model.
fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap();
    let entries = entries.map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read(path).unwrap())
    });
    entries.collect()
}

/// Trains on these processes; process 0 stops after this many steps of a phase.
fn train(
    directory: &Path,
    n_processes: usize,
    config: &Config,
    stop: Option<(Phase, usize)>,
) -> Vec<Result<()>> {
    train_on(&data(400), directory, n_processes, config, stop)
}

/// As [`train`], on these points.
fn train_on(
    points: &Dataset,
    directory: &Path,
    n_processes: usize,
    config: &Config,
    stop: Option<(Phase, usize)>,
) -> Vec<Result<()>> {
    let test = data(90);
    threads::run(n_processes, |communicator: &dyn Communicator| {
        let n_events = AtomicUsize::new(0);
        let observer = |event: &Event| {
            n_events.fetch_add(1, Ordering::Relaxed);
            match (event, stop) {
                (Event::Step { phase, step, .. }, Some(stop))
                    if *phase == stop.0 && stop.1 <= *step =>
                {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        };
        let silent = |_: &Event| ControlFlow::Continue(());
        let mut trainer = Trainer::new(config.clone())
            .validation(&test)
            .communicator(communicator)
            .resume();
        if communicator.process() == 0 {
            trainer = trainer.observer(&observer);
        } else {
            trainer = trainer.observer(&silent);
        }
        if stop.is_some() {
            trainer = trainer.checkpoint_every(Duration::ZERO);
        }
        let trained = trainer.train_to(directory, points);
        trained.map(|predictor| {
            let answers = predictor.predict("word3 word8", 2).unwrap();
            assert_eq!(answers.len(), 2);
        })
    })
}

fn assert_trained(outcomes: Vec<Result<()>>) {
    for outcome in outcomes {
        outcome.unwrap();
    }
}

#[track_caller]
fn check_processes(settings: &[&str], counts: &[usize]) {
    check_processes_on(&data(400), settings, counts);
}

#[track_caller]
fn check_processes_on(points: &Dataset, settings: &[&str], counts: &[usize]) {
    let config = config(settings);
    let directory = tempfile::tempdir().unwrap();
    let alone = directory.path().join("alone");
    assert_trained(train_on(points, &alone, 1, &config, None));
    let expected = contents(&alone);
    for &n_processes in counts {
        let model = directory.path().join(format!("of-{n_processes}"));
        assert_trained(train_on(points, &model, n_processes, &config, None));
        let found = contents(&model);
        let names: Vec<_> = found.keys().collect();
        assert_eq!(names, expected.keys().collect::<Vec<_>>(), "{n_processes}");
        assert!(found == expected, "{n_processes} processes");
    }
}

#[test]
fn any_number_of_processes_gives_the_same_bytes() {
    check_processes(&[], &[2, 3, 4, 16]);
}

#[test]
fn every_instruction_set_gives_the_same_bytes() {
    let wide = "encoder.dim=20";
    let others = [
        wide,
        "index.n_clusters=40",
        "ablation.second_moments=coordinate",
        "train.precision=full",
    ];
    for settings in [&[wide][..], &others] {
        let (points, config) = (data(400), config(settings));
        let models = with_each_implementation(|kernels| {
            let directory = tempfile::tempdir().unwrap();
            let model = directory.path().join("model");
            assert_trained(train_on(&points, &model, 1, &config, None));
            (kernels, contents(&model))
        });
        let (_, expected) = models.last().unwrap();
        for (kernels, found) in &models {
            assert!(found == expected, "{kernels:?}");
        }
    }
}

#[test]
fn so_do_other_settings() {
    check_processes(
        &[
            "ablation.update_every=3",
            "ablation.searched=filled",
            "ablation.parents=update",
            "ablation.average_every=0.5",
            "ablation.best_epoch=true",
            "ablation.edge_start=counts",
            "ablation.reduction=mean",
            "ablation.second_moments=coordinate",
            "train.precision=full",
            "ablation.warmup_epochs=1",
        ],
        &[2, 4],
    );
    check_processes(&["index.mode=ova", "ensemble.members=2"], &[2, 4]);
}

#[test]
fn so_do_folds_of_small_data() {
    check_processes(&["hold_out.min_points=41", "hold_out.folds=3"], &[2, 4]);
}

#[test]
fn so_do_clusters_that_processes_share() {
    let many = "index.n_clusters=40";
    const { assert!(MIN_SHARED_CLUSTERS <= 40) };
    check_processes(&[many], &[2, 3, 4, 16]);
    check_processes(
        &[
            many,
            "ablation.update_every=3",
            "ablation.warmup_epochs=1",
            "ablation.searched=filled",
        ],
        &[2, 4],
    );
}

#[test]
fn so_does_a_ranker_that_asks_the_network() {
    let settings = [
        "ablation.ranker_negatives=candidates",
        "ablation.ranker_embedding=true",
    ];
    assert!(config(&settings).ranker.enabled);
    check_processes(&settings, &[2, 3, 4, 16]);
    check_processes(&["ablation.ranker_embedding=true"], &[2]);
}

#[test]
fn so_does_one_whose_last_chunk_is_a_single_point() {
    // A single point is encoded and searched by other arithmetic than several. 386 points cut in half would leave one
    // on each of two processes.
    for n_points in [385, 386] {
        let settings = [
            "ablation.ranker_embedding=true",
            "ablation.ranker_negatives=candidates",
            "final_score.kind=product",
        ];
        check_processes_on(&data(n_points), &settings, &[2, 4]);
    }
}

#[test]
fn a_stopped_training_is_resumed_by_another_number_of_processes() {
    check_resumed(
        &[],
        &[
            (2, 1, (Phase::Stage1, 5)),
            (1, 4, (Phase::Stage1, 12)),
            (4, 2, (Phase::Stage2, 7)),
            (2, 3, (Phase::Stage2, 18)),
        ],
    );
}

#[test]
fn so_is_one_whose_processes_share_clusters() {
    check_resumed(
        &[
            "index.n_clusters=40",
            "ablation.update_every=3",
            "ablation.average_every=0.5",
            "ablation.best_epoch=true",
        ],
        &[
            (4, 1, (Phase::Stage1, 5)),
            (3, 2, (Phase::Stage2, 7)),
            (1, 16, (Phase::Stage2, 17)),
        ],
    );
}

#[test]
fn so_is_one_that_was_stopped_while_the_ranker_was_trained() {
    // Of 60 labels process 0 has trained 15, 30 or all when it is asked.
    check_resumed(
        &["ablation.ranker_embedding=true"],
        &[
            (4, 2, (Phase::Ranker, 15)),
            (2, 1, (Phase::Ranker, 30)),
            (1, 3, (Phase::Ranker, 60)),
            (3, 2, (Phase::Candidates, 1)),
        ],
    );
}

#[test]
fn a_stop_that_is_asked_of_another_process_than_the_first_does_not_count() {
    let settings = [
        "stage1.epochs=1",
        "stage2.epochs=1",
        "train.batch_size=200",
        "final_score.kind=product",
    ];
    // Enough points that a process takes more than one block of them.
    let (config, points, test) = (config(&settings), data(2100), data(90));
    let directory = tempfile::tempdir().unwrap();
    let alone = directory.path().join("alone");
    assert_trained(train_on(&points, &alone, 1, &config, None));
    let model = directory.path().join("of-2");
    let trained = threads::run(2, |communicator| {
        let observer = |event: &Event| {
            let phase = Phase::Features;
            let is_first = communicator.process() == 0;
            if is_first || *event == (Event::PhaseStarted { phase, n_steps: 0 }) {
                return ControlFlow::Continue(());
            }
            ControlFlow::Break(())
        };
        let trainer = Trainer::new(config.clone()).communicator(communicator);
        let trainer = trainer.observer(&observer).validation(&test);
        trainer.train_to(&model, &points).map(|_| ())
    });
    assert_trained(trained);
    assert!(contents(&model) == contents(&alone));
}

/// Trainings of so many processes that are stopped, then resumed by so many.
#[track_caller]
fn check_resumed(settings: &[&str], cases: &[(usize, usize, (Phase, usize))]) {
    let config = config(settings);
    let directory = tempfile::tempdir().unwrap();
    let alone = directory.path().join("alone");
    assert_trained(train(&alone, 1, &config, None));
    let expected = contents(&alone);
    for &(first, second, stop) in cases {
        let model = directory
            .path()
            .join(format!("{first}-{second}-{}", stop.1));
        for outcome in train(&model, first, &config, Some(stop)) {
            assert!(matches!(outcome, Err(Error::Stopped)), "{outcome:?}");
        }
        assert_trained(train(&model, second, &config, None));
        assert!(contents(&model) == expected, "{first} then {second}");
    }
}

#[test]
fn a_finished_training_is_loaded_by_every_process() {
    let config = config(&["stage1.epochs=1", "stage2.epochs=1"]);
    let directory = tempfile::tempdir().unwrap();
    let model = directory.path().join("model");
    assert_trained(train(&model, 2, &config, None));
    let expected = contents(&model);
    assert_trained(train(&model, 3, &config, None));
    assert!(contents(&model) == expected);
}

#[test]
fn what_processes_cannot_do_is_said() {
    let data = data(400);
    let problems = |settings: &[&str], n_processes| -> Vec<String> {
        let config = config(settings);
        threads::run(n_processes, |communicator| {
            let trainer = Trainer::new(config.clone()).communicator(communicator);
            trainer.train(&data).err().unwrap().to_string()
        })
    };
    for (settings, n_processes, expected) in [
        (&[][..], 17, "17 processes"),
        (&["train.keep_stage1=true"], 2, "train.keep_stage1"),
        (&[], 2, "directory"),
    ] {
        for problem in problems(settings, n_processes) {
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
