//! Compares the server with the model after random sequences of requests.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use http::Method;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};

use crate::model::{KINDS, Kind, Model, New, Patch, Reference, Report, Request};
use crate::rig::{Client, TestDatabase, variable};

/// A step of a sequence; small numbers stand for ids, so that steps touch the same resources.
#[derive(Clone, Debug)]
enum Step {
    Create {
        kind: Kind,
        own: u8,
        name: u8,
        owner: u8,
        wif: Option<u8>,
        n: u8,
    },
    Patch {
        kind: Kind,
        own: u8,
        spec: Option<u8>,
        label: Option<u8>,
        wif: Reference<u8>,
        if_match: Option<i64>,
    },
    Delete {
        kind: Kind,
        own: u8,
    },
    ForceDelete {
        kind: Kind,
        own: u8,
    },
    Report {
        kind: Kind,
        own: u8,
        adapter: u8,
        outcome: Outcome,
    },
    /// Reports of all required adapters, one after the other.
    ReportAll {
        kind: Kind,
        own: u8,
        outcome: Outcome,
    },
    /// Compares everything that is visible.
    Compare,
}

#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// Difference to the current generation.
    generation: i64,
    /// Seconds since the sequence's epoch; `None` is now.
    time: Option<i64>,
    available: &'static str,
    finalized: Option<&'static str>,
    complete: bool,
    reason: u8,
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        5 => Just(Kind::Cluster), 4 => Just(Kind::NodePool), 1 => Just(Kind::Channel), 1 => Just(Kind::Version),
        2 => Just(Kind::WifConfig),
    ]
}

fn reporting() -> impl Strategy<Value = Kind> {
    prop_oneof![6 => Just(Kind::Cluster), 4 => Just(Kind::NodePool), 1 => Just(Kind::Channel)]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let status = || prop_oneof![6 => Just("True"), 3 => Just("False"), 1 => Just("Unknown")];
    let generation = prop_oneof![8 => Just(0_i64), 1 => Just(-1), 1 => Just(1), 1 => Just(-9)];
    let time = prop_oneof![4 => Just(None), 3 => (0_i64..4).prop_map(Some)];
    let finalized = proptest::option::weighted(0.7, status());
    (generation, time, status(), finalized, proptest::bool::weighted(0.93), 0_u8..2).prop_map(
        |(generation, time, available, finalized, complete, reason)| Outcome {
            generation,
            time,
            available,
            finalized,
            complete,
            reason,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let own = || 0_u8..3;
    let create = (kind(), own(), 0_u8..2, own(), proptest::option::of(own()), 0_u8..3)
        .prop_map(|(kind, own, name, owner, wif, n)| Step::Create { kind, own, name, owner, wif, n });
    let wif = prop_oneof![
        5 => Just(Reference::Kept), 1 => Just(Reference::Cleared), 2 => own().prop_map(Reference::To)
    ];
    let if_match = proptest::option::weighted(0.3, -1_i64..2);
    let label = proptest::option::of(0_u8..2);
    let patch = (kind(), own(), proptest::option::of(0_u8..3), label, wif, if_match)
        .prop_map(|(kind, own, spec, label, wif, if_match)| Step::Patch { kind, own, spec, label, wif, if_match });
    prop_oneof![
        6 => create,
        4 => patch,
        3 => (kind(), own()).prop_map(|(kind, own)| Step::Delete { kind, own }),
        1 => (kind(), own()).prop_map(|(kind, own)| Step::ForceDelete { kind, own }),
        5 => (reporting(), own(), 0_u8..5, outcome())
            .prop_map(|(kind, own, adapter, outcome)| Step::Report { kind, own, adapter, outcome }),
        4 => (reporting(), own(), outcome()).prop_map(|(kind, own, outcome)| Step::ReportAll { kind, own, outcome }),
        1 => Just(Step::Compare),
    ]
}

/// A running sequence. Its ids and names begin with its own prefix, so that one server serves all sequences.
struct Run<'a> {
    client: &'a Client,
    prefix: String,
    epoch: Timestamp,
    model: Model,
    /// Counts requests, so that "now" has an order.
    now: i64,
    log: String,
}

impl Run<'_> {
    fn id(&self, kind: Kind, own: u8) -> String {
        format!("{}-{}-{own}", self.prefix, kind.plural())
    }

    fn requests(&mut self, step: &Step) -> Vec<Request> {
        match step.clone() {
            Step::Create { kind, own, name, owner, wif, n } => {
                let resource = New {
                    kind,
                    // A node pool's name has at most 15 characters.
                    name: format!("{}-{name}", self.prefix),
                    owner: kind.parent().map(|parent| self.id(parent, owner)),
                    wif: wif.filter(|_| kind == Kind::Cluster).map(|wif| self.id(Kind::WifConfig, wif)),
                    n,
                };
                vec![Request::Create { id: self.id(kind, own), resource }]
            }
            Step::Patch { kind, own, spec, label, wif, if_match } => {
                let id = self.id(kind, own);
                let if_match = if_match.map(|beside| self.model.generation(&id) + beside).filter(|match_| *match_ > 0);
                let wif = if kind == Kind::Cluster { wif } else { Reference::Kept };
                let wif = wif.map(|wif| self.id(Kind::WifConfig, wif));
                vec![Request::Patch { kind, id, patch: Patch { spec, label, wif }, if_match }]
            }
            Step::Delete { kind, own } => vec![Request::Delete { kind, id: self.id(kind, own) }],
            Step::ForceDelete { kind, own } => vec![Request::ForceDelete { kind, id: self.id(kind, own) }],
            Step::Report { kind, own, adapter, outcome } => {
                let names: Vec<&str> = kind.adapters().iter().copied().chain(["other"]).collect();
                let adapter = names[usize::from(adapter) % names.len()];
                vec![self.report(kind, own, adapter, outcome)]
            }
            Step::ReportAll { kind, own, outcome } => {
                kind.adapters().iter().map(|adapter| self.report(kind, own, adapter, outcome)).collect()
            }
            Step::Compare => Vec::new(),
        }
    }

    fn report(&mut self, kind: Kind, own: u8, adapter: &str, outcome: Outcome) -> Request {
        let id = self.id(kind, own);
        self.now += 1;
        let report = Report {
            adapter: adapter.to_owned(),
            generation: self.model.generation(&id) + outcome.generation,
            time: outcome.time.unwrap_or(1000 + self.now),
            available: outcome.available,
            finalized: outcome.finalized,
            complete: outcome.complete,
            reason: outcome.reason,
        };
        Request::Report { kind, id, report }
    }

    async fn ask(&self, request: &Request) -> u16 {
        let (method, path, body, if_match) = match request {
            Request::Create { id, resource: New { kind, name, owner, wif, n } } => {
                let mut body = json!({ "kind": format!("{kind:?}"), "id": id, "name": name, "spec": { "n": n } });
                if let Some(wif) = wif {
                    body["references"] = json!({ "wif_config": [{ "id": wif }] });
                }
                let path = match (kind.parent(), owner) {
                    (Some(parent), Some(owner)) => format!("/{}/{owner}/{}", parent.plural(), kind.plural()),
                    _ => format!("/{}", kind.plural()),
                };
                (Method::POST, path, Some(body), None)
            }
            Request::Patch { kind, id, patch, if_match } => {
                let mut body = json!({});
                if let Some(spec) = patch.spec {
                    body["spec"] = json!({ "n": spec });
                }
                if let Some(label) = patch.label {
                    body["labels"] = json!({ "l": label.to_string() });
                }
                match &patch.wif {
                    Reference::To(wif) => body["references"] = json!({ "wif_config": [{ "id": wif }] }),
                    Reference::Cleared => body["references"] = json!({}),
                    Reference::Kept => {}
                }
                (Method::PATCH, format!("/{}/{id}", kind.plural()), Some(body), *if_match)
            }
            Request::Delete { kind, id } => (Method::DELETE, format!("/{}/{id}", kind.plural()), None, None),
            Request::ForceDelete { kind, id } => {
                let body = json!({ "reason": "because" });
                (Method::POST, format!("/{}/{id}/force-delete", kind.plural()), Some(body), None)
            }
            Request::Report { kind, id, report } => {
                let mut body = json!({
                    "adapter": report.adapter, "observed_generation": report.generation,
                    "conditions": report.conditions(),
                });
                if report.time < 1000 {
                    body["observed_time"] = json!(self.epoch + SignedDuration::from_secs(report.time));
                }
                (Method::PUT, format!("/{}/{id}/statuses", kind.plural()), Some(body), None)
            }
        };
        self.client.try_call(method, &path, body.as_ref(), if_match).await.expect("an answer").status
    }

    async fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        for request in self.requests(step) {
            let (expected, actual) = (self.model.answer(&request), self.ask(&request).await);
            writeln!(self.log, "  {request:?} -> {actual}").unwrap();
            prop_assert_eq!(actual, expected, "the model answers {}; the requests:\n{}", expected, self.log);
        }
        if matches!(step, Step::Compare) { self.compare().await } else { Ok(()) }
    }

    /// Compares all resources, reports and lists.
    async fn compare(&self) -> Result<(), TestCaseError> {
        for kind in KINDS {
            for own in 0..3 {
                let id = self.id(kind, own);
                let path = format!("/{}/{id}", kind.plural());
                let actual = self.client.get(&path).await;
                let actual = (actual.status == 200).then(|| without_times(actual.body));
                prop_assert_eq!(actual, self.model.resource(kind, &id), "{}, after\n{}", path, self.log);
                let statuses = self.client.get(&format!("{path}/statuses")).await.body;
                let items = statuses["items"].as_array().cloned().unwrap_or_default();
                let actual: BTreeMap<String, Value> = items
                    .into_iter()
                    .map(|item| (item["adapter"].as_str().unwrap().to_owned(), without_times(item)))
                    .collect();
                prop_assert_eq!(actual, self.model.reports(&id), "{}/statuses, after\n{}", path, self.log);
            }
            let total = async |search: &str| {
                let search: String = form_urlencoded::byte_serialize(search.as_bytes()).collect();
                let list = self.client.get(&format!("/{}?size=100&search={search}", kind.plural())).await.body;
                assert_eq!(
                    list["items"].as_array().map(Vec::len),
                    list["total"].as_u64().map(|n| n.try_into().unwrap())
                );
                list["total"].as_u64()
            };
            let (all, active) = self.model.totals(kind);
            let own = format!("id like '{}-%'", self.prefix);
            let actual = (total(&own).await, total(&format!("{own} and deleted_time is null")).await);
            let expected = (Some(all.try_into().unwrap()), Some(active.try_into().unwrap()));
            prop_assert_eq!(actual, expected, "lists of {:?}, after\n{}", kind, self.log);
        }
        Ok(())
    }
}

fn without_times(mut value: Value) -> Value {
    match &mut value {
        Value::Object(object) => {
            object.retain(|name, _| !name.ends_with("_time") && name != "adapters");
            object.values_mut().for_each(|member| *member = without_times(member.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_times(item.take())),
        _ => {}
    }
    value
}

#[test]
fn any_sequence_matches_the_model() {
    let cases = variable("FAULTS_CASES").map_or(16, |cases| cases.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for database in runtime.block_on(TestDatabase::all()) {
        let rig = runtime.block_on(database.start());
        let mut runner =
            TestRunner::new(Config { cases, failure_persistence: None, max_shrink_iters: 2000, ..Config::default() });
        let count = std::cell::Cell::new(0);
        let result = runner.run(&proptest::collection::vec(step(), 1..80), |steps| {
            count.set(count.get() + 1);
            let mut run = Run {
                client: &rig.client,
                prefix: format!("k{}", count.get()),
                epoch: Timestamp::now() - SignedDuration::from_mins(10),
                model: Model::default(),
                now: 0,
                log: String::new(),
            };
            runtime.block_on(async {
                for step in &steps {
                    run.step(step).await?;
                }
                run.compare().await
            })
        });
        if let Err(error) = result {
            panic!("{error}");
        }
        runtime.block_on(async {
            rig.end().await;
            database.end().await;
        });
    }
}
