//! `POST /v1/explain`: why a text gets its labels.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use elias::insight::Explanation;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::models::Model;
use crate::openapi::Errors;
use crate::predict::{check_k, check_text};
use crate::service::Service;
use crate::{body, json};

/// A text whose labels are to be explained.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExplainRequest {
    /// The text.
    text: String,
    /// Labels to explain.
    #[serde(default, deserialize_with = "json::whole")]
    #[schema(value_type = u32, required = false, minimum = 1, maximum = 100, default = 10)]
    k: Option<usize>,
    /// The model's name; the first model without it.
    #[serde(default, deserialize_with = "json::present")]
    #[schema(value_type = String, required = false)]
    model: Option<String>,
}

/// How a text got its labels, as `elias explain --json` prints it.
#[derive(Serialize)]
struct ExplainResponse<'a> {
    model: &'a str,
    #[serde(flatten)]
    explanation: Explanation,
}

/// How a text got its labels.
#[derive(ToSchema)]
#[schema(as = Explanation)]
#[allow(dead_code)] // It describes the response, whose parts are the library's.
pub(crate) struct ExplanationSchema {
    /// The model that answered.
    model: String,
    /// The text.
    text: String,
    /// The words of the text that the model knows, with their tf-idf weights, the heaviest first.
    words: Vec<(String, f32)>,
    /// The labels, best first, as `elias explain --json` prints them.
    #[schema(value_type = Vec<Object>)]
    answers: Vec<()>,
    /// Training points with similar words; none if the model does not keep them.
    neighbours: Vec<NearPointSchema>,
}

/// A training point with similar words.
#[derive(ToSchema)]
#[schema(as = NearPoint)]
#[allow(dead_code)] // As above.
pub(crate) struct NearPointSchema {
    /// Its number in the training data.
    point: usize,
    /// Cosine of the words.
    similarity: f32,
    /// Its labels.
    labels: Vec<String>,
    /// Its text, if it is kept.
    #[schema(required = true)]
    text: Option<String>,
}

/// Why a text gets its labels
#[utoipa::path(
    post,
    path = "/v1/explain",
    request_body(content = ExplainRequest, example = json!({"text": "library to read PNG images", "k": 1})),
    responses(
        (status = 200, description = "The explanation", body = ExplanationSchema, example = json!({
            "model": "default",
            "text": "library to read PNG images",
            "words": [["png", 0.71], ["images", 0.42]],
            "answers": [{"label": "libpng16-16", "id": 1006, "score": 0.448, "probability": 0.363, "n_points": 61}],
            "neighbours": [{"point": 17, "similarity": 0.64, "text": null, "labels": ["libpng16-16"]}],
        })),
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
    let k = check_k(request.k)?;
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
    let explanation = model.predictor.explain(text, k)?;
    Ok(json::response(&ExplainResponse {
        model: &model.name,
        explanation,
    }))
}
