//! Models that are replaced or damaged while they answer.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use elias::Predictor;
use serde_json::{Value, json};

use crate::running::{Running, expected};
use crate::tiny;

/// Puts a directory in the place of another, which goes to `aside`.
fn swap(place: &Path, next: &Path, aside: &Path) {
    fs::rename(place, aside).unwrap();
    fs::rename(next, place).unwrap();
}

fn answers(model: &Predictor, texts: &[String]) -> Vec<Value> {
    let labels = |text: &String| json!({"labels": expected(model, text, 10)});
    texts.iter().map(labels).collect()
}

#[test]
fn two_hundred_swaps_under_load_fail_no_request_and_mix_no_models() {
    let running = Running::new();
    let other = tiny::model("b", 2);
    other.save(running.path("b")).unwrap();
    let texts: Vec<String> = (0..40).map(tiny::text).collect();
    let expected = [answers(&running.model, &texts), answers(&other, &texts)];
    let is_done = AtomicBool::new(false);
    let n_seen = [AtomicUsize::new(0), AtomicUsize::new(0)];
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut client = running.client();
                while !is_done.load(Ordering::Relaxed) {
                    let reply = client.post("/v1/predict", &json!({"texts": texts}));
                    assert_eq!(reply.status, 200, "{}", reply.text());
                    let found = reply.json();
                    let found = found["results"].as_array().unwrap();
                    let which = expected.iter().position(|of_model| of_model == found);
                    n_seen[which.expect("an answer of one model")].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..200 {
            swap(&running.path("a"), &running.path("b"), &running.path("c"));
            running.service.reload();
            fs::rename(running.path("c"), running.path("b")).unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
    });
    let log = running.log();
    assert_eq!(log.len(), 200, "{:?}", log.last());
    assert!(
        n_seen
            .iter()
            .all(|n_seen| n_seen.load(Ordering::Relaxed) > 0),
        "{n_seen:?}"
    );
}

#[test]
fn a_new_manifest_is_noticed() {
    let running = Running::with(|options| options.poll_interval = Duration::from_millis(1));
    let other = tiny::model("b", 2);
    // As a training with --overwrite does.
    other.replace(running.path("a")).unwrap();
    let text = tiny::text(2);
    let mut client = running.client();
    let (old, new) = (
        expected(&running.model, &text, 10),
        expected(&other, &text, 10),
    );
    loop {
        let found = client.post("/v1/predict", &json!({"text": text})).json();
        if found["labels"] == new {
            break;
        }
        assert_eq!(found["labels"], old);
    }
    assert_eq!(client.get("/v1/labels?query=b%20apple").json()["total"], 1);
}

#[test]
fn a_damaged_model_changes_nothing_and_is_reported_once() {
    let running = Running::new();
    let text = tiny::text(4);
    let old = expected(&running.model, &text, 10);
    let mut client = running.client();
    let mut check = |labels: &Value| {
        let found = client.post("/v1/predict", &json!({"text": text})).json();
        assert_eq!(found["labels"], *labels);
        assert_eq!(
            client.post("/v1/explain", &json!({"text": text})).status,
            200
        );
    };
    // In place, under the feet of a process that maps its files.
    for entry in fs::read_dir(running.path("a")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && !path.ends_with("manifest.json") {
            fs::File::create(path).unwrap();
        }
    }
    check(&old);
    for _ in 0..3 {
        running.service.reload();
        check(&old);
    }
    let log = running.log();
    assert_eq!(log.len(), 1, "{log:?}");
    assert!(
        log[0].starts_with("model first: the new version cannot be loaded"),
        "{log:?}"
    );
    let metrics = client.get("/metrics");
    let line = "elias_model_loads_total{model=\"first\",result=\"failed\"} 3";
    assert!(metrics.text().contains(line), "{}", metrics.text());

    fs::remove_dir_all(running.path("a")).unwrap();
    running.service.reload();
    let mut check = |labels: &Value| {
        let found = client.post("/v1/predict", &json!({"text": text})).json();
        assert_eq!(found["labels"], *labels);
    };
    check(&old);
    assert_eq!(running.log().len(), 2, "{:?}", running.log());
    let other = tiny::model("b", 2);
    other.save(running.path("a")).unwrap();
    running.service.reload();
    check(&expected(&other, &text, 10));
    assert_eq!(running.log().len(), 3, "{:?}", running.log());
}
