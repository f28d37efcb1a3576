//! Reasons not to answer a request, and the one place that turns it into a status.
//!
//! The words go to the client, so they name no path of the server; nothing of a request goes to the log.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// Why a request is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApiError {
    /// The body is not JSON.
    BadJson(String),
    /// The header Host is missing, given twice or no host.
    BadHost(&'static str),
    /// The header Host is that of another service.
    ForeignHost,
    /// The body is coded in a way that is not known here.
    UnknownCoding,
    /// All connections are busy.
    Busy,
    /// The key is missing or wrong.
    Unauthorized,
    /// The key may not do this.
    Forbidden(&'static str),
    /// There is no such endpoint, model, label or cluster.
    NotFound(String),
    /// The endpoint does not know the method.
    MethodNotAllowed,
    /// The model cannot take what was sent, as it is now.
    Conflict(String),
    /// The body did not arrive in time.
    SlowBody,
    /// The body is too long.
    TooLarge(usize),
    /// The body has another type.
    UnsupportedMediaType(&'static str),
    /// A value makes no sense.
    BadValue(String),
    /// Too much is waiting.
    QueueFull,
    /// The service is shutting down.
    ShuttingDown,
    /// No answer in time.
    Timeout,
    /// The service failed; the log has the reason.
    Internal,
}

/// The body of every error.
#[derive(Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// The problem, in plain words.
    error: String,
    /// The kind of error, for programs.
    error_type: &'static str,
}

impl ApiError {
    /// Status, kind and words of an error.
    fn describe(self) -> (StatusCode, &'static str, String) {
        match self {
            ApiError::BadJson(problem) => (StatusCode::BAD_REQUEST, "bad_json", problem),
            ApiError::BadHost(problem) => (StatusCode::BAD_REQUEST, "bad_host", problem.into()),
            ApiError::ForeignHost => (
                StatusCode::MISDIRECTED_REQUEST,
                "foreign_host",
                "this service does not go by the name in the header Host: it can be told with --host"
                    .into(),
            ),
            ApiError::UnknownCoding => (
                StatusCode::NOT_IMPLEMENTED,
                "unknown_coding",
                "the only Transfer-Encoding is chunked".into(),
            ),
            ApiError::Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "all connections are busy: try again later".into(),
            ),
            ApiError::Unauthorized => (
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "send the API key in the header \"Authorization: Bearer KEY\"".into(),
            ),
            ApiError::Forbidden(problem) => (StatusCode::FORBIDDEN, "forbidden", problem.into()),
            ApiError::Conflict(problem) => (StatusCode::CONFLICT, "conflict", problem),
            ApiError::NotFound(what) => (StatusCode::NOT_FOUND, "not_found", what),
            ApiError::MethodNotAllowed => (
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "the endpoint does not know this method: see /docs".into(),
            ),
            ApiError::SlowBody => (
                StatusCode::REQUEST_TIMEOUT,
                "slow_body",
                "the body of the request did not arrive in time".into(),
            ),
            ApiError::TooLarge(max_bytes) => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                format!("the body has more than {max_bytes} bytes: send fewer or shorter texts"),
            ),
            ApiError::UnsupportedMediaType(expected) => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                format!("expected a body of type {expected}"),
            ),
            ApiError::BadValue(problem) => (StatusCode::UNPROCESSABLE_ENTITY, "bad_value", problem),
            ApiError::QueueFull => (
                StatusCode::TOO_MANY_REQUESTS,
                "queue_full",
                "too many texts are waiting: try again later".into(),
            ),
            ApiError::ShuttingDown => (
                StatusCode::SERVICE_UNAVAILABLE,
                "shutting_down",
                "the service is shutting down".into(),
            ),
            ApiError::Timeout => (
                StatusCode::GATEWAY_TIMEOUT,
                "timeout",
                "no answer in time: send fewer texts, or try again later".into(),
            ),
            ApiError::Internal => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "the service failed; its log has the reason".into(),
            ),
        }
    }
}

impl From<serde_json::Error> for ApiError {
    fn from(error: serde_json::Error) -> Self {
        // Long values are of no use to whoever sent them.
        let mut message: String = error.to_string().chars().take(300).collect();
        message.insert_str(0, "the body: ");
        if error.is_data() {
            ApiError::BadValue(message)
        } else {
            ApiError::BadJson(message)
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let is_busy = self == ApiError::Busy;
        let (status, error_type, error) = self.describe();
        let body = crate::json::response(&ErrorBody { error, error_type });
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        if status == StatusCode::TOO_MANY_REQUESTS {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if is_busy {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
