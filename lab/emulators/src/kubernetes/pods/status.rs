//! A Pod's status as kubelet writes it. What others wrote into it stays.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::super::controllers::model::{Condition, Time, set_condition, view};
use super::facts::{Exit, Facts, Life};
use super::spec::Pod;

/// The phase of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
}

/// A container's state.
#[derive(Clone, Debug)]
pub(crate) enum State<'a> {
    Waiting { reason: &'static str, message: String },
    Running(Timestamp),
    Terminated(&'a Exit),
}

/// The status of `pod` in a phase, with its container in a state.
pub(crate) fn of(pod: &Pod, facts: &Facts, phase: Phase, state: &State<'_>, now: Timestamp) -> Map<String, Value> {
    let ready = matches!(state, State::Running(_));
    let container = pod.spec.containers.first().cloned().unwrap_or_default();
    let mut entry = Map::from_iter([
        ("name".to_owned(), json!(container.name)),
        ("image".to_owned(), json!(container.image)),
        ("imageID".to_owned(), json!("")),
        ("ready".to_owned(), json!(ready)),
        ("started".to_owned(), json!(ready)),
        ("restartCount".to_owned(), json!(facts.restarts)),
        ("state".to_owned(), state.written()),
        (
            "lastState".to_owned(),
            last(facts, state).map_or_else(|| json!({}), |exit| State::Terminated(exit).written()),
        ),
    ]);
    if !matches!(state, State::Waiting { .. }) {
        entry.insert("containerID".to_owned(), json!(format!("emulator://{}/{}", pod.metadata.uid, facts.restarts)));
    }
    let mut status = base(pod, phase, now);
    status.insert("containerStatuses".to_owned(), json!([entry]));
    let unready = format!("containers with unready status: [{}]", container.name);
    let (reason, message) = match phase {
        _ if ready => ("", String::new()),
        Phase::Succeeded => ("PodCompleted", String::new()),
        Phase::Failed => ("PodFailed", String::new()),
        Phase::Pending | Phase::Running => ("ContainersNotReady", unready),
    };
    set_ready(pod, &mut status, (ready, reason, &message), now);
    status
}

/// The status of a Pod that is let go before its container has run.
pub(crate) fn never_run(pod: &Pod, now: Timestamp) -> Map<String, Value> {
    let mut status = base(pod, Phase::Failed, now);
    set_ready(pod, &mut status, (false, "PodFailed", ""), now);
    status
}

/// The status of a Pod that no node can take.
pub(crate) fn unschedulable(pod: &Pod, nodes: usize, now: Timestamp) -> Map<String, Value> {
    let mut status = pod.status.clone();
    status.insert("phase".to_owned(), json!("Pending"));
    let message =
        format!("0/{nodes} nodes are available: none has the labels and bears the taints that the Pod asks for.");
    let mut conditions = conditions(pod);
    set_condition(&mut conditions, condition("PodScheduled", false, "Unschedulable", &message, now));
    status.insert("conditions".to_owned(), json!(conditions));
    status
}

/// The cause of the wait, as in the status.
pub(crate) fn waiting_reason(pod: &Pod) -> Option<&str> {
    let statuses = pod.status.get("containerStatuses")?.as_array()?;
    statuses.first()?.pointer("/state/waiting/reason")?.as_str()
}

fn last<'a>(facts: &'a Facts, state: &State<'a>) -> Option<&'a Exit> {
    match (&facts.life, state) {
        // It waits to be started again: what ended is the last run already.
        (Life::Ended(exit), State::Waiting { .. }) => Some(exit),
        _ => facts.last.as_ref(),
    }
}

fn base(pod: &Pod, phase: Phase, now: Timestamp) -> Map<String, Value> {
    let mut status = pod.status.clone();
    status.insert("phase".to_owned(), json!(phase.name()));
    status.insert("hostIP".to_owned(), json!("127.0.0.1"));
    status.insert("hostIPs".to_owned(), json!([{ "ip": "127.0.0.1" }]));
    status.insert("podIP".to_owned(), json!("127.0.0.1"));
    status.insert("podIPs".to_owned(), json!([{ "ip": "127.0.0.1" }]));
    status.entry("startTime").or_insert_with(|| json!(Time::at(now)));
    status
}

fn set_ready(pod: &Pod, status: &mut Map<String, Value>, why: (bool, &str, &str), now: Timestamp) {
    let mut conditions = conditions(pod);
    let (ready, reason, message) = why;
    let initialized = if reason == "PodCompleted" { reason } else { "" };
    for new in [
        condition("Initialized", true, initialized, "", now),
        condition("Ready", ready, reason, message, now),
        condition("ContainersReady", ready, reason, message, now),
        condition("PodScheduled", true, "", "", now),
    ] {
        set_condition(&mut conditions, new);
    }
    status.insert("conditions".to_owned(), json!(conditions));
}

fn conditions(pod: &Pod) -> Vec<Condition> {
    pod.status.get("conditions").and_then(view).unwrap_or_default()
}

fn condition(kind: &str, holds: bool, reason: &str, message: &str, now: Timestamp) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status: if holds { "True" } else { "False" }.to_owned(),
        last_probe_time: None,
        last_transition_time: Some(Time::at(now)),
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }
}

impl State<'_> {
    fn written(&self) -> Value {
        match self {
            Self::Waiting { reason, message } if message.is_empty() => json!({ "waiting": { "reason": reason } }),
            Self::Waiting { reason, message } => json!({ "waiting": { "reason": reason, "message": message } }),
            Self::Running(since) => json!({ "running": { "startedAt": Time::at(*since) } }),
            Self::Terminated(exit) => {
                let Exit { code, signal, reason, message, started, finished } = exit;
                let mut end = Map::from_iter([
                    ("exitCode".to_owned(), json!(code)),
                    ("reason".to_owned(), json!(reason)),
                    ("startedAt".to_owned(), json!(Time::at(*started))),
                    ("finishedAt".to_owned(), json!(Time::at(*finished))),
                ]);
                end.extend(signal.map(|signal| ("signal".to_owned(), json!(signal))));
                if !message.is_empty() {
                    end.insert("message".to_owned(), json!(message));
                }
                json!({ "terminated": end })
            }
        }
    }
}
