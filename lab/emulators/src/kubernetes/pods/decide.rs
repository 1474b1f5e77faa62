//! Decisions about one Pod, from the Pod, the facts about its process, and a time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::super::controllers::action::EventKind;
use super::facts::{Exit, Facts, Life};
use super::spec::Pod;
use super::status::{self, Phase, State};

/// The crash back-off's cap: five minutes where the first delay is ten seconds.
const CRASH_BACK_OFF_CAP: u32 = 30;

/// True if a container can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    /// No program stands for its image.
    NoImage,
    /// Its environment points to what is not there.
    Misconfigured(String),
    /// A volume cannot be provided: its name, and why.
    Unmountable(String, String),
}

/// One thing to do, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Puts the Pod on a node.
    Bind,
    /// Writes its status, if that changes anything.
    Status(Map<String, Value>),
    /// Starts its container.
    Start,
    /// Asks its process to end.
    Terminate,
    /// Ends its process and all that it started.
    Kill,
    /// Lets the Pod go for good.
    Remove,
    RecordEvent {
        kind: EventKind,
        reason: &'static str,
        message: String,
    },
    /// Looks again at an instant.
    Wake(Timestamp),
}

/// Decides the steps for `pod` at `now`.
pub(crate) fn decide(
    pod: &Pod,
    facts: &Facts,
    readiness: &dyn Fn() -> Readiness,
    now: Timestamp,
    back_off: Duration,
) -> Vec<Step> {
    if pod.metadata.deletion_timestamp.is_some() {
        return depart(pod, facts, now);
    }
    if pod.has_ended() {
        // Kubelet follows the status whatever its writer: a remaining process is ended.
        let alive = matches!(facts.life, Life::Running { .. }) && !facts.killed;
        return if alive { vec![Step::Kill] } else { Vec::new() };
    }
    if pod.spec.node_name.is_empty() {
        return vec![Step::Bind];
    }
    match &facts.life {
        Life::Running { since } => {
            vec![Step::Status(status::of(pod, facts, Phase::Running, &State::Running(*since), now))]
        }
        Life::Idle => begin(pod, facts, &readiness(), now),
        Life::Ended(exit) => ended(pod, facts, exit, readiness, now, back_off),
    }
}

/// The way of a Pod that is being deleted: SIGTERM, SIGKILL after the grace period, gone.
fn depart(pod: &Pod, facts: &Facts, now: Timestamp) -> Vec<Step> {
    let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
    if let Life::Running { .. } = facts.life {
        let until = pod.metadata.deletion_timestamp.map_or(now, |time| time.0);
        if facts.killed {
            return Vec::new();
        }
        if grace == 0 || until <= now {
            return vec![Step::Kill];
        }
        let ask = (!facts.terminating).then_some(Step::Terminate);
        return ask.into_iter().chain([Step::Wake(until)]).collect();
    }
    let mut steps = Vec::new();
    if !pod.has_ended() && !pod.spec.node_name.is_empty() {
        let status = match &facts.life {
            Life::Ended(exit) => end(pod, facts, exit, now),
            _ => status::never_run(pod, now),
        };
        steps.push(Step::Status(status));
    }
    if grace > 0 {
        steps.push(Step::Remove);
    }
    steps
}

/// A container that has not run yet.
fn begin(pod: &Pod, facts: &Facts, readiness: &Readiness, now: Timestamp) -> Vec<Step> {
    let image = pod.spec.containers.first().map_or("", |container| &container.image);
    let waiting = |reason: &'static str, message: String| {
        Step::Status(status::of(pod, facts, Phase::Pending, &State::Waiting { reason, message }, now))
    };
    let present = status::waiting_reason(pod);
    match readiness {
        Readiness::Ready => vec![waiting("ContainerCreating", String::new()), Step::Start],
        Readiness::NoImage if matches!(present, Some("ErrImagePull" | "ImagePullBackOff")) => {
            vec![waiting("ImagePullBackOff", format!("Back-off pulling image {image:?}"))]
        }
        Readiness::NoImage => {
            let why = format!("no program stands for the image {image:?}: see --run-pods");
            let message = format!("Failed to pull image {image:?}: {why}");
            vec![
                Step::RecordEvent { kind: EventKind::Warning, reason: "Failed", message },
                waiting("ErrImagePull", why),
            ]
        }
        Readiness::Misconfigured(why) => {
            let mut steps = vec![waiting("CreateContainerConfigError", why.clone())];
            if present != Some("CreateContainerConfigError") {
                let message = format!("Error: {why}");
                steps.push(Step::RecordEvent { kind: EventKind::Warning, reason: "Failed", message });
            }
            steps
        }
        Readiness::Unmountable(volume, why) => {
            let mut steps = vec![waiting("ContainerCreating", String::new())];
            if present.is_none() {
                let message = format!("MountVolume.SetUp failed for volume {volume:?} : {why}");
                steps.push(Step::RecordEvent { kind: EventKind::Warning, reason: "FailedMount", message });
            }
            steps
        }
    }
}

/// A container that has ended: started again after a back-off, or for good.
fn ended(
    pod: &Pod,
    facts: &Facts,
    exit: &Exit,
    readiness: &dyn Fn() -> Readiness,
    now: Timestamp,
    back_off: Duration,
) -> Vec<Step> {
    let again = match pod.spec.restart_policy.as_str() {
        "Never" => false,
        "OnFailure" => exit.code != 0,
        _ => true,
    };
    if !again {
        return vec![Step::Status(end(pod, facts, exit, now))];
    }
    let until = restart_at(facts, exit, back_off);
    if until <= now {
        return match readiness() {
            Readiness::Ready => vec![Step::Start],
            other => begin(pod, facts, &other, now),
        };
    }
    let name = pod.spec.containers.first().map_or("", |container| &container.name);
    let (meta, delay) = (&pod.metadata, until.duration_since(exit.finished).as_secs());
    let place = format!("{}_{}({})", meta.name, meta.namespace, meta.uid);
    let message = format!("back-off {delay}s restarting failed container={name} pod={place}");
    let mut steps = Vec::new();
    if status::waiting_reason(pod) != Some("CrashLoopBackOff") {
        let message = format!("Back-off restarting failed container {name} in pod {place}");
        steps.push(Step::RecordEvent { kind: EventKind::Warning, reason: "BackOff", message });
    }
    let state = State::Waiting { reason: "CrashLoopBackOff", message };
    steps.push(Step::Status(status::of(pod, facts, Phase::Running, &state, now)));
    steps.push(Step::Wake(until));
    steps
}

/// The first restart comes at once, later ones after a delay that doubles.
fn restart_at(facts: &Facts, exit: &Exit, back_off: Duration) -> Timestamp {
    let Some(doublings) = facts.crashes.checked_sub(1) else { return exit.finished };
    let factor = 1_u32.checked_shl(doublings.min(30)).unwrap_or(CRASH_BACK_OFF_CAP).min(CRASH_BACK_OFF_CAP);
    let delay = SignedDuration::try_from(back_off.saturating_mul(factor)).unwrap_or(SignedDuration::MAX);
    exit.finished.checked_add(delay).unwrap_or(Timestamp::MAX)
}

fn end(pod: &Pod, facts: &Facts, exit: &Exit, now: Timestamp) -> Map<String, Value> {
    let phase = if exit.code == 0 { Phase::Succeeded } else { Phase::Failed };
    status::of(pod, facts, phase, &State::Terminated(exit), now)
}
