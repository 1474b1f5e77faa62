//! Lists: one page of what matches a filter, and a token for the next one.

use std::sync::Arc;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use jiff::Timestamp;

use super::filter::Filter;
use super::{Record, State, secret_not_found};
use crate::folder::fnv;
use crate::secret_manager::names::{Key, Parent};
use crate::secret_manager::status::Status;
use crate::secret_manager::wire::requests::{List, SecretsPage, VersionsPage};
use crate::secret_manager::wire::{Response, SecretVersion};

/// The largest page, and the one that is given when none is asked for.
const PAGE_MAXIMUM: usize = 25_000;

/// One page out of all that matched.
struct Page<T> {
    items: Vec<T>,
    next_page_token: String,
    total_size: i32,
}

impl State {
    pub(super) fn list_secrets(&self, now: Timestamp, list: &List) -> Result<Response, Status> {
        let parent = Parent::parse(&list.parent)?;
        let filter = Filter::parse(&list.filter)?;
        let records = self.seen_below(now, &parent);
        let matching = records.into_iter().filter(|(_, record)| filter.matches(&record.secret));
        let keyed = matching.map(|(key, record)| (key.id.as_str(), record));
        let page = page(list, &parent.to_string(), keyed, |record| record.secret.clone())?;
        let Page { items: secrets, next_page_token, total_size } = page;
        Ok(Response::Secrets(SecretsPage { secrets, next_page_token, total_size }))
    }

    pub(super) fn list_versions(&self, now: Timestamp, list: &List) -> Result<Response, Status> {
        let key = Key::parse(&list.parent)?;
        let filter = Filter::parse(&list.filter)?;
        let record = self.seen(now, &key).ok_or_else(|| secret_not_found(&key))?;
        // Newest first: the key of a page token counts down, so it is written as what is left to the maximum.
        let newest_first = record.versions.iter().rev().map(|(number, version)| (descending(*number), &version.meta));
        let matching: Vec<_> = newest_first.filter(|(_, version)| filter.matches(*version)).collect();
        let keyed = matching.iter().map(|(key, version)| (key.as_str(), *version));
        let page = page(list, &key.to_string(), keyed, SecretVersion::clone)?;
        let Page { items: versions, next_page_token, total_size } = page;
        Ok(Response::Versions(VersionsPage { versions, next_page_token, total_size }))
    }

    /// The secrets of a parent as eventually consistent reads see them, by id.
    fn seen_below(&self, now: Timestamp, parent: &Parent) -> Vec<(&Key, &Arc<Record>)> {
        let first = Key { parent: parent.clone(), id: String::new() };
        if self.past.is_empty() {
            let below = self.secrets.range(first..).take_while(|(key, _)| key.parent == *parent);
            return below.collect();
        }
        let below = self.past.range(first..).take_while(|(key, _)| key.parent == *parent);
        below.filter_map(|(key, _)| Some((key, self.seen(now, key)?))).collect()
    }
}

/// Cuts the page that `list` asks for out of `items`, whose keys ascend.
fn page<'a, K: 'a + ?Sized, T>(
    list: &List,
    parent: &str,
    items: impl Iterator<Item = (&'a str, &'a K)>,
    copy: impl Fn(&K) -> T,
) -> Result<Page<T>, Status> {
    let asked = usize::try_from(list.page_size);
    let asked = asked.map_err(|_| Status::bad_field("page_size", "The page size must not be negative."))?;
    let size = if asked == 0 { PAGE_MAXIMUM } else { asked.min(PAGE_MAXIMUM) };
    // A token belongs to one list: another parent or filter would silently skip items.
    let list_mark = fnv(&format!("{parent} {}", list.filter));
    let after = after(&list.page_token, list_mark)?;
    let items: Vec<_> = items.collect();
    let total_size = if list.filter.trim().is_empty() { i32::try_from(items.len()).unwrap_or(i32::MAX) } else { 0 };
    let mut rest = items.into_iter().skip_while(|(key, _)| after.as_deref().is_some_and(|after| *key <= after));
    let taken: Vec<_> = rest.by_ref().take(size).collect();
    let last = taken.last().filter(|_| rest.next().is_some());
    let next_page_token = last.map(|(key, _)| BASE64_URL_SAFE_NO_PAD.encode(format!("{list_mark:x}:{key}")));
    let items = taken.into_iter().map(|(_, item)| copy(item)).collect();
    Ok(Page { items, next_page_token: next_page_token.unwrap_or_default(), total_size })
}

/// The key after which the page begins.
fn after(token: &str, list_mark: u64) -> Result<Option<String>, Status> {
    if token.is_empty() {
        return Ok(None);
    }
    let wrong = || Status::bad_field("page_token", "The page token is not one that this list gave out.");
    let text = BASE64_URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or_else(wrong)?;
    let (mark, key) = text.split_once(':').ok_or_else(wrong)?;
    (mark == format!("{list_mark:x}")).then(|| Some(key.to_owned())).ok_or_else(wrong)
}

fn descending(number: u64) -> String {
    format!("{:020}", u64::MAX - number)
}
