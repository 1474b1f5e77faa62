//! The operations that may share a transaction, as data.

use std::sync::Arc;

use fleet_model::Report;

use super::mapped::MappedFacts;
use crate::decide::body::{Creation, References};
use crate::decide::change::RequestInfo;
use crate::decide::report::{DiscardReason, NewReport};

/// A checked request for a new resource.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) id: String,
    pub(super) owner_id: Option<String>,
    /// The body without its references.
    pub(super) body: Creation,
    pub(super) references: References,
    /// The encrypted pull secret, if it has one.
    pub(super) sealed: Option<String>,
    pub(super) request: RequestInfo,
}

/// A resource that is to be created.
#[derive(Debug)]
pub(super) struct Creating {
    pub(super) given: Arc<Given>,
    pub(super) mapped: MappedFacts,
}

/// The result of a report.
#[derive(Clone, Debug, PartialEq)]
pub enum Reported {
    /// The report was not stored.
    Discarded(DiscardReason),
    /// The report is stored.
    Stored {
        /// The report as it is stored.
        report: Box<Report>,
        /// True if it is the adapter's first report of this resource.
        first: bool,
        /// True if it completed the deletion and the resource is removed.
        removed: bool,
    },
}

/// A report that is to be stored.
#[derive(Debug)]
pub(super) struct Reporting {
    pub(super) kind: Option<String>,
    pub(super) owner_id: Option<String>,
    pub(super) id: String,
    pub(super) new: NewReport,
    pub(super) request: RequestInfo,
    pub(super) mapped: MappedFacts,
}
