//! Reading the body of a request within limits: bytes per request, bytes of all requests, and time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout, timeout_at};

use crate::error::ApiError;
use crate::service::Service;

/// Bodies of the maximum size that may be in memory at a time.
const MAX_BODIES: usize = 8;
/// For how long the rest of a body that is too long is read, so that its sender can read the answer.
const DISCARD_TIME: Duration = Duration::from_secs(1);

/// A body, which counts against the limit of all bodies until it is dropped: when its request is answered.
pub(crate) struct Held {
    bytes: Vec<u8>,
    service: Service,
}

impl std::ops::Deref for Held {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let count = self.service.n_body_bytes();
        count.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

impl Held {
    fn push(&mut self, chunk: &Bytes) -> Result<(), ApiError> {
        let max_bytes = self.service.options().max_body_bytes;
        if max_bytes < self.bytes.len() + chunk.len() {
            return Err(ApiError::TooLarge(max_bytes));
        }
        let count = self.service.n_body_bytes();
        let n_all = count.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len();
        self.bytes.extend_from_slice(chunk);
        if max_bytes.saturating_mul(MAX_BODIES) < n_all {
            return Err(ApiError::QueueFull);
        }
        Ok(())
    }
}

/// Checks the type of a body and reads it.
pub(crate) async fn read(
    service: &Service,
    headers: &HeaderMap,
    kind: &'static str,
    mut body: Body,
    deadline: Instant,
) -> Result<Held, ApiError> {
    let mut held = Held {
        bytes: Vec::new(),
        service: service.clone(),
    };
    let checked = check_kind(headers, kind).and_then(|()| check_length(headers, service));
    let read = match checked {
        Ok(()) => receive(&mut held, &mut body, deadline).await,
        Err(error) => Err(error),
    };
    match read {
        Ok(()) => Ok(held),
        Err(ApiError::SlowBody) => Err(ApiError::SlowBody),
        // Whoever asks before sending a body need not send it.
        Err(error) if headers.contains_key(header::EXPECT) => Err(error),
        Err(error) => {
            drop(held);
            let discard = async { while let Some(Ok(_)) = body.frame().await {} };
            let _ = timeout(DISCARD_TIME, discard).await;
            Err(error)
        }
    }
}

async fn receive(held: &mut Held, body: &mut Body, deadline: Instant) -> Result<(), ApiError> {
    loop {
        let frame = timeout_at(deadline, body.frame()).await;
        let Some(frame) = frame.map_err(|_| ApiError::SlowBody)? else {
            return Ok(());
        };
        // The client has gone, or its chunks are malformed.
        let frame = frame.map_err(|_| ApiError::BadJson("the body ended early".into()))?;
        if let Some(chunk) = frame.data_ref() {
            held.push(chunk)?;
        }
    }
}

fn check_kind(headers: &HeaderMap, kind: &'static str) -> Result<(), ApiError> {
    let found = headers.get(header::CONTENT_TYPE);
    let found = found.and_then(|value| value.to_str().ok()).unwrap_or("");
    let found = found.split(';').next().unwrap_or("").trim();
    if found.eq_ignore_ascii_case(kind) {
        return Ok(());
    }
    Err(ApiError::UnsupportedMediaType(kind))
}

fn check_length(headers: &HeaderMap, service: &Service) -> Result<(), ApiError> {
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let max_bytes = service.options().max_body_bytes;
    if length.is_some_and(|length| (max_bytes as u64) < length) {
        return Err(ApiError::TooLarge(max_bytes));
    }
    Ok(())
}
