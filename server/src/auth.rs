//! The API keys: compared in constant time, never written anywhere.
//!
//! The key for learning also reads; without one, nobody learns.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::error::ApiError;
use crate::options::Options;
use crate::service::Service;

/// A key, as its hash: comparing hashes takes the same time for keys of any length.
struct Key([u8; 32]);

impl Key {
    fn new(key: &str) -> Self {
        Key(Sha256::digest(key).into())
    }

    fn is(&self, key: &str) -> bool {
        let other: [u8; 32] = Sha256::digest(key).into();
        self.0.ct_eq(&other).into()
    }
}

/// The keys of a service.
pub(crate) struct Keys {
    /// Without it, everybody reads.
    read: Option<Key>,
    /// Without it, nobody learns.
    learn: Option<Key>,
}

impl Keys {
    pub(crate) fn new(options: &Options) -> Self {
        Keys {
            read: options.api_key.as_deref().map(Key::new),
            learn: options.learn_key.as_deref().map(Key::new),
        }
    }

    /// Whether nobody needs a key to read.
    pub(crate) fn is_open(&self) -> bool {
        self.read.is_none()
    }

    /// Whether somebody may learn.
    pub(crate) fn may_learn(&self) -> bool {
        self.learn.is_some()
    }

    fn check_reading(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(read) = &self.read else {
            return Ok(());
        };
        let is_learn = |sent| self.learn.as_ref().is_some_and(|learn| learn.is(sent));
        match sent(headers) {
            Some(sent) if read.is(sent) || is_learn(sent) => Ok(()),
            _ => Err(ApiError::Unauthorized),
        }
    }

    fn check_learning(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(learn) = &self.learn else {
            let problem = "this service does not learn: it needs a key for it, --learn-key-file";
            return Err(ApiError::Forbidden(problem));
        };
        let is_read = |sent| self.read.as_ref().is_some_and(|read| read.is(sent));
        match sent(headers) {
            Some(sent) if learn.is(sent) => Ok(()),
            Some(sent) if is_read(sent) => {
                let problem = "this key may read and not learn: send the key for learning";
                Err(ApiError::Forbidden(problem))
            }
            _ => Err(ApiError::Unauthorized),
        }
    }
}

/// The key that a request carries.
fn sent(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// Lets a request pass that may read.
pub(crate) async fn may_read(
    State(service): State<Service>,
    request: Request,
    next: Next,
) -> Response {
    match service.keys().check_reading(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

/// Lets a request pass that may learn.
pub(crate) async fn may_learn(
    State(service): State<Service>,
    request: Request,
    next: Next,
) -> Response {
    match service.keys().check_learning(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}
