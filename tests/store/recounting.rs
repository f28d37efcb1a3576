//! A training that is stopped while the edges of A are counted again goes on as if it had not been.

use std::ops::ControlFlow;
use std::sync::Mutex;

use super::resume::{How, at_every_step, from_the_start, ignore, resuming, waiting_config};
use super::*;
use elias::{Error, Event, Observer};

#[test]
fn a_training_stopped_while_edges_are_counted_again_ends_in_the_same_bytes() {
    let train = |directory: &Path, start: &str, how: How, observer: &dyn Observer| {
        let settings = ["stage1.epochs=1", "stage2.epochs=4", start];
        let config = settings.iter().fold(waiting_config(), |config, one| {
            config.with_value(one).unwrap()
        });
        how(Trainer::new(config).observer(observer)).train_to(directory, &dataset(120))
    };
    let again = "ablation.edge_start=recounts";
    let model = temporary();
    let n_counted = Mutex::new(0);
    // Stops at this time that edges are counted again.
    let observer = |stop_at: usize| {
        *n_counted.lock().unwrap() = 0;
        let n_counted = &n_counted;
        move |event: &Event| {
            let mut n_counted = n_counted.lock().unwrap();
            *n_counted += usize::from(matches!(event, Event::Recounting { .. }));
            if matches!(event, Event::Recounting { .. }) && *n_counted == stop_at {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        }
    };
    train(model.path(), again, from_the_start, &observer(0)).unwrap();
    let expected = contents(model.path());
    // Before the second and the third of four epochs.
    assert_eq!(*n_counted.lock().unwrap(), 2);
    for (stop_at, how) in [
        (1, from_the_start as How),
        (2, from_the_start),
        (1, at_every_step),
        (2, at_every_step),
    ] {
        let directory = temporary();
        let stop = observer(stop_at);
        let stopped = train(directory.path(), again, how, &stop);
        assert!(matches!(stopped.err(), Some(Error::Stopped)));
        train(directory.path(), again, resuming, &ignore).unwrap();
        assert_eq!(contents(directory.path()), expected);
    }
    let once = temporary();
    train(
        once.path(),
        "ablation.edge_start=counts",
        from_the_start,
        &ignore,
    )
    .unwrap();
    let weights = |name: &String| name.ends_with(".safetensors");
    let differs = expected
        .iter()
        .any(|(name, bytes)| weights(name) && contents(once.path()).get(name) != Some(bytes));
    assert!(differs, "counting again changes nothing");
}
