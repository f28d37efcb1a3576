//! Options that make no sense are refused before anything is loaded.

use std::time::Duration;

use elias_server::{Options, ServeError, Service};

use crate::running::source;

fn refused(change: impl FnOnce(&mut Options)) -> String {
    let nowhere = tempfile::tempdir().unwrap();
    let mut options = Options {
        models: vec![source("first", &nowhere.path().join("none"))],
        ..Options::default()
    };
    change(&mut options);
    match Service::load(options) {
        Err(ServeError::Options(problem)) => problem,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was loaded"),
    }
}

#[test]
fn options_that_make_no_sense_are_named() {
    for (problem, words) in [
        (refused(|o| o.models.clear()), "no model"),
        (refused(|o| o.models[0].name = "a/b".into()), "a/b"),
        (
            refused(|o| o.models.push(o.models[0].clone())),
            "two models",
        ),
        (refused(|o| o.threads = 0), "threads"),
        (refused(|o| o.max_queue = 10), "max-queue"),
        (refused(|o| o.max_body_bytes = 0), "max-body-bytes"),
        (refused(|o| o.timeout = Duration::ZERO), "timeout"),
        (refused(|o| o.api_key = Some("two words".into())), "API key"),
        (refused(|o| o.api_key = Some(String::new())), "API key"),
        (
            refused(|o| o.cors_origins = vec!["example.org".into()]),
            "cors-origin",
        ),
    ] {
        assert!(problem.contains(words), "{problem}");
    }
}

#[test]
fn a_model_that_cannot_be_loaded_is_named() {
    let nowhere = tempfile::tempdir().unwrap();
    let options = Options {
        models: vec![source("mine", &nowhere.path().join("none"))],
        ..Options::default()
    };
    let error = Service::load(options).err().unwrap().to_string();
    assert!(
        error.contains("mine") && error.contains("no such file"),
        "{error}"
    );
}
