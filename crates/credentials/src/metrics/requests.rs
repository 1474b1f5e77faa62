//! Metrics of the requests of the HTTP API.

use std::time::Duration;

use daemon::metrics::register;
use fleet_model::metrics::credentials as catalogue;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// An answered request.
#[derive(Clone, Copy, Debug)]
pub struct AnsweredRequest<'a> {
    /// The method, one of a closed list.
    pub method: &'a str,
    /// The path with placeholders.
    pub route: &'static str,
    /// The status.
    pub status: u16,
    /// The time that it took.
    pub duration: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByStatus {
    method: String,
    route: &'static str,
    status: u16,
}

/// The requests that were answered.
#[derive(Clone, Debug)]
pub(super) struct Requests(Family<ByStatus, Histogram, fn() -> Histogram>);

// === impl Requests ===

impl Requests {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let new: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2.0, 15));
        let requests = Self(Family::new_with_constructor(new));
        register(registry, &catalogue::REQUEST_DURATION, requests.0.clone());
        requests
    }

    pub(super) fn answered(&self, answered: &AnsweredRequest<'_>) {
        let AnsweredRequest { method, route, status, duration } = *answered;
        let labels = ByStatus { method: method.to_owned(), route, status };
        self.0.get_or_create(&labels).observe(duration.as_secs_f64());
    }
}
