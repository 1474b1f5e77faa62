//! The conditions that follow from adapters' reports, as HyperFleet's API defines them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Report, Resource};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Concluded {
    holds: bool,
    generation: i64,
    reason: &'static str,
    message: String,
}

impl Resource {
    /// Computes the conditions; its children are terminating whenever it is.
    pub(super) fn conclude(&mut self) {
        let adapters = self.kind.adapters();
        if adapters.is_empty() {
            return;
        }
        let counts = |report: &&Report| report.generation <= self.generation && report.available != "Unknown";
        let counted: BTreeMap<&str, Report> = adapters
            .iter()
            .filter_map(|adapter| Some((*adapter, self.reports.get(*adapter).filter(counts)?.clone())))
            .collect();
        let reconciled = self.reconciled(&counted);
        let last_known = self.last_known(&counted);
        let mut conditions = vec![condition("Reconciled", &reconciled), condition("LastKnownReconciled", &last_known)];
        for adapter in adapters {
            if let Some(report) = counted.get(adapter) {
                conditions.push(json!({
                    "type": format!("{}{}Successful", adapter[..1].to_uppercase(), &adapter[1..]),
                    "status": report.available,
                    "reason": format!("R{}", report.reason),
                    "observed_generation": report.generation,
                }));
            }
        }
        self.conditions = conditions;
        self.last_known = Some(last_known);
    }

    fn reconciled(&self, counted: &BTreeMap<&str, Report>) -> Concluded {
        let word = if self.deleting { "Finalized" } else { "Available" };
        let done = |adapter: &&str| {
            counted.get(adapter).is_some_and(|report| {
                let says = if self.deleting { report.finalized } else { Some(report.available) };
                report.generation == self.generation && says == Some("True")
            })
        };
        let missing: BTreeSet<&str> = self.kind.adapters().iter().copied().filter(|one| !done(one)).collect();
        let listed = |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(", ");
        let (reason, message) = if missing.is_empty() {
            let message = "All required adapters reported Available=True or Finalized=True at the current generation";
            ("ReconciledAll", message.to_owned())
        } else {
            let message = format!(
                "Required adapters not reporting {word}=True: [{}]. Currently reporting: [{}]",
                listed(&missing),
                listed(&counted.keys().copied().collect())
            );
            ("ReconciledMissingAdapters", message)
        };
        Concluded { holds: missing.is_empty(), generation: self.generation, reason, message }
    }

    fn last_known(&self, counted: &BTreeMap<&str, Report>) -> Concluded {
        let before = self.last_known.as_ref();
        let (was, known) = (before.is_some_and(|before| before.holds), before.map_or(1, |before| before.generation));
        let generations: BTreeSet<i64> = counted.values().map(|report| report.generation).collect();
        let newest = generations.last().copied().unwrap_or(known);
        let mut denied = counted.values().filter(|report| report.available == "False");
        let missing = counted.len() < self.kind.adapters().len();
        let all = "All required adapters report Available=True for the tracked generation";
        let (holds, generation, reason, message) = if missing {
            (false, newest, "AdaptersMissingReports", "Required adapters have not yet reported status")
        } else if denied.clone().next().is_none() {
            match (generations.len(), was) {
                (1, _) => (true, newest, "AllAdaptersReconciled", all),
                (_, true) => (true, known, "AllAdaptersReconciled", all),
                (_, false) => {
                    let message = "Required adapters do not report a consistent Available state";
                    (false, newest, "AdaptersNotAtSameGeneration", message)
                }
            }
        } else if was && denied.all(|report| report.generation != known) {
            (true, known, "AllAdaptersReconciled", all)
        } else {
            let message = "One or more required adapters report Available=False";
            (false, newest, "AdapterReportedNotAvailable", message)
        };
        Concluded { holds, generation, reason, message: message.to_owned() }
    }
}

fn condition(kind: &str, concluded: &Concluded) -> Value {
    json!({
        "type": kind,
        "status": if concluded.holds { "True" } else { "False" },
        "reason": concluded.reason,
        "message": concluded.message,
        "observed_generation": concluded.generation,
    })
}
