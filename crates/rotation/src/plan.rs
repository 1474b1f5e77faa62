//! The plan of a rotation: clusters in waves, with the generation and the digest of each. It holds no content.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use hyperfleet_client::Generation;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::digest::ShortDigest;

/// The plan of a rotation, as its file and its record hold it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Time at which the fleet was read.
    pub planned: Timestamp,
    /// The search, or the ids and names, that selected the clusters.
    pub selection: String,
    /// Sizes, rate and tolerance.
    pub options: Options,
    /// The clusters of each wave.
    pub waves: Vec<Vec<Planned>>,
    /// The clusters that are not rotated; not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// Number of the planned clusters by Google Cloud project; not recorded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub projects: BTreeMap<String, usize>,
}

/// Sizes of waves, rate and tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Number of clusters in the first wave, of which none may fail.
    pub first_wave: usize,
    /// Number of clusters in each further wave.
    pub wave_size: usize,
    /// Maximum number of clusters that are written in a minute.
    pub per_minute: u16,
    /// Number of clusters that may fail in each wave but the first.
    pub max_failures: usize,
    /// Seconds after the last write of a wave in which all of its clusters become available.
    pub wave_timeout: u32,
}

/// A cluster that is to be rotated; in JSON the text `ID GENERATION DIGEST`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Planned {
    /// The cluster's id.
    pub id: String,
    /// The generation that it had; at another one it is not written.
    pub generation: Generation,
    /// Digest of its new pull secret.
    pub digest: ShortDigest,
}

/// A text that is no planned cluster.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a planned cluster must be an id, a generation and a digest")]
pub struct NotPlanned;

/// A cluster that is not rotated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The cluster's id, or the text that selected it.
    pub cluster: String,
    /// The kind of the cause.
    pub reason: SkipReason,
    /// The cause, and what to do instead.
    pub message: String,
}

/// The cause for which a cluster is not rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SkipReason {
    /// There is no such cluster, or several have the name.
    NotFound,
    /// It is being deleted.
    Deleting,
    /// Its pull secret is in a Secret of Kubernetes.
    Referenced,
    /// It has no inline pull secret.
    NoPullSecret,
    /// The API does not show the digest of its pull secret to the caller.
    DigestHidden,
    /// The directory has no file for it.
    NoFile,
    /// Its new pull secret is not valid.
    InvalidPullSecret,
    /// It has the new content already.
    SameContent,
    /// Its present pull secret is not available.
    NotAvailable,
}

// === impl Plan ===

impl Plan {
    /// Number of clusters to rotate.
    pub fn clusters(&self) -> usize {
        self.waves.iter().map(Vec::len).sum()
    }

    /// Number of clusters in the waves before this one.
    pub fn before(&self, wave: usize) -> usize {
        self.waves.iter().take(wave).map(Vec::len).sum()
    }

    /// The plan without what is not recorded.
    #[must_use]
    pub fn recorded(&self) -> Self {
        Self { skipped: Vec::new(), projects: BTreeMap::new(), ..self.clone() }
    }

    /// Number of clusters of a wave that may fail.
    pub fn tolerated(&self, wave: usize) -> usize {
        if wave == 0 { 0 } else { self.options.max_failures }
    }
}

// === impl Planned ===

impl FromStr for Planned {
    type Err = NotPlanned;

    fn from_str(text: &str) -> Result<Self, NotPlanned> {
        let mut parts = text.split(' ');
        let (Some(id), Some(generation), Some(digest), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(NotPlanned);
        };
        Ok(Self {
            id: Some(id).filter(|id| fleet_model::id::is_dns_label(id)).ok_or(NotPlanned)?.to_owned(),
            generation: generation.parse().map_err(|_invalid| NotPlanned)?,
            digest: digest.to_owned().try_into().map_err(|_invalid| NotPlanned)?,
        })
    }
}

impl TryFrom<String> for Planned {
    type Error = NotPlanned;

    fn try_from(text: String) -> Result<Self, NotPlanned> {
        text.parse()
    }
}

impl From<Planned> for String {
    fn from(Planned { id, generation, digest }: Planned) -> Self {
        format!("{id} {generation} {digest}")
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn a_plan_is_read_as_it_is_written() {
        let planned: Planned = format!("cls-1 3 {}", "0a".repeat(16)).parse().unwrap();
        let plan = Plan {
            planned: Timestamp::UNIX_EPOCH,
            selection: "name = 'a'".to_owned(),
            options: Options { first_wave: 1, wave_size: 2, per_minute: 75, max_failures: 0, wave_timeout: 900 },
            waves: vec![vec![planned]],
            skipped: Vec::new(),
            projects: BTreeMap::new(),
        };
        let text = serde_json::to_string(&plan).unwrap();
        assert!(text.contains(&format!(r#"[["cls-1 3 {}"]]"#, "0a".repeat(16))), "{text}");
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    }

    #[rstest]
    #[case("")]
    #[case("cls-1 3")]
    #[case("cls-1 0 0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a")]
    #[case("cls-1 3 0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a more")]
    #[case("cls'1 3 0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a")]
    #[case("cls-1 3 hmac-sha256:0a")]
    fn garbage_is_refused(#[case] text: &str) {
        assert!(text.parse::<Planned>().is_err());
    }
}
