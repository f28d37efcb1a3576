//! Which address leads where, and what happens around every request.

use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use tower_http::cors::{AllowOrigin, Any, CorsLayer};

use crate::error::ApiError;
use crate::service::Service;
use crate::{
    annif, answers, auth, clusters, docs, explain, gate, info, labels, learn, openapi, page,
    predict,
};

/// All endpoints of a service.
pub fn router(service: &Service) -> Router {
    let guarded = Router::new()
        .route("/v1/predict", post(predict::predict))
        .route("/v1/explain", post(explain::explain))
        .route("/v1/labels", get(labels::list))
        .route("/v1/labels/{id}", get(labels::one))
        .route("/v1/clusters", get(clusters::list))
        .route("/v1/clusters/{id}", get(clusters::one))
        .route("/v1/models", get(info::models))
        .route("/v1/limits", get(info::limits))
        .route("/v1/annif/{name}", get(annif::project))
        .route("/v1/annif/{name}/suggest", post(annif::suggest))
        .route_layer(from_fn(answers::hold))
        .route_layer(from_fn_with_state(service.clone(), auth::may_read));
    let learning = Router::new()
        .route("/v1/learn", post(learn::learn))
        .route("/v1/learned", get(learn::learned))
        .route_layer(from_fn(answers::hold))
        .route_layer(from_fn_with_state(service.clone(), auth::may_learn));
    let open = Router::new()
        .route("/health", get(info::health))
        .route("/ready", get(info::ready))
        .route("/metrics", get(info::metrics))
        .route("/openapi.json", get(openapi::description))
        .route("/docs", get(docs::docs));
    let router = guarded
        .merge(learning)
        .merge(open)
        .fallback(page::file)
        .method_not_allowed_fallback(|| async { ApiError::MethodNotAllowed });
    let router = match cors(&service.options().cors_origins) {
        Some(cors) => router.layer(cors),
        None => router,
    };
    router
        .layer(from_fn_with_state(service.clone(), gate::check))
        .layer(from_fn_with_state(service.clone(), observe))
        .layer(from_fn(not_sniffed))
        .with_state(service.clone())
}

/// Whether pages of an origin may be told of in a header.
pub(crate) fn is_origin(origin: &str) -> bool {
    let is_web = origin.starts_with("http://") || origin.starts_with("https://");
    origin == "*" || (is_web && HeaderValue::from_str(origin).is_ok())
}

fn cors(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let origin = if origins.iter().any(|origin| origin == "*") {
        AllowOrigin::from(Any)
    } else {
        let values = origins.iter().filter_map(|origin| origin.parse().ok());
        AllowOrigin::list(values)
    };
    let layer = CorsLayer::new()
        .allow_origin(origin)
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE])
        .expose_headers([header::RETRY_AFTER]);
    Some(layer)
}

/// Counts a request, and logs it if asked to: the endpoint, never what was sent to it.
async fn observe(
    State(service): State<Service>,
    path: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let response = next.run(request).await;
    let (status, time) = (response.status().as_u16(), started.elapsed());
    let endpoint = path.as_ref().map_or("page", MatchedPath::as_str);
    service.metrics().observe_request(endpoint, status, time);
    if service.options().log_requests {
        // A method of the client's own making could hold anything.
        let is_known = [Method::GET, Method::POST, Method::HEAD, Method::OPTIONS].contains(&method);
        let method = if is_known { method.as_str() } else { "OTHER" };
        let milliseconds = 1e3 * time.as_secs_f64();
        let line = format!("{method} {endpoint} {status} {milliseconds:.1} ms");
        service.options().log.line(&line);
    }
    response
}

/// Browsers take every answer for what it is declared to be.
async fn not_sniffed(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let value = HeaderValue::from_static("nosniff");
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, value);
    response
}
