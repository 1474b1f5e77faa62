//! Versions of the change stream, and positions in it.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Every change up to `low_watermark` is published, and of later ones those in `published_after`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The epoch of the API's database.
    pub(super) epoch: String,
    pub(super) low_watermark: u64,
    pub(super) published_after: BTreeSet<u64>,
}

/// A version of the change stream, in its two parts: `5f0c9a1e-1042`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version<'a> {
    pub(super) epoch: &'a str,
    pub(super) number: u64,
}

/// The error of a text that is not a [`Position`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no position in a change stream")]
pub struct InvalidPosition;

// === impl Version ===

impl<'a> Version<'a> {
    /// Reads a version; `None` if the API gives versions of another form.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (epoch, number) = text.rsplit_once('-')?;
        Some(Self { epoch, number: number.parse().ok()? })
    }
}

// === impl Position ===

impl Position {
    /// Returns the version to resume from: all changes up to it are published.
    pub fn version(&self) -> String {
        format!("{}-{}", self.epoch, self.low_watermark)
    }

    /// Returns true if the change of this version is published.
    pub fn covers(&self, version: &Version<'_>) -> bool {
        self.epoch == version.epoch
            && (version.number <= self.low_watermark || self.published_after.contains(&version.number))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.version())?;
        self.published_after.iter().try_for_each(|number| write!(formatter, "+{number}"))
    }
}

impl FromStr for Position {
    type Err = InvalidPosition;

    fn from_str(text: &str) -> Result<Self, InvalidPosition> {
        let mut parts = text.trim().split('+');
        let version = parts.next().and_then(Version::parse).ok_or(InvalidPosition)?;
        let published_after = parts.map(str::parse).collect::<Result<_, _>>().map_err(|_no_number| InvalidPosition)?;
        Ok(Self { epoch: version.epoch.to_owned(), low_watermark: version.number, published_after })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("5f0c9a1e-1042")]
    #[case("5f0c-9a1e-1042+1044+1050")]
    fn a_position_is_read_as_it_is_written(#[case] text: &str) {
        assert_eq!(text.parse::<Position>().unwrap().to_string(), text);
    }

    #[rstest]
    #[case("")]
    #[case("1042")]
    #[case("a-b")]
    #[case("a-1+x")]
    fn a_text_of_another_form_is_no_position(#[case] text: &str) {
        assert_eq!(text.parse::<Position>(), Err(InvalidPosition));
    }

    #[test]
    fn a_position_covers_what_is_published() {
        let position: Position = "e-5+7".parse().unwrap();
        let covers = |version: &str| position.covers(&Version::parse(version).unwrap());
        assert_eq!(["e-4", "e-5", "e-6", "e-7", "f-4"].map(covers), [true, true, false, true, false]);
    }
}
