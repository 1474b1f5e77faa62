//! Rotations of many clusters: groups, concurrency, failures, requests of people, two replicas.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use credentials::credential::{Approval, ClusterRef, Credential};
use credentials::ledger::{LedgerError, NewRotation, RotationRequest, Statement};
use credentials::reason::Reason;
use credentials::rotation::{
    Candidate, ClusterProgress, Rotation, RotationName, RotationPhase, RotationPlan, RotationReason,
};
use credentials::run::Worker;
use credentials::state::State;
use jiff::SignedDuration;
use rstest::rstest;

use crate::database::Kind;
use crate::rig::Rig;
use crate::world::Outside;

/// A fleet whose clusters use their first credentials.
struct Fleet {
    rig: Rig,
    worker: Worker<Outside, Outside>,
    clusters: Vec<ClusterRef>,
    first: Vec<Credential>,
}

// === impl Fleet ===

impl Fleet {
    async fn new(kind: Kind, size: usize) -> Option<Self> {
        let rig = Rig::new(kind).await?;
        let worker = rig.worker("one");
        let mut fleet = Self { rig, worker, clusters: Vec::new(), first: Vec::new() };
        for number in 0..size {
            let cluster = fleet.rig.cluster(&format!("cls-{number}"));
            fleet.first.push(fleet.rig.assign(&cluster, None).await);
            fleet.clusters.push(cluster);
        }
        for id in fleet.first.iter().map(|credential| credential.id).collect::<Vec<_>>() {
            while fleet.rig.get(id).await.state < State::Adopted {
                fleet.pass(&[]).await;
            }
        }
        Some(fleet)
    }

    fn statement(&self, reason: &'static str) -> Statement<'static> {
        Statement { actor: "ann", reason, now: self.rig.world.registry.now() }
    }

    /// Starts a rotation whose first group has `first` clusters.
    async fn start(&self, first: usize, change: impl FnOnce(&mut RotationPlan)) -> RotationName {
        let registry = Rig::registry();
        let mut candidates = self.worker.ledger.candidates(&registry).await.unwrap();
        assert_eq!(candidates.len(), self.clusters.len());
        candidates.sort_by_key(|candidate| candidate.cluster.clone());
        let rest: Vec<Candidate> = candidates.split_off(first);
        let mut plan = RotationPlan {
            groups: vec!["labels.canary = 'true'".to_owned(), "the rest".to_owned()],
            max_concurrency: 2,
            max_failures: 0,
            min_success_time: SignedDuration::from_mins(10),
            progress_deadline: SignedDuration::from_hours(3),
            window: None,
            max_calls_per_minute: None,
            from_ams: false,
        };
        change(&mut plan);
        let name: RotationName = "monthly".parse().unwrap();
        let new = NewRotation { name: &name, registry: &registry, plan: &plan, groups: &[candidates, rest] };
        self.worker.ledger.start_rotation(&new, &self.statement("every month")).await.unwrap();
        let again = self.worker.ledger.start_rotation(&new, &self.statement("again")).await;
        assert!(matches!(again, Err(LedgerError::RotationExists(_))));
        let other: RotationName = "other".parse().unwrap();
        let second = NewRotation { name: &other, ..new };
        let second = self.worker.ledger.start_rotation(&second, &self.statement("again")).await;
        assert!(matches!(second, Err(LedgerError::RotationOpen { .. })));
        name
    }

    /// One step of the rotation and one step of the worker, while all clusters live except some.
    async fn pass(&self, silent: &[&str]) {
        self.worker.rotate(&Rig::registry()).await.unwrap();
        self.rig.step(&self.worker).await;
        for cluster in self.clusters.iter().filter(|cluster| !silent.contains(&cluster.id.as_str())) {
            self.rig.live(cluster);
        }
    }

    async fn rotation(&self, name: &RotationName) -> Rotation {
        self.worker.ledger.rotation(name).await.unwrap()
    }

    async fn members(&self, name: &RotationName, progress: ClusterProgress) -> Vec<String> {
        let found = self.worker.ledger.rotation_members(name, progress, 100).await.unwrap();
        found.into_iter().map(|member| member.cluster).collect()
    }

    /// Passes until the rotation is in a phase.
    async fn until(&self, name: &RotationName, phase: RotationPhase, silent: &[&str]) -> Rotation {
        for _pass in 0..3000 {
            let rotation = self.rotation(name).await;
            if rotation.phase == phase {
                return rotation;
            }
            self.pass(silent).await;
        }
        panic!("it is never {phase}: {:?}", self.rotation(name).await);
    }

    /// The account that the pull secret of a cluster names.
    fn named(&self, index: usize) -> String {
        let cluster = &self.clusters[index];
        self.rig.world.clusters.login(cluster, "memory.invalid").unwrap().username
    }
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn clusters_are_rotated_in_groups_a_few_at_a_time(#[case] kind: Kind) {
    let Some(fleet) = Fleet::new(kind, 7).await else { return };
    let name = fleet.start(3, |_| {}).await;
    let firsts: BTreeSet<&str> = ["cls-0", "cls-1", "cls-2"].into();
    let mut most = 0;
    for _pass in 0..3000 {
        let rotation = fleet.rotation(&name).await;
        if rotation.phase == RotationPhase::Done {
            break;
        }
        let busy = fleet.members(&name, ClusterProgress::InProgress).await;
        most = most.max(busy.len());
        let done = fleet.members(&name, ClusterProgress::Succeeded).await;
        let is_first_done = firsts.iter().all(|first| done.iter().any(|cluster| cluster == first));
        let is_first_busy = busy.iter().all(|cluster| firsts.contains(cluster.as_str()));
        assert!(is_first_done || is_first_busy, "{busy:?} after {done:?}");
        fleet.pass(&[]).await;
    }
    let rotation = fleet.rotation(&name).await;
    assert_eq!((most, rotation.phase, rotation.reason), (2, RotationPhase::Done, RotationReason::Finished));
    let members = fleet.worker.ledger.rotation_members(&name, ClusterProgress::Succeeded, 100).await.unwrap();
    assert_eq!(members.len(), 7);
    for member in &members {
        let took = member.ended.unwrap().duration_since(member.started.unwrap());
        assert!(took >= SignedDuration::from_mins(10), "{member:?} used its credential for too short a time");
    }
    // The old ones are retired by the policy, once they are quiet.
    for old in &fleet.first {
        while fleet.rig.get(old.id).await.state != State::WaitedOut {
            fleet.pass(&[]).await;
        }
    }
    let mut new = Vec::new();
    for (index, cluster) in fleet.clusters.iter().enumerate() {
        let found = fleet.rig.assign(cluster, Some(fleet.first[index].id)).await;
        assert_eq!((found.state, found.record.login.as_ref()), (State::Adopted, Some(&fleet.named(index))));
        new.push(found);
    }
    fleet.rig.check(&new.iter().collect::<Vec<_>>()).await;
    let over = fleet.worker.ledger.ask(&name, RotationRequest::Resume, &fleet.statement("again")).await;
    assert!(matches!(over, Err(LedgerError::RotationOver { .. })));
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_cluster_that_never_reports_stops_its_rotation(#[case] kind: Kind) {
    let Some(fleet) = Fleet::new(kind, 4).await else { return };
    let name = fleet.start(2, |_| {}).await;
    let stopped = fleet.until(&name, RotationPhase::Stopped, &["cls-1"]).await;
    assert_eq!((stopped.reason, stopped.group), (RotationReason::FirstGroupFailed, 0));
    let failed = fleet.worker.ledger.rotation_members(&name, ClusterProgress::Failed, 100).await.unwrap();
    let [failed] = failed.as_slice() else { panic!("{failed:?}") };
    assert_eq!((failed.cluster.as_str(), failed.cause.as_deref()), ("cls-1", Some("NeverReported")));
    assert_eq!(fleet.rig.get(fleet.first[1].id).await.state, State::Adopted, "its old credential stays");
    // Nothing further begins until a person resumes it.
    for _pass in 0..50 {
        fleet.pass(&["cls-1"]).await;
    }
    assert_eq!(fleet.members(&name, ClusterProgress::Waiting).await.len(), 2);
    fleet.worker.ledger.ask(&name, RotationRequest::Resume, &fleet.statement("it is switched off")).await.unwrap();
    let done = fleet.until(&name, RotationPhase::Done, &["cls-1"]).await;
    let requests: Vec<&str> = done.history.iter().map(|request| request.request.as_str()).collect();
    assert_eq!((requests, done.tolerated), (vec!["start", "resume"], 1));
    assert_eq!(fleet.members(&name, ClusterProgress::Succeeded).await, ["cls-0", "cls-2", "cls-3"]);
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_paused_rotation_begins_nothing(#[case] kind: Kind) {
    let Some(fleet) = Fleet::new(kind, 3).await else { return };
    let name = fleet.start(0, |plan| plan.max_concurrency = 1).await;
    while fleet.members(&name, ClusterProgress::InProgress).await.is_empty() {
        fleet.pass(&[]).await;
    }
    fleet.worker.ledger.ask(&name, RotationRequest::Pause, &fleet.statement("a holiday")).await.unwrap();
    for _pass in 0..100 {
        fleet.pass(&[]).await;
    }
    assert_eq!(fleet.members(&name, ClusterProgress::Waiting).await.len(), 2);
    let new = fleet.rig.assign(&fleet.clusters[0], Some(fleet.first[0].id)).await;
    assert_eq!(new.state, State::Adopted, "what has begun is finished");
    fleet.worker.ledger.ask(&name, RotationRequest::Resume, &fleet.statement("go on")).await.unwrap();
    fleet.until(&name, RotationPhase::Done, &[]).await;
}

/// One cluster adopts its new credential in a pause and keeps it; the other one has not, and gets its old one back.
#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_paused_rotation_judges_its_clusters(#[case] kind: Kind) {
    let Some(fleet) = Fleet::new(kind, 3).await else { return };
    let old = fleet.named(1);
    let name = fleet.start(0, |_| {}).await;
    while fleet.members(&name, ClusterProgress::InProgress).await.len() < 2 {
        fleet.pass(&[]).await;
    }
    let ledger = &fleet.worker.ledger;
    ledger.ask(&name, RotationRequest::Pause, &fleet.statement("a holiday")).await.unwrap();
    for _pass in 0..1000 {
        if !fleet.members(&name, ClusterProgress::Succeeded).await.is_empty() {
            break;
        }
        fleet.pass(&["cls-1"]).await;
    }
    assert_eq!(fleet.members(&name, ClusterProgress::Succeeded).await, ["cls-0"]);
    assert_eq!(fleet.rotation(&name).await.phase, RotationPhase::Paused);
    assert_eq!(fleet.members(&name, ClusterProgress::Waiting).await, ["cls-2"]);
    let new = fleet.named(0);
    let request = RotationRequest::Abort { put_back: true };
    ledger.ask(&name, request, &fleet.statement("wrong account")).await.unwrap();
    assert_eq!(fleet.members(&name, ClusterProgress::Skipped).await, ["cls-1"]);
    for _pass in 0..100 {
        fleet.pass(&[]).await;
    }
    assert_eq!((fleet.named(0), fleet.named(1)), (new, old));
}

/// Nothing advances the rotation between its pause and the orders that follow.
#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn an_order_judges_the_clusters_first(#[case] kind: Kind) {
    let Some(fleet) = Fleet::new(kind, 3).await else { return };
    let name = fleet.start(0, |_| {}).await;
    while fleet.members(&name, ClusterProgress::InProgress).await.len() < 2 {
        fleet.pass(&[]).await;
    }
    let ledger = &fleet.worker.ledger;
    ledger.ask(&name, RotationRequest::Pause, &fleet.statement("a holiday")).await.unwrap();
    let end = fleet.rig.world.registry.now() + SignedDuration::from_hours(4);
    while fleet.rig.world.registry.now() < end {
        fleet.rig.step(&fleet.worker).await;
        fleet.rig.live(&fleet.clusters[0]);
    }
    assert_eq!(fleet.members(&name, ClusterProgress::InProgress).await, ["cls-0", "cls-1"]);
    let resumed = ledger.ask(&name, RotationRequest::Resume, &fleet.statement("it is switched off")).await.unwrap();
    assert_eq!((resumed.phase, resumed.tolerated), (RotationPhase::Running, 1));
    assert_eq!(fleet.members(&name, ClusterProgress::Succeeded).await, ["cls-0"]);
    assert_eq!(fleet.members(&name, ClusterProgress::Failed).await, ["cls-1"]);
    fleet.pass(&["cls-1"]).await;
    assert_eq!(
        fleet.rotation(&name).await.phase,
        RotationPhase::Running,
        "failures that were accepted do not stop it again"
    );
}

/// A budget of nine calls a minute pays for one cluster.
#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_budget_paces_a_rotation(#[case] kind: Kind) {
    let Some(fleet) = Fleet::new(kind, 4).await else { return };
    let name = fleet.start(0, |plan| (plan.max_concurrency, plan.max_calls_per_minute) = (4, NonZeroU32::new(9))).await;
    while fleet.rotation(&name).await.reason != RotationReason::AwaitingBudget {
        fleet.pass(&[]).await;
    }
    fleet.until(&name, RotationPhase::Done, &[]).await;
    let members = fleet.worker.ledger.rotation_members(&name, ClusterProgress::Succeeded, 100).await.unwrap();
    let started: BTreeSet<_> = members.iter().filter_map(|member| member.started).collect();
    assert_eq!(started.len(), 4);
    let gaps = started.iter().zip(started.iter().skip(1)).map(|(one, next)| next.duration_since(*one));
    assert!(gaps.clone().all(|gap| gap >= SignedDuration::from_mins(1)), "{started:?}");
}

/// Nodes pull with the new credential of one cluster already, the other one has it in its pull secret.
#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn an_aborted_rotation_puts_the_old_credentials_back(#[case] kind: Kind) {
    let Some(fleet) = Fleet::new(kind, 4).await else { return };
    let old: Vec<String> = (0..4).map(|index| fleet.named(index)).collect();
    let name = fleet.start(0, |_| {}).await;
    while fleet.named(0) == old[0] || fleet.named(1) == old[1] {
        fleet.pass(&["cls-1"]).await;
    }
    let new = fleet.rig.assign(&fleet.clusters[0], Some(fleet.first[0].id)).await;
    let request = RotationRequest::Abort { put_back: true };
    let aborted = fleet.worker.ledger.ask(&name, request, &fleet.statement("wrong account")).await.unwrap();
    assert_eq!(aborted.phase, RotationPhase::Aborted);
    let skipped = fleet.worker.ledger.rotation_members(&name, ClusterProgress::Skipped, 100).await.unwrap();
    assert!(skipped.iter().all(|member| member.cause.as_deref() == Some("RolledBack")) && skipped.len() == 2);
    for index in 0..2 {
        while fleet.rig.get(fleet.first[index].id).await.state != State::Adopted {
            fleet.pass(&[]).await;
        }
    }
    assert_eq!((0..4).map(|index| fleet.named(index)).collect::<Vec<_>>(), old);
    while fleet.rig.get(new.id).await.state != State::WaitedOut {
        fleet.pass(&[]).await;
    }
    assert_eq!(fleet.rig.get(new.id).await.record.given_up, Some(Reason::RolledBack));
    for _pass in 0..100 {
        fleet.pass(&[]).await;
    }
    fleet.rig.check(&fleet.first.iter().collect::<Vec<_>>()).await;
    // The next rotation of the clusters is one like any other.
    assert_eq!(fleet.worker.ledger.candidates(&Rig::registry()).await.unwrap().len(), 4);
}

/// Two clusters fail; one of them uses its new credential after all.
#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn an_aborted_rotation_puts_back_what_has_failed(#[case] kind: Kind) {
    let Some(fleet) = Fleet::new(kind, 3).await else { return };
    let old = fleet.named(0);
    let name = fleet.start(0, |_| {}).await;
    fleet.until(&name, RotationPhase::Stopped, &["cls-0", "cls-1"]).await;
    assert_eq!(fleet.members(&name, ClusterProgress::Failed).await, ["cls-0", "cls-1"]);
    let news = [fleet.named(0), fleet.named(1)];
    assert!(!news.contains(&old));
    let late = fleet.rig.assign(&fleet.clusters[1], Some(fleet.first[1].id)).await;
    while fleet.rig.get(late.id).await.state != State::Adopted {
        fleet.pass(&["cls-0"]).await;
    }
    let request = RotationRequest::Abort { put_back: true };
    fleet.worker.ledger.ask(&name, request, &fleet.statement("wrong permissions")).await.unwrap();
    assert_eq!(fleet.members(&name, ClusterProgress::Skipped).await, ["cls-0"]);
    assert_eq!(fleet.members(&name, ClusterProgress::Failed).await, ["cls-1"]);
    while fleet.rig.get(fleet.first[0].id).await.state != State::Adopted || fleet.named(0) != old {
        fleet.pass(&[]).await;
    }
    assert_eq!(fleet.named(1), news[1], "it uses its new one");
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn what_is_revoked_or_over_is_not_put_back(#[case] kind: Kind) {
    let Some(fleet) = Fleet::new(kind, 2).await else { return };
    let ledger = &fleet.worker.ledger;
    assert_eq!(ledger.put_back(fleet.first[1].id, &fleet.statement("for nothing")).await.unwrap(), None);
    *fleet.rig.world.may_delete_in_use.lock().unwrap() = true;
    let name = fleet.start(0, |_| {}).await;
    while fleet.members(&name, ClusterProgress::InProgress).await.is_empty() {
        fleet.worker.rotate(&Rig::registry()).await.unwrap();
    }
    ledger.revoke(fleet.first[0].id, Approval::None, &fleet.statement("leaked")).await.unwrap();
    let refused = ledger.put_back(fleet.first[0].id, &fleet.statement("a mistake")).await;
    assert!(matches!(refused, Err(LedgerError::TooLate(_))), "{refused:?}");
    ledger.ask(&name, RotationRequest::Abort { put_back: true }, &fleet.statement("wrong")).await.unwrap();
    assert_eq!(fleet.members(&name, ClusterProgress::Skipped).await, ["cls-1"]);
    assert_eq!(fleet.members(&name, ClusterProgress::InProgress).await, ["cls-0"], "it needs its new one");
}

/// A replica begins what the limit allows, however many there are.
#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn replicas_advance_a_rotation_together(#[case] kind: Kind) {
    let Some(fleet) = Fleet::new(kind, 6).await else { return };
    let name = fleet.start(0, |_| {}).await;
    let other = fleet.rig.worker_on("two", fleet.rig.database.replica());
    let registry = Rig::registry();
    for _pass in 0..40 {
        let both = tokio::join!(fleet.worker.rotate(&registry), other.rotate(&registry));
        assert!(both.0.is_ok() && both.1.is_ok(), "{both:?}");
        assert!(fleet.members(&name, ClusterProgress::InProgress).await.len() <= 2);
        fleet.rig.world.registry.advance(Duration::from_secs(5));
    }
    assert_eq!(fleet.members(&name, ClusterProgress::InProgress).await.len(), 2);
    fleet.until(&name, RotationPhase::Done, &[]).await;
    let created = fleet.rig.world.created.lock().unwrap().len();
    assert_eq!(created, 12, "one new account for each cluster");
}
