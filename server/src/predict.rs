//! `POST /v1/predict`: the labels of one text or of many.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use elias::{Error, LabelId, LabelLists, LabelRef, LabelRules, Predictions, Query};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::models::Model;
use crate::openapi::Errors;
use crate::service::Service;
use crate::{body, json};

/// Maximum number of labels per text.
pub(crate) const MAX_K: usize = 100;

/// One text or several texts, and what is wanted of their labels.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PredictRequest {
    /// The text; either this or `texts`.
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = String, required = false)]
    text: Option<String>,
    /// The texts; either these or `text`. `/v1/limits` says how many.
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = Vec<String>, required = false, min_items = 1)]
    texts: Option<Vec<String>>,
    /// Labels per text.
    #[serde(default, deserialize_with = "json::whole")]
    #[schema(value_type = u32, required = false, minimum = 1, maximum = 100, default = 10)]
    k: Option<usize>,
    /// Labels below this probability, from 0 to 1, are left out; below this score, if the model has no probabilities.
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = f32, required = false, minimum = 0, maximum = 1)]
    threshold: Option<f32>,
    /// The only labels that answers may have; every one of them is considered, whatever the text.
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = Vec<LabelKey>, required = false, min_items = 1)]
    allow: Option<Vec<LabelKey>>,
    /// Labels that answers may not have.
    #[serde(default)]
    #[schema(required = false)]
    deny: Vec<LabelKey>,
    /// Thresholds of single labels by their names, instead of `threshold`.
    #[serde(default)]
    #[schema(value_type = HashMap<String, LabelThreshold>, required = false)]
    thresholds: HashMap<String, f32>,
    /// The model's name; the first model without it.
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = String, required = false)]
    model: Option<String>,
}

/// A label's name or number.
#[derive(Deserialize, ToSchema)]
#[serde(untagged, expecting = "a label's name or number")]
enum LabelKey {
    Name(String),
    #[schema(value_type = u32)]
    Id(#[serde(deserialize_with = "json::whole_number")] usize),
}

/// The threshold of a label.
#[derive(ToSchema)]
#[schema(minimum = 0, maximum = 1)]
#[expect(dead_code, reason = "it is only described")]
struct LabelThreshold(f32);

impl From<LabelKey> for LabelRef {
    fn from(label: LabelKey) -> Self {
        match label {
            LabelKey::Name(name) => LabelRef::Name(name),
            // There are fewer labels than numbers of 32 bits.
            LabelKey::Id(id) => LabelRef::Id(LabelId(u32::try_from(id).unwrap_or(u32::MAX))),
        }
    }
}

/// The rules of a request for the labels of a model.
fn rules(model: &Model, request: &mut PredictRequest) -> Result<LabelRules, ApiError> {
    let refs = |labels: Vec<LabelKey>| labels.into_iter().map(LabelRef::from).collect();
    let thresholds = std::mem::take(&mut request.thresholds).into_iter();
    let lists = LabelLists {
        allow: request.allow.take().map(refs),
        deny: refs(std::mem::take(&mut request.deny)),
        thresholds: thresholds
            .map(|(name, threshold)| (LabelRef::Name(name), threshold))
            .collect(),
    };
    let rules = model.predictor.label_rules(&lists);
    rules.map_err(|error| match error {
        Error::UnknownLabels { .. } => ApiError::NotFound(error.to_string()),
        _ => ApiError::BadValue(error.to_string()),
    })
}

/// A predicted label.
#[derive(Serialize, ToSchema)]
pub(crate) struct LabelAnswer {
    /// The label's name.
    pub(crate) label: String,
    /// The label's number.
    id: u32,
    /// Ranks the labels of a text.
    pub(crate) score: f32,
    /// How likely the label is right; null if the model has no probabilities.
    #[schema(required = true)]
    pub(crate) probability: Option<f32>,
}

/// The labels of a text, best first.
#[derive(Serialize, ToSchema)]
pub(crate) struct Labels {
    pub(crate) labels: Vec<LabelAnswer>,
    /// Whether the model knows no word of the text: its labels are then those of any text. Left out where it is false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    no_known_word: bool,
}

impl Labels {
    /// The answers to a text as they leave a thread that answers.
    pub(crate) fn new(predictions: Predictions<'_>) -> Self {
        let no_known_word = !predictions.has_known_word;
        let labels = predictions.into_iter().map(|prediction| LabelAnswer {
            label: prediction.label.to_owned(),
            id: prediction.id.0,
            score: prediction.score,
            probability: prediction.probability,
        });
        Labels {
            labels: labels.collect(),
            no_known_word,
        }
    }
}

/// The answer to `text`.
#[derive(Serialize, ToSchema)]
pub(crate) struct TextLabels<'a> {
    /// The model that answered.
    model: &'a str,
    #[serde(flatten)]
    labels: Labels,
}

/// The answer to `texts`.
#[derive(Serialize, ToSchema)]
pub(crate) struct BatchLabels<'a> {
    /// The model that answered.
    model: &'a str,
    /// One entry per text, in their order.
    results: Vec<Labels>,
}

/// The answer to `text`, or to `texts`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum PredictResponse<'a> {
    One(TextLabels<'a>),
    Many(BatchLabels<'a>),
}

/// The labels of one text or of several
#[utoipa::path(
    post,
    path = "/v1/predict",
    request_body(content = PredictRequest, example = json!({"text": "library to read PNG images", "k": 2})),
    responses(
        (status = 200, description = "The labels", body = PredictResponse, example = json!({
            "model": "default",
            "labels": [
                {"label": "libpng16-16", "id": 1006, "score": 0.448, "probability": 0.363},
                {"label": "zlib1g", "id": 2103, "score": 0.274, "probability": 0.201},
            ],
        })),
        Errors,
    )
)]
pub(crate) async fn predict(
    State(service): State<Service>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let deadline = Instant::now() + service.options().timeout;
    let body = body::read(&service, &headers, "application/json", body, deadline).await?;
    let mut request: PredictRequest = json::parse(&body)?;
    let model = service.models().get(request.model.as_deref())?;
    let query = Query {
        k: check_k(request.k)?,
        threshold: request.threshold,
        rules: json::aside(body.len(), || rules(&model, &mut request))?,
        ..Query::default()
    };
    check_query(&model, &query)?;
    let (texts, is_one) = match (request.text, request.texts) {
        (Some(text), None) => (vec![text], true),
        (None, Some(texts)) => (texts, false),
        _ => {
            let problem = "expected either \"text\" or \"texts\"";
            return Err(ApiError::BadValue(problem.into()));
        }
    };
    let mut results = answer(&service, &model, query, texts, deadline).await?;
    let model = &model.name[..];
    let response = if is_one {
        let labels = results.pop().ok_or(ApiError::Internal)?;
        PredictResponse::One(TextLabels { model, labels })
    } else {
        PredictResponse::Many(BatchLabels { model, results })
    };
    Ok(json::response(&response))
}

/// The number of labels that a request asks for.
pub(crate) fn check_k(k: Option<usize>) -> Result<usize, ApiError> {
    match k.unwrap_or(Query::default().k) {
        k @ 1..=MAX_K => Ok(k),
        k => Err(ApiError::BadValue(format!(
            "k: found {k}, expected an integer from 1 to {MAX_K}"
        ))),
    }
}

/// Checks that a model can answer a query.
fn check_query(model: &Model, query: &Query) -> Result<(), ApiError> {
    let checked = model.predictor.check_query(query);
    checked.map_err(|error| ApiError::BadValue(error.to_string()))
}

/// Checks a text against the limits.
pub(crate) fn check_text(service: &Service, text: &str) -> Result<(), ApiError> {
    let max_bytes = service.options().max_text_bytes;
    if text.len() <= max_bytes {
        return Ok(());
    }
    Err(ApiError::BadValue(format!(
        "a text has {} bytes, expected at most {max_bytes}",
        text.len()
    )))
}

/// The best labels of texts, within the limits and in time.
pub(crate) async fn answer(
    service: &Service,
    model: &Arc<Model>,
    query: Query,
    texts: Vec<String>,
    deadline: Instant,
) -> Result<Vec<Labels>, ApiError> {
    let max_texts = service.options().max_texts;
    if texts.is_empty() || max_texts < texts.len() {
        return Err(ApiError::BadValue(format!(
            "texts: found {}, expected 1 to {max_texts}",
            texts.len()
        )));
    }
    for text in &texts {
        check_text(service, text)?;
    }
    if let Some(answers) = service.queue().predict_here(model, &query, &texts) {
        return answers;
    }
    let mut answers = Vec::with_capacity(texts.len());
    for part in service.queue().predict(model, query, texts)? {
        let part = timeout_at(deadline, part).await;
        let part = part.map_err(|_| ApiError::Timeout)?;
        answers.extend(part.map_err(|_| ApiError::Internal)??);
    }
    Ok(answers)
}
