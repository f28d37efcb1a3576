//! `POST /v1/learn` and `GET /v1/learned`: corrections of answers, and those that a model has learned.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use elias::Correction;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::learning::Waiting;
use crate::openapi::Errors;
use crate::predict::check_text;
use crate::query::ModelQuery;
use crate::service::Service;
use crate::{body, json};

/// Corrections that are shown.
const N_RECENT: usize = 20;
/// Characters of a text that are shown of a learned correction.
const SHOWN: usize = 200;

/// One correction or several.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LearnRequest {
    /// The text; either this or `corrections`.
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = String, required = false)]
    text: Option<String>,
    /// Names of labels that are right for the text.
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = Vec<String>, required = false)]
    labels: Option<Vec<String>>,
    /// Names of labels that are wrong for the text.
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = Vec<String>, required = false)]
    not: Option<Vec<String>>,
    /// Several texts with their labels; either these or `text`. `/v1/limits` says how many.
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = Vec<TextCorrection>, required = false, min_items = 1)]
    corrections: Option<Vec<TextCorrection>>,
    /// The model's name; the first model without it.
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = String, required = false)]
    model: Option<String>,
}

/// A text with labels that are right, or wrong, for it; at least one of either.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TextCorrection {
    /// The text.
    text: String,
    /// Names of labels that are right for the text.
    #[serde(default)]
    #[schema(required = false)]
    labels: Vec<String>,
    /// Names of labels that are wrong for the text.
    #[serde(default)]
    #[schema(required = false)]
    not: Vec<String>,
}

impl TextCorrection {
    /// A correction with the beginning of its text.
    fn shortened(correction: &Correction) -> Self {
        TextCorrection {
            text: correction.text.chars().take(SHOWN).collect(),
            labels: correction.labels.clone(),
            not: correction.not.clone(),
        }
    }
}

impl From<TextCorrection> for Correction {
    fn from(TextCorrection { text, labels, not }: TextCorrection) -> Self {
        Correction { text, labels, not }
    }
}

/// How much a model has learned.
#[derive(Serialize, ToSchema)]
pub(crate) struct LearnResponse<'a> {
    model: &'a str,
    /// Corrections since the model was written, these included.
    n_learned: usize,
}

/// Corrections that a model has learned.
#[derive(Serialize, ToSchema)]
pub(crate) struct LearnedList<'a> {
    model: &'a str,
    /// Corrections since the model was written.
    n_learned: usize,
    /// The last twenty, latest first, with the first 200 characters of their texts.
    recent: Vec<TextCorrection>,
}

/// Corrections that the next answers heed
///
/// They are on the disk before this is answered. It needs the key for learning.
#[utoipa::path(
    post,
    path = "/v1/learn",
    request_body(content = LearnRequest, example = json!({
        "text": "library to read PNG images", "labels": ["libpng16-16"], "not": ["zlib1g"],
    })),
    responses(
        (status = 200, description = "They are learned", body = LearnResponse, example = json!({
            "model": "default", "n_learned": 17,
        })),
        Errors,
    )
)]
pub(crate) async fn learn(
    State(service): State<Service>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let deadline = Instant::now() + service.options().timeout;
    let body = body::read(&service, &headers, "application/json", body, deadline).await?;
    let request: LearnRequest = json::parse(&body)?;
    let slot = service.models().slot(request.model.as_deref())?;
    let model = slot.model();
    let corrections = corrections(request)?;
    let max_texts = service.options().max_texts;
    if corrections.is_empty() || max_texts < corrections.len() {
        let found = corrections.len();
        let problem = format!("corrections: found {found}, expected 1 to {max_texts}");
        return Err(ApiError::BadValue(problem));
    }
    for correction in &corrections {
        check_text(&service, &correction.text)?;
    }
    let (reply, learned) = oneshot::channel();
    // Without it, no request passes the check of the key.
    let learning = service.learning().ok_or(ApiError::Internal)?;
    learning.push(Waiting {
        slot,
        corrections,
        reply,
        _body: body,
    })?;
    let learned = timeout_at(deadline, learned).await;
    let learned = learned.map_err(|_| ApiError::Timeout)?;
    let n_learned = learned.map_err(|_| ApiError::Internal)??;
    Ok(json::response(&LearnResponse {
        model: &model.name,
        n_learned,
    }))
}

fn corrections(request: LearnRequest) -> Result<Vec<Correction>, ApiError> {
    match (request.text, request.corrections) {
        (Some(text), None) => Ok(vec![Correction {
            text,
            labels: request.labels.unwrap_or_default(),
            not: request.not.unwrap_or_default(),
        }]),
        (None, Some(several)) if request.labels.is_none() && request.not.is_none() => {
            Ok(several.into_iter().map(Correction::from).collect())
        }
        _ => {
            let problem = "expected either \"text\" with \"labels\" or \"not\", or \"corrections\"";
            Err(ApiError::BadValue(problem.into()))
        }
    }
}

/// What a model has learned since it was written
///
/// It has texts of others, so it needs the key for learning.
#[utoipa::path(
    get,
    path = "/v1/learned",
    params(ModelQuery),
    responses(
        (status = 200, description = "The number of corrections, and the last ones", body = LearnedList, example = json!({
            "model": "default",
            "n_learned": 17,
            "recent": [{"text": "library to read PNG images", "labels": ["libpng16-16"], "not": ["zlib1g"]}],
        })),
        Errors,
    )
)]
pub(crate) async fn learned(
    State(service): State<Service>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let query = ModelQuery::parse(&uri)?;
    let model = service.models().get(query.model.as_deref())?;
    let learned = model.predictor.learned();
    let recent = learned.iter().rev().take(N_RECENT);
    Ok(json::response(&LearnedList {
        model: &model.name,
        n_learned: learned.len(),
        recent: recent.map(|one| TextCorrection::shortened(one)).collect(),
    }))
}
