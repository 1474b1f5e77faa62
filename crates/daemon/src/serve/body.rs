//! Bodies of requests, of limited size.

use std::future::poll_fn;
use std::pin::Pin;

use axum::body::{Body, Bytes, HttpBody as _};

/// Multiple of the limit up to which an oversized body is drained.
const DRAIN_FACTOR: usize = 16;

/// Reads a body of at most `limit` bytes; `None` if it is larger.
///
/// Drains oversized bodies so that the client gets the 413, not a reset.
pub async fn read_limited(mut body: Body, limit: usize) -> Result<Option<Bytes>, axum::Error> {
    let (mut bytes, mut size) = (Vec::new(), 0_usize);
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(data) = frame?.into_data() else { continue };
        size = size.saturating_add(data.len());
        if size <= limit {
            bytes.extend_from_slice(&data);
        } else if size > limit.saturating_mul(DRAIN_FACTOR) {
            break;
        } else {
            bytes.clear();
        }
    }
    Ok((size <= limit).then(|| Bytes::from(bytes)))
}
