//! Requests of Annif's `http` backend, and the answers it expects.

use serde_json::{Value, json};

use crate::running::{Running, expected};
use crate::tiny;

const FORM: &str = "content-type: application/x-www-form-urlencoded\r\n";

#[test]
fn a_model_is_a_trained_project() {
    let running = Running::new();
    let mut client = running.client();
    let project = client.get("/v1/annif/first").json();
    assert_eq!(project["is_trained"], true);
    let written = project["modification_time"].as_str().unwrap();
    assert!(
        written.len() == 20 && written.starts_with("20"),
        "{written}"
    );
    assert_eq!(client.get("/v1/annif/none").status, 404);
}

#[test]
fn suggestions_are_labels_with_probabilities() {
    let running = Running::new();
    let mut client = running.client();
    let text = tiny::text(11);
    let form = |more: &str| {
        format!(
            "text={}&project=x&metadata_title=y{more}",
            text.replace(' ', "+")
        )
    };
    let mut suggest = |more: &str| {
        client.send(
            "POST",
            "/v1/annif/first/suggest",
            FORM,
            form(more).as_bytes(),
        )
    };
    let found = suggest("&limit=3").json();
    let labels = expected(&running.model, &text, 3);
    let results = labels.as_array().unwrap().iter().map(|answer| {
        json!({"uri": answer["label"], "label": answer["label"], "score": answer["probability"]})
    });
    let results: Vec<Value> = results.collect();
    assert_eq!(found, json!({"results": results}));
    for more in ["", "&limit=1000"] {
        assert_eq!(suggest(more).json()["results"].as_array().unwrap().len(), 8);
    }
    for more in ["&limit=0", "&limit=many", &"&a".repeat(100)] {
        assert_eq!(suggest(more).status, 422);
    }
    let path = "/v1/annif/first/suggest";
    assert_eq!(client.send("POST", path, FORM, b"limit=5").status, 422);
    assert_eq!(client.send("POST", path, FORM, b"text=%ff%00&").status, 200);
    assert_eq!(
        client
            .send("POST", path, "content-type: application/json\r\n", b"{}")
            .status,
        415
    );
    assert_eq!(
        client
            .send("POST", "/v1/annif/none/suggest", FORM, b"text=a")
            .status,
        404
    );
}
