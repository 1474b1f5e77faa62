//! Audit records that show if one is changed or missing: each has a number and the hash of the one before.
//!
//! A process has one chain, which begins when it starts and ends when it is stopped. The records are lines of its log. Rewriting
//! a record and all that follow, with their hashes, goes unnoticed, so the log belongs into a store that is only appended to.

mod verify;

#[cfg(test)]
mod tests;

use std::sync::{Mutex, PoisonError};

use fleet_model::Generation;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

pub use verify::{Fault, Verification, Verified};

/// The target of audit records in the log.
pub const TARGET: &str = daemon::log::AUDIT;

/// The `previous` of a chain's first record.
const NONE: &str = "";

/// The event that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// A caller got a pull secret.
    ReadPullSecret,
    /// A caller stored a pull secret.
    WritePullSecret,
    /// A call was denied.
    Deny,
    /// The process has started.
    BeginAudit,
    /// The process is about to end.
    EndAudit,
}

/// One record. It holds no credential.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// The event.
    pub operation: Operation,
    /// False if the call was denied.
    pub allowed: bool,
    /// The grant that allowed the call, or what was missing.
    pub because: String,
    /// The id of the request.
    pub request_id: String,
    /// The method of the request.
    pub method: String,
    /// The path of the request, shortened and escaped.
    pub path: String,
    /// The address of the connection's other end.
    pub remote: String,
    /// The caller's issuer.
    pub issuer: String,
    /// The caller's subject.
    pub subject: String,
    /// The caller's tenancy.
    pub tenancy: String,
    /// The kind of the resource.
    pub kind: String,
    /// The id of the resource.
    pub id: String,
    /// The creation time of the resource.
    pub incarnation: String,
    /// The generation of the resource.
    pub generation: Generation,
}

/// The place of a record in its chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The id of the chain.
    pub chain: String,
    /// The number of the record, counted from 1.
    pub sequence: u64,
    /// The hash of the record before it.
    pub previous: String,
    /// The time of the record.
    pub time: Timestamp,
    /// The hash of this record, in hexadecimal.
    #[serde(skip)]
    pub hash: String,
}

/// The chain of a process.
#[derive(Debug)]
pub struct Chain {
    id: String,
    last: Mutex<Last>,
}

#[derive(Debug)]
struct Last {
    sequence: u64,
    hash: String,
}

/// The members that the hash covers.
#[derive(Serialize)]
struct Covered<'a> {
    #[serde(flatten)]
    record: &'a Record,
    #[serde(flatten)]
    link: &'a Link,
}

// === impl Operation ===

impl Operation {
    /// The name in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadPullSecret => "read-pull-secret",
            Self::WritePullSecret => "write-pull-secret",
            Self::Deny => "deny",
            Self::BeginAudit => "begin-audit",
            Self::EndAudit => "end-audit",
        }
    }
}

// === impl Record ===

impl Record {
    /// A record of the process itself.
    pub fn of_process(operation: Operation) -> Self {
        let text = String::new;
        Self {
            operation,
            allowed: true,
            because: text(),
            request_id: text(),
            method: text(),
            path: text(),
            remote: text(),
            issuer: text(),
            subject: text(),
            tenancy: text(),
            kind: text(),
            id: text(),
            incarnation: text(),
            generation: Generation::NONE,
        }
    }
}

// === impl Chain ===

impl Chain {
    /// A chain without records.
    pub fn new() -> Self {
        let last = Last { sequence: 0, hash: NONE.to_owned() };
        Self { id: Uuid::now_v7().to_string(), last: Mutex::new(last) }
    }

    /// Appends a record and logs it.
    pub fn append(&self, record: &Record) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let link = self.link(record, &last, Timestamp::now());
        *last = Last { sequence: link.sequence, hash: link.hash.clone() };
        // Under the lock, so that lines are in the order of their numbers.
        log(record, &link);
    }

    fn link(&self, record: &Record, last: &Last, time: Timestamp) -> Link {
        let (sequence, previous) = (last.sequence + 1, last.hash.clone());
        let mut link = Link { chain: self.id.clone(), sequence, previous, time, hash: String::new() };
        let covered = serde_json::to_value(Covered { record, link: &link });
        // Texts and numbers always serialise.
        link.hash = covered.ok().as_ref().and_then(Value::as_object).map(hash).unwrap_or_default();
        link
    }
}

impl Default for Chain {
    fn default() -> Self {
        Self::new()
    }
}

/// The hash of the members that it covers: their JSON text, in the order of their names.
fn hash(members: &Map<String, Value>) -> String {
    let digest = Sha256::digest(Value::Object(members.clone()).to_string());
    digest.iter().fold(String::with_capacity(64), |text, byte| text + &format!("{byte:02x}"))
}

/// The names of the members that a hash covers, beside which a log may have others.
fn covered_names() -> Vec<String> {
    let record = Record::of_process(Operation::BeginAudit);
    let (text, time) = (String::new, Timestamp::UNIX_EPOCH);
    let link = Link { chain: text(), sequence: 0, previous: text(), time, hash: text() };
    let covered = serde_json::to_value(Covered { record: &record, link: &link });
    covered.ok().and_then(|covered| Some(covered.as_object()?.keys().cloned().collect())).unwrap_or_default()
}

fn log(record: &Record, link: &Link) {
    let Record { allowed, because, request_id, method, path, remote, issuer, subject, tenancy, kind, id, .. } = record;
    let (incarnation, generation) = (&record.incarnation, i64::from(record.generation));
    let Link { chain, sequence, previous, hash, .. } = link;
    let (operation, time) = (record.operation.as_str(), link.time.to_string());
    macro_rules! log {
        ($level:ident, $message:literal) => {
            tracing::$level!(
                target: TARGET,
                operation,
                allowed,
                because,
                request_id,
                method,
                path,
                remote,
                issuer,
                subject,
                tenancy,
                kind,
                id,
                incarnation,
                generation,
                time,
                chain,
                sequence,
                previous,
                hash,
                $message
            )
        };
    }
    match record.operation {
        Operation::ReadPullSecret => log!(info, "pull secret read"),
        Operation::WritePullSecret => log!(info, "pull secret stored"),
        Operation::Deny => log!(warn, "call denied"),
        Operation::BeginAudit => log!(info, "audit begins"),
        Operation::EndAudit => log!(info, "audit ends"),
    }
}
