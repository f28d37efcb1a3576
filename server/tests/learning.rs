//! Corrections over HTTP: who may, what they change, and what happens when many come or the disk is somebody else's.

use elias::{Correction, Learner, Predictor};
use serde_json::{Value, json};

use crate::client::{Client, Reply};
use crate::running::{Running, expected, source};
use crate::tiny;

const READ: &str = "correct-horse-battery";
const LEARN: &str = "staple";

fn learning() -> Running {
    Running::with(|options| options.learn_key = Some(LEARN.into()))
}

fn send(client: &mut Client, key: &str, body: &Value) -> Reply {
    let headers = format!("authorization: Bearer {key}\r\ncontent-type: application/json\r\n");
    client.send("POST", "/v1/learn", &headers, body.to_string().as_bytes())
}

fn learned(client: &mut Client) -> Value {
    let key = format!("authorization: Bearer {LEARN}\r\n");
    let reply = client.send("GET", "/v1/learned", &key, b"");
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

#[test]
fn a_correction_is_heeded_by_the_next_answer_and_by_whoever_loads_the_model() {
    let running = learning();
    let (mut client, text) = (running.client(), tiny::text(3));
    let ask = |client: &mut Client| {
        let reply = client.post("/v1/predict", &json!({"text": text, "k": 8}));
        reply.json()["labels"].clone()
    };
    let before = ask(&mut client);
    let wrong = before[0]["label"].as_str().unwrap();
    let right = before[7]["label"].as_str().unwrap();
    let body = json!({"text": text, "labels": [right], "not": [wrong]});
    let reply = send(&mut client, LEARN, &body);
    assert_eq!(reply.json(), json!({"model": "first", "n_learned": 1}));
    let after = ask(&mut client);
    assert_ne!(after[0]["label"], wrong);
    let loaded = Predictor::load(running.path("a")).unwrap();
    assert_eq!(after, expected(&loaded, &text, 8));
    // Several at once; what was learned can be looked at.
    let several = [(tiny::text(5), right), (tiny::text(6), wrong)];
    let several = several.map(|(text, label)| json!({"text": text, "labels": [label]}));
    let reply = send(
        &mut client,
        LEARN,
        &json!({"corrections": several, "model": "first"}),
    );
    assert_eq!(reply.json()["n_learned"], 3);
    let shown = learned(&mut client);
    assert_eq!(shown["n_learned"], 3);
    assert_eq!(shown["recent"][0]["text"], tiny::text(6));
    let first = json!({"text": text, "labels": [right], "not": [wrong]});
    assert_eq!(shown["recent"][2], first);
    let models = client.get("/v1/models").json();
    assert_eq!(models["models"][0]["learns"], true);
    assert_eq!(models["models"][0]["n_learned"], 3);
    let metrics = client.get("/metrics");
    let count = "elias_corrections_total{model=\"first\"} 3";
    assert!(metrics.text().contains(count), "{}", metrics.text());
}

#[test]
fn only_the_key_for_learning_learns() {
    let body = json!({"text": tiny::text(3), "labels": ["a apple"]});
    let status = |running: &Running, key: &str| {
        let reply = send(&mut running.client(), key, &body);
        (
            reply.status,
            if reply.status == 200 {
                String::new()
            } else {
                reply.error_type()
            },
        )
    };
    let forbidden = (403, "forbidden".to_owned());
    let unauthorized = (401, "unauthorized".to_owned());
    for running in [
        Running::new(),
        Running::with(|options| options.api_key = Some(READ.into())),
    ] {
        assert_eq!(status(&running, READ), forbidden);
        assert_eq!(status(&running, ""), forbidden);
    }
    let both = Running::with(|options| {
        options.api_key = Some(READ.into());
        options.learn_key = Some(LEARN.into());
    });
    assert_eq!(status(&both, READ), forbidden);
    for key in ["", "staples", "stapl"] {
        assert_eq!(status(&both, key), unauthorized);
        assert_eq!(status(&learning(), key), unauthorized);
    }
    assert_eq!(status(&both, LEARN).0, 200);
    // The texts of others are not for everybody who reads; the key for learning reads, too.
    let get = |key: &str, path: &str| {
        let header = format!("authorization: Bearer {key}\r\n");
        both.client().send("GET", path, &header, b"").status
    };
    assert_eq!(get(READ, "/v1/learned"), 403);
    assert_eq!(get(LEARN, "/v1/learned"), 200);
    assert_eq!(get(LEARN, "/v1/models"), 200);
    assert_eq!(get("", "/v1/models"), 401);
}

#[test]
fn a_key_for_learning_that_reads_alone_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let options = elias_server::Options {
        models: vec![source("first", directory.path())],
        api_key: Some(READ.into()),
        learn_key: Some(READ.into()),
        ..elias_server::Options::default()
    };
    let error = elias_server::Service::load(options).err().unwrap();
    assert!(error.to_string().contains("key for learning"), "{error}");
}

#[test]
fn corrections_that_make_no_sense_change_nothing() {
    let running = learning();
    let mut client = running.client();
    let text = tiny::text(3);
    for (body, status) in [
        (json!({"text": text, "labels": ["unheard of"]}), 404),
        (json!({"text": text, "not": ["unheard of"]}), 404),
        (
            json!({"text": text, "labels": ["a apple"], "model": "unheard of"}),
            404,
        ),
        (json!({"text": text}), 422),
        (json!({"text": text, "labels": [], "not": []}), 422),
        (
            json!({"text": text, "labels": ["a apple"], "not": ["a apple"]}),
            422,
        ),
        (json!({"text": text, "labels": null}), 422),
        (json!({"text": text, "labels": "a apple"}), 422),
        (
            json!({"text": text, "labels": ["a apple"], "corrections": []}),
            422,
        ),
        (json!({"corrections": []}), 422),
        (json!({"corrections": [{"text": text}]}), 422),
        (
            json!({"corrections": [{"text": text, "labels": ["a apple"]}], "not": []}),
            422,
        ),
        (
            json!({"corrections": vec![json!({"text": text, "labels": ["a apple"]}); 1001]}),
            422,
        ),
        (
            json!({"text": "x".repeat((1 << 20) + 1), "labels": ["a apple"]}),
            422,
        ),
        (json!({"texts": [text]}), 422),
    ] {
        let reply = send(&mut client, LEARN, &body);
        let shown: String = body.to_string().chars().take(200).collect();
        assert_eq!(reply.status, status, "{shown}: {}", reply.text());
    }
    assert_eq!(send(&mut client, LEARN, &json!("a")).status, 422);
    assert_eq!(learned(&mut client)["n_learned"], 0);
    let before = expected(&running.model, &text, 8);
    let answers = client
        .post("/v1/predict", &json!({"text": text, "k": 8}))
        .json();
    assert_eq!(answers["labels"], before);
    let path = running.directory.path().to_str().unwrap();
    assert!(!running.log().iter().any(|line| line.contains(path)));
}

#[test]
fn corrections_of_many_clients_are_all_kept_while_others_ask() {
    let running = learning();
    const CLIENTS: usize = 8;
    const EACH: usize = 15;
    std::thread::scope(|scope| {
        for thread in 0..CLIENTS {
            let running = &running;
            scope.spawn(move || {
                let mut client = running.client();
                for number in 0..EACH {
                    let text = format!("{} word{}x", tiny::text(number), thread * EACH + number);
                    let known = ["a apple", "unheard of"][usize::from(number % 5 == 4)];
                    let reply = send(&mut client, LEARN, &json!({"text": text, "not": [known]}));
                    assert_eq!(reply.status, if number % 5 == 4 { 404 } else { 200 });
                    if reply.status == 200 {
                        let answers = client.post("/v1/predict", &json!({"text": text, "k": 8}));
                        let answers = answers.json()["labels"].as_array().unwrap().clone();
                        let apple = answers.iter().find(|one| one["label"] == "a apple");
                        let score = apple.map_or(0.0, |one| one["score"].as_f64().unwrap());
                        assert!(score < 1e-3, "{answers:?}");
                    }
                }
            });
        }
    });
    let n_learned = CLIENTS * EACH * 4 / 5;
    assert_eq!(learned(&mut running.client())["n_learned"], n_learned);
    let kept = Learner::load(running.path("a")).unwrap();
    assert_eq!(kept.predictor().learned().len(), n_learned);
    let text = tiny::text(3);
    let answers = running.client().post("/v1/predict", &json!({"text": text}));
    assert_eq!(
        answers.json()["labels"],
        expected(kept.predictor(), &text, 10)
    );
}

#[test]
fn the_service_learns_what_others_do_and_waits_for_a_new_version() {
    let running = learning();
    let (mut client, text) = (running.client(), tiny::text(3));
    let correction = Correction {
        text: text.clone(),
        labels: Vec::new(),
        not: vec!["a apple".into()],
    };
    let other = Predictor::learn_in(running.path("a"), &[correction]).unwrap();
    let body = json!({"text": tiny::text(9), "labels": ["a pear"]});
    assert_eq!(send(&mut client, LEARN, &body).json()["n_learned"], 2);
    assert_eq!(
        Predictor::load(running.path("a")).unwrap().learned().len(),
        2
    );
    // A version that the service has not loaded yet: what would be learned is not lost with the old one.
    other.replace(running.path("a")).unwrap();
    let reply = send(&mut client, LEARN, &body);
    assert_eq!((reply.status, &reply.error_type()[..]), (409, "conflict"));
    assert!(
        !reply
            .text()
            .contains(running.directory.path().to_str().unwrap())
    );
    running.service.reload();
    assert_eq!(send(&mut client, LEARN, &body).json()["n_learned"], 1);
    // Without a request of its own, too.
    let mut learner = Learner::load(running.path("a")).unwrap();
    let correction = Correction {
        text: text.clone(),
        labels: Vec::new(),
        not: vec!["a car".into()],
    };
    learner.learn(&[correction]).unwrap();
    running.service.reload();
    let answers = client.post("/v1/predict", &json!({"text": text})).json();
    assert_eq!(answers["labels"], expected(learner.predictor(), &text, 10));
}

#[test]
fn a_journal_that_cannot_be_written_is_a_failure_of_the_service() {
    let running = learning();
    let mut client = running.client();
    let body = json!({"text": tiny::text(3), "not": ["a apple"]});
    assert_eq!(send(&mut client, LEARN, &body).status, 200);
    let files = std::fs::read_dir(running.path("a")).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let is_journal = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "jsonl");
    let journal = files.find(is_journal).unwrap();
    let whole = std::fs::read(&journal).unwrap();
    std::fs::remove_file(&journal).unwrap();
    std::fs::create_dir(&journal).unwrap();
    let before = client
        .post("/v1/predict", &json!({"text": tiny::text(4)}))
        .json();
    let reply = send(
        &mut client,
        LEARN,
        &json!({"text": tiny::text(4), "not": ["a apple"]}),
    );
    assert_eq!((reply.status, &reply.error_type()[..]), (500, "internal"));
    assert!(
        running
            .log()
            .iter()
            .any(|line| line.contains("cannot keep corrections"))
    );
    let after = client
        .post("/v1/predict", &json!({"text": tiny::text(4)}))
        .json();
    assert_eq!(after, before);
    std::fs::remove_dir(&journal).unwrap();
    std::fs::write(&journal, whole).unwrap();
    assert_eq!(send(&mut client, LEARN, &body).json()["n_learned"], 2);
}
