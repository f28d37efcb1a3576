//! The description of the interface for programs, at `/openapi.json`; `docs.rs` makes a page of it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoResponses, OpenApi};

use crate::error::ErrorBody;
use crate::{annif, clusters, explain, info, labels, learn, predict};

/// The statuses of requests that are not answered.
pub(crate) const ERRORS: [(&str, &str); 15] = [
    ("400", "The body is not JSON, or the header Host is missing"),
    ("401", "The API key is missing or wrong"),
    ("403", "The key may not do this"),
    ("404", "There is no such model, label or cluster"),
    (
        "409",
        "The model cannot take it as it is now: another process writes there, or it was trained without neighbours",
    ),
    ("408", "The body did not arrive in time"),
    ("413", "The body is too long"),
    ("415", "The body is declared as something else"),
    ("421", "The header Host names another service"),
    ("422", "A value makes no sense"),
    (
        "429",
        "Too much is waiting; the header Retry-After says when to try again",
    ),
    ("500", "The service failed; its log has the reason"),
    ("501", "The body has an unknown Transfer-Encoding"),
    (
        "503",
        "The service is shutting down, or all connections are busy",
    ),
    ("504", "No answer in time"),
];

/// The errors of every endpoint under `/v1`.
pub(crate) struct Errors;

impl IntoResponses for Errors {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        let errors = ERRORS.iter().map(|(status, description)| {
            let schema = Ref::from_schema_name("ErrorBody");
            let content = ContentBuilder::new().schema(Some(schema)).build();
            let response = ResponseBuilder::new()
                .description(*description)
                .content("application/json", content)
                .build();
            ((*status).to_owned(), RefOr::T(response))
        });
        errors.collect()
    }
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "elias",
        description = "The labels of texts, why they are given, and what a model knows.",
    ),
    paths(
        predict::predict,
        explain::explain,
        learn::learn,
        learn::learned,
        labels::list,
        labels::one,
        clusters::list,
        clusters::one,
        info::models,
        info::limits,
        annif::project,
        annif::suggest,
        info::health,
        info::ready,
        info::metrics,
    ),
    tags(
        (name = "predict", description = "The labels of texts"),
        (name = "explain", description = "Why a text gets its labels"),
        (name = "learn", description = "Corrections of answers"),
        (name = "labels", description = "The labels that a model knows"),
        (name = "clusters", description = "The clusters of a model's index"),
        (name = "info", description = "The service about itself"),
        (name = "annif", description = "The requests of Annif's http backend"),
    ),
    components(schemas(ErrorBody))
)]
struct Description;

/// The description with what macros cannot say: the optional key, that a request has either `text` or `texts`, and
/// tuples as generators of clients read them.
pub(crate) static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| {
    let described = serde_json::to_value(Description::openapi());
    let mut description = described.unwrap_or_default();
    let components = &mut description["components"];
    components["securitySchemes"] = json!({"key": {"type": "http", "scheme": "bearer"}});
    let text_or_texts = [
        ("TextRequest", "text", &["texts"][..]),
        ("BatchRequest", "texts", &["text"]),
    ];
    split(components, "PredictRequest", text_or_texts);
    let one_or_several = [
        ("CorrectionRequest", "text", &["corrections"][..]),
        (
            "CorrectionsRequest",
            "corrections",
            &["text", "labels", "not"],
        ),
    ];
    split(components, "LearnRequest", one_or_several);
    description["security"] = json!([{}, {"key": []}]);
    bound_tuples(&mut description);
    description
});

/// Divides a request into two, each with the name of the key that it must have and of those that it cannot have.
fn split(components: &mut Value, name: &str, parts: [(&str, &str, &[&str]); 2]) {
    let request = components["schemas"][name].take();
    for (part, key, others) in parts {
        let mut schema = request.clone();
        if let Some(properties) = schema["properties"].as_object_mut() {
            properties.retain(|property, _| !others.contains(&&property[..]));
        }
        schema["required"] = json!([key]);
        components["schemas"][part] = schema;
    }
    let parts = parts.map(|(part, ..)| json!({"$ref": format!("#/components/schemas/{part}")}));
    components["schemas"][name] = json!({
        "description": request["description"],
        "oneOf": parts,
    });
}

/// Bounds the length of tuples by numbers; `"items": false` means the same, but few generators of clients read it.
fn bound_tuples(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let tuple = members.get("prefixItems").and_then(Value::as_array);
            if let Some(n_items) = tuple.map(Vec::len) {
                members.remove("items");
                members.insert("minItems".into(), json!(n_items));
                members.insert("maxItems".into(), json!(n_items));
            }
            members.values_mut().for_each(bound_tuples);
        }
        Value::Array(items) => items.iter_mut().for_each(bound_tuples),
        _ => {}
    }
}

/// `/openapi.json`.
pub(crate) async fn description() -> Response {
    static TEXT: LazyLock<String> = LazyLock::new(|| DESCRIPTION.to_string());
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, TEXT.as_str()).into_response()
}
