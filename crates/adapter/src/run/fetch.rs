//! Fetches a resource and this adapter's last report from the API.

use hyperfleet_client::{Calls, Error, Report, Resource, View, WithPullSecret};
use serde_json::Value;

use super::context::Context;

/// Returns the resource, with its pull secret if the API returns it to this adapter.
pub(super) async fn fetch(context: &Context, calls: &Calls<'_>, id: &str) -> Result<Option<WithPullSecret>, Error> {
    let plural = &context.config.resource_type;
    let plain = async || {
        let found = calls.get(plural, id).await?;
        Ok(found.map(|resource| WithPullSecret { resource, pull_secret: None }))
    };
    if context.config.input.is_none() {
        return plain().await;
    }
    match calls.get_with_pull_secret(plural, id).await {
        Err(error) if error.status() == Some(403) => plain().await,
        other => other,
    }
}

/// Returns this adapter's last report: from the resource, or from the statuses where the API has no view of adapters.
pub(super) async fn last_report(
    context: &Context,
    calls: &Calls<'_>,
    resource: &Resource,
) -> Result<Option<Report>, Error> {
    let name = &context.config.adapter;
    let view = View::of(resource);
    if resource.status.adapters.is_empty() && !resource.status.conditions.is_empty() {
        let all = calls.statuses(&context.config.resource_type, &resource.id).await?;
        return Ok(all.into_iter().find(|item| item.adapter == *name));
    }
    Ok(view.adapter(name).and_then(|report| {
        let mut item = report.clone();
        item.as_object_mut()?.insert("adapter".to_owned(), Value::from(name.as_str()));
        serde_json::from_value(item).ok()
    }))
}
