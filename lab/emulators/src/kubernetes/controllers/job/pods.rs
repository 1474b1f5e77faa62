//! A Job's Pods: how many there are, how many there should be, and which of them count.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::super::action::{Action, Owner};
use super::super::model::Pod;
use super::failure::Verdict;
use super::{BACK_OFF_CAP, Round, TRACKING, Target, Uncounted};

impl<'a> Round<'a> {
    /// Pods that have failed, or that are as good as failed because they are being deleted.
    pub(super) fn failed_pods(&self) -> impl Iterator<Item = &'a Pod> + use<'a> {
        let ended_only = self.job.replaces_ended_pods_only();
        self.pods.iter().filter(move |pod| {
            let deleted = pod.metadata.deletion_timestamp.is_some() && pod.status.phase != "Succeeded";
            pod.status.phase == "Failed" || (deleted && !ended_only)
        })
    }

    /// Successes, those included that are not in the counter yet.
    pub(super) fn successes(&self) -> u32 {
        let uncounted = self.uncounted();
        let new = self.pods.iter().filter(|pod| pod.status.phase == "Succeeded" && is_tracked(pod));
        let new = new.filter(|pod| !uncounted.succeeded.contains(&pod.metadata.uid));
        self.status.succeeded.saturating_add(number(uncounted.succeeded.len() + new.count()))
    }

    /// Failures that count, those included that are not in the counter yet.
    pub(super) fn failures(&self) -> u32 {
        let uncounted = self.uncounted();
        let new = self.failed_pods().filter(|pod| is_tracked(pod) && !uncounted.failed.contains(&pod.metadata.uid));
        let new = new.filter(|pod| self.counts(pod));
        self.status.failed.saturating_add(number(uncounted.failed.len() + new.count()))
    }

    /// Containers restarted in place count as failures too.
    pub(super) fn restarts_exceed_limit(&self) -> bool {
        let policy = self.job.spec.template.pointer("/spec/restartPolicy");
        if policy.is_none_or(|policy| policy != "OnFailure") {
            return false;
        }
        let alive = self.pods.iter().filter(|pod| !pod.has_ended()).map(|pod| &pod.status);
        let containers =
            alive.flat_map(|status| status.container_statuses.iter().chain(&status.init_container_statuses));
        let restarts = containers.fold(0_u32, |sum, container| sum.saturating_add(container.restart_count));
        restarts >= self.job.backoff_limit().max(1)
    }

    /// Pods whose finalizer is gone move from the list into the counters.
    pub(super) fn count_released(&mut self) {
        let tracked: BTreeSet<_> =
            self.pods.iter().filter(|pod| is_tracked(pod)).map(|pod| &pod.metadata.uid).collect();
        let mut uncounted = self.uncounted();
        let before = (uncounted.succeeded.len(), uncounted.failed.len());
        uncounted.succeeded.retain(|uid| tracked.contains(uid));
        uncounted.failed.retain(|uid| tracked.contains(uid));
        self.status.succeeded = self.status.succeeded.saturating_add(number(before.0 - uncounted.succeeded.len()));
        self.status.failed = self.status.failed.saturating_add(number(before.1 - uncounted.failed.len()));
        self.status.uncounted_terminated_pods = Some(uncounted);
    }

    /// Lists Pods that have ended as uncounted, and names those whose finalizer may go after that.
    pub(super) fn count_ended(&mut self, target: Option<&Target>) -> Vec<&'a Pod> {
        let failed: BTreeSet<_> = self.failed_pods().map(|pod| &pod.metadata.uid).collect();
        let mut uncounted = self.uncounted();
        let mut released = Vec::new();
        for pod in self.pods.iter().filter(|pod| is_tracked(pod)) {
            let uid = &pod.metadata.uid;
            let succeeded = pod.status.phase == "Succeeded";
            let is_failed = failed.contains(uid) || target.is_some_and(|target| !target.succeeds);
            if !(succeeded || is_failed || target.is_some()) {
                continue;
            }
            released.push(pod);
            if uncounted.succeeded.contains(uid) || uncounted.failed.contains(uid) {
                continue;
            }
            if succeeded {
                uncounted.succeeded.push(uid.clone());
            } else if is_failed && self.counts(pod) {
                uncounted.failed.push(uid.clone());
            }
        }
        self.status.uncounted_terminated_pods = Some(uncounted);
        released
    }

    /// Takes the finalizer off.
    pub(super) fn release<'p>(&mut self, pods: impl IntoIterator<Item = &'p Pod>) {
        let tracked = pods.into_iter().filter(|pod| is_tracked(pod));
        self.actions.extend(
            tracked.map(|pod| Action::ReleasePod { name: pod.metadata.name.clone(), uid: pod.metadata.uid.clone() }),
        );
    }

    /// Deletes every Pod that runs, because the Job has come to its end.
    pub(super) fn delete_active(&mut self) {
        let active: Vec<_> = self.active().collect();
        self.actions.extend(active.iter().map(|pod| deletion(pod)));
        self.status.active = 0;
        self.status.ready = Some(0);
        self.status.terminating = Some(self.terminating().saturating_add(number(active.len())));
    }

    /// Creates or deletes Pods until there are as many as wanted, failures permitting.
    pub(super) fn balance(&mut self) {
        let mut active: Vec<_> = self.active().collect();
        active.sort_by_key(|pod| (!pod.is_ready(), pod.metadata.creation_timestamp));
        let wanted = self.wanted(number(active.len()));
        let surplus = active.split_off(active.len().min(usize::try_from(wanted).unwrap_or(usize::MAX)));
        if self.job.spec.suspend {
            // Released first: what is deleted for a suspension has not failed.
            self.release(surplus.iter().copied());
        }
        self.actions.extend(surplus.iter().map(|pod| deletion(pod)));
        let mut count = number(active.len());
        let replacing = if self.job.replaces_ended_pods_only() { self.terminating() } else { 0 };
        let missing = wanted.saturating_sub(count).saturating_sub(replacing);
        if surplus.is_empty() && missing > 0 {
            if let Some(until) = self.back_off_until().filter(|until| *until > self.now) {
                self.actions.push(Action::Wake(until));
            } else {
                let pod = self.new_pod();
                self.actions.extend((0..missing).map(|_| Action::CreatePod(pod.clone())));
                count = count.saturating_add(missing);
            }
        }
        self.status.active = count;
        self.status.ready = Some(number(active.iter().filter(|pod| pod.is_ready()).count()));
        self.status.terminating = Some(self.terminating().saturating_add(number(surplus.len())));
    }

    fn wanted(&self, active: u32) -> u32 {
        let parallelism = self.job.parallelism();
        match self.job.completions() {
            _ if self.job.spec.suspend => 0,
            Some(completions) => completions.saturating_sub(self.successes()).min(parallelism),
            // Once one has succeeded, those that run may end, and none is added.
            None if self.successes() > 0 => active,
            None => parallelism,
        }
    }

    /// The earliest start of the next Pod: the back-off doubles with each failure since the last success.
    fn back_off_until(&self) -> Option<Timestamp> {
        let succeeded = self.pods.iter().filter(|pod| pod.status.phase == "Succeeded").filter_map(Pod::ended_at).max();
        let ended = self.failed_pods().filter_map(Pod::ended_at);
        let failures: Vec<_> = ended.filter(|at| succeeded.is_none_or(|success| *at > success)).collect();
        let last = failures.iter().max()?;
        let doublings = number(failures.len() - 1);
        let factor = 1_u32.checked_shl(doublings).filter(|_| doublings < 31).unwrap_or(BACK_OFF_CAP).min(BACK_OFF_CAP);
        let delay = SignedDuration::try_from(self.settings.back_off.saturating_mul(factor)).ok()?;
        last.checked_add(delay).ok()
    }

    fn new_pod(&self) -> Value {
        let meta = &self.job.metadata;
        let owner = Owner { api_version: "batch/v1", kind: "Job", meta };
        let labels = [
            ("batch.kubernetes.io/controller-uid", meta.uid.as_str()),
            ("batch.kubernetes.io/job-name", &meta.name),
            ("controller-uid", &meta.uid),
            ("job-name", &meta.name),
        ];
        let mut pod = owner.pod(&self.job.spec.template, &labels);
        if let Some(meta) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
            let finalizers = meta.entry("finalizers").or_insert_with(|| Value::Array(Vec::new()));
            if let Some(finalizers) = finalizers.as_array_mut() {
                finalizers.push(Value::from(TRACKING));
            }
        }
        pod
    }

    fn counts(&self, pod: &Pod) -> bool {
        let policy = self.job.spec.pod_failure_policy.as_ref();
        policy.is_none_or(|policy| !matches!(policy.judge(pod), Verdict::Ignore))
    }

    fn active(&self) -> impl Iterator<Item = &'a Pod> + use<'a> {
        self.pods.iter().filter(|pod| pod.is_active())
    }

    fn terminating(&self) -> u32 {
        number(self.pods.iter().filter(|pod| pod.is_terminating()).count())
    }

    fn uncounted(&self) -> Uncounted {
        self.status.uncounted_terminated_pods.clone().unwrap_or_default()
    }
}

/// True if a Pod bears the finalizer of those that are not counted yet.
pub(crate) fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().any(|finalizer| finalizer == TRACKING)
}

fn deletion(pod: &Pod) -> Action {
    Action::DeletePod { name: pod.metadata.name.clone(), uid: pod.metadata.uid.clone() }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
