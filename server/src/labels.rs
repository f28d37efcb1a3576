//! `GET /v1/labels` and `GET /v1/labels/{id}`: the labels of a model, and what it knows of one.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use elias::LabelId;
use elias::insight::ClusterEdge;
use serde::Serialize;
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::json;
use crate::models::Model;
use crate::openapi::Errors;
use crate::query::{self, ListQuery, ModelQuery};
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
    /// The clusters that lead to it, the strongest edge first.
    #[schema(value_type = Vec<Object>)]
    clusters: Vec<ClusterEdge>,
    /// The words that the ranker weighs most for it.
    words: Vec<(String, f32)>,
    /// Some of its training points.
    examples: Vec<Example>,
}

/// A training point.
#[derive(Serialize, ToSchema)]
pub(crate) struct Example {
    /// Its number in the training data.
    point: usize,
    /// Its text, if it is kept.
    text: Option<String>,
}

/// The labels of a model, in the order of their numbers
#[utoipa::path(
    get,
    path = "/v1/labels",
    params(ListQuery),
    responses(
        (status = 200, description = "The labels", body = LabelList),
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
        let found = names.filter(|(_, name)| contains(name, &needle));
        let (mut total, mut labels) = (0, Vec::new());
        for (label_idx, name) in found {
            if list.offset <= total && labels.len() < list.limit {
                labels.push(ListedLabel {
                    id: label_idx as u32,
                    label: name,
                    n_points: predictor.label_counts()[label_idx],
                });
            }
            total += 1;
        }
        json::response(&LabelList {
            model: &model.name,
            total,
            labels,
        })
    })
    .await
}

/// A label as a model knows it
#[utoipa::path(
    get,
    path = "/v1/labels/{id}",
    params(("id" = u32, Path, description = "The label's number"), ModelQuery),
    responses(
        (status = 200, description = "The label", body = LabelResponse),
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
    let examples = details.examples.into_iter();
    json::response(&LabelResponse {
        model: &model.name,
        id: label.0,
        label: predictor.labels().name(label),
        n_points: predictor.label_counts()[label.idx()],
        clusters: details.clusters,
        words: details.words,
        examples: examples
            .map(|point| Example { point, text: None })
            .collect(),
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
