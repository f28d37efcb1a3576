//! `/docs`: the description of the interface as a page for people, without scripts of its own.
//!
//! Everything is written from [`DESCRIPTION`], so the page and `/openapi.json` say the same. Addresses are relative, so
//! that it also works below a path of a reverse proxy.

use std::fmt::Write;
use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use crate::openapi::{DESCRIPTION, ERRORS};
use crate::page;

/// Where the examples find the service.
const BASE: &str = "http://localhost:8080";

const START: &str = include_str!("docs.html");

/// `/docs`.
pub(crate) async fn docs() -> Response {
    static PAGE: LazyLock<String> = LazyLock::new(|| render(&DESCRIPTION));
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    page::secured((kind, PAGE.as_str()).into_response())
}

/// An endpoint and a method of it.
struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    details: &'a Value,
}

impl Operation<'_> {
    fn id(&self) -> String {
        text(&self.details["operationId"])
    }

    fn has_tag(&self, tag: &Value) -> bool {
        self.details["tags"]
            .as_array()
            .is_some_and(|tags| tags.contains(tag))
    }
}

fn render(description: &Value) -> String {
    let operations = operations(description);
    let (mut contents, mut sections) = (String::new(), String::new());
    for tag in description["tags"].as_array().into_iter().flatten() {
        let _ = writeln!(sections, "<h2>{}</h2>", text(&tag["description"]));
        for operation in operations.iter().filter(|one| one.has_tag(&tag["name"])) {
            let (method, path) = (operation.method.to_uppercase(), escape(operation.path));
            let summary = text(&operation.details["summary"]);
            let _ = writeln!(
                contents,
                "<tr><td>{method}</td><td><a href=\"#{}\"><code>{path}</code></a></td><td>{summary}</td></tr>",
                operation.id()
            );
            write_operation(&mut sections, operation);
        }
    }
    let mut errors = String::new();
    for (status, words) in ERRORS {
        let _ = writeln!(
            errors,
            "<tr><td><code>{status}</code></td><td>{words}</td></tr>"
        );
    }
    let mut types = String::new();
    for (name, schema) in members(&description["components"]["schemas"]) {
        write_type(&mut types, name, schema);
    }
    [
        ("{contents}", contents),
        ("{operations}", sections),
        ("{errors}", errors),
        ("{types}", types),
    ]
    .iter()
    .fold(START.to_owned(), |page, (place, part)| {
        page.replacen(place, part, 1)
    })
}

fn operations(description: &Value) -> Vec<Operation<'_>> {
    let paths = members(&description["paths"]);
    let operations = paths.flat_map(|(path, methods)| {
        members(methods).map(move |(method, details)| Operation {
            method,
            path,
            details,
        })
    });
    operations.collect()
}

fn write_operation(html: &mut String, operation: &Operation<'_>) {
    let details = operation.details;
    let _ = writeln!(
        html,
        "<section class=\"card\" id=\"{}\">\n<h3><span class=\"method\">{}</span> <code>{}</code></h3>\n<p>{}</p>",
        operation.id(),
        operation.method.to_uppercase(),
        escape(operation.path),
        text(&details["summary"]),
    );
    let parameters = details["parameters"].as_array().map(Vec::as_slice);
    let rows = parameters.unwrap_or_default().iter().map(|parameter| {
        let name = text(&parameter["name"]);
        let is_required = parameter["required"] == true;
        field(
            &name,
            &parameter["schema"],
            &parameter["description"],
            is_required,
        )
    });
    write_fields(html, "Parameters", rows.collect());
    for (kind, content) in members(&details["requestBody"]["content"]) {
        let _ = writeln!(
            html,
            "<p>Body: {}, <code>{}</code></p>",
            type_of(&content["schema"]),
            escape(kind)
        );
    }
    let (kind, answer) = members(&details["responses"]["200"]["content"])
        .next()
        .map_or(("", &Value::Null), |(kind, content)| (&kind[..], content));
    let _ = writeln!(
        html,
        "<p>Answer: {}, <code>{}</code></p>",
        type_of(&answer["schema"]),
        escape(kind)
    );
    let _ = writeln!(
        html,
        "<pre class=\"code\">{}</pre>",
        escape(&command(operation))
    );
    if let Some(example) = answer.get("example") {
        let pretty = serde_json::to_string_pretty(example).unwrap_or_default();
        let _ = writeln!(html, "<pre class=\"code\">{}</pre>", escape(&pretty));
    }
    html.push_str("</section>\n");
}

/// A request for a shell.
fn command(operation: &Operation<'_>) -> String {
    let details = operation.details;
    let mut path = operation.path.to_owned();
    for parameter in details["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default();
        let example = match &parameter["example"] {
            Value::String(word) => word.clone(),
            other => other.to_string(),
        };
        path = path.replace(&format!("{{{name}}}"), &example);
    }
    let mut command = format!("curl {BASE}{path}");
    for (kind, content) in members(&details["requestBody"]["content"]) {
        let example = &content["example"];
        if kind == "application/json" {
            let _ = write!(command, " -H 'content-type: {kind}' \\\n  -d '{example}'");
            continue;
        }
        for (name, value) in members(example) {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            let _ = write!(command, " \\\n  --data-urlencode '{name}={value}'");
        }
    }
    command
}

fn write_type(html: &mut String, name: &str, schema: &Value) {
    let _ = writeln!(
        html,
        "<section id=\"type-{name}\">\n<h3>{name}</h3>\n<p>{}</p>",
        words(&schema["description"])
    );
    if let Some(choices) = schema["oneOf"].as_array() {
        let choices: Vec<String> = choices.iter().map(type_of).collect();
        let _ = writeln!(html, "<p>Either {}</p>", choices.join(" or "));
    }
    let required = schema["required"].as_array();
    let fields = members(&schema["properties"]).map(|(name, property)| {
        let is_required = required.is_some_and(|all| all.iter().any(|one| one == name));
        field(name, property, &property["description"], is_required)
    });
    write_fields(html, "Fields", fields.collect());
    html.push_str("</section>\n");
}

fn write_fields(html: &mut String, title: &str, rows: Vec<String>) {
    if !rows.is_empty() {
        let rows = rows.concat();
        let _ = writeln!(
            html,
            "<table class=\"fields\">\n<caption class=\"only-heard\">{title}</caption>\n{rows}</table>"
        );
    }
}

/// A row about a parameter or a field: name, type and limits, meaning.
fn field(name: &str, schema: &Value, description: &Value, is_required: bool) -> String {
    let mut kind = type_of(schema);
    for (key, words) in [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("default", "default"),
    ] {
        // Numbers without a sign have the minimum 0, which says nothing.
        if let Some(value) = schema.get(key).filter(|value| **value != 0) {
            let _ = write!(kind, ", {words} {}", escape(&value.to_string()));
        }
    }
    if !is_required {
        kind.push_str(", optional");
    }
    format!(
        "<tr><th scope=\"row\"><code>{}</code></th><td>{kind}</td><td>{}</td></tr>\n",
        escape(name),
        words(description)
    )
}

/// A type in words, with links to those that have a name.
fn type_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap_or(name);
        return format!("<a href=\"#type-{name}\">{name}</a>");
    }
    if let Some(parts) = schema["prefixItems"].as_array() {
        let parts: Vec<String> = parts.iter().map(type_of).collect();
        return format!("[{}]", parts.join(", "));
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().map(|value| code(&text(value))).collect();
        return values.join(", ");
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => format!("array of {}", type_of(&schema["items"])),
        Value::Array(kinds) => kinds.iter().map(text).collect::<Vec<_>>().join(" or "),
        kind => text(kind),
    }
}

/// The members of an object, none of anything else.
fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn text(value: &Value) -> String {
    escape(value.as_str().unwrap_or(""))
}

/// Escaped words whose parts between backticks are code.
fn words(value: &Value) -> String {
    let text = text(value);
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(place, part)| match place % 2 {
        0 => part.to_owned(),
        _ => code(part),
    });
    parts.collect()
}

fn code(escaped: &str) -> String {
    format!("<code>{escaped}</code>")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
