//! Lists: one page, in the order of ids, and a link to the next one.

use std::collections::BTreeMap;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::document::Document;
use super::{Phase, State};
use crate::key_vault::refusal::Refusal;
use crate::key_vault::request::Request;

/// The largest page, and the one that is given when none is asked for.
const PAGE_MAXIMUM: usize = 25;

impl State {
    /// The secrets by their newest versions.
    pub(super) fn list(&self, now: Timestamp, request: &Request) -> Result<Value, Refusal> {
        let live = self.secrets.iter().filter(|(_, secret)| self.rules.phase(now, secret.last) == Phase::Live);
        let items = live.filter_map(|(key, secret)| {
            let newest = self.rules.seen(now, secret).last()?;
            Some((key.clone(), self.rules.item(format!("{}/secrets/{}", request.base, secret.name), newest)))
        });
        page(request, "secrets", items.collect())
    }

    /// The versions of a secret; none if there is no such secret.
    pub(super) fn list_versions(&self, now: Timestamp, request: &Request) -> Result<Value, Refusal> {
        let live = self.live(now, &request.name).ok();
        let versions = live.into_iter().flat_map(|secret| {
            let seen = self.rules.seen(now, secret);
            seen.map(|version| (version.id.clone(), self.rules.properties(&request.base, &secret.name, version)))
        });
        page(request, &format!("secrets/{}/versions", request.name), versions.collect())
    }

    pub(super) fn list_deleted(&self, now: Timestamp, request: &Request) -> Result<Value, Refusal> {
        let deleted = self.secrets.iter().filter(|(_, secret)| self.rules.phase(now, secret.last) == Phase::Deleted);
        let items = deleted.filter_map(|(key, secret)| {
            let id = format!("{}/secrets/{}", request.base, secret.name);
            Some((key.clone(), Document { id, ..self.rules.deleted(&request.base, secret)? }))
        });
        page(request, "deletedsecrets", items.collect())
    }
}

fn page(request: &Request, path: &str, items: BTreeMap<String, Document>) -> Result<Value, Refusal> {
    let size = request.page.size.unwrap_or(PAGE_MAXIMUM);
    if !(1..=PAGE_MAXIMUM).contains(&size) {
        return Err(Refusal::bad_parameter(format!("maxresults must be between 1 and {PAGE_MAXIMUM}.")));
    }
    let after = request.page.after.as_deref().map(|token| {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok();
        let key = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        key.ok_or_else(|| Refusal::bad_parameter("The $skiptoken is not one of this server."))
    });
    let after = after.transpose()?;
    let left = items.into_iter().filter(|(key, _)| after.as_ref().is_none_or(|after| key > after));
    let mut left: Vec<_> = left.collect();
    let more = left.len() > size;
    left.truncate(size);
    let next = left.last().filter(|_| more).map(|(last, _)| {
        let (base, version) = (&request.base, &request.page.api_version);
        let token = BASE64_URL_SAFE_NO_PAD.encode(last);
        format!("{base}/{path}?api-version={version}&$skiptoken={token}&maxresults={size}")
    });
    Ok(json!({"value": left.into_iter().map(|(_, item)| item).collect::<Vec<_>>(), "nextLink": next}))
}
