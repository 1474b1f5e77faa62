//! Parameters of a list.

/// Filter, order, page and fields of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// In the API's search language.
    pub search: Option<String>,
    /// Such as `created_time desc`.
    pub order: Option<String>,
    /// The page, from 1.
    pub page: Option<u32>,
    /// Items per page, at most [`MAX_PAGE_SIZE`](crate::MAX_PAGE_SIZE).
    pub size: Option<u32>,
    /// Members of the resources; all if empty.
    pub fields: Vec<String>,
}
