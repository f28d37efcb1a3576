//! A body that holds on to something until it was handed over.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use crate::peers::Active;

/// The body of a response; its request counts as active while it exists.
pub(crate) struct GuardedBody {
    body: Body,
    _active: Active,
}

impl GuardedBody {
    pub(crate) fn new(body: Body, active: Active) -> Self {
        GuardedBody {
            body,
            _active: active,
        }
    }
}

impl HttpBody for GuardedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
