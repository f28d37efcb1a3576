//! JSON in and out: strict about keys and nulls, so that the description of the interface is exact.

use std::io;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error, Unexpected};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::error::ApiError;

/// Bodies up to this size are read and written between the turns of other connections.
const SMALL: usize = 64 << 10;

/// A response with this body.
pub(crate) fn response(body: &impl Serialize) -> Response {
    let mut start = Start(Vec::new());
    let written = match serde_json::to_writer(&mut start, body) {
        Ok(()) => Ok(start.0),
        Err(_) => aside(usize::MAX, || serde_json::to_vec(body)),
    };
    match written {
        Ok(bytes) => {
            let kind = HeaderValue::from_static("application/json");
            ([(header::CONTENT_TYPE, kind)], bytes).into_response()
        }
        // Only a map with keys other than strings cannot be written, and there is none.
        Err(_) => axum::http::StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Parses a body.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    Ok(aside(body.len(), || serde_json::from_slice(body))?)
}

/// Works on so many bytes; where that takes milliseconds, other connections do not wait for it.
pub(crate) fn aside<T>(n_bytes: usize, work: impl FnOnce() -> T) -> T {
    let runtime = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match runtime {
        Ok(RuntimeFlavor::MultiThread) if SMALL < n_bytes => tokio::task::block_in_place(work),
        // Little work, not on a thread of connections, or on the only one.
        _ => work(),
    }
}

/// The start of a body; an error beyond it.
struct Start(Vec<u8>);

impl io::Write for Start {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if SMALL < self.0.len() + bytes.len() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An optional key that must not be null where it is given.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// A whole number of at least 0; 5.0 is one, too, as in JSON Schema.
pub(crate) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    whole_number(deserializer).map(Some)
}

/// The same where it cannot be left out.
pub(crate) fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let number = serde_json::Number::deserialize(deserializer)?;
    if let Some(whole) = number.as_u64() {
        return Ok(whole as usize);
    }
    match number.as_f64() {
        Some(float) if float.fract() == 0.0 && (0.0..1e15).contains(&float) => Ok(float as usize),
        float => {
            let found = Unexpected::Float(float.unwrap_or(f64::NAN));
            Err(D::Error::invalid_value(found, &"an integer of at least 0"))
        }
    }
}
