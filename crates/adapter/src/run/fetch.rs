//! Fetches a resource with what adapters have reported about it from the API.

use hyperfleet_client::{Calls, Error, Report, Resource, WithPullSecret};
use serde_json::Value;

use super::context::Context;

/// Returns the resource with every adapter's report, and with its pull secret if the API returns it to this adapter.
pub(super) async fn fetch(context: &Context, calls: &Calls<'_>, id: &str) -> Result<Option<WithPullSecret>, Error> {
    let plural = &context.config.resource_type;
    let plain = async || {
        let found = calls.get(plural, id).await?;
        Ok(found.map(|resource| WithPullSecret { resource, pull_secret: None }))
    };
    let fetched = if context.config.input.is_none() {
        plain().await?
    } else {
        match calls.get_with_pull_secret(plural, id).await {
            Err(error) if error.status() == Some(403) => plain().await?,
            other => other?,
        }
    };
    let Some(WithPullSecret { resource, pull_secret }) = fetched else { return Ok(None) };
    let resource = calls.with_adapters(plural, resource).await?;
    Ok(Some(WithPullSecret { resource, pull_secret }))
}

/// Returns this adapter's last report about a resource that was [fetched](fetch).
pub(super) fn last_report(context: &Context, resource: &Resource) -> Option<Report> {
    let name = &context.config.adapter;
    let mut report = resource.status.adapters.as_ref()?.get(name)?.clone();
    report.as_object_mut()?.insert("adapter".to_owned(), Value::from(name.as_str()));
    serde_json::from_value(report).ok()
}
