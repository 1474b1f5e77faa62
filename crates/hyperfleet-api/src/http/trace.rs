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
use crate::metrics::bounded;
use crate::resource::Resource;

/// The path of a route with `-` in place of ids.
pub(super) fn template(route: Option<&Route<'_>>) -> String {
    route.map_or_else(|| "unknown".to_owned(), Route::template)
}

/// The span of a request. A `traceparent` that is malformed is ignored.
pub(super) fn span(request: &Request, route: Option<&Route<'_>>, id: &str) -> Span {
    let address = || route.and_then(Route::address);
    let method = bounded(request.method());
    let span = info_span!(
        target: SPANS,
        REQUEST,
        otel.name = format!("{method} {}", template(route)),
        otel.kind = "server",
        { METHOD } = method,
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
