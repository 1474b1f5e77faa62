//! The span of a request, which continues the trace of its caller.

use axum::extract::Request;
use daemon::log::SPANS;
use daemon::traces;
use fleet_model::names::trace::{GENERATION, METHOD, REQUEST, REQUEST_ID, RESOURCE_ID, RESOURCE_TYPE, ROUTE, STATUS};
use http::StatusCode;
use tracing::field::Empty;
use tracing::{Span, info_span};

use super::route::Route;
use crate::excerpt::excerpt;
use crate::metrics::known;
use crate::resource::Resource;

/// OpenTelemetry's method in place of one that is not known.
const OTHER: &str = "_OTHER";

/// The path of a route with `-` in place of ids.
pub(super) fn template(route: Option<&Route<'_>>) -> String {
    route.map_or_else(|| "unknown".to_owned(), Route::template)
}

/// The span of a request. A `traceparent` that is malformed is ignored.
pub(super) fn span(request: &Request, route: Option<&Route<'_>>, id: &str) -> Span {
    let address = || route.and_then(Route::address);
    let method = known(request.method());
    let span = info_span!(
        target: SPANS,
        REQUEST,
        otel.name = format!("{} {}", method.unwrap_or("HTTP"), template(route)),
        otel.kind = "server",
        { METHOD } = method.unwrap_or(OTHER),
        { ROUTE } = template(route),
        { REQUEST_ID } = id,
        { RESOURCE_TYPE } = address().and_then(|address| address.descriptor).map(|descriptor| descriptor.plural.as_str()),
        { RESOURCE_ID } = address().map(|address| excerpt(address.id)),
        { GENERATION } = Empty,
        { STATUS } = Empty,
    );
    if span.is_disabled() {
        return span;
    }
    let parent = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
    traces::continuing(parent.and_then(|text| text.parse().ok()).as_ref(), span)
}

/// Adds what has been written to the span of the request.
pub(super) fn written(resource: &Resource) {
    let span = Span::current();
    span.record(RESOURCE_ID, resource.id.as_str());
    span.record(GENERATION, i64::from(resource.generation));
}

/// Adds the answer to the span. Errors of the server fail it.
pub(super) fn answered(span: &Span, status: StatusCode) {
    span.record(STATUS, status.as_u16());
    if status.is_server_error() {
        traces::fail(span, status.as_str());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Debug;
    use std::sync::{Arc, Mutex};

    use axum::body::Body;
    use rstest::rstest;
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

    /// Keeps the texts among the attributes of spans.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<BTreeMap<&'static str, String>>>);

    impl Visit for Kept {
        fn record_str(&mut self, field: &Field, value: &str) {
            self.0.lock().unwrap().insert(field.name(), value.to_owned());
        }

        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            self.record_str(field, &format!("{value:?}"));
        }
    }

    impl Subscriber for Kept {
        fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, attributes: &Attributes<'_>) -> Id {
            attributes.record(&mut self.clone());
            Id::from_u64(1)
        }

        fn record(&self, _span: &Id, _values: &Record<'_>) {}

        fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

        fn event(&self, _event: &Event<'_>) {}

        fn enter(&self, _span: &Id) {}

        fn exit(&self, _span: &Id) {}
    }

    /// The number of values is bounded, and the length of each: a client sends whatever method it likes.
    #[rstest]
    #[case::get("GET", "GET", "GET unknown")]
    #[case::delete("DELETE", "DELETE", "DELETE unknown")]
    #[case::of_another_case("get", "_OTHER", "HTTP unknown")]
    #[case::not_served("OPTIONS", "_OTHER", "HTTP unknown")]
    #[case::invented("BREW-0af7651916cd43dd", "_OTHER", "HTTP unknown")]
    fn the_method_of_a_span_is_one_that_the_api_knows(#[case] sent: &str, #[case] method: &str, #[case] name: &str) {
        let kept = Kept::default();
        let request = Request::builder().method(sent).body(Body::empty()).unwrap();
        tracing::subscriber::with_default(kept.clone(), || drop(span(&request, None, "id")));
        let attributes = kept.0.lock().unwrap();
        assert_eq!((attributes[METHOD].as_str(), attributes["otel.name"].as_str()), (method, name));
        assert!(!attributes.values().any(|value| method != sent && value.contains(sent)), "{attributes:?}");
    }
}
