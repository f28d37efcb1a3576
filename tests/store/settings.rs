//! Exact resuming under every setting that keeps more state than the parameters.

use std::ops::ControlFlow;
use std::sync::Mutex;

use super::resume::{How, at_every_step, copy_folder, from_the_start, ignore, is_step, resuming};
use super::*;
use elias::{Event, Observer};

/// Trains with these settings, keeps the files at every third event, and resumes from each.
#[track_caller]
fn check(settings: &[&str]) {
    let config = settings.iter().fold(config(), |config, setting| {
        config.with_value(setting).unwrap()
    });
    let (data, validation) = (dataset(120), dataset(40));
    let train_to = |config: &Config, directory: &Path, how: How, observer: &dyn Observer| {
        let trainer = Trainer::new(config.clone())
            .validation(&validation)
            .observer(observer);
        how(trainer).train_to(directory, &data).unwrap();
        contents(directory)
    };
    let place = temporary();
    let path = |name: &str| place.path().join(name);
    let expected = train_to(&config, &path("alone"), from_the_start, &ignore);
    let plain = train_to(&self::config(), &path("plain"), from_the_start, &ignore);
    let classifiers = |files: &BTreeMap<String, Vec<u8>>| {
        let found = files.keys().find(|name| name.starts_with("classifiers-0"));
        found.unwrap().clone()
    };
    assert_ne!(
        classifiers(&expected),
        classifiers(&plain),
        "the settings change nothing"
    );

    let directory = path("model");
    let killed = Mutex::new(Vec::new());
    let n_events = Mutex::new(0);
    let observer = |event: &Event| {
        let mut n_events = n_events.lock().unwrap();
        *n_events += 1;
        if *n_events % 3 == 0 {
            let mut killed = killed.lock().unwrap();
            let copy = path(&format!("killed-{}", killed.len()));
            copy_folder(&directory, &copy);
            killed.push((event.clone(), copy));
        }
        ControlFlow::Continue(())
    };
    assert!(train_to(&config, &directory, at_every_step, &observer) == expected);
    let killed = killed.into_inner().unwrap();
    let n_in_steps = killed.iter().filter(|(event, _)| is_step(event)).count();
    assert!(n_in_steps >= 8, "{n_in_steps}");
    for (event, directory) in &killed {
        let resumed = train_to(&config, directory, resuming, &ignore);
        assert!(resumed == expected, "{settings:?}, killed at {event:?}");
    }
}

#[test]
fn a_warm_up_of_the_clustering_survives() {
    check(&["ablation.warmup_epochs=1"]);
}

#[test]
fn gradients_that_wait_survive() {
    check(&["ablation.update_every=3", "ablation.warmup_epochs=1"]);
}
