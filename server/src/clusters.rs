//! `GET /v1/clusters` and `GET /v1/clusters/{id}`: the clusters of a model's index, and the labels of one.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use elias::insight::ClusterDetails;
use elias::{ClusterId, Scored};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::json;
use crate::labels::{contains, in_time};
use crate::openapi::Errors;
use crate::query::{self, Entry, ListQuery, ModelQuery};
use crate::service::Service;

/// Labels of a cluster to show.
const N_LABELS: usize = 100;

/// Clusters whose strongest labels contain what was searched for.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClusterList<'a> {
    model: &'a str,
    /// How many there are in all.
    total: usize,
    clusters: Vec<ListedCluster<'a>>,
}

/// A cluster.
#[derive(Serialize, ToSchema)]
pub(crate) struct ListedCluster<'a> {
    cluster: usize,
    /// Labels it leads to.
    n_labels: usize,
    /// The strongest of them.
    labels: Vec<&'a str>,
}

/// The labels of a cluster.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClusterResponse<'a> {
    model: &'a str,
    cluster: u32,
    /// Labels it leads to.
    n_labels: usize,
    /// The strongest of them.
    labels: Vec<ClusterLabel<'a>>,
}

/// A label that a cluster leads to.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClusterLabel<'a> {
    id: u32,
    label: &'a str,
    /// How strongly it belongs to the cluster, from 0 to 1.
    edge_score: f32,
}

/// The clusters of a model
#[utoipa::path(
    get,
    path = "/v1/clusters",
    operation_id = "clusters",
    params(ListQuery),
    responses(
        (status = 200, description = "The clusters", body = ClusterList, example = json!({
            "model": "default",
            "total": 203,
            "clusters": [{"cluster": 0, "n_labels": 68, "labels": ["libpng16-16", "zlib1g"]}],
        })),
        Errors,
    )
)]
pub(crate) async fn list(State(service): State<Service>, uri: Uri) -> Result<Response, ApiError> {
    let list = ListQuery::parse(&uri)?;
    let model = service.models().get(list.model.as_deref())?;
    in_time(&service, move || {
        let needle = list.query.to_lowercase();
        let all = model.clusters();
        let names = |cluster: &ClusterDetails| -> Vec<&str> {
            let labels = cluster.labels.iter();
            let names = labels.map(|&Scored { label, .. }| model.predictor.labels().name(label));
            names.collect()
        };
        let entries = all.iter().enumerate().filter_map(|(id, details)| {
            let names = names(details);
            let is_found = needle.is_empty() || names.iter().any(|name| contains(name, &needle));
            is_found.then(|| Entry {
                id,
                name: names.first().copied().unwrap_or_default(),
                count: details.n_labels,
            })
        });
        let found: Vec<Entry<'_>> = entries.collect();
        let total = found.len();
        let clusters = list.page(found).map(|entry| ListedCluster {
            cluster: entry.id,
            n_labels: entry.count,
            labels: names(&all[entry.id]),
        });
        json::response(&ClusterList {
            model: &model.name,
            total,
            clusters: clusters.collect(),
        })
    })
    .await
}

/// The strongest labels of a cluster
#[utoipa::path(
    get,
    path = "/v1/clusters/{id}",
    operation_id = "cluster",
    params(("id" = u32, Path, description = "The cluster's number", example = 3), ModelQuery),
    responses(
        (status = 200, description = "The cluster", body = ClusterResponse, example = json!({
            "model": "default",
            "cluster": 3,
            "n_labels": 68,
            "labels": [{"id": 1006, "label": "libpng16-16", "edge_score": 0.91}],
        })),
        Errors,
    )
)]
pub(crate) async fn one(
    State(service): State<Service>,
    path: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let cluster = query::id(path)?;
    let model = ModelQuery::parse(&uri)?.model;
    let model = service.models().get(model.as_deref())?;
    let found = in_time(&service, move || {
        let details = model
            .predictor
            .inspect_cluster(ClusterId(cluster), N_LABELS)?;
        let labels = details.labels.iter();
        let labels = labels.map(|&Scored { label, score }| ClusterLabel {
            id: label.0,
            label: model.predictor.labels().name(label),
            edge_score: score,
        });
        Some(json::response(&ClusterResponse {
            model: &model.name,
            cluster,
            n_labels: details.n_labels,
            labels: labels.collect(),
        }))
    });
    let found = found.await?;
    found.ok_or_else(|| ApiError::NotFound("the model has no such cluster".into()))
}
