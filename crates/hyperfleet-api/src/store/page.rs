//! A page of a list.

/// A page of a list and the length of the whole list, both from one snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The items of the page.
    pub items: Vec<T>,
    /// Number of items on all pages.
    pub total: i64,
}
