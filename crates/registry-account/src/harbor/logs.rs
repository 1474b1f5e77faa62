//! Reads an account's usage in the project's audit log.

use form_urlencoded::byte_serialize;
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde::Deserialize;

use super::pages::{PAGE, has_more};
use super::settings::ProjectName;
use super::wire;
use crate::client::Call;
use crate::contract::Usage;
use crate::error::{AccountError, ErrorKind};
use crate::name::AccountName;
use crate::request::Request;

/// Maximum number of pages of the log that one call reads.
const MAX_PAGES: u32 = 10;

#[derive(Deserialize)]
struct Entry {
    username: String,
    /// The repository with a tag or a digest.
    #[serde(default)]
    resource: String,
    operation: String,
    op_time: String,
}

/// Reads the pulls of the account of a call; see [`Registry::usage`](crate::contract::Registry::usage).
pub(super) async fn usage(
    call: &Call<'_>,
    project: &ProjectName,
    name: &AccountName,
    since: Timestamp,
) -> Result<Usage, AccountError> {
    // The log has whole milliseconds.
    let since = Timestamp::from_millisecond(since.as_millisecond()).unwrap_or(since);
    // Harbor unescapes the query twice, which makes a space of the login's plus sign: the name is looked for as a part.
    let query: String = byte_serialize(format!("operation=pull,username=~{name}").as_bytes()).collect();
    let mut usage = Usage::none();
    for number in 1..=MAX_PAGES {
        usage.requests = number;
        let path = format!("projects/{project}/auditlog-exts?q={query}&sort=-op_time&page={number}&page_size={PAGE}");
        let answer = call.send(&Request::new("list_audit_logs", Method::GET, path)).await?;
        match answer.status {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => {
                let hint = Some("use Harbor 2.13 or later, and check that the project exists".to_owned());
                let failed = AccountError { hint, ..call.failed(ErrorKind::Unsupported) };
                return Err(failed.with_detail("the project has no audit log at `auditlog-exts`"));
            }
            _ => return Err(call.refused(&answer)),
        }
        let entries: Vec<Entry> = answer.parse::<Option<_>>().ok_or_else(|| call.unreadable())?.unwrap_or_default();
        let mut is_past = false;
        for entry in &entries {
            let at = wire::time(&entry.op_time).ok_or_else(|| call.unreadable())?;
            is_past |= at < since;
            if at >= since && entry.operation == "pull" && entry.username == call.resource {
                usage.add_pull(at, entry.repository());
            }
        }
        if is_past || !has_more(&answer, u64::from(number), entries.len()) {
            return Ok(usage);
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
    fn repository(&self) -> Option<String> {
        let repository = self.resource.split([':', '@']).next().unwrap_or_default();
        Some(repository.to_owned()).filter(|repository| !repository.is_empty())
    }
}
