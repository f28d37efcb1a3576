//! Options that make no sense are refused before anything is loaded.

use std::fs;
use std::time::Duration;

use elias_server::{Options, ServeError, Service};

use crate::running::{Running, source};
use crate::tiny;

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
        (refused(|o| o.max_answer_bytes = 0), "max-answer-bytes"),
        (refused(|o| o.hosts = vec!["http://a".into()]), "http://a"),
        (refused(|o| o.hosts = vec![String::new()]), "host"),
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
fn a_model_beyond_the_bound_is_refused_and_changes_nothing_while_another_answers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    tiny::model("a", 1).save(&path).unwrap();
    let options = Options {
        models: vec![source("mine", &path)],
        max_model_bytes: Some(1000),
        ..Options::default()
    };
    let error = Service::load(options).err().unwrap().to_string();
    assert!(error.contains("at most 1000 may be used"), "{error}");

    let running = Running::new();
    let labels = fs::read_dir(running.path("a")).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name()?.to_str()?;
        name.starts_with("labels.").then_some(path.clone())
    });
    let stretched = fs::OpenOptions::new().write(true).open(labels.unwrap());
    // A terabyte, of which nothing is on disk.
    stretched.unwrap().set_len(1 << 40).unwrap();
    running.service.reload();
    let log = running.log();
    assert!(log[0].contains("it has 1099511627776 bytes"), "{log:?}");
    assert_eq!(running.client().get("/v1/labels").status, 200);
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
        error.contains("mine") && error.contains("none: no such file"),
        "{error}"
    );
}
