//! The span of a reconcile pass, which continues the trace of its event, or of the Job whose end has caused it.

use daemon::log::SPANS;
use daemon::traces;
use fleet_model::names::trace::{GENERATION, JOB, MESSAGE, OPERATION, REASON, RECONCILE, RESOURCE_ID, RESOURCE_TYPE};
use hyperfleet_client::Resource;
use tracing::field::Empty;
use tracing::{Span, info_span};

use crate::decide::Plan;
use crate::manifest::Trigger;

/// Begins the span of a pass. What the pass causes belongs to it: its trigger has the span's trace afterwards.
pub(super) fn begin(resource_type: &str, id: &str, trigger: &mut Trigger) -> Span {
    let span = info_span!(
        target: SPANS,
        RECONCILE,
        otel.kind = if trigger.event.is_some() { "consumer" } else { "internal" },
        { OPERATION } = trigger.event.as_ref().map(|_| "process"),
        { MESSAGE } = trigger.event.as_deref(),
        { RESOURCE_TYPE } = resource_type,
        { RESOURCE_ID } = id,
        { GENERATION } = Empty,
        { REASON } = Empty,
        { JOB } = Empty,
    );
    let span = traces::continuing(trigger.trace.as_ref(), span);
    trigger.trace = traces::context(&span).or_else(|| trigger.trace.take());
    span
}

/// Adds what was decided to the span of the pass.
pub(super) fn decided(plan: &Plan, resource: &Resource) {
    let span = Span::current();
    span.record(REASON, plan.reason.as_str());
    span.record(GENERATION, i64::from(resource.generation));
    if let Some(job) = &plan.job {
        span.record(JOB, job.name.as_str());
    }
}
