//! Verifies the audit records of a log.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use serde::Serialize;
use serde_json::{Map, Value};

use super::{NONE, Operation, covered_names, hash};

/// A chain that was found in a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// The id of the chain.
    pub chain: String,
    /// Number of its records.
    pub records: u64,
    /// The time of the first record.
    pub first_time: String,
    /// The time of the last record.
    pub last_time: String,
    /// True if the process has recorded its end. Else it runs, was killed, or the last records are missing.
    pub ended: bool,
    /// The first fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// A fault of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Records are not in the log.
    #[error("{} missing", if first == last { format!("record {first} is") } else { format!("records {first} to {last} are") })]
    Missing {
        /// The number of the first one.
        first: u64,
        /// The number of the last one.
        last: u64,
    },
    /// A record is not as it was written.
    #[error("record {sequence} in {place} was changed")]
    Changed {
        /// The number of the record.
        sequence: u64,
        /// The log and the line in it, counted from 1, such as `api.log:12`.
        place: String,
    },
    /// Two records with one number differ, or a record does not follow the one before.
    #[error("record {sequence} in {place} does not belong to the records before it")]
    Replaced {
        /// The number of the record.
        sequence: u64,
        /// The log and the line in it, counted from 1, such as `api.log:12`.
        place: String,
    },
}

/// A record as the log has it.
#[derive(Debug)]
struct Found {
    place: String,
    sequence: u64,
    previous: String,
    hash: String,
    is_intact: bool,
    time: String,
    is_end: bool,
}

/// The records of some logs.
#[derive(Debug, Default)]
pub struct Verification {
    chains: BTreeMap<String, Vec<Found>>,
}

impl Verification {
    /// Takes the records of a log, in any order; other lines are skipped.
    pub fn read(&mut self, name: &str, log: impl BufRead) -> io::Result<()> {
        let names = covered_names();
        for (index, line) in log.split(b'\n').enumerate() {
            let line = line?;
            // A log may have a prefix before each line, such as a time and a stream.
            let begin = line.iter().position(|byte| *byte == b'{');
            let object = begin.and_then(|at| serde_json::from_slice::<Value>(line.get(at..)?).ok());
            let Some(Value::Object(members)) = object else { continue };
            if let Some((chain, found)) = found(&members, &names, format!("{name}:{}", index + 1)) {
                self.chains.entry(chain).or_default().push(found);
            }
        }
        Ok(())
    }

    /// Verifies every chain; repetitions of a record are skipped.
    pub fn chains(self) -> Vec<Verified> {
        self.chains.into_iter().map(|(chain, records)| of_chain(chain, records)).collect()
    }
}

/// The record of a line; `None` if the line is none.
fn found(members: &Map<String, Value>, names: &[String], place: String) -> Option<(String, Found)> {
    let text = |name: &str| members.get(name)?.as_str().map(str::to_owned);
    let (chain, sequence, written) = (text("chain")?, members.get("sequence")?.as_u64()?, text("hash")?);
    let covered: Map<String, Value> = members
        .iter()
        .filter(|(name, _)| names.contains(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let found = Found {
        place,
        sequence,
        previous: text("previous")?,
        is_intact: hash(&covered) == written,
        hash: written,
        time: text("time").unwrap_or_default(),
        is_end: text("operation")? == Operation::EndAudit.as_str(),
    };
    Some((chain, found))
}

fn of_chain(chain: String, mut records: Vec<Found>) -> Verified {
    records.sort_by_key(|record| record.sequence);
    records
        .dedup_by(|second, first| second.sequence == first.sequence && second.hash == first.hash && second.is_intact);
    let time = |record: Option<&Found>| record.map(|record| record.time.clone()).unwrap_or_default();
    Verified {
        chain,
        records: records.len() as u64,
        first_time: time(records.first()),
        last_time: time(records.last()),
        ended: records.last().is_some_and(|record| record.is_end),
        fault: fault(&records),
    }
}

fn fault(records: &[Found]) -> Option<Fault> {
    let (mut last, mut previous) = (0, NONE);
    for record in records {
        let (sequence, place) = (record.sequence, || record.place.clone());
        if !record.is_intact {
            return Some(Fault::Changed { sequence, place: place() });
        }
        if sequence > last + 1 {
            return Some(Fault::Missing { first: last + 1, last: sequence - 1 });
        }
        if sequence == last || record.previous != previous {
            return Some(Fault::Replaced { sequence, place: place() });
        }
        (last, previous) = (sequence, &record.hash);
    }
    None
}
