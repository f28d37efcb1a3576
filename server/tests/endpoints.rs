//! Every endpoint answers what the library does.

use std::collections::HashSet;

use elias::insight::AnswerExplanation;
use elias::{ClusterId, LabelId};
use serde_json::{Value, json};

use crate::running::{Running, expected, source};
use crate::tiny;

#[test]
fn one_text_gets_the_labels_of_the_library() {
    let running = Running::new();
    let mut client = running.client();
    for number in 0..20 {
        let text = tiny::text(number);
        let reply = client.post("/v1/predict", &json!({"text": text}));
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.header("content-type"), Some("application/json"));
        let labels = expected(&running.model, &text, 10);
        assert_eq!(reply.json(), json!({"model": "first", "labels": labels}));
    }
}

#[test]
fn many_texts_are_answered_in_their_order() {
    let running = Running::new();
    let texts: Vec<String> = (0..100).map(tiny::text).collect();
    let body = json!({"texts": texts, "k": 3.0, "model": "first"});
    let reply = running.client().post("/v1/predict", &body);
    let labels = |text: &String| json!({"labels": expected(&running.model, text, 3)});
    let results: Vec<Value> = texts.iter().map(labels).collect();
    assert_eq!(reply.json(), json!({"model": "first", "results": results}));
}

#[test]
fn a_text_without_a_known_word_is_marked() {
    let running = Running::new();
    let mut client = running.client();
    let reply = client.post("/v1/predict", &json!({"text": "zzzyx"}));
    assert_eq!(reply.json()["no_known_word"], true);
    let both = json!({"texts": [tiny::text(0), "zzzyx"]});
    let results = client.post("/v1/predict", &both).json()["results"].clone();
    assert_eq!(results[0].get("no_known_word"), None);
    assert_eq!(results[1]["no_known_word"], true);
}

#[test]
fn requests_that_wait_together_get_their_own_answers() {
    let running = Running::with(|options| options.threads = 1);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let running = &running;
            scope.spawn(move || {
                let mut client = running.client();
                for number in 0..40 {
                    let (text, k) = (tiny::text(thread * 7 + number), 1 + number % 4);
                    let reply = client.post("/v1/predict", &json!({"text": text, "k": k}));
                    assert_eq!(reply.json()["labels"], expected(&running.model, &text, k));
                }
            });
        }
    });
}

#[test]
fn a_threshold_leaves_out_what_is_less_likely() {
    let running = Running::new();
    let text = tiny::text(3);
    let all = expected(&running.model, &text, 8);
    let all = all.as_array().unwrap();
    let threshold = all[1]["probability"].as_f64().unwrap();
    let body = json!({"text": text, "k": 8, "threshold": threshold});
    let reply = running.client().post("/v1/predict", &body).json();
    let is_above = |answer: &&Value| threshold <= answer["probability"].as_f64().unwrap();
    let above: Vec<&Value> = all.iter().filter(is_above).collect();
    assert!((1..8).contains(&above.len()));
    assert_eq!(reply["labels"], json!(above));
}

#[test]
fn a_request_can_allow_and_deny_labels_by_name_and_number() {
    let running = Running::new();
    let text = tiny::text(3);
    let all = expected(&running.model, &text, 8);
    let all = all.as_array().unwrap();
    let (first, second, third) = (&all[0], &all[1], &all[2]);
    let last = &all[all.len() - 1];
    let mut client = running.client();
    let mut names = |more: Value| -> Vec<Value> {
        let mut body = json!({"text": text, "k": 8});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let reply = client.post("/v1/predict", &body);
        assert_eq!(reply.status, 200, "{}", reply.text());
        let reply = reply.json();
        let labels = reply["labels"].as_array().unwrap().iter();
        labels.map(|label| label["label"].clone()).collect()
    };
    let allowed = names(json!({"allow": [third["label"], first["id"], first["label"]]}));
    assert_eq!(allowed, [first["label"].clone(), third["label"].clone()]);
    let left = names(json!({"deny": [first["id"]]}));
    assert_eq!(left[0], second["label"]);
    assert!(!left.contains(&first["label"]));
    let name = last["label"].as_str().unwrap();
    let above = names(json!({"thresholds": {name: 1.0}, "threshold": 0.0}));
    assert!(!above.contains(&last["label"]));

    for (status, more, words) in [
        (422, json!({"allow": []}), "allow: found no labels"),
        (
            404,
            json!({"allow": ["pear tree"]}),
            "allow: \"pear tree\" is not among",
        ),
        (
            404,
            json!({"deny": [4_000_000]}),
            "deny: \"#4000000\" is not among",
        ),
        (422, json!({"thresholds": {name: 2}}), "thresholds: found 2"),
    ] {
        let mut body = json!({"text": text});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let reply = client.post("/v1/predict", &body);
        assert_eq!(reply.status, status, "{}", reply.text());
        let error = reply.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(words), "{error}");
    }
    for more in [
        json!({"deny": null}),
        json!({"allow": [1.5]}),
        json!({"allow": "fruit"}),
    ] {
        let mut body = json!({"text": text});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let reply = client.post("/v1/predict", &body);
        assert_eq!(reply.json()["error_type"], "bad_value", "{}", reply.text());
    }
}

#[test]
fn a_request_can_name_its_model() {
    let directory = tempfile::tempdir().unwrap();
    let other = tiny::model("b", 2);
    other.save(directory.path().join("b")).unwrap();
    let more = source("second", &directory.path().join("b"));
    let running = Running::with(|options| options.models.push(more));
    let mut client = running.client();
    let text = tiny::text(1);
    let reply = client.post("/v1/predict", &json!({"text": text, "model": "second"}));
    assert_eq!(reply.json()["labels"], expected(&other, &text, 10));
    let names = |value: Value| -> Vec<Value> {
        let models = value["models"].as_array().unwrap().iter();
        models.map(|model| model["name"].clone()).collect()
    };
    assert_eq!(names(client.get("/v1/models").json()), ["first", "second"]);
    for path in ["/v1/labels?model=second", "/v1/clusters?model=second"] {
        assert_eq!(client.get(path).json()["model"], "second");
    }
}

#[test]
fn an_explanation_has_answers_words_and_neighbours() {
    let running = Running::new();
    let text = tiny::text(9);
    let body = json!({"text": text, "k": 2});
    let reply = running.client().post("/v1/explain", &body);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let found = reply.json();
    assert_eq!(
        (&found["model"], &found["text"]),
        (&json!("first"), &json!(text))
    );
    let explained = running.model.explain(&text, 2).unwrap();
    assert_eq!(found["answers"].as_array().unwrap().len(), 2);
    let answers = found["answers"].as_array().unwrap().iter();
    for (answer, expected) in answers.zip(&explained.answers) {
        let id = running.model.labels().find(&expected.label).unwrap();
        assert_eq!(answer["id"], id.0);
        let answer: AnswerExplanation = serde_json::from_value(answer.clone()).unwrap();
        assert_eq!(answer, *expected);
    }
    let words = found["words"].as_array().unwrap();
    let has = |word: &str| words.iter().any(|entry| entry[0] == word);
    assert!(has("apple") || has("pear"), "{words:?}");
    assert!(!has("unheard"), "{words:?}");
    let near = explained.neighbours;
    assert!(!near.is_empty());
    assert_eq!(found["neighbours"].as_array().unwrap().len(), near.len());
    assert_eq!(found["neighbours"][0]["point"], near[0].point);
    assert_eq!(found["neighbours"][0]["labels"][0], near[0].labels[0]);
}

#[test]
fn labels_are_searched_in_any_case_and_paged() {
    let directory = tempfile::tempdir().unwrap();
    tiny::model("Ä", 2).save(directory.path()).unwrap();
    let capital = source("capital", directory.path());
    let running = Running::with(|options| options.models.push(capital));
    let mut client = running.client();
    let all = client.get("/v1/labels").json();
    assert_eq!(
        (&all["total"], all["labels"].as_array().unwrap().len()),
        (&json!(8), 8)
    );
    let page = client.get("/v1/labels?limit=2&offset=5").json();
    let expected = &all["labels"].as_array().unwrap()[5..7];
    assert_eq!(
        (&page["total"], &page["labels"]),
        (&json!(8), &json!(expected))
    );
    let found = client
        .get("/v1/labels?query=%C3%A4%20PEAR&model=capital")
        .json();
    assert_eq!(found["labels"][0]["label"], "Ä pear");
    let found = client.get("/v1/labels?query=A%20aPPle").json();
    assert_eq!(found["total"], 1);
    let label = &found["labels"][0];
    assert_eq!(label["label"], "a apple");
    let id = running.model.labels().find("a apple").unwrap();
    assert_eq!(label["id"], id.0);
    assert_eq!(label["n_points"], running.model.label_counts()[id.idx()]);
    assert_eq!(
        client.get("/v1/labels?query=zzz").json()["labels"],
        json!([])
    );
}

#[test]
fn a_label_shows_its_clusters_words_and_examples() {
    let running = Running::new();
    let mut client = running.client();
    let id = running.model.labels().find("a plum").unwrap();
    let found = client.get(&format!("/v1/labels/{}", id.0)).json();
    assert_eq!(
        (&found["label"], &found["id"]),
        (&json!("a plum"), &json!(id.0))
    );
    let clusters = found["clusters"].as_array().unwrap();
    let scores: Vec<f64> = clusters
        .iter()
        .map(|c| c["edge_score"].as_f64().unwrap())
        .collect();
    assert!(
        !scores.is_empty() && scores.is_sorted_by(|a, b| a >= b),
        "{scores:?}"
    );
    let words = found["words"].as_array().unwrap();
    assert!(
        words
            .iter()
            .take(4)
            .any(|word| word[0] == "plum" || word[0] == "ofplum"),
        "{words:?}"
    );
    // Every eighth text is about plums first.
    let examples = found["examples"].as_array().unwrap();
    assert!(
        examples.iter().any(|example| example["point"] == 2),
        "{examples:?}"
    );

    let cluster = &clusters[0];
    let labels = client
        .get(&format!("/v1/clusters/{}", cluster["cluster"]))
        .json();
    let own = labels["labels"]
        .as_array()
        .unwrap()
        .iter()
        .find(|label| label["id"] == id.0);
    assert_eq!(own.unwrap()["edge_score"], cluster["edge_score"]);
    assert_eq!(own.unwrap()["label"], "a plum");
    assert_eq!(
        labels["n_labels"],
        labels["labels"].as_array().unwrap().len()
    );
}

#[test]
fn clusters_are_listed_and_found_by_their_labels() {
    let running = Running::new();
    let mut client = running.client();
    let all = client.get("/v1/clusters").json();
    assert_eq!(all["total"], 4);
    let found = client.get("/v1/clusters?query=CHERRY").json();
    let has_it = |cluster: &&Value| {
        cluster["labels"]
            .as_array()
            .unwrap()
            .contains(&json!("a cherry"))
    };
    let expected: Vec<&Value> = all["clusters"]
        .as_array()
        .unwrap()
        .iter()
        .filter(has_it)
        .collect();
    assert!(!expected.is_empty());
    assert_eq!(found["clusters"], json!(expected));
    let details = running.model.inspect_cluster(ClusterId(0), 100).unwrap();
    assert_eq!(all["clusters"][0]["n_labels"], details.n_labels);
    let strongest: LabelId = details.labels[0].label;
    let name = running.model.labels().name(strongest);
    assert_eq!(all["clusters"][0]["labels"][0], name);
}

#[test]
fn the_service_describes_itself() {
    let running = Running::new();
    let mut client = running.client();
    let models = client.get("/v1/models").json();
    let model = &models["models"][0];
    assert_eq!(
        (&model["n_labels"], &model["n_points"]),
        (&json!(8), &json!(240))
    );
    assert_eq!(
        (&model["encoder"], &model["n_members"]),
        (&json!("bag"), &json!(1))
    );
    assert_eq!(
        (&model["has_probabilities"], &model["takes_texts"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(model["why_no_probabilities"], Value::Null);
    assert!(model["loaded_at"].as_str().unwrap().ends_with('Z'));
    let limits = json!({"max_texts": 1000, "max_text_bytes": 1 << 20,
                        "max_body_bytes": 16 << 20, "timeout_ms": 30_000});
    assert_eq!(client.get("/v1/limits").json(), limits);
    assert_eq!(client.get("/health").json(), json!({"status": "ok"}));
    assert_eq!(client.get("/ready").json(), json!({"status": "ready"}));
    client.post("/v1/predict", &json!({"text": "x"}));
    client.post("/v1/predict", &json!({"text": 1}));
    let metrics = client.get("/metrics");
    for line in [
        "elias_requests_total{endpoint=\"/v1/predict\",status=\"200\"} 1",
        "elias_requests_total{endpoint=\"/v1/predict\",status=\"422\"} 1",
        "elias_request_seconds_count{endpoint=\"/v1/predict\"} 2",
        "elias_batch_texts_count 1",
        "elias_queue_texts 0",
        "elias_connections 1",
        "elias_model_loads_total{model=\"first\",result=\"loaded\"} 1",
    ] {
        assert!(metrics.text().contains(line), "{line}\n{}", metrics.text());
    }
}

#[test]
fn the_interface_is_described_in_full_and_without_the_network() {
    let running = Running::new();
    let mut client = running.client();
    let description = client.get("/openapi.json").json();
    assert!(description["openapi"].as_str().unwrap().starts_with("3."));
    let paths = description["paths"].as_object().unwrap();
    for path in [
        "/v1/predict",
        "/v1/explain",
        "/v1/labels/{id}",
        "/v1/annif/{name}/suggest",
        "/metrics",
    ] {
        assert!(paths.contains_key(path), "{path}");
    }
    let docs = client.get("/docs");
    assert_eq!(
        docs.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    for path in paths.keys() {
        assert!(docs.text().contains(path), "{path}");
    }
    // Nothing in it leads elsewhere but the address of the examples.
    let text = docs.text().replace("curl http://localhost:8080/", "");
    for foreign in [
        "http://",
        "https://",
        "style=",
        "href=\"/",
        "src=\"/",
        "{contents}",
        "{types}",
    ] {
        assert!(!text.contains(foreign), "{foreign}");
    }
    let mut ids = HashSet::new();
    for methods in paths.values() {
        for operation in methods.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id), "{id} is given twice");
        }
    }
    for link in text.split("href=\"").skip(1) {
        let link = link.split('"').next().unwrap();
        match link.strip_prefix('#') {
            Some(id) => assert!(text.contains(&format!("id=\"{id}\"")), "{link}"),
            None => {
                let path = format!("/{}", link.trim_start_matches("./"));
                let path = path.split('#').next().unwrap();
                assert_eq!(client.get(path).status, 200, "{link}");
            }
        }
    }
}

/// Whether a value has the parts of an example: the same keys, of the same types where both have a value.
#[track_caller]
#[test]
fn the_page_is_served_with_a_policy_that_keeps_it_at_home() {
    let running = Running::new();
    let mut client = running.client();
    for path in ["/", "/index.html", "/docs"] {
        let reply = client.get(path);
        assert_eq!(reply.status, 200, "{path}");
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"));
        assert!(policy.contains("frame-ancestors 'none'"));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    }
    let page = client.get("/");
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let tag = format!("if-none-match: {}\r\n", page.header("etag").unwrap());
    assert_eq!(client.send("GET", "/", &tag, b"").status, 304);
    assert_eq!(client.send("HEAD", "/", "", b"").status, 200);
    for path in ["/../Cargo.toml", "/%2e%2e/Cargo.toml", "/nothing.js"] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
}
