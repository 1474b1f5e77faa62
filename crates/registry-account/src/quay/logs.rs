//! Reads an account's usage in the organization's log.

use std::net::IpAddr;

use fleet_model::names::client::REGISTRY_PROBE;
use form_urlencoded::byte_serialize;
use http::{Method, StatusCode};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::settings::OrganizationName;
use super::wire;
use crate::client::Call;
use crate::contract::Usage;
use crate::error::AccountError;
use crate::request::Request;

/// Maximum number of pages of the log that one call reads; Quay's pages have 20 entries.
const MAX_PAGES: u32 = 50;

/// One page of the log, newest entries first.
#[derive(Deserialize)]
struct Page {
    logs: Vec<Entry>,
    #[serde(default)]
    next_page: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    kind: String,
    #[serde(default)]
    ip: Option<String>,
    datetime: String,
    #[serde(default)]
    metadata: Metadata,
}

/// The part of an entry's metadata that is of use. A pull names its agent in another way than a login.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    namespace: Option<String>,
    repo: Option<String>,
    #[serde(rename = "user-agent")]
    user_agent: Option<String>,
    useragent: Option<String>,
}

/// Reads the usage of the account of a call; see [`Registry::usage`](crate::contract::Registry::usage).
pub(super) async fn usage(
    call: &Call<'_>,
    organization: &OrganizationName,
    since: Timestamp,
) -> Result<Usage, AccountError> {
    // The log has whole seconds.
    let since = Timestamp::from_second(since.as_second()).unwrap_or(since);
    let day = since.to_zoned(TimeZone::UTC).strftime("%m/%d/%Y").to_string();
    let performer = call.resource.replace('+', "%2B");
    let first = format!("organization/{organization}/logs?performer={performer}&starttime={day}");
    let (mut usage, mut path) = (Usage::none(), first.clone());
    for request in 1..=MAX_PAGES {
        usage.requests = request;
        let answer = call.send(&Request::new("list_logs", Method::GET, path)).await?;
        if answer.status != StatusCode::OK {
            return Err(call.refused(&answer));
        }
        let page: Page = answer.parse().ok_or_else(|| call.unreadable())?;
        let mut is_past = false;
        for entry in &page.logs {
            let at = wire::time(&entry.datetime).ok_or_else(|| call.unreadable())?;
            is_past |= at < since;
            if at >= since {
                entry.add_to(&mut usage, at);
            }
        }
        match page.next_page {
            Some(next) if !is_past => {
                let next: String = byte_serialize(next.as_bytes()).collect();
                path = format!("{first}&next_page={next}");
            }
            _ => return Ok(usage),
        }
        if usage.last_pull.is_some() {
            break;
        }
    }
    usage.complete = false;
    Ok(usage)
}

// === impl Entry ===

impl Entry {
    fn add_to(&self, usage: &mut Usage, at: Timestamp) {
        let Metadata { namespace, repo, user_agent, useragent } = &self.metadata;
        let agent = user_agent.as_ref().or(useragent.as_ref());
        if agent.is_some_and(|agent| agent.starts_with(REGISTRY_PROBE)) {
            return;
        }
        match self.kind.as_str() {
            "pull_repo" => {
                let repository = namespace.as_ref().zip(repo.as_ref());
                usage.add_pull(at, repository.map(|(namespace, repo)| format!("{namespace}/{repo}")));
            }
            "login_failure" => {
                let source = self.ip.as_deref().and_then(|ip| ip.parse::<IpAddr>().ok());
                usage.add_failed_login(at, source);
            }
            _ => {}
        }
    }
}
