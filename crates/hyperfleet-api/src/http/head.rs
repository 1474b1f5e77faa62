//! The head of a request, as authentication sees it.

use std::net::IpAddr;

use http::HeaderMap;

/// The head of a request, as far as it says who calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    pub(super) headers: &'a HeaderMap,
    /// The address of the connection's other end, if it has one.
    pub(super) peer: Option<IpAddr>,
    /// True if the request may change something.
    pub(super) writes: bool,
    /// True if the request is a report.
    pub(super) reports: bool,
}
