//! The API key: compared in constant time, never written anywhere.

use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::error::ApiError;
use crate::service::Service;

/// A key, as its hash: comparing hashes takes the same time for keys of any length.
pub(crate) struct Key([u8; 32]);

impl Key {
    pub(crate) fn new(key: &str) -> Self {
        Key(Sha256::digest(key).into())
    }

    fn is(&self, key: &str) -> bool {
        let other: [u8; 32] = Sha256::digest(key).into();
        self.0.ct_eq(&other).into()
    }
}

/// Lets a request pass if it carries the key, or none is set.
pub(crate) async fn check(
    State(service): State<Service>,
    request: Request,
    next: Next,
) -> Response {
    let Some(key) = service.key() else {
        return next.run(request).await;
    };
    let value = request.headers().get(header::AUTHORIZATION);
    let sent = value.and_then(|value| value.to_str().ok());
    let sent = sent.and_then(|value| value.split_once(' '));
    match sent {
        Some((scheme, sent)) if scheme.eq_ignore_ascii_case("bearer") && key.is(sent.trim()) => {
            next.run(request).await
        }
        _ => ApiError::Unauthorized.into_response(),
    }
}
