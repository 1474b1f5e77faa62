//! The hash chain of the ledger's events: its links and its faults.

use std::str::FromStr;

use docker_config::Digest;
use jiff::Timestamp;
use serde::Serialize;

/// A link: it covers the events since the link before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Its number, counted from 1.
    pub number: i64,
    /// The number of the last event that it covers.
    pub through: i64,
    /// The time at which it was made.
    pub time: Timestamp,
    /// The hash of its events and of the link before it, such as `hmac-sha256:4f0c…`.
    pub hash: String,
}

/// A link that is kept outside the ledger, written `NUMBER:HASH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownLink {
    /// Its number.
    pub number: i64,
    /// Its hash.
    pub hash: String,
}

/// The outcome of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Number of links, up to the fault.
    pub links: u64,
    /// Number of events that they cover.
    pub events: u64,
    /// Number of events since the newest link, which nothing covers yet.
    pub unlinked: u64,
    /// The newest link, or the last one before the fault.
    pub newest: Option<Link>,
    /// The first fault.
    pub fault: Option<Fault>,
}

/// A fault of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Events were changed, added or removed.
    #[error("events {first} to {last} are not those that link {link} has recorded")]
    Events {
        /// The link that covers them.
        link: i64,
        /// The number of the first one.
        first: i64,
        /// The number of the last one.
        last: i64,
    },
    /// A link was changed, or was made without a key of the ledger.
    #[error("link {link} was changed, or made without the ledger's key")]
    Changed {
        /// Its number.
        link: i64,
    },
    /// A link is not there.
    #[error("link {link} is missing")]
    Missing {
        /// Its number.
        link: i64,
    },
    /// A link differs from the one that is kept elsewhere.
    #[error("link {link} is another one than the given one")]
    Replaced {
        /// Its number.
        link: i64,
    },
    /// The newest links are sealed with keys that are not configured.
    #[error(
        "links {first} and later are sealed with a key that is not configured: configure it again, or let the service make a link with today's"
    )]
    NoKey {
        /// The number of the first of them.
        first: i64,
    },
}

// === impl Link ===

impl Link {
    /// Returns the beginning of the chain, before its first link.
    pub(crate) fn origin() -> Self {
        Self { number: 0, through: 0, time: Timestamp::UNIX_EPOCH, hash: String::new() }
    }

    /// Returns the link after this one, of these events.
    pub(crate) fn next(&self, through: i64, events: &str, time: Timestamp) -> Self {
        // To the microsecond, as rows have it.
        let time = Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time);
        Self { number: self.number + 1, through, time, hash: self.hash_of_next(events) }
    }

    /// Returns the hash of the link after this one.
    pub(crate) fn hash_of_next(&self, events: &str) -> String {
        Digest::of_bytes(events.as_bytes()).keyed(self.hash.as_bytes()).to_string()
    }

    /// Returns the text that its seal is bound to.
    pub(crate) fn binding(&self) -> String {
        let Self { number, through, time, hash } = self;
        format!("credentials/events/1\n{number}\n{through}\n{time}\n{hash}")
    }
}

// === impl KnownLink ===

impl FromStr for KnownLink {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once(':').and_then(|(number, hash)| Some((number.parse().ok()?, hash)));
        let known = parts.filter(|(number, hash)| *number > 0 && hash.starts_with("hmac-sha256:"));
        let (number, hash) = known.ok_or("must be NUMBER:HASH, as the service's log has them")?;
        Ok(Self { number, hash: hash.to_owned() })
    }
}
