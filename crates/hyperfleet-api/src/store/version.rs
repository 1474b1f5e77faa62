//! Positions in the change stream.

use std::fmt;
use std::sync::Arc;

use database::{Parameters, Row, Transaction};

use super::StoreError;

/// A position in the change stream, written `<epoch>-<number>`.
///
/// A number alone would be given twice after the restore of a backup, for different changes. The epoch is random, kept in the
/// database, and replaced by `pull-secret api restored`: positions of another epoch are too old.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// The epoch; `0`, which no database has, for a position that a server without epochs has given.
    pub epoch: Arc<str>,
    /// Counts the changes.
    pub number: i64,
}

/// The columns of `change_counter` that [`Version::read`] takes.
pub(super) const COLUMNS: &str = "version, epoch";

// === impl Version ===

impl Version {
    /// Parses a position; a number without an epoch is one of no epoch.
    pub fn parse(text: &str) -> Option<Self> {
        let (epoch, number) = text.split_once('-').unwrap_or(("0", text));
        let is_epoch = (1..=32).contains(&epoch.len()) && epoch.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse().ok().filter(|_| is_epoch && is_number)?;
        Some(Self { epoch: epoch.into(), number })
    }

    /// Returns the position with this number in the same epoch.
    #[must_use]
    pub fn at(&self, number: i64) -> Self {
        Self { epoch: Arc::clone(&self.epoch), number }
    }

    /// Returns true if it is a later one than that, or of another epoch.
    pub(super) fn is_beyond(&self, other: &Self) -> bool {
        self.epoch != other.epoch || self.number > other.number
    }

    pub(super) fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self { number: row.number(0)?, epoch: row.text(1)?.into() })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.epoch, self.number)
    }
}

/// Returns the newest version in a snapshot.
pub(super) async fn newest(snapshot: &mut Transaction) -> Result<Version, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM change_counter");
    let rows = snapshot.fetch(sql, Parameters::default()).await?;
    rows.first().map(Version::read).transpose()?.ok_or(StoreError::Damaged { location: "change_counter" })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1a2b3c4d-17", Some(("1a2b3c4d", 17)))]
    #[case("17", Some(("0", 17)))]
    #[case("1a2b3c4d-", None)]
    #[case("-17", None)]
    #[case("1a2b3c4d--1", None)]
    #[case("a-b-1", None)]
    #[case("a b-1", None)]
    #[case("1a2b3c4d-99999999999999999999", None)]
    #[case("", None)]
    fn positions_are_parsed(#[case] text: &str, #[case] expected: Option<(&str, i64)>) {
        let version = Version::parse(text);
        assert_eq!(version.as_ref().map(|version| (&*version.epoch, version.number)), expected);
        if let Some(version) = version.filter(|version| &*version.epoch != "0") {
            assert_eq!(version.to_string(), text);
        }
    }
}
