//! Stored changes, as all readers of the change stream share them.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use database::Row;

use super::StoreError;
use super::change::ChangeKind;
use super::rows;
use super::version::Version;
use crate::render;
use crate::resource::Resource;
use crate::tenancy::{Reach, Tenancy};

/// A stored change with its line in the change stream.
#[derive(Debug)]
pub struct Recorded {
    /// The position in the change stream.
    pub version: Version,
    /// The kind of change.
    pub kind: ChangeKind,
    of: Of,
    line: Bytes,
    /// The place of the object within the line.
    object: Range<usize>,
    /// The parsed object, for as long as a reader evaluates it.
    parsed: Mutex<Weak<Resource>>,
}

/// The resource that has changed.
#[derive(Debug)]
pub(super) struct Of {
    pub(super) kind: String,
    pub(super) id: String,
    pub(super) tenancy: Tenancy,
}

/// The columns of the table alias `c` that [`Recorded::read`] takes.
pub(super) const COLUMNS: &str = "c.version, c.type, c.kind, c.resource_id, c.tenancy, c.object";

/// Size of a change in memory besides its texts, in bytes, rounded up.
const OVERHEAD: usize = 512;

// === impl Recorded ===

impl Recorded {
    /// Returns the change in the columns from that one on, in the epoch of that version.
    pub(super) fn read(row: &Row, first: usize, epoch: &Version) -> Result<Self, StoreError> {
        let kind = ChangeKind::parse(&row.text(first + 1)?).ok_or(StoreError::Damaged { location: "changes.type" })?;
        let of = Of {
            kind: row.text(first + 2)?,
            id: row.text(first + 3)?,
            tenancy: rows::json(&row.text(first + 4)?, "changes.tenancy")?,
        };
        Ok(Self::new(epoch.at(row.number(first)?), kind, of, &row.text(first + 5)?))
    }

    pub(super) fn new(version: Version, kind: ChangeKind, of: Of, object: &str) -> Self {
        let line = render::event(kind.as_str(), &version, object.as_bytes());
        let end = line.len().saturating_sub(render::END_OF_EVENT.len());
        let object = end.saturating_sub(object.len())..end;
        Self { version, kind, of, line, object, parsed: Mutex::default() }
    }

    /// Returns the id of the resource.
    pub fn resource_id(&self) -> &str {
        &self.of.id
    }

    /// Returns true if a reader of that kind and reach gets it.
    pub(super) fn is_for(&self, kind: &str, reach: &Reach) -> bool {
        self.of.kind == kind && reach.covers(&self.of.tenancy)
    }

    /// Returns its size in memory, in bytes.
    pub(super) fn size(&self) -> usize {
        self.line.len() + OVERHEAD
    }

    /// Returns its size in the change stream, in bytes.
    pub(super) fn length(&self) -> i64 {
        i64::try_from(self.line.len()).unwrap_or(i64::MAX)
    }

    /// Returns its line for a reader for whom it is a change of that kind.
    pub fn line(&self, kind: ChangeKind) -> Bytes {
        if kind == self.kind {
            return self.line.clone();
        }
        render::event(kind.as_str(), &self.version, self.object())
    }

    /// Returns the resource after the change, or before its removal; `None` if it cannot be read. Readers that evaluate it at
    /// the same time share it.
    pub fn resource(&self) -> Option<Arc<Resource>> {
        let mut parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(resource) = parsed.upgrade() {
            return Some(resource);
        }
        let resource = Arc::new(render::parse(&serde_json::from_slice(self.object()).ok()?)?);
        *parsed = Arc::downgrade(&resource);
        Some(resource)
    }

    fn object(&self) -> &[u8] {
        self.line.get(self.object.clone()).unwrap_or_default()
    }
}
