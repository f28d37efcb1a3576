//! The requests of Annif's `http` backend: `GET /v1/annif/NAME` and `POST /v1/annif/NAME/suggest`.
//!
//! Annif sends a form with the text, and with fields that mean nothing here, which are ignored.

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::openapi::Errors;
use crate::predict::{self, MAX_K};
use crate::service::Service;
use crate::{body, json, query, time};

/// Fields of a form; Annif sends three.
const MAX_FIELDS: usize = 100;

/// A project, as Annif sees it.
#[derive(Serialize, ToSchema)]
pub(crate) struct Project {
    is_trained: bool,
    /// When the model was written, RFC 3339.
    modification_time: String,
}

/// A text to suggest subjects for.
#[derive(ToSchema)]
#[allow(dead_code)] // It describes the form; the fields are read one by one.
pub(crate) struct SuggestForm {
    /// The text.
    text: String,
    /// The most suggestions; more than 100 are 100.
    #[schema(value_type = u64, required = false, minimum = 1, default = 100)]
    limit: Option<u64>,
}

/// Suggested subjects, best first.
#[derive(Serialize, ToSchema)]
pub(crate) struct Suggestions {
    results: Vec<Suggestion>,
}

/// A suggested subject.
#[derive(Serialize, ToSchema)]
pub(crate) struct Suggestion {
    /// The label, which is the subject's URI if the model was trained on URIs.
    uri: String,
    /// The label.
    label: String,
    /// The probability, or the score if the model has no probabilities.
    score: f32,
}

/// A model as a project of Annif
#[utoipa::path(
    get,
    path = "/v1/annif/{name}",
    operation_id = "annif_project",
    params(("name" = String, Path, description = "The model's name", example = "default")),
    responses(
        (status = 200, description = "The project", body = Project, example = json!({
            "is_trained": true, "modification_time": "2026-11-17T09:30:00Z",
        })),
        Errors,
    )
)]
pub(crate) async fn project(
    State(service): State<Service>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let model = service.models().get(Some(&query::name(path)?))?;
    Ok(json::response(&Project {
        is_trained: true,
        modification_time: time::rfc3339(model.modified_at),
    }))
}

/// Subjects of a text, for Annif
#[utoipa::path(
    post,
    path = "/v1/annif/{name}/suggest",
    operation_id = "annif_suggest",
    params(("name" = String, Path, description = "The model's name", example = "default")),
    request_body(
        content = SuggestForm,
        content_type = "application/x-www-form-urlencoded",
        example = json!({"text": "library to read PNG images", "limit": 1}),
    ),
    responses(
        (status = 200, description = "The subjects", body = Suggestions, example = json!({
            "results": [{"uri": "libpng16-16", "label": "libpng16-16", "score": 0.363}],
        })),
        Errors,
    )
)]
pub(crate) async fn suggest(
    State(service): State<Service>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let deadline = Instant::now() + service.options().timeout;
    let kind = "application/x-www-form-urlencoded";
    let body = body::read(&service, &headers, kind, body, deadline).await?;
    let model = service.models().get(Some(&query::name(path)?))?;
    let (text, k) = json::aside(body.len(), || parse_form(&body))?;
    let answers = predict::answer(&service, &model, k.into(), vec![text], deadline).await?;
    let answers = answers.into_iter().flat_map(|of_text| of_text.labels);
    let results = answers.map(|answer| Suggestion {
        uri: answer.label.clone(),
        score: answer.probability.unwrap_or(answer.score),
        label: answer.label,
    });
    Ok(json::response(&Suggestions {
        results: results.collect(),
    }))
}

/// The text of a form, and the most suggestions.
fn parse_form(body: &[u8]) -> Result<(String, usize), ApiError> {
    let (mut text, mut k) = (None, MAX_K);
    for (place, (key, value)) in form_urlencoded::parse(body).enumerate() {
        if place == MAX_FIELDS {
            let problem = format!("the form has more than {MAX_FIELDS} fields");
            return Err(ApiError::BadValue(problem));
        }
        match &key[..] {
            "text" => text = Some(value.into_owned()),
            "limit" => k = parse_limit(&value)?,
            _ => {}
        }
    }
    let missing = || ApiError::BadValue("the form has no field \"text\"".into());
    Ok((text.ok_or_else(missing)?, k))
}

fn parse_limit(text: &str) -> Result<usize, ApiError> {
    match text.parse::<i64>() {
        Ok(limit @ 1..) => Ok(usize::try_from(limit).map_or(MAX_K, |k| k.min(MAX_K))),
        _ => Err(ApiError::BadValue(
            "limit: expected an integer of at least 1".into(),
        )),
    }
}
