//! A training that is killed at any instant and resumed ends in the same bytes.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::on_threads;
use elias::internals::describe;
use elias::{Error, Event, Observer, Phase, Result};

/// A way to train into a directory.
pub(super) type How = for<'a> fn(Trainer<'a>) -> Trainer<'a>;

/// From the start, with the usual checkpoints: none in so short a training, but at a stop.
pub(super) fn from_the_start(trainer: Trainer<'_>) -> Trainer<'_> {
    trainer
}

/// From the start, with a checkpoint at every step.
pub(super) fn at_every_step(trainer: Trainer<'_>) -> Trainer<'_> {
    trainer.checkpoint_every(Duration::ZERO)
}

/// From the last checkpoint.
pub(super) fn resuming(trainer: Trainer<'_>) -> Trainer<'_> {
    trainer.resume()
}

/// An observer that ignores everything.
pub(super) fn ignore(_: &Event) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Gradients wait for several steps, stage 1 is kept, and stages end with means and best weights, so that a snapshot must
/// hold them all.
pub(super) fn waiting_config() -> Config {
    let settings = [
        "ablation.update_every=3",
        "train.keep_stage1=true",
        "ablation.average_every=0.5",
        "ablation.best_epoch=true",
        "ablation.searched=filled",
        "ablation.parents=update",
    ];
    settings
        .iter()
        .fold(config(), |config, one| config.with_value(one).unwrap())
}

fn train_to(directory: &Path, how: How, observer: &dyn Observer) -> Result<Predictor> {
    let validation = dataset(40);
    let trainer = Trainer::new(waiting_config()).validation(&validation);
    how(trainer.observer(observer)).train_to(directory, &dataset(120))
}

/// Whether an event is a step of one of the two stages; other phases are repeated as a whole.
pub(super) fn is_step(event: &Event) -> bool {
    let stages = [Phase::Stage1, Phase::Stage2];
    matches!(event, Event::Step { phase, .. } if stages.contains(phase))
}

/// The files of a training that is not interrupted.
fn uninterrupted() -> BTreeMap<String, Vec<u8>> {
    let directory = temporary();
    train_to(directory.path(), from_the_start, &ignore).unwrap();
    assert!(!directory.path().join("checkpoint").exists());
    elias::Predictor::verify(directory.path()).unwrap();
    contents(directory.path())
}

pub(super) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    if !from.exists() {
        return;
    }
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The files on disk at every event of a training, as `kill -9` would leave them.
fn killed_at_every_event() -> (tempfile::TempDir, Vec<(Event, PathBuf)>) {
    let place = temporary();
    let directory = place.path().join("model");
    let copies = Mutex::new(Vec::new());
    let observer = |event: &Event| {
        let mut copies = copies.lock().unwrap();
        let copy = place.path().join(format!("killed-{}", copies.len()));
        copy_folder(&directory, &copy);
        copies.push((event.clone(), copy));
        ControlFlow::Continue(())
    };
    train_to(&directory, at_every_step, &observer).unwrap();
    let copies = copies.into_inner().unwrap();
    (place, copies)
}

#[test]
fn a_training_killed_at_any_step_of_both_stages_ends_in_the_same_bytes() {
    let expected = uninterrupted();
    let (place, killed) = killed_at_every_event();
    assert_eq!(contents(&place.path().join("model")), expected);
    let n_steps_of = |phase| {
        let is_step =
            |event: &Event| matches!(event, Event::Step { phase: of, .. } if *of == phase);
        killed.iter().filter(|(event, _)| is_step(event)).count()
    };
    assert_eq!(
        (n_steps_of(Phase::Stage1), n_steps_of(Phase::Stage2)),
        (16, 16)
    );
    for (number, (event, directory)) in killed.iter().enumerate() {
        let n_resumed = Mutex::new(0);
        let observer = |event: &Event| {
            *n_resumed.lock().unwrap() += usize::from(is_step(event));
            ControlFlow::Continue(())
        };
        on_threads([1, 2, 7][number % 3], || {
            train_to(directory, resuming, &observer).unwrap();
        });
        assert!(contents(directory) == expected, "killed at {event:?}");
        assert!(!directory.join("checkpoint").exists());
        // Only the step during which it was killed is done again, and the last of an epoch until its events are sent.
        let n_done = killed[..number]
            .iter()
            .filter(|(event, _)| is_step(event))
            .count();
        let is_epoch_end = matches!(event, Event::Epoch { .. } | Event::Validation { .. });
        let n_left = 32 - n_done + usize::from(is_epoch_end);
        assert_eq!(
            n_resumed.into_inner().unwrap(),
            n_left,
            "killed at {event:?}"
        );
    }
}

#[test]
fn a_torn_last_write_leads_back_to_the_snapshot_before() {
    let expected = uninterrupted();
    let (place, killed) = killed_at_every_event();
    let (_, whole) = &killed[killed.len() / 2];
    let generation = |slot: &Path| {
        let text = fs::read_to_string(slot.join("manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
        manifest["generation"].as_u64().unwrap()
    };
    type Damage = fn(&Path, Vec<u8>);
    let damages: [Damage; 5] = [
        |path, bytes| fs::write(path, &bytes[..bytes.len() / 3]).unwrap(),
        |path, mut bytes| {
            let middle = bytes.len() / 2;
            bytes[middle..].fill(0);
            fs::write(path, bytes).unwrap();
        },
        |path, mut bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(path, bytes).unwrap();
        },
        |path, _| fs::remove_file(path).unwrap(),
        |path, _| fs::write(path, b"").unwrap(),
    ];
    let mut n_tried = 0;
    for damage in damages {
        for ending in ["json", "safetensors"] {
            for n_slots in [1, 2] {
                let directory = place.path().join(format!("torn-{n_tried}"));
                copy_folder(whole, &directory);
                let slots =
                    ["slot-0", "slot-1"].map(|slot| directory.join("checkpoint").join(slot));
                let mut slots = slots.to_vec();
                slots.sort_by_key(|slot| std::cmp::Reverse(generation(slot)));
                for slot in slots.iter().take(n_slots) {
                    for name in contents(slot).keys().filter(|name| name.ends_with(ending)) {
                        let path = slot.join(name);
                        damage(&path, fs::read(&path).unwrap());
                    }
                }
                let is_reported = Mutex::new(false);
                let observer = |event: &Event| {
                    *is_reported.lock().unwrap() |= *event == Event::CheckpointsDamaged;
                    ControlFlow::Continue(())
                };
                train_to(&directory, resuming, &observer).unwrap();
                assert!(
                    contents(&directory) == expected,
                    "{ending}, {n_slots} slots"
                );
                assert_eq!(*is_reported.lock().unwrap(), n_slots == 2, "{ending}");
                n_tried += 1;
            }
        }
    }
    assert_eq!(n_tried, 20);
}

#[test]
fn a_training_stopped_on_request_goes_on_with_the_next_step() {
    let expected = uninterrupted();
    for last in [1, 7, 8, 16] {
        for phase in [Phase::Stage1, Phase::Stage2] {
            let directory = temporary();
            let stop = |event: &Event| match event {
                Event::Step {
                    phase: of, step, ..
                } if (*of, *step) == (phase, last) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            };
            // No checkpoint is due by time: this one is written because of the stop.
            let error = train_to(directory.path(), from_the_start, &stop);
            assert!(matches!(error.err().unwrap(), Error::Stopped));
            let steps = Mutex::new(Vec::new());
            let watching = |event: &Event| {
                if let Event::Step { phase, step, .. } = event
                    && is_step(event)
                {
                    steps.lock().unwrap().push((*phase, *step));
                }
                ControlFlow::Continue(())
            };
            train_to(directory.path(), resuming, &watching).unwrap();
            assert_eq!(contents(directory.path()), expected);
            let next = match (phase, last) {
                (Phase::Stage1, 16) => Some((Phase::Stage2, 1)),
                (Phase::Stage2, 16) => None,
                _ => Some((phase, last + 1)),
            };
            assert_eq!(steps.into_inner().unwrap().first().copied(), next);
        }
    }
}

#[test]
fn one_two_and_seven_threads_give_the_same_bytes() {
    let expected = uninterrupted();
    for n_threads in [1, 2, 7] {
        assert!(on_threads(n_threads, uninterrupted) == expected);
    }
}

/// A directory with a training that was killed in its second stage.
fn killed_once() -> tempfile::TempDir {
    let directory = temporary();
    let stop = |event: &Event| match event {
        Event::Step {
            phase: Phase::Stage2,
            step: 5,
            ..
        } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    train_to(directory.path(), at_every_step, &stop)
        .err()
        .unwrap();
    directory
}

#[test]
fn what_changed_since_the_interruption_is_named() {
    let directory = killed_once();
    let before = contents(&directory.path().join("checkpoint").join("slot-0"));
    let check = |config: Config, n_points: usize, n_validation: Option<usize>, expected: &str| {
        let validation = n_validation.map(dataset);
        let mut trainer = Trainer::new(config).resume();
        if let Some(validation) = &validation {
            trainer = trainer.validation(validation);
        }
        let error = trainer
            .train_to(directory.path(), &dataset(n_points))
            .err()
            .expect("it must be refused")
            .to_string();
        assert!(error.contains(expected), "{error:?} without {expected:?}");
        assert!(error.contains("cannot be resumed"), "{error}");
    };
    let longer = waiting_config().with_value("stage2.epochs=3").unwrap();
    check(longer, 120, Some(40), "stage2.epochs was 2 and is 3");
    let seed = waiting_config().with_value("train.seed=99").unwrap();
    check(seed, 120, Some(40), "train.seed was");
    check(waiting_config(), 121, Some(40), "the data has changed");
    check(
        waiting_config(),
        120,
        Some(41),
        "the validation data has changed",
    );
    check(
        waiting_config(),
        120,
        None,
        "the validation data has changed",
    );
    let after = contents(&directory.path().join("checkpoint").join("slot-0"));
    assert_eq!(before, after);
    train_to(directory.path(), resuming, &ignore).unwrap();
    assert_eq!(contents(directory.path()), uninterrupted());
}

#[test]
fn an_unfinished_training_is_not_lost_by_accident() {
    let directory = killed_once();
    let again = train_to(directory.path(), at_every_step, &ignore);
    let error = again.err().unwrap().to_string();
    assert!(
        error.contains("an unfinished training: resume it"),
        "{error}"
    );
    train_to(directory.path(), |trainer| trainer.overwrite(), &ignore).unwrap();
    assert_eq!(contents(directory.path()), uninterrupted());
}

#[test]
fn resuming_what_has_finished_gives_the_finished_model() {
    let directory = killed_once();
    let folder = directory.path().join("checkpoint");
    let copy = temporary();
    copy_folder(&folder, copy.path());
    train_to(directory.path(), resuming, &ignore).unwrap();
    // Killed after the model was complete and before the folder was gone.
    copy_folder(copy.path(), &folder);
    let none = |event: &Event| {
        assert!(!matches!(event, Event::Step { .. }), "it trains again");
        ControlFlow::Continue(())
    };
    train_to(directory.path(), resuming, &none).unwrap();
    assert!(!folder.exists());
    let error = train_to(directory.path(), at_every_step, &ignore)
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("holds a model already"),
        "{error}"
    );
    assert!(!folder.exists());
    assert_eq!(describe(directory.path()).unwrap().history.len(), 8);
}

#[test]
fn a_second_training_into_the_same_directory_is_refused() {
    let directory = temporary();
    let messages = Mutex::new(Vec::new());
    let observer = |event: &Event| {
        if let Event::Epoch { .. } = event {
            let second = train_to(directory.path(), resuming, &ignore);
            messages
                .lock()
                .unwrap()
                .push(second.err().unwrap().to_string());
        }
        ControlFlow::Continue(())
    };
    train_to(directory.path(), at_every_step, &observer).unwrap();
    let owner = format!("process {} is writing into this", std::process::id());
    let messages = messages.into_inner().unwrap();
    assert_eq!(messages.len(), 4);
    assert!(messages.iter().all(|message| message.contains(&owner)));
    assert_eq!(contents(directory.path()), uninterrupted());
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_that_leaves_everything_as_it_was() {
    let directory = temporary();
    let partial = directory.path().join("classifiers-0.safetensors.partial");
    // Every write to this device fails for want of space.
    std::os::unix::fs::symlink("/dev/full", &partial).unwrap();
    let error = train_to(directory.path(), at_every_step, &ignore)
        .err()
        .unwrap();
    assert!(error.to_string().contains("No space left"), "{error}");
    // Only the snapshots are there: no half model.
    assert_eq!(contents(directory.path()), BTreeMap::new());
    train_to(directory.path(), resuming, &ignore).unwrap();
    assert_eq!(contents(directory.path()), uninterrupted());

    std::os::unix::fs::symlink("/dev/full", &partial).unwrap();
    let other = train(&dataset(96));
    other.replace(directory.path()).unwrap_err();
    assert_eq!(contents(directory.path()), uninterrupted());
}

#[test]
fn a_snapshot_that_cannot_be_written_leaves_the_one_before() {
    let directory = temporary();
    let slot = directory.path().join("checkpoint").join("slot-1");
    let observer = |event: &Event| {
        if matches!(event, Event::Step { step: 6, .. }) {
            fs::remove_dir_all(&slot).unwrap();
            fs::write(&slot, "in the way").unwrap();
        }
        ControlFlow::Continue(())
    };
    let error = train_to(directory.path(), at_every_step, &observer)
        .err()
        .unwrap();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    fs::remove_file(&slot).unwrap();
    train_to(directory.path(), resuming, &ignore).unwrap();
    assert_eq!(contents(directory.path()), uninterrupted());
}

#[test]
fn an_ensemble_killed_at_any_time_keeps_its_finished_members_and_ends_in_the_same_bytes() {
    let settings = ["ensemble.members=2", "hold_out.refit=everything"];
    let parts = ["ranker-1", "boosted-1", "calibration", "neighbours"];
    check_killed_at_any_time(&settings, &parts);
}

#[test]
fn small_data_killed_at_any_time_keeps_its_finished_folds_and_ends_in_the_same_bytes() {
    let settings = ["hold_out.min_points=13", "hold_out.folds=3"];
    check_killed_at_any_time(&settings, &["boosted-0", "calibration"]);
}

#[track_caller]
fn check_killed_at_any_time(settings: &[&str], parts: &[&str]) {
    let two = settings.iter().fold(config(), |config, setting| {
        config.with_value(setting).unwrap()
    });
    let train_two = |directory: &Path, how: How, observer: &dyn Observer| {
        let trainer = how(Trainer::new(two.clone()).observer(observer));
        trainer.train_to(directory, &dataset(120)).unwrap();
    };
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("model");
    let killed = Mutex::new(Vec::new());
    let n_events = Mutex::new(0);
    let observer = |event: &Event| {
        let mut n_events = n_events.lock().unwrap();
        *n_events += 1;
        let mut killed = killed.lock().unwrap();
        if *n_events % 5 == 0 {
            let copy = place.path().join(format!("killed-{}", killed.len()));
            copy_folder(&directory, &copy);
            killed.push((event.clone(), copy));
        }
        ControlFlow::Continue(())
    };
    train_two(&directory, at_every_step, &observer);
    let expected = contents(&directory);
    for part in parts {
        assert!(expected.keys().any(|name| name.starts_with(part)), "{part}");
    }
    assert!(!directory.join("checkpoint").exists());
    let mut n_steps_before = usize::MAX;
    let mut n_kept = 0;
    for (event, directory) in &*killed.lock().unwrap() {
        let members = directory.join("checkpoint").join("members");
        n_kept += usize::from(members.exists());
        let n_steps = Mutex::new(0);
        let counting = |event: &Event| {
            *n_steps.lock().unwrap() += usize::from(is_step(event));
            ControlFlow::Continue(())
        };
        train_two(directory, resuming, &counting);
        assert!(contents(directory) == expected, "killed at {event:?}");
        assert!(!directory.join("checkpoint").exists());
        // The later it was killed, the less is left to do: nothing that had finished is trained again.
        let n_steps = n_steps.into_inner().unwrap();
        assert!(n_steps <= n_steps_before, "killed at {event:?}");
        n_steps_before = n_steps;
    }
    assert!(n_kept > 3, "{n_kept}");
}
