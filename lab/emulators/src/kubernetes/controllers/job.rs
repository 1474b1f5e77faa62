//! Decisions about a batch/v1 Job, as the upstream controller makes them from the observed objects and a time.
//!
//! Pods are counted once: a Pod bears a finalizer until its uid rests in `status.uncountedTerminatedPods`, and moves from
//! there into the counters once the finalizer is gone. A crash between any two writes counts nothing twice.
//!
//! Indexed completion is not served; such a Job is left alone.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::action::Action;
use super::model::{Condition, Meta, Pod, Time, condition, is_true, set_condition, view};

mod failure;
mod pods;
#[cfg(test)]
mod tests;

use failure::{Policy, Verdict};
pub(crate) use pods::is_tracked;

/// The finalizer on Pods that are not counted yet.
pub(crate) const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// The back-off's cap as the documentation states it: six minutes where the first delay is ten seconds.
const BACK_OFF_CAP: u32 = 36;

/// Behaviour of the controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Back-off before the first failed Pod is replaced; doubled for each further one.
    pub(crate) back_off: Duration,
}

/// The members of a Job that the controller reads.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Job {
    pub(crate) metadata: Meta,
    spec: Spec,
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    parallelism: Option<u32>,
    completions: Option<u32>,
    backoff_limit: Option<u32>,
    active_deadline_seconds: Option<i64>,
    ttl_seconds_after_finished: Option<i64>,
    suspend: bool,
    completion_mode: String,
    pod_replacement_policy: Option<String>,
    pod_failure_policy: Option<Policy>,
    template: Value,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_time: Option<Time>,
    #[serde(skip_serializing_if = "is_zero")]
    active: u32,
    #[serde(skip_serializing_if = "is_zero")]
    succeeded: u32,
    #[serde(skip_serializing_if = "is_zero")]
    failed: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ready: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    terminating: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uncounted_terminated_pods: Option<Uncounted>,
}

/// The uids of Pods that ended and are not in the counters yet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
struct Uncounted {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    succeeded: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed: Vec<String>,
}

/// One round of deciding.
struct Round<'a> {
    job: &'a Job,
    pods: &'a [Pod],
    now: Timestamp,
    settings: Settings,
    status: Status,
    actions: Vec<Action>,
}

/// The pending end of the Job, once its Pods are gone.
#[derive(Clone)]
struct Target {
    succeeds: bool,
    reason: String,
    message: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Decides the actions for `job` at `now`; `pods` are those that it controls.
pub(crate) fn decide(job: &Value, pods: &[Pod], now: Timestamp, settings: Settings) -> Vec<Action> {
    let Some(job) = view::<Job>(job) else { return Vec::new() };
    let status = job.status.clone();
    let mut round = Round { job: &job, pods, now, settings, status, actions: Vec::new() };
    if let Some(at) = job.finished_at() {
        round.release(pods);
        round.clean_up(at);
    } else if job.metadata.deletion_timestamp.is_some() {
        round.release(pods);
    } else if job.spec.completion_mode != "Indexed" {
        round.sync();
    }
    round.actions
}

impl Job {
    /// The time of the Job's end, if it has ended.
    fn finished_at(&self) -> Option<Timestamp> {
        let conditions = &self.status.conditions;
        let ended = ["Complete", "Failed"].into_iter().find(|kind| is_true(conditions, kind))?;
        condition(conditions, ended).and_then(|condition| condition.last_transition_time).map(|time| time.0)
    }

    fn parallelism(&self) -> u32 {
        self.spec.parallelism.unwrap_or(1)
    }

    /// None if any number of successes will do.
    fn completions(&self) -> Option<u32> {
        self.spec.completions.or_else(|| self.spec.parallelism.is_none().then_some(1))
    }

    fn backoff_limit(&self) -> u32 {
        self.spec.backoff_limit.unwrap_or(6)
    }

    /// True if a Pod is replaced only once it has ended, not when it begins to be deleted.
    fn replaces_ended_pods_only(&self) -> bool {
        match &self.spec.pod_replacement_policy {
            Some(policy) => policy == "Failed",
            None => self.spec.pod_failure_policy.is_some(),
        }
    }
}

impl Round<'_> {
    fn sync(&mut self) {
        let before = self.status.clone();
        self.count_released();
        if self.status.start_time.is_none() && !self.job.spec.suspend {
            self.status.start_time = Some(Time::at(self.now));
        }
        let target = self.target();
        let target = match target {
            Some(target) => {
                self.delete_active();
                Some(target)
            }
            None => self.manage(),
        };
        let released = self.count_ended(target.as_ref());
        let conclusion = target.and_then(|target| self.conclude(target));
        if self.status != before {
            let status = serde_json::to_value(&self.status).unwrap_or_default();
            self.actions.push(Action::UpdateStatus(status));
        }
        self.release(released.iter().copied());
        self.actions.extend(conclusion);
    }

    /// The decided end, of this pass or an earlier one.
    fn target(&mut self) -> Option<Target> {
        let conditions = &self.status.conditions;
        let decided =
            [("SuccessCriteriaMet", true), ("FailureTarget", false)].into_iter().find_map(|(kind, succeeds)| {
                let found = condition(conditions, kind).filter(|condition| condition.status == "True")?;
                Some(Target { succeeds, reason: found.reason.clone(), message: found.message.clone() })
            });
        decided.or_else(|| self.failure())
    }

    fn failure(&mut self) -> Option<Target> {
        let fail = |reason: &str, message: String| Some(Target { succeeds: false, reason: reason.to_owned(), message });
        let verdicts = self.failed_pods().filter_map(|pod| Some(self.job.spec.pod_failure_policy.as_ref()?.judge(pod)));
        let refused = verdicts.filter_map(|verdict| match verdict {
            Verdict::Fail(message) => Some(message),
            Verdict::Count | Verdict::Ignore => None,
        });
        if let Some(message) = refused.min() {
            return fail("PodFailurePolicy", message);
        }
        if self.failures() > self.job.backoff_limit() || self.restarts_exceed_limit() {
            return fail("BackoffLimitExceeded", "Job has reached the specified backoff limit".to_owned());
        }
        let seconds = self.job.spec.active_deadline_seconds?;
        let deadline = self.status.start_time?.plus_seconds(seconds);
        if self.job.spec.suspend {
            return None;
        }
        if deadline <= self.now {
            return fail("DeadlineExceeded", "Job was active longer than specified deadline".to_owned());
        }
        self.actions.push(Action::Wake(deadline));
        None
    }

    /// Creates or deletes Pods, and says whether there are enough successes.
    fn manage(&mut self) -> Option<Target> {
        self.balance();
        let successes = self.successes();
        let enough = match self.job.completions() {
            Some(completions) => successes >= completions,
            None => successes > 0,
        };
        if enough && self.status.active == 0 {
            let message = "Reached expected number of succeeded pods".to_owned();
            return Some(Target { succeeds: true, reason: "CompletionsReached".to_owned(), message });
        }
        self.report_suspension();
        None
    }

    fn report_suspension(&mut self) {
        let suspended = condition(&self.status.conditions, "Suspended").map(|condition| condition.status == "True");
        if self.job.spec.suspend && suspended != Some(true) {
            self.condition("Suspended", "True", "JobSuspended", "Job suspended");
            self.actions.push(Action::normal("Suspended", "Job suspended"));
        } else if !self.job.spec.suspend && suspended == Some(true) {
            self.condition("Suspended", "False", "JobResumed", "Job resumed");
            self.status.start_time = Some(Time::at(self.now));
            self.actions.push(Action::normal("Resumed", "Job resumed"));
        }
    }

    /// The interim condition at once; the last one when no Pod is left to be counted or to end.
    fn conclude(&mut self, target: Target) -> Option<Action> {
        let Target { succeeds, reason, message } = target;
        let (interim, end) = if succeeds { ("SuccessCriteriaMet", "Complete") } else { ("FailureTarget", "Failed") };
        if condition(&self.status.conditions, interim).is_none() {
            self.condition(interim, "True", &reason, &message);
        }
        let uncounted = self.status.uncounted_terminated_pods.clone().unwrap_or_default();
        if uncounted != Uncounted::default() || self.status.terminating.unwrap_or_default() > 0 {
            return None;
        }
        self.condition(end, "True", &reason, &message);
        if succeeds {
            self.status.completion_time = Some(Time::at(self.now));
            return Some(Action::normal("Completed", "Job completed"));
        }
        Some(Action::warning(&reason, message))
    }

    fn condition(&mut self, kind: &str, status: &str, reason: &str, message: &str) {
        let at = Some(Time::at(self.now));
        let condition = Condition {
            kind: kind.to_owned(),
            status: status.to_owned(),
            last_probe_time: at,
            last_transition_time: at,
            reason: reason.to_owned(),
            message: message.to_owned(),
        };
        set_condition(&mut self.status.conditions, condition);
    }

    /// Deletes the Job once it has been finished for long enough.
    fn clean_up(&mut self, finished: Timestamp) {
        let Some(ttl) = self.job.spec.ttl_seconds_after_finished else { return };
        if self.job.metadata.deletion_timestamp.is_some() {
            return;
        }
        let due = Time(finished).plus_seconds(ttl);
        self.actions.push(if due <= self.now { Action::DeleteOwner } else { Action::Wake(due) });
    }
}
