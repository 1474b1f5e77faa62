//! Lists, page by page.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

use crate::calls::Calls;
use crate::error::Error;
use crate::list_query::ListQuery;
use crate::wire::{Page, Resource, Tombstone};
use crate::{MAX_PAGE_SIZE, Report};

/// Maximum number of repetitions of a list that shrank while it was read.
const MAX_PASSES: u32 = 3;

/// A whole list, page by page, each item once.
///
/// Resources are read in the order of their ids, each page from the last id of the one before: no page costs more than the first,
/// and no item moves between pages. Other lists, and an API that does not support that search, are read by position: when an item is
/// removed during the list, another moves to a page that was already read. A list that is shorter than the stated total is
/// therefore read again for the missing items.
#[derive(Debug)]
pub struct Pages<'a, T = Resource> {
    calls: Calls<'a>,
    path: Vec<String>,
    query: ListQuery,
    id: fn(&T) -> &str,
    paging: Paging,
    /// The ids of the items that were read.
    known: BTreeSet<String>,
    pass: Pass,
}

/// The way from one page to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Paging {
    /// By the number of the page.
    ByPosition,
    /// From this id; `None` before the first page.
    ById(Option<String>),
}

/// One way through the list.
#[derive(Clone, Copy, Debug, Default)]
struct Pass {
    /// Number of earlier passes.
    number: u32,
    /// The page last read.
    page: u32,
    /// Number of items of this pass.
    items: u64,
    /// Number of its items that could not be read.
    unreadable: u64,
    /// True if the list became shorter during the pass.
    shrank: bool,
    total: Option<u64>,
    over: bool,
}

// === impl Calls ===

impl<'a> Calls<'a> {
    /// Lists all resources that match, page by page, ordered by id unless the query has an order.
    pub fn list_all(&self, plural: &str, query: ListQuery) -> Pages<'a> {
        let paging = if query.order.is_none() { Paging::ById(None) } else { Paging::ByPosition };
        let order = query.order.or_else(|| Some("id asc".to_owned()));
        let id: fn(&Resource) -> &str = |resource| &resource.id;
        Pages { paging, ..Pages::new(self.clone(), &[plural], ListQuery { order, ..query }, id) }
    }

    /// Lists the tombstones of the resources of a kind that were removed by force.
    pub async fn tombstones(&self, plural: &str) -> Result<Vec<Tombstone>, Error> {
        let path = ["tombstones", plural];
        Pages::new(self.clone(), &path, ListQuery::default(), |item: &Tombstone| &item.id).collect().await
    }

    /// Lists the last report of every adapter about a resource.
    pub async fn statuses(&self, plural: &str, id: &str) -> Result<Vec<Report>, Error> {
        let path = [plural, id, "statuses"];
        Pages::new(self.clone(), &path, ListQuery::default(), |item: &Report| &item.adapter).collect().await
    }
}

// === impl Pages ===

impl<'a, T: DeserializeOwned> Pages<'a, T> {
    fn new(calls: Calls<'a>, path: &[&str], query: ListQuery, id: fn(&T) -> &str) -> Self {
        let path = path.iter().map(|&segment| segment.to_owned()).collect();
        Self { calls, path, query, id, paging: Paging::ByPosition, known: BTreeSet::new(), pass: Pass::default() }
    }

    /// Reads the next page without the items of earlier ones; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Vec<T>>, Error> {
        while !self.pass.over {
            let page = match self.read().await {
                // An API whose search cannot compare ids.
                Err(error) if error.status() == Some(400) && matches!(self.paging, Paging::ById(Some(_))) => {
                    self.paging = Paging::ByPosition;
                    continue;
                }
                other => other?,
            };
            if let Paging::ById(before) = self.paging.clone() {
                if let Some(new) = self.after_id(before.as_deref(), page) {
                    return Ok(Some(new));
                }
                continue;
            }
            let (count, total) = (page.items.len() as u64 + page.unreadable, page.total);
            let new: Vec<T> =
                page.items.into_iter().filter(|item| self.known.insert((self.id)(item).to_owned())).collect();
            self.pass.unreadable += page.unreadable;
            let known = self.known.len() as u64 + self.pass.unreadable;
            self.pass = self.pass.after(count, total, new.is_empty(), known);
            if !new.is_empty() {
                return Ok(Some(new));
            }
        }
        Ok(None)
    }

    async fn read(&self) -> Result<Page<T>, Error> {
        let mut query = ListQuery { size: Some(MAX_PAGE_SIZE), ..self.query.clone() };
        match &self.paging {
            Paging::ById(Some(last)) => query.search = Some(after(query.search.as_deref(), last)),
            Paging::ById(None) | Paging::ByPosition => query.page = Some(self.pass.page + 1),
        }
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        self.calls.page(&path, &query).await
    }

    /// Advances after a page in the order of ids; `None` if it has no new item.
    fn after_id(&mut self, before: Option<&str>, page: Page<T>) -> Option<Vec<T>> {
        let count = page.items.len() as u64 + page.unreadable;
        let last = page.items.last().map(|item| (self.id)(item).to_owned());
        let mut new = page.items;
        new.retain(|item| self.known.insert((self.id)(item).to_owned()));
        let leads_on = last.as_deref().is_some_and(|last| before != Some(last) && is_plain(last));
        if count == 0 || (count < MAX_PAGE_SIZE.into() && page.total.is_none_or(|total| total <= count)) {
            self.pass.over = true;
        } else if leads_on {
            self.paging = Paging::ById(last);
        } else {
            // The API ignores the search, or no item of the page can be read.
            self.paging = Paging::ByPosition;
        }
        if leads_on || before.is_none() {
            self.pass.page += 1;
            self.pass.items += count;
            self.pass.unreadable += page.unreadable;
        }
        (!new.is_empty()).then_some(new)
    }

    /// Reads all items.
    pub async fn collect(mut self) -> Result<Vec<T>, Error> {
        let mut all = Vec::new();
        while let Some(mut page) = self.next().await? {
            all.append(&mut page);
        }
        Ok(all)
    }

    /// Returns true if the whole list was one page, and therefore is one snapshot.
    pub(crate) fn is_one_page(&self) -> bool {
        self.pass.number == 0 && self.pass.page <= 1
    }
}

/// Returns the search for what follows an id.
fn after(search: Option<&str>, id: &str) -> String {
    match search {
        Some(search) => format!("({search}) and id > '{id}'"),
        None => format!("id > '{id}'"),
    }
}

/// Returns true for an id that needs no escape in a search.
fn is_plain(id: &str) -> bool {
    id.chars().all(|char| char.is_ascii_alphanumeric() || "-_.".contains(char))
}

// === impl Pass ===

impl Pass {
    /// Advances after a page with this number of items.
    fn after(self, count: u64, total: Option<u64>, is_repeated: bool, known: u64) -> Self {
        let shrank = self.shrank || matches!((self.total, total), (Some(before), Some(now)) if now < before);
        let items = self.items + count;
        let reached_end = match total {
            _ if count == 0 => true,
            Some(total) => items >= total,
            // Without a total, a page without new items is the end, also where `page` is ignored.
            None => is_repeated,
        };
        let here = Self { page: self.page + 1, items, shrank, total, ..self };
        if !reached_end {
            return here;
        }
        let missing = shrank || total.is_some_and(|total| known < total);
        // A list of one page is one snapshot.
        if missing && here.page > 1 && self.number + 1 < MAX_PASSES {
            return Self { number: self.number + 1, ..Self::default() };
        }
        Self { over: true, ..here }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_does_not_change_is_read_once() {
        let first = Pass::default().after(100, Some(150), false, 100);
        assert!(!first.over);
        let last = first.after(50, Some(150), false, 150);
        assert!(last.over && last.number == 0);
    }

    #[test]
    fn a_list_that_shrank_is_read_again_but_not_for_ever() {
        let first = Pass::default().after(100, Some(150), false, 100);
        let again = first.after(49, Some(149), false, 149);
        assert!(!again.over && again.page == 0 && again.number == 1);
        let mut pass = Pass::default();
        for _ in 0..MAX_PASSES {
            assert!(!pass.over);
            pass = pass.after(100, Some(101), false, 100).after(0, Some(101), true, 100);
        }
        assert!(pass.over);
    }

    #[test]
    fn without_a_total_a_page_without_new_items_is_the_end() {
        let first = Pass::default().after(100, None, false, 100);
        assert!(!first.over);
        assert!(first.after(100, None, true, 100).over);
    }
}
