//! `GET /v1/labels` and `GET /v1/labels/{id}`: the labels of a model, and what it knows of one.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use elias::LabelId;
use elias::insight::{ClusterEdge, LabelExample};
use serde::Serialize;
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::json;
use crate::models::Model;
use crate::openapi::Errors;
use crate::query::{self, Entry, ListQuery, ModelQuery};
use crate::service::Service;

/// Clusters, words and examples of a label to show.
const N_DETAILS: usize = 20;

/// Labels that contain what was searched for.
#[derive(Serialize, ToSchema)]
pub(crate) struct LabelList<'a> {
    model: &'a str,
    /// How many there are in all.
    total: usize,
    labels: Vec<ListedLabel<'a>>,
}

/// A label.
#[derive(Serialize, ToSchema)]
pub(crate) struct ListedLabel<'a> {
    id: u32,
    label: &'a str,
    /// Its training points.
    n_points: u32,
}

/// A label as a model knows it.
#[derive(Serialize, ToSchema)]
pub(crate) struct LabelResponse<'a> {
    model: &'a str,
    id: u32,
    label: &'a str,
    /// Its training points.
    n_points: u32,
    /// Whether it is known by its names, synonyms and descriptions alone.
    name_only: bool,
    /// The clusters that lead to it, the strongest edge first.
    #[schema(value_type = Vec<Object>)]
    clusters: Vec<ClusterEdge>,
    /// The words that the ranker weighs most for it.
    words: Vec<(String, f32)>,
    /// Some of its training points.
    #[schema(value_type = Vec<LabelExampleSchema>)]
    examples: Vec<LabelExample>,
}

/// A training point of a label.
#[derive(ToSchema)]
#[schema(as = LabelExample)]
#[allow(dead_code)] // It describes the library's.
pub(crate) struct LabelExampleSchema {
    /// Its number in the training data.
    point: usize,
    /// Its words of the highest tf-idf weights; a model keeps no texts, and no words that many points have.
    words: Vec<String>,
}

/// The labels of a model
#[utoipa::path(
    get,
    path = "/v1/labels",
    operation_id = "labels",
    params(ListQuery),
    responses(
        (status = 200, description = "The labels", body = LabelList, example = json!({
            "model": "default",
            "total": 3164,
            "labels": [{"id": 0, "label": "a2ps", "n_points": 4}],
        })),
        Errors,
    )
)]
pub(crate) async fn list(State(service): State<Service>, uri: Uri) -> Result<Response, ApiError> {
    let list = ListQuery::parse(&uri)?;
    let model = service.models().get(list.model.as_deref())?;
    in_time(&service, move || {
        let predictor = &model.predictor;
        let needle = list.query.to_lowercase();
        let names = predictor.labels().names().iter().enumerate();
        let names = names.filter(|(id, _)| !predictor.is_retired(LabelId(*id as u32)));
        let found = names.filter(|(_, name)| contains(name, &needle));
        let found: Vec<Entry<'_>> = found
            .map(|(id, name)| Entry {
                id,
                name,
                count: predictor.label_counts()[id] as usize,
            })
            .collect();
        let total = found.len();
        let labels = list.page(found).map(|entry| ListedLabel {
            id: entry.id as u32,
            label: entry.name,
            n_points: entry.count as u32,
        });
        json::response(&LabelList {
            model: &model.name,
            total,
            labels: labels.collect(),
        })
    })
    .await
}

/// A label as a model knows it
#[utoipa::path(
    get,
    path = "/v1/labels/{id}",
    operation_id = "label",
    params(("id" = u32, Path, description = "The label's number", example = 3), ModelQuery),
    responses(
        (status = 200, description = "The label", body = LabelResponse, example = json!({
            "model": "default",
            "id": 3,
            "label": "libpng16-16",
            "n_points": 61,
            "name_only": false,
            "clusters": [{"cluster": 7, "edge_score": 0.91}],
            "words": [["png", 3.2]],
            "examples": [{"point": 17, "words": ["png", "images", "viewer"]}],
        })),
        Errors,
    )
)]
pub(crate) async fn one(
    State(service): State<Service>,
    path: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let label = LabelId(query::id(path)?);
    let model = ModelQuery::parse(&uri)?.model;
    let model = service.models().get(model.as_deref())?;
    if model.predictor.labels().len() <= label.idx() {
        return Err(ApiError::NotFound("the model has no such label".into()));
    }
    in_time(&service, move || label_response(&model, label)).await
}

fn label_response(model: &Model, label: LabelId) -> Response {
    let predictor = &model.predictor;
    let details = predictor
        .inspect_label(label, N_DETAILS)
        .unwrap_or_default();
    json::response(&LabelResponse {
        model: &model.name,
        id: label.0,
        label: predictor.labels().name(label),
        n_points: predictor.label_counts()[label.idx()],
        name_only: predictor.n_trained_labels() <= label.idx(),
        clusters: details.clusters,
        words: details.words,
        examples: details.examples,
    })
}

/// Whether a name contains what is searched for, in any case.
pub(crate) fn contains(name: &str, needle: &str) -> bool {
    needle.is_empty() || name.contains(needle) || name.to_lowercase().contains(needle)
}

/// Work on a thread that answers, within the time of a request.
pub(crate) async fn in_time<T: Send + 'static>(
    service: &Service,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    let deadline = Instant::now() + service.options().timeout;
    let done = timeout_at(deadline, service.queue().run(work)?).await;
    done.map_err(|_| ApiError::Timeout)?
        .map_err(|_| ApiError::Internal)
}
