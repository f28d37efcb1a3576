//! The description of the interface, for programs at `/openapi.json` and for people at `/docs`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoResponses, OpenApi};

use crate::error::ErrorBody;
use crate::{annif, clusters, explain, info, labels, page, predict};

/// The statuses of requests that are not answered.
const ERRORS: [(&str, &str); 13] = [
    ("400", "The body is not JSON, or the header Host is missing"),
    ("401", "The API key is missing or wrong"),
    ("404", "There is no such model, label or cluster"),
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
    components(schemas(ErrorBody))
)]
struct Description;

/// Adds what macros cannot say: the optional key, and that a request has either `text` or `texts`.
static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| {
    let described = serde_json::to_value(Description::openapi());
    let mut description = described.unwrap_or_default();
    description["components"]["securitySchemes"] =
        json!({"key": {"type": "http", "scheme": "bearer"}});
    description["security"] = json!([{}, {"key": []}]);
    description["components"]["schemas"]["PredictRequest"]["oneOf"] =
        json!([{"required": ["text"]}, {"required": ["texts"]}]);
    description
});

/// `/openapi.json`.
pub(crate) async fn description() -> Response {
    static TEXT: LazyLock<String> = LazyLock::new(|| DESCRIPTION.to_string());
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, TEXT.as_str()).into_response()
}

/// `/docs`.
pub(crate) async fn docs() -> Response {
    static PAGE: LazyLock<String> = LazyLock::new(|| render(&DESCRIPTION));
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    page::secured((kind, PAGE.as_str()).into_response())
}

/// `/docs.css`.
pub(crate) async fn style() -> Response {
    let kind = [(header::CONTENT_TYPE, "text/css; charset=utf-8")];
    page::secured((kind, include_str!("docs.css")).into_response())
}

/// The description as a page without scripts.
fn render(description: &Value) -> String {
    let mut html = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>elias: interface</title>\n\
         <link rel=\"stylesheet\" href=\"/docs.css\">\n<main>\n<h1>elias: interface</h1>\n\
         <p>For programs: <a href=\"/openapi.json\">openapi.json</a> (OpenAPI). \
         With an API key, requests to /v1 carry the header <code>Authorization: Bearer KEY</code>.</p>\n",
    );
    let entries = |value: &Value| value.as_object().cloned().unwrap_or_default();
    for (path, methods) in entries(&description["paths"]) {
        for (method, operation) in entries(&methods) {
            let summary = text(&operation["summary"]);
            let _ = write!(
                html,
                "<section>\n<h2><b>{}</b> <code>{}</code></h2>\n<p>{summary}</p>\n",
                method.to_uppercase(),
                escape(&path)
            );
            let parameters = operation["parameters"].as_array().cloned();
            for parameter in parameters.unwrap_or_default() {
                let _ = writeln!(
                    html,
                    "<p><code>{}</code> ({}): {}</p>",
                    text(&parameter["name"]),
                    text(&parameter["in"]),
                    text(&parameter["description"])
                );
            }
            for (kind, content) in entries(&operation["requestBody"]["content"]) {
                write_schema(&mut html, &format!("Body, {kind}"), description, &content);
            }
            for (kind, content) in entries(&operation["responses"]["200"]["content"]) {
                write_schema(&mut html, &format!("Answer, {kind}"), description, &content);
            }
            html.push_str("</section>\n");
        }
    }
    html.push_str("<section>\n<h2>Errors</h2>\n<p>The body is <code>{\"error\": \"plain words\", \"error_type\": \"kind\"}</code>.</p>\n");
    for (status, description) in ERRORS {
        let _ = writeln!(html, "<p><code>{status}</code> {description}</p>");
    }
    html.push_str("</section>\n</main>\n</html>\n");
    html
}

/// The schema of a body, with the schemas that it names.
fn write_schema(html: &mut String, title: &str, description: &Value, content: &Value) {
    let schema = &content["schema"];
    let name = schema["$ref"]
        .as_str()
        .and_then(|name| name.rsplit('/').next());
    let schema = match name {
        Some(name) => &description["components"]["schemas"][name],
        None => schema,
    };
    let pretty = serde_json::to_string_pretty(schema).unwrap_or_default();
    let (title, pretty) = (escape(title), escape(&pretty));
    let _ = writeln!(
        html,
        "<details>\n<summary>{title}</summary>\n<pre>{pretty}</pre>\n</details>"
    );
}

fn text(value: &Value) -> String {
    escape(value.as_str().unwrap_or(""))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
