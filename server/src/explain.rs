//! `POST /v1/explain`: why a text gets its labels.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use elias::insight::{self, AnswerExplanation};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::models::Model;
use crate::openapi::Errors;
use crate::predict::{check_text, check_top_k};
use crate::service::Service;
use crate::{body, json};

/// Nearest training points to show.
const N_NEIGHBOURS: usize = 5;

/// A text whose labels are to be explained.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExplainRequest {
    /// The text.
    #[schema(example = "library to read PNG images")]
    text: String,
    /// Labels to explain.
    #[serde(default, deserialize_with = "json::whole")]
    #[schema(value_type = u32, required = false, minimum = 1, maximum = 100, default = 5)]
    top_k: Option<usize>,
    /// The model's name; the first model without it.
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = String, required = false)]
    model: Option<String>,
}

/// How a text got its labels.
#[derive(Serialize, ToSchema)]
pub(crate) struct ExplainResponse<'a> {
    /// The model that answered.
    model: &'a str,
    /// The text.
    text: &'a str,
    /// The words of the text that the model knows, with their tf-idf weights, the heaviest first.
    words: Vec<(String, f32)>,
    /// The labels, best first, as `elias explain --json` prints them.
    #[schema(value_type = Vec<Object>)]
    answers: Vec<ExplainedAnswer>,
    /// Training points with similar words; none if the model does not keep them.
    neighbours: Vec<NearPoint<'a>>,
}

#[derive(Serialize)]
struct ExplainedAnswer {
    id: Option<u32>,
    #[serde(flatten)]
    explanation: AnswerExplanation,
}

/// A training point with similar words.
#[derive(Serialize, ToSchema)]
pub(crate) struct NearPoint<'a> {
    /// Its number in the training data.
    point: usize,
    /// Cosine of the words.
    similarity: f32,
    /// Its labels.
    labels: Vec<&'a str>,
    /// Its text, if it is kept.
    text: Option<&'a str>,
}

/// Why a text gets its labels
#[utoipa::path(
    post,
    path = "/v1/explain",
    request_body = ExplainRequest,
    responses(
        (status = 200, description = "The explanation", body = ExplainResponse),
        Errors,
    )
)]
pub(crate) async fn explain(
    State(service): State<Service>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let deadline = Instant::now() + service.options().timeout;
    let body = body::read(&service, &headers, "application/json", body, deadline).await?;
    let request: ExplainRequest = json::parse(&body)?;
    check_text(&service, &request.text)?;
    let k = check_top_k(request.top_k)?;
    let model = service.models().get(request.model.as_deref())?;
    let work = move || explained(&model, &request.text, k);
    let explained = timeout_at(deadline, service.queue().run(work)?).await;
    let explained = explained.map_err(|_| ApiError::Timeout)?;
    explained.map_err(|_| ApiError::Internal)?.map_err(|error| {
        let line = format!("a model cannot explain: {error}");
        service.options().log.line(&line);
        ApiError::Internal
    })
}

fn explained(model: &Model, text: &str, k: usize) -> elias::Result<Response> {
    let predictor = &model.predictor;
    let points = predictor.points(&[text])?;
    let answers = insight::explain(predictor, &points, k)?;
    let near = insight::neighbours(predictor, &points, N_NEIGHBOURS)?;
    let near = near.iter().map(|near| NearPoint {
        point: near.point,
        similarity: near.similarity,
        labels: {
            let labels = near.labels.iter();
            let names = labels.map(|&label| predictor.labels().name(label));
            names.collect()
        },
        text: None,
    });
    let answers = answers.into_iter().map(|explanation| ExplainedAnswer {
        id: predictor.labels().find(&explanation.label).map(|id| id.0),
        explanation,
    });
    Ok(json::response(&ExplainResponse {
        model: &model.name,
        text,
        words: insight::known_words(predictor, &points),
        answers: answers.collect(),
        neighbours: near.collect(),
    }))
}
