//! Selects the part of the fleet that this Sentinel watches: by hash, by label, or both.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use crate::resync_slot;

/// One of several equal parts of a fleet, such as `2/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

/// The error of a text that is not a [`Shard`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be PART/PARTS such as 2/8, from 1/8 to 8/8, of at most 1024 parts")]
pub struct InvalidShard;

/// A label that selected resources have.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selector {
    /// Its name.
    pub label: String,
    /// Its value.
    pub value: String,
}

/// Returns the search for resources with all these labels; `None` without selectors. A name that the search language cannot
/// express is an error.
pub fn search(selectors: &[Selector]) -> Result<Option<String>, String> {
    let mut terms = Vec::new();
    for (index, Selector { label, value }) in selectors.iter().enumerate() {
        // No part of a setting may become syntax of the search.
        let fits = |char: char| char.is_ascii_alphanumeric() || "-_./".contains(char);
        if label.is_empty() || !label.chars().all(fits) {
            return Err(format!("resource_selector[{index}].label: must be the name of a label"));
        }
        if value.chars().any(char::is_control) {
            return Err(format!("resource_selector[{index}].value: must be the value of a label"));
        }
        terms.push(format!("labels.{label} = '{}'", value.replace('\'', "''")));
    }
    terms.sort();
    Ok(Some(terms.join(" and ")).filter(|search| !search.is_empty()))
}

/// Returns the selectors as a metric label: `label:value,…` or `all`.
pub fn label(selectors: &[Selector]) -> String {
    let all: Vec<String> = selectors.iter().map(|one| format!("{}:{}", one.label, one.value)).collect();
    if all.is_empty() { "all".to_owned() } else { all.join(",") }
}

// === impl Shard ===

impl Shard {
    /// The whole fleet.
    pub const WHOLE: Self = Self { index: 1, count: 1 };

    /// Returns true if the id is in this shard. The shards of one count are disjoint and complete.
    pub fn contains(self, id: &str) -> bool {
        self.count == 1 || resync_slot::number(id) % u64::from(self.count) == u64::from(self.index - 1)
    }
}

impl FromStr for Shard {
    type Err = InvalidShard;

    fn from_str(text: &str) -> Result<Self, InvalidShard> {
        let (index, count) = text.split_once('/').ok_or(InvalidShard)?;
        let number = |text: &str| text.parse::<u32>().map_err(|_no_number| InvalidShard);
        let (index, count) = (number(index)?, number(count)?);
        if (1..=1024).contains(&count) && (1..=count).contains(&index) {
            Ok(Self { index, count })
        } else {
            Err(InvalidShard)
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index, self.count)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1/1", true)]
    #[case("2/8", true)]
    #[case("8/8", true)]
    #[case("0/8", false)]
    #[case("9/8", false)]
    #[case("1/0", false)]
    #[case("1/1025", false)]
    #[case("1", false)]
    #[case("a/b", false)]
    #[case("-1/2", false)]
    fn only_existing_parts_are_accepted(#[case] text: &str, #[case] accepted: bool) {
        assert_eq!(text.parse::<Shard>().is_ok(), accepted);
    }

    #[test]
    fn every_id_is_in_exactly_one_part() {
        let shards: Vec<Shard> = (1..=8).map(|part| format!("{part}/8").parse().unwrap()).collect();
        let mut sizes = [0_u32; 8];
        for id in 0..8_000 {
            let holders: Vec<usize> = (0..8).filter(|part| shards[*part].contains(&format!("cls-{id}"))).collect();
            assert_eq!(holders.len(), 1);
            sizes[holders[0]] += 1;
        }
        assert!(sizes.iter().all(|size| (800..1_200).contains(size)), "{sizes:?}");
    }

    #[test]
    fn selectors_become_one_search() {
        let selector = |label: &str, value: &str| Selector { label: label.to_owned(), value: value.to_owned() };
        let two = [selector("region", "us-east-1"), selector("owner", "o'hara")];
        assert_eq!(search(&two).unwrap().unwrap(), "labels.owner = 'o''hara' and labels.region = 'us-east-1'");
        assert_eq!(search(&[]), Ok(None));
        assert!(search(&[selector("a' or 'b", "c")]).is_err());
        assert_eq!((label(&two), label(&[])), ("region:us-east-1,owner:o'hara".to_owned(), "all".to_owned()));
    }
}
