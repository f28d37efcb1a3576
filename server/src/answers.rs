//! Answers that their clients have not taken yet: counted, and bounded together.
//!
//! An answer counts until the last byte of it was handed to the system. Where a new one does not fit, the connection
//! whose client takes nothing for longest is closed; if all of them go on, the new one is refused.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};

use crate::error::ApiError;
use crate::peers::{Peer, Share};

/// Answers up to this size are not counted: the number of connections bounds them.
const SMALL: u64 = 4 << 10;

/// Counts an answer, or refuses it.
pub(crate) async fn hold(request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().cloned();
    let response = next.run(request).await;
    let n_bytes = response.body().size_hint().lower();
    let Some(peer) = peer.filter(|_| SMALL < n_bytes) else {
        return response;
    };
    match peer.hold(n_bytes as usize) {
        Some(share) => response.map(|body| {
            let share = Arc::new(share);
            Body::new(HeldBody { body, share })
        }),
        None => ApiError::QueueFull.into_response(),
    }
}

/// A body that is counted.
struct HeldBody {
    body: Body,
    share: Arc<Share>,
}

/// Bytes that are counted until they are dropped, wherever they wait.
struct HeldBytes {
    bytes: Bytes,
    _share: Arc<Share>,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let share = Arc::clone(&self.share);
        let frame = Pin::new(&mut self.body).poll_frame(context);
        frame.map_ok(|frame| {
            frame.map_data(|bytes| {
                Bytes::from_owner(HeldBytes {
                    bytes,
                    _share: share,
                })
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
