//! Exact resuming under every setting that keeps more state than the parameters.

use std::ops::ControlFlow;
use std::sync::Mutex;

use super::resume::{Watching, at_every_step, copy_folder, is_step, resuming};
use super::*;
use elias::checkpoint::Destination;
use elias::train::{Event, Observer};

/// Trains with these settings, keeps what is on the disk at every third event, and resumes from each.
#[track_caller]
fn check(settings: &[&str]) {
    let config = settings.iter().fold(config(), |config, setting| {
        config.with_value(setting).unwrap()
    });
    let (data, watched) = (dataset(120), dataset(40));
    let train_to = |destination: &Destination, observer: &dyn Observer| {
        Trainer::new(config.clone())
            .train_to(destination, &data, Some(&watched), observer)
            .unwrap();
        contents(&destination.directory)
    };
    let place = temporary();
    let expected = train_to(&Destination::new(place.path().join("alone")), &Silent);
    let plain = Trainer::new(self::config());
    let plain_directory = Destination::new(place.path().join("plain"));
    plain
        .train_to(&plain_directory, &data, Some(&watched), &Silent)
        .unwrap();
    let classifiers = |files: &BTreeMap<String, Vec<u8>>| {
        let found = files.keys().find(|name| name.starts_with("classifiers-0"));
        found.unwrap().clone()
    };
    assert_ne!(
        classifiers(&expected),
        classifiers(&contents(&plain_directory.directory)),
        "the settings change nothing"
    );

    let directory = place.path().join("model");
    let killed = Mutex::new(Vec::new());
    let n_events = Mutex::new(0);
    let observer = Watching(|event: &Event| {
        let mut n_events = n_events.lock().unwrap();
        *n_events += 1;
        if *n_events % 3 == 0 {
            let mut killed = killed.lock().unwrap();
            let copy = place.path().join(format!("killed-{}", killed.len()));
            copy_folder(&directory, &copy);
            killed.push((event.clone(), copy));
        }
        ControlFlow::Continue(())
    });
    assert!(train_to(&at_every_step(&directory), &observer) == expected);
    let killed = killed.into_inner().unwrap();
    let n_in_steps = killed.iter().filter(|(event, _)| is_step(event)).count();
    assert!(8 <= n_in_steps, "{n_in_steps}");
    for (event, directory) in &killed {
        let resumed = train_to(&resuming(directory), &Silent);
        assert!(resumed == expected, "{settings:?}, killed at {event:?}");
    }
}

#[test]
fn an_average_over_epochs_survives() {
    check(&["optim.averaging=0.7", "stage2.epochs=4"]);
}

#[test]
fn the_best_epoch_so_far_survives() {
    // A rate that makes later epochs worse, so that the best is not the last.
    check(&[
        "train.keep_best=true",
        "train.validate_every=1",
        "stage2.epochs=4",
        "stage2.rates.labels=0.5",
    ]);
}

#[test]
fn a_warm_up_of_the_clustering_survives() {
    check(&["clustering.warmup_epochs=1"]);
}

#[test]
fn gradients_that_wait_and_an_average_survive_together() {
    check(&[
        "optim.update_every_labels=3",
        "optim.update_every_clusters=2",
        "optim.update_every_encoder=3",
        "optim.averaging=0.9",
        "clustering.warmup_epochs=1",
    ]);
}
