//! Lists, page by page.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

use crate::MAX_PAGE_SIZE;
use crate::calls::Calls;
use crate::error::Error;
use crate::wire::{Page, Resource};

/// Maximum number of repetitions of a list that shrank while it was read.
const MAX_PASSES: u32 = 3;

/// The listed resources, and the fields of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// In the API's search language.
    pub search: Option<String>,
    /// Such as `created_time desc`.
    pub order: Option<String>,
    /// The page, from 1.
    pub page: Option<u32>,
    /// Items per page, at most [`MAX_PAGE_SIZE`].
    pub size: Option<u32>,
    /// The members wanted; all if empty.
    pub fields: Vec<String>,
}

/// A whole list, page by page, each item once.
///
/// The API counts pages by position: when an item vanishes while the list is read, another slips to a page that is read
/// already. So a list that turns out shorter than the API says is gone through again for what is missing.
#[derive(Debug)]
pub struct Pages<'a, T = Resource> {
    calls: Calls<'a>,
    path: Vec<String>,
    query: ListQuery,
    id: fn(&T) -> &str,
    known: BTreeSet<String>,
    pass: Pass,
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
    /// True if the list became shorter during the pass.
    shrank: bool,
    total: Option<u64>,
    over: bool,
}

// === impl Pages ===

impl<'a, T: DeserializeOwned> Pages<'a, T> {
    pub(crate) fn new(calls: Calls<'a>, path: &[&str], query: ListQuery, id: fn(&T) -> &str) -> Self {
        let path = path.iter().map(|&segment| segment.to_owned()).collect();
        Self { calls, path, query, id, known: BTreeSet::new(), pass: Pass::default() }
    }

    /// The items of the next page that were not on an earlier one; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Vec<T>>, Error> {
        while !self.pass.over {
            let query = ListQuery { page: Some(self.pass.page + 1), size: Some(MAX_PAGE_SIZE), ..self.query.clone() };
            let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
            let page: Page<T> = self.calls.page(&path, &query).await?;
            let (count, total) = (page.items.len() as u64, page.total);
            let new: Vec<T> =
                page.items.into_iter().filter(|item| self.known.insert((self.id)(item).to_owned())).collect();
            self.pass = self.pass.after(count, total, new.is_empty(), self.known.len() as u64);
            if !new.is_empty() {
                return Ok(Some(new));
            }
        }
        Ok(None)
    }

    /// All items.
    pub async fn collect(mut self) -> Result<Vec<T>, Error> {
        let mut all = Vec::new();
        while let Some(mut page) = self.next().await? {
            all.append(&mut page);
        }
        Ok(all)
    }

    /// True if everything was on one page, and so is one snapshot.
    pub(crate) fn is_one_page(&self) -> bool {
        self.pass.number == 0 && self.pass.page <= 1
    }
}

// === impl Pass ===

impl Pass {
    /// Advances after a page with this number of items.
    fn after(self, count: u64, total: Option<u64>, nothing_new: bool, known: u64) -> Self {
        let shrank = self.shrank || matches!((self.total, total), (Some(before), Some(now)) if now < before);
        let items = self.items + count;
        let reached_end = match total {
            _ if count == 0 => true,
            Some(total) => items >= total,
            // Without a total the end shows in a page that brings nothing, also where `page` is ignored.
            None => nothing_new,
        };
        let here = Self { page: self.page + 1, items, shrank, total, ..self };
        if !reached_end {
            return here;
        }
        let missing = shrank || total.is_some_and(|total| known < total);
        // What is only ever on one page was read at one moment.
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
    fn a_quiet_list_is_read_once() {
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
    fn without_a_total_the_end_is_a_page_without_news() {
        let first = Pass::default().after(100, None, false, 100);
        assert!(!first.over);
        assert!(first.after(100, None, true, 100).over);
    }
}
