//! `POST /v1/predict`: the labels of one text or of many.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use elias::Scored;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::models::Model;
use crate::openapi::Errors;
use crate::service::Service;
use crate::{body, json};

/// Labels per text where a request does not say.
pub(crate) const DEFAULT_TOP_K: usize = 5;
/// No request gets more labels per text.
pub(crate) const MAX_TOP_K: usize = 100;

/// One text or several texts, and what is wanted of their labels.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PredictRequest {
    /// The text; either this or `texts`.
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = String, required = false, example = "library to read PNG images")]
    text: Option<String>,
    /// The texts; either these or `text`. `/v1/limits` says how many.
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = Vec<String>, required = false, min_items = 1)]
    texts: Option<Vec<String>>,
    /// Labels per text.
    #[serde(default, deserialize_with = "json::whole")]
    #[schema(value_type = u32, required = false, minimum = 1, maximum = 100, default = 5)]
    top_k: Option<usize>,
    /// Labels below this probability are left out; below this score, if the model has no probabilities.
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = f32, required = false, minimum = 0, maximum = 1, default = 0)]
    threshold: Option<f32>,
    /// The model's name; the first model without it.
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = String, required = false)]
    model: Option<String>,
}

/// A predicted label.
#[derive(Serialize, ToSchema)]
pub(crate) struct LabelAnswer<'a> {
    /// The label's name.
    label: &'a str,
    /// The label's number.
    id: u32,
    /// Ranks the labels of a text.
    score: f32,
    /// How likely the label is right; null if the model has no probabilities.
    probability: Option<f32>,
}

/// The labels of a text, best first.
#[derive(Serialize, ToSchema)]
pub(crate) struct Labels<'a> {
    labels: Vec<LabelAnswer<'a>>,
}

/// The answer to `text`, or to `texts` in their order.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum PredictResponse<'a> {
    /// The labels of one text.
    One {
        /// The model that answered.
        model: &'a str,
        /// Its labels, best first.
        labels: Vec<LabelAnswer<'a>>,
    },
    /// The labels of several texts.
    Many {
        /// The model that answered.
        model: &'a str,
        /// One entry per text.
        results: Vec<Labels<'a>>,
    },
}

/// The labels of one text or of several
#[utoipa::path(
    post,
    path = "/v1/predict",
    request_body = PredictRequest,
    responses(
        (status = 200, description = "The labels", body = PredictResponse),
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
    let request: PredictRequest = json::parse(&body)?;
    let threshold = request.threshold.unwrap_or(0.0);
    if !(0.0..=1.0).contains(&threshold) {
        let problem = format!("threshold: found {threshold}, expected a number from 0 to 1");
        return Err(ApiError::BadValue(problem));
    }
    let k = check_top_k(request.top_k)?;
    let model = service.models().get(request.model.as_deref())?;
    let (texts, is_one) = match (request.text, request.texts) {
        (Some(text), None) => (vec![text], true),
        (None, Some(texts)) => (texts, false),
        _ => {
            let problem = "expected either \"text\" or \"texts\"";
            return Err(ApiError::BadValue(problem.into()));
        }
    };
    let rankings = rank(&service, &model, k, texts, deadline).await?;
    let named = |ranking: &[Scored]| named(&model, ranking, threshold);
    let name = &model.name[..];
    let response = if is_one {
        PredictResponse::One {
            model: name,
            labels: rankings.first().map_or_else(Vec::new, |one| named(one)),
        }
    } else {
        let results = rankings.iter().map(|ranking| Labels {
            labels: named(ranking),
        });
        PredictResponse::Many {
            model: name,
            results: results.collect(),
        }
    };
    Ok(json::response(&response))
}

/// The number of labels that a request asks for.
pub(crate) fn check_top_k(top_k: Option<usize>) -> Result<usize, ApiError> {
    match top_k.unwrap_or(DEFAULT_TOP_K) {
        k @ 1..=MAX_TOP_K => Ok(k),
        k => Err(ApiError::BadValue(format!(
            "top_k: found {k}, expected an integer from 1 to {MAX_TOP_K}"
        ))),
    }
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
pub(crate) async fn rank(
    service: &Service,
    model: &Arc<Model>,
    k: usize,
    texts: Vec<String>,
    deadline: Instant,
) -> Result<Vec<Vec<Scored>>, ApiError> {
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
    let mut rankings = Vec::with_capacity(texts.len());
    for part in service.queue().predict(model, k, texts)? {
        let answers = timeout_at(deadline, part).await;
        let answers = answers.map_err(|_| ApiError::Timeout)?;
        rankings.extend(answers.map_err(|_| ApiError::Internal)??);
    }
    Ok(rankings)
}

/// The labels at or above a threshold, with their names.
fn named<'a>(model: &'a Model, ranking: &[Scored], threshold: f32) -> Vec<LabelAnswer<'a>> {
    let predictor = &model.predictor;
    let answers = ranking.iter().map(|&Scored { label, score }| LabelAnswer {
        label: predictor.labels().name(label),
        id: label.0,
        score,
        probability: predictor.probability(score),
    });
    let is_above =
        |answer: &LabelAnswer<'_>| threshold <= answer.probability.unwrap_or(answer.score);
    answers.filter(is_above).collect()
}
