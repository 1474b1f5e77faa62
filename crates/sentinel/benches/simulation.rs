//! Simulates a day of a fleet with a virtual clock, and measures the cost of one sweep over the fleet.
//!
//! The Sentinel's own fleet and decisions run unchanged; users, API, broker and adapters are simulated. The result is compared
//! with the events that HyperFleet's own rule would have published on the same day: an event every 5 s poll for as long as a resource's last
//! report is older than 10 s (its default `message_decision`), besides one each 30 minutes, which both have.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark prints, and fails where it cannot measure"
)]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use hyperfleet_client::{Generation, Page, Resource};
use sentinel::decide::{Facts, Policy, State};
use sentinel::fleet::{Due, Fleet, ObservedBy};
use sentinel::message_data::Template;
use sentinel::moment::Moment;
use sentinel::observation::{EventContent, Observation, Projector};
use sentinel::reason::Reason;
use serde_json::json;

const CLUSTERS: usize = 100_000;
const DAY: i64 = 24 * 3_600_000;
const START: i64 = 1_800_000_000_000;
const CHANGES: usize = 20_000;
const CREATIONS: usize = 2_000;
const DELETIONS: usize = 2_000;
const AT_ONCE: usize = 32;
/// Time from a change to its observation, and from the publication to the broker's confirmation, in milliseconds.
const STREAM: i64 = 20;
const PUBLISH: i64 = 5;
/// The dependencies of each adapter, by bits: validation; dns and pullsecret after it; hypershift after both.
const NEEDS: [u64; 4] = [0, 0b0001, 0b0001, 0b0110];
const ALL: u64 = 0b1111;

const POLICY: Policy = Policy {
    min_interval: Duration::from_secs(10),
    max_interval: Duration::from_mins(1),
    resync: Duration::from_mins(30),
    is_conditional: false,
};

fn main() {
    sweep();
    Day::new().run();
}

// --- one sweep ---

fn sweep() {
    let before = memory("VmRSS");
    let mut projector = Projector::new(&BTreeMap::new(), Template::default());
    let mut fleet = Fleet::new(POLICY);
    for round in ["first", "second"] {
        let (mut reading, mut recording, mut bytes) = (0.0, 0.0, 0);
        fleet.begin_round();
        for page in (0..CLUSTERS / 100).map(page) {
            bytes += page.len();
            let started = cpu();
            let page: Page<Resource> = serde_json::from_str(&page).unwrap();
            let read = cpu();
            for resource in &page.items {
                fleet.observe(&resource.id, projector.project(resource), ObservedBy::Page, Moment(START));
            }
            reading += read - started;
            recording += cpu() - read;
        }
        fleet.end_round(true);
        println!(
            "sweep ({round}): {CLUSTERS} resources, {:.0} MB of JSON: {:.2} s of CPU, of which {reading:.2} s reading JSON; \
             ratio to reading alone {:.2}",
            bytes as f64 / 1e6,
            reading + recording,
            (reading + recording) / reading
        );
    }
    let held = memory("VmRSS").saturating_sub(before);
    println!("peak memory: {} MB; used: {} bytes per resource", memory("VmHWM") / 1_024, held * 1_024 / CLUSTERS);
    println!("HyperFleet's own profile: 96 MB on average for 5,000 resources (about 20,000 bytes a resource)\n");
}

fn page(number: usize) -> String {
    let items: Vec<_> = (number * 100..(number + 1) * 100)
        .map(|cluster| {
            let time = "2026-01-01T00:00:00Z";
            let report = |generation| json!({"available": "True", "observed_generation": generation, "last_report_time": time,
                "conditions": [{"type": "Available", "status": "True", "reason": "Done", "message": "It is done."}], "data": {}});
            let condition = |kind: &str| json!({"type": kind, "status": "True", "observed_generation": 3, "reason": "All",
                "created_time": time, "last_updated_time": time, "last_transition_time": time});
            let conditions = ["Reconciled", "LastKnownReconciled", "DnsSuccessful"].map(condition);
            let id = name(cluster);
            json!({
                "id": id, "kind": "Cluster", "name": id, "href": format!("/api/hyperfleet/v1/clusters/{id}"),
                "generation": 3, "created_time": time, "updated_time": time, "labels": {"region": "europe-west1"},
                "status": {
                    "conditions": conditions,
                    "adapters": {"validation": report(3), "dns": report(3), "pullsecret": report(3), "hypershift": report(3)},
                },
            })
        })
        .collect();
    json!({"page": number + 1, "size": 100, "total": CLUSTERS, "items": items}).to_string()
}

// --- a day ---

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Change(usize),
    Create,
    Delete(usize),
    Report { cluster: usize, adapter: usize, generation: Generation, works: bool },
    Observed { cluster: usize },
    Confirmed { flight: usize },
    Relisted,
    Restarted,
}

#[derive(Clone, Copy, Debug)]
struct Cluster {
    state: State,
    changed: i64,
    /// Adapters that are working.
    busy: u64,
    is_gone: bool,
    /// Time since which it is not reconciled.
    open_since: i64,
}

struct Day {
    now: i64,
    clusters: Vec<Cluster>,
    fleet: Fleet,
    steps: BinaryHeap<Reverse<(i64, usize, Step)>>,
    count: usize,
    random: u64,
    in_flight: BTreeMap<usize, Due>,
    next_try: i64,
    published_states: Vec<Option<State>>,
    published: BTreeMap<Reason, usize>,
    duplicates: usize,
    after_restart: usize,
    hours: [usize; 24],
    worst_lag: i64,
    worst_lag_after_outage: i64,
    refused: usize,
    by_hyperfleets_rule: i64,
}

/// Outages of the API and of the broker: the hour, and the length in seconds.
const API_OUTAGES: [(i64, i64); 6] = [(2, 20), (6, 20), (9, 120), (13, 20), (17, 20), (21, 600)];
const BROKER_OUTAGES: [(i64, i64); 3] = [(4, 60), (11, 300), (19, 1_800)];

fn end_of(outages: &[(i64, i64)], now: i64) -> Option<i64> {
    let window = |(hour, seconds): &(i64, i64)| (START + hour * 3_600_000, START + hour * 3_600_000 + seconds * 1_000);
    outages.iter().map(window).find(|(from, until)| (*from..*until).contains(&now)).map(|(_, until)| until)
}

impl Day {
    fn new() -> Self {
        let done = State { generation: Generation::FIRST, available: ALL, ..State::default() };
        let cluster = Cluster { state: done, changed: START - DAY, busy: 0, is_gone: false, open_since: START - DAY };
        let mut day = Self {
            now: START,
            clusters: vec![cluster; CLUSTERS],
            fleet: Fleet::new(POLICY),
            steps: BinaryHeap::new(),
            count: 0,
            random: 0x2545_f491_4f6c_dd1d,
            in_flight: BTreeMap::new(),
            next_try: 0,
            published_states: vec![Some(done); CLUSTERS],
            published: BTreeMap::new(),
            duplicates: 0,
            after_restart: 0,
            hours: [0; 24],
            worst_lag: 0,
            worst_lag_after_outage: 0,
            refused: 0,
            by_hyperfleets_rule: 0,
        };
        for _ in 0..CHANGES {
            // Half of the changes come within one hour, as a part of the fleet is changed at once.
            let at = if day.random_below(2) == 0 {
                day.random_below(DAY)
            } else {
                10 * 3_600_000 + day.random_below(3_600_000)
            };
            let cluster = usize::try_from(day.random_below(i64::try_from(CLUSTERS).unwrap())).unwrap();
            day.at(START + at, Step::Change(cluster));
        }
        for _ in 0..CREATIONS {
            let at = START + day.random_below(DAY);
            day.at(at, Step::Create);
        }
        for number in 0..DELETIONS {
            let at = START + day.random_below(DAY);
            day.at(at, Step::Delete(number * 37 % CLUSTERS));
        }
        for (hour, seconds) in [API_OUTAGES[2], API_OUTAGES[5]] {
            // After a long outage the stream delivers the whole fleet again.
            day.at(START + hour * 3_600_000 + seconds * 1_000, Step::Relisted);
        }
        day.at(START + 15 * 3_600_000, Step::Restarted);
        day
    }

    fn run(mut self) {
        let started = cpu();
        self.list();
        while self.now < START + DAY {
            self.publish();
            let next = self.steps.peek().map_or(i64::MAX, |Reverse((at, ..))| *at);
            let has_slot = self.in_flight.len() < AT_ONCE;
            let due = self.fleet.next_due().filter(|_| has_slot).map_or(i64::MAX, |due| due.0.max(self.next_try));
            self.now = next.min(due.max(self.now + 1));
            while let Some(Reverse((at, _, step))) = self.steps.peek().copied() {
                if at > self.now {
                    break;
                }
                self.steps.pop();
                self.perform(step);
            }
        }
        self.report(cpu() - started);
    }

    fn perform(&mut self, step: Step) {
        let needs_api = !matches!(step, Step::Confirmed { .. } | Step::Restarted);
        if needs_api && let Some(end) = end_of(&API_OUTAGES, self.now) {
            // Clients retry until the API is back.
            let later = end + 1_000 + self.random_below(5_000);
            return self.at(later, step);
        }
        match step {
            Step::Change(cluster) => self.change(cluster, false),
            Step::Delete(cluster) => self.change(cluster, true),
            Step::Create => {
                let state = State { generation: Generation::FIRST, ..State::default() };
                let cluster = Cluster { state, changed: self.now, busy: 0, is_gone: false, open_since: self.now };
                self.clusters.push(cluster);
                self.published_states.push(None);
                self.notify_sentinel(self.clusters.len() - 1);
            }
            Step::Report { cluster, adapter, generation, works } => {
                let (now, one) = (self.now, &mut self.clusters[cluster]);
                if one.state.generation != generation || one.is_gone {
                    return;
                }
                one.busy &= !(1 << adapter);
                one.changed = now;
                if works {
                    one.state.available |= 1 << adapter;
                }
                if one.state.available == ALL {
                    let open = (now - one.open_since) / 1_000;
                    self.by_hyperfleets_rule += if open > 10 { (open - 10) / 5 + 1 } else { 0 };
                    one.is_gone = one.state.is_deleting;
                }
                self.notify_sentinel(cluster);
            }
            Step::Observed { cluster } => self.observe(cluster),
            Step::Confirmed { flight } => self.confirm(flight),
            Step::Relisted => self.list(),
            Step::Restarted => {
                self.fleet = Fleet::new(POLICY);
                self.in_flight.clear();
                self.list();
                self.after_restart = self.fleet.pending();
            }
        }
    }

    fn change(&mut self, cluster: usize, is_deleting: bool) {
        let (now, one) = (self.now, &mut self.clusters[cluster]);
        if one.is_gone || one.state.is_deleting {
            return;
        }
        if one.state.available == ALL {
            one.open_since = now;
        }
        one.state = State { generation: one.state.generation.next(), is_deleting, ..State::default() };
        (one.changed, one.busy) = (now, 0);
        self.notify_sentinel(cluster);
    }

    fn notify_sentinel(&mut self, cluster: usize) {
        self.at(self.now + STREAM, Step::Observed { cluster });
    }

    fn observe(&mut self, cluster: usize) {
        let one = self.clusters[cluster];
        if one.is_gone {
            return self.fleet.remove(&name(cluster));
        }
        let id = name(cluster);
        let data = format!(
            r#"{{"generation":{},"href":"/api/hyperfleet/v1/clusters/{id}","id":"{id}","kind":"Cluster"}}"#,
            one.state.generation
        );
        let reconciled = Some(one.state.available == ALL);
        let facts = Facts { state: one.state, reconciled, changed: Some(Moment(one.changed)), is_inherited: true };
        let content = EventContent { kind: "Cluster".into(), data: data.into(), trace: None };
        self.fleet.observe(&id, Observation { facts, content }, ObservedBy::Stream, Moment(self.now));
    }

    fn list(&mut self) {
        self.fleet.begin_round();
        (0..self.clusters.len())
            .filter(|cluster| !self.clusters[*cluster].is_gone)
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|cluster| self.observe(cluster));
        self.fleet.end_round(false);
    }

    fn publish(&mut self) {
        while self.now >= self.next_try && self.in_flight.len() < AT_ONCE {
            let Some(due) = self.fleet.take(Moment(self.now)) else { break };
            self.count += 1;
            self.in_flight.insert(self.count, due);
            let flight = self.count;
            self.at(self.now + PUBLISH, Step::Confirmed { flight });
            if end_of(&BROKER_OUTAGES, self.now).is_some() {
                // A single event is tried.
                self.next_try = self.now + 5_000;
            }
        }
    }

    fn confirm(&mut self, flight: usize) {
        let Some(due) = self.in_flight.remove(&flight) else { return };
        let cluster: usize = due.id.rsplit('-').next().unwrap().parse().unwrap();
        if end_of(&BROKER_OUTAGES, self.now).is_some() {
            self.refused += 1;
            return self.fleet.publish_failed(&due.id, Moment(self.now));
        }
        self.fleet.published(&due.id, due.state, Moment(self.now));
        *self.published.entry(due.reason).or_default() += 1;
        self.hours[usize::try_from((self.now - START) / 3_600_000).unwrap().min(23)] += 1;
        if due.reason.is_change() && self.published_states[cluster] == Some(due.state) {
            self.duplicates += 1;
        }
        self.published_states[cluster] = Some(due.state);
        if let Some(changed) = due.changed {
            let ends = BROKER_OUTAGES.iter().map(|outage| end_of(&[*outage], START + outage.0 * 3_600_000).unwrap());
            match ends.filter(|end| (changed.0..self.now).contains(end)).max() {
                None => self.worst_lag = self.worst_lag.max(self.now - changed.0),
                Some(end) => self.worst_lag_after_outage = self.worst_lag_after_outage.max(self.now - end),
            }
        }
        self.notify_adapters(cluster);
    }

    fn notify_adapters(&mut self, cluster: usize) {
        let one = self.clusters[cluster];
        for (adapter, needs) in NEEDS.into_iter().enumerate() {
            let is_idle = (one.state.available | one.busy) >> adapter & 1 == 0;
            if is_idle && one.state.available & needs == needs && !one.is_gone {
                self.clusters[cluster].busy |= 1 << adapter;
                let (at, works) = (self.now + 1_000 + self.random_below(20_000), self.random_below(100) >= 3);
                let generation = one.state.generation;
                self.at(at, Step::Report { cluster, adapter, generation, works });
            }
        }
    }

    fn at(&mut self, at: i64, step: Step) {
        self.count += 1;
        self.steps.push(Reverse((at, self.count, step)));
    }

    fn random_below(&mut self, sides: i64) -> i64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        i64::try_from(self.random % sides.unsigned_abs()).unwrap()
    }

    fn report(self, seconds: f64) {
        let events: usize = self.published.values().sum();
        println!(
            "a day of {CLUSTERS} clusters: {CHANGES} changes, {CREATIONS} creations, {DELETIONS} deletions, {} outages of the \
             API, {} of the broker, 1 restart of the Sentinel",
            API_OUTAGES.len(),
            BROKER_OUTAGES.len()
        );
        for (reason, count) in &self.published {
            println!("  {reason:<24} {count:>9}");
        }
        let open = self.clusters.iter().filter(|one| !one.is_gone && one.state.available != ALL).count();
        let (least, most) = (self.hours.iter().min().unwrap(), self.hours.iter().max().unwrap());
        println!("events: {events}, {least} to {most} an hour; refused by the broker: {}", self.refused);
        let resyncs = self.published[&Reason::ResyncDue];
        let theirs = usize::try_from(self.by_hyperfleets_rule).unwrap();
        println!(
            "without resyncs: {}; by HyperFleet's rule, which publishes the first one 10 s later: {theirs}; ratio {:.2}",
            events - resyncs,
            (events - resyncs) as f64 / theirs as f64
        );
        println!(
            "changes published twice: {} ({} were pending at the Sentinel's restart)",
            self.duplicates, self.after_restart
        );
        println!(
            "worst lag from change to confirmation: {} ms; for what changed during an outage of the broker, after its end: {} ms",
            self.worst_lag, self.worst_lag_after_outage
        );
        println!("not reconciled at the end of the day: {open}");
        println!("CPU of the whole simulation: {seconds:.1} s; peak memory: {} MB", memory("VmHWM") / 1_024);
    }
}

fn name(cluster: usize) -> String {
    format!("01970000-0000-7000-8000-{cluster:012}")
}

// --- measurements ---

/// Returns the CPU time of this thread in seconds.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Returns a value of this process's status, in KiB.
fn memory(line: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|text| text.starts_with(line)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
