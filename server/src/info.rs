//! The service about itself: models, limits, health, metrics.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use elias::config::EncoderKind;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{ApiError, ErrorBody};
use crate::openapi::Errors;
use crate::service::Service;
use crate::{json, time};

/// The models.
#[derive(Serialize, ToSchema)]
pub(crate) struct ModelList {
    models: Vec<ModelInfo>,
}

/// A model.
#[derive(Serialize, ToSchema)]
pub(crate) struct ModelInfo {
    name: String,
    n_labels: usize,
    /// Points of its training data.
    n_points: usize,
    /// Members of the ensemble.
    n_members: usize,
    /// `bag` or `transformer`.
    encoder: &'static str,
    has_probabilities: bool,
    #[schema(required = true)]
    why_no_probabilities: Option<String>,
    takes_texts: bool,
    /// Whether it learns from corrections of those who have the key for it.
    learns: bool,
    /// Corrections that it learned since it was written.
    n_learned: usize,
    /// When it was loaded, RFC 3339.
    loaded_at: String,
}

/// The limits of a request.
#[derive(Serialize, ToSchema)]
pub(crate) struct Limits {
    max_texts: usize,
    max_text_bytes: usize,
    max_body_bytes: usize,
    timeout_ms: u64,
}

/// How the service is.
#[derive(Serialize, ToSchema)]
pub(crate) struct Status {
    status: &'static str,
}

/// The models that are served; the first one answers where a request names none
#[utoipa::path(
    get,
    path = "/v1/models",
    responses(
        (status = 200, description = "The models", body = ModelList, example = json!({
            "models": [{
                "name": "default",
                "n_labels": 3164,
                "n_points": 10689,
                "n_members": 1,
                "encoder": "bag",
                "has_probabilities": true,
                "why_no_probabilities": null,
                "takes_texts": true,
                "learns": false,
                "n_learned": 0,
                "loaded_at": "2026-11-17T09:30:00Z",
            }],
        })),
        Errors,
    )
)]
pub(crate) async fn models(State(service): State<Service>) -> Response {
    let models = service.models().all().map(|model| {
        let predictor = &model.predictor;
        ModelInfo {
            name: model.name.clone(),
            n_labels: predictor.labels().len(),
            n_points: predictor.training_data().n_points,
            n_members: predictor.n_members(),
            encoder: match predictor.plan().config().encoder.kind {
                EncoderKind::Bag => "bag",
                EncoderKind::Transformer => "transformer",
            },
            has_probabilities: predictor.is_calibrated(),
            why_no_probabilities: predictor
                .why_uncalibrated()
                .map(|reason| reason.to_string()),
            takes_texts: predictor.takes_texts(),
            learns: service.keys().may_learn() && predictor.check_corrections(&[]).is_ok(),
            n_learned: predictor.learned().len(),
            loaded_at: time::rfc3339(model.loaded_at),
        }
    });
    json::response(&ModelList {
        models: models.collect(),
    })
}

/// The limits of a request
#[utoipa::path(
    get,
    path = "/v1/limits",
    responses(
        (status = 200, description = "The limits", body = Limits, example = json!({
            "max_texts": 1000, "max_text_bytes": 1048576, "max_body_bytes": 16777216, "timeout_ms": 30000,
        })),
        Errors,
    )
)]
pub(crate) async fn limits(State(service): State<Service>) -> Response {
    let options = service.options();
    json::response(&Limits {
        max_texts: options.max_texts,
        max_text_bytes: options.max_text_bytes,
        max_body_bytes: options.max_body_bytes,
        timeout_ms: options.timeout.as_millis() as u64,
    })
}

/// Whether the process lives
#[utoipa::path(
    get,
    path = "/health",
    responses((status = 200, description = "It does", body = Status, example = json!({"status": "ok"})))
)]
pub(crate) async fn health() -> Response {
    json::response(&Status { status: "ok" })
}

/// Whether requests are welcome
#[utoipa::path(
    get,
    path = "/ready",
    responses(
        (status = 200, description = "They are", body = Status, example = json!({"status": "ready"})),
        (status = 503, description = "The service is shutting down", body = ErrorBody),
    )
)]
pub(crate) async fn ready(State(service): State<Service>) -> Response {
    if service.is_draining() {
        return ApiError::ShuttingDown.into_response();
    }
    json::response(&Status { status: "ready" })
}

/// Counters and histograms for Prometheus
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, description = "The metrics", body = String, content_type = "application/openmetrics-text"))
)]
pub(crate) async fn metrics(State(service): State<Service>) -> Response {
    let text = service.metrics().text(service.options().log.n_dropped());
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let headers = [(header::CONTENT_TYPE, kind)];
    (StatusCode::OK, headers, text).into_response()
}
