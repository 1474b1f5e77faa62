//! Tokens of a registry without accounts: renewed before they expire, in one row, through kills and outages.

use std::time::Duration;

use credentials::credential::{ClusterRef, Credential};
use credentials::ledger::Statement;
use credentials::reason::Reason;
use credentials::run::{StepResult, Worker};
use credentials::state::{Action, State};
use registry_account::Login;
use rstest::rstest;
use secrecy::ExposeSecret as _;

use crate::database::Kind;
use crate::rig::{LEASE, Rig};
use crate::world::{Cut, Outside, Script};

const HOUR: Duration = Duration::from_hours(1);
/// Life of the tokens.
const LIFE: Duration = Duration::from_hours(12);

/// A cluster that uses its first token.
struct InUse {
    rig: Rig,
    cluster: ClusterRef,
    worker: Worker<Outside, Outside>,
    row: Credential,
}

// === impl InUse ===

impl InUse {
    async fn new() -> Self {
        let rig = Rig::of_tokens(Kind::Sqlite, LIFE).await.unwrap();
        let (cluster, worker) = (rig.cluster("cls-1"), rig.worker("first"));
        let row = rig.assign(&cluster, None).await;
        rig.until(&worker, &cluster, row.id, State::Adopted).await;
        Self { rig, cluster, worker, row }
    }
}

/// Works for a time, while a cluster lives: its nodes can pull at every moment from the first publication on.
async fn work_for(rig: &Rig, worker: &Worker<Outside, Outside>, cluster: &ClusterRef, hours: i64) {
    let start = rig.world.registry.now();
    while rig.world.registry.now().duration_since(start).as_hours() < hours {
        if rig.step(worker).await == StepResult::Idle {
            rig.world.registry.advance(HOUR / 2);
        }
        rig.live(cluster);
    }
}

/// Works until nothing is due.
async fn settle(rig: &Rig, worker: &Worker<Outside, Outside>) {
    while rig.step(worker).await == StepResult::Worked {}
}

/// Returns the token that the pull secret of a cluster has.
fn token(rig: &Rig, cluster: &ClusterRef) -> Option<String> {
    let login = rig.world.clusters.login(cluster, "memory.invalid")?;
    Some(login.password.expose_secret().to_owned())
}

fn minted(rig: &Rig) -> usize {
    rig.world.created.lock().unwrap().len()
}

fn good_for(rig: &Rig, credential: &Credential) -> i64 {
    credential.record.expires.unwrap().duration_since(rig.world.registry.now()).as_hours()
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_token_is_renewed_before_it_expires(#[case] kind: Kind) {
    let Some(rig) = Rig::of_tokens(kind, LIFE).await else { return };
    let (cluster, worker) = (rig.cluster("cls-1"), rig.worker("first"));
    let first = rig.assign(&cluster, None).await;
    rig.until(&worker, &cluster, first.id, State::Adopted).await;
    let adopted = rig.get(first.id).await.record.adopted;
    let mut before = token(&rig, &cluster);
    for _day in 0..3 {
        work_for(&rig, &worker, &cluster, 24).await;
        let found = rig.get(first.id).await;
        assert!(good_for(&rig, &found) >= 3, "{found:#?}");
        assert_eq!(found.record.adopted, adopted, "a rotation stays as it was");
        let now = token(&rig, &cluster);
        assert_ne!(now, before);
        before = now;
    }
    // After two thirds of 12 hours each, 72 hours need 9 more; a tenth of that is spread.
    assert!((8..=12).contains(&minted(&rig)), "{}", minted(&rig));
    assert_eq!(rig.assign(&cluster, None).await.id, first.id, "it has one row");
    // As docs/guides/registries/gar.md has it.
    let events = worker.ledger.events(first.id).await.unwrap().len();
    assert!((7..=8).contains(&(events / minted(&rig))), "{events} events of {} tokens", minted(&rig));
    assert_eq!(*rig.world.violations.lock().unwrap(), [""; 0]);
}

/// The calls of a first token and of its renewal. The pull secret is read before each publication, and for the adoption.
const CALLS: [(Action, u32); 9] = [
    (Action::Create, 0),
    (Action::Probe, 0),
    (Action::ObserveDocument, 0),
    (Action::Publish, 0),
    (Action::ObserveDocument, 1),
    (Action::Create, 1),
    (Action::Probe, 1),
    (Action::ObserveDocument, 2),
    (Action::Publish, 1),
];

/// Renews a token while a call is cut off. With `resume` the killed worker is only suspended, and goes on after that many
/// hours, in which another one has renewed the token again.
async fn renews(kind: Kind, script: Script, resume: Option<i64>) {
    let Some(rig) = Rig::of_tokens(kind, LIFE).await else { return };
    let cluster = rig.cluster("cls-1");
    let (first, second) = (rig.worker("first"), rig.worker_on("second", rig.database.replica()));
    *rig.world.script.lock().unwrap() = Some(script);
    let row = rig.assign(&cluster, None).await;
    let mut work = Box::pin(work_for(&rig, &first, &cluster, 14));
    let is_done = tokio::select! {
        () = &mut work => true,
        () = rig.world.reached.notified() => false,
    };
    assert!(rig.world.script.lock().unwrap().is_none(), "the call was never made: {script:?}");
    if !is_done {
        rig.world.registry.advance(LEASE + Duration::from_secs(1));
        work_for(&rig, &second, &cluster, resume.unwrap_or(1)).await;
        if resume.is_some() {
            let (before, report) = (token(&rig, &cluster), rig.get(row.id).await);
            rig.world.resumed.notify_one();
            let mut late = Box::pin(rig.step(&second));
            // The late call ends before the other worker's next one.
            tokio::select! {
                biased;
                () = &mut work => {}
                _turn = &mut late => {}
            }
            let now = rig.get(row.id).await;
            if now.record.created == report.record.created {
                assert_eq!(token(&rig, &cluster), before, "{script:?}");
            }
        }
    }
    drop(work);
    rig.live(&cluster);
    work_for(&rig, &second, &cluster, 10).await;
    let found = rig.get(row.id).await;
    assert!(good_for(&rig, &found) >= 3, "{script:?}: {found:#?}");
    assert_eq!(found.state, State::Adopted, "{script:?}");
    assert_eq!(*rig.world.violations.lock().unwrap(), [""; 0]);
}

#[rstest]
#[tokio::test]
async fn a_worker_that_is_killed_at_any_call_is_succeeded(
    #[values(Kind::Sqlite, Kind::Postgresql)] kind: Kind,
    #[values(Cut::Before, Cut::After, Cut::Lost, Cut::Refused)] cut: Cut,
) {
    for (action, after) in CALLS {
        renews(kind, Script { action, after, cut }, None).await;
    }
}

#[rstest]
#[tokio::test]
async fn a_worker_that_wakes_up_late_publishes_no_older_token(
    #[values(Kind::Sqlite, Kind::Postgresql)] kind: Kind,
    #[values(Cut::Before, Cut::After)] cut: Cut,
) {
    for (action, after) in CALLS {
        renews(kind, Script { action, after, cut }, Some(20)).await;
    }
}

#[tokio::test]
async fn after_an_outage_that_outlasts_it_the_cluster_gets_another_token() {
    let InUse { rig, cluster, worker, row } = InUse::new().await;
    rig.world.registry.advance(LIFE * 5);
    settle(&rig, &worker).await;
    rig.live(&cluster);
    let found = rig.get(row.id).await;
    assert!(found.state >= State::Published && good_for(&rig, &found) >= 11, "{found:#?}");
}

/// As by a clock that is ahead.
#[tokio::test]
async fn a_token_that_has_expired_already_is_not_published() {
    let Some(rig) = Rig::of_tokens(Kind::Sqlite, Duration::ZERO).await else { return };
    let (cluster, worker) = (rig.cluster("cls-1"), rig.worker("first"));
    let row = rig.assign(&cluster, None).await;
    settle(&rig, &worker).await;
    let found = rig.get(row.id).await;
    assert_eq!((found.state, found.reason), (State::Reserved, Reason::Denied));
    assert_eq!(token(&rig, &cluster), None);
}

#[tokio::test]
async fn a_cluster_that_never_reports_is_named_although_its_token_is_renewed() {
    let Some(mut rig) = Rig::of_tokens(Kind::Sqlite, LIFE).await else { return };
    rig.policy.deadline = HOUR * 30;
    let (cluster, worker) = (rig.cluster("cls-1"), rig.worker("first"));
    let row = rig.assign(&cluster, None).await;
    for (hours, reason) in [(20, Reason::AwaitingReport), (40, Reason::NeverReported)] {
        while rig.world.registry.now().as_second() < hours * 3600 {
            rig.step(&worker).await;
        }
        settle(&rig, &worker).await;
        assert_eq!(rig.get(row.id).await.reason, reason, "after {hours} hours");
    }
    assert!(minted(&rig) > 3, "{}", minted(&rig));
    assert_eq!(rig.world.clusters.all(), [cluster]);
}

#[tokio::test]
async fn the_token_of_a_cluster_that_is_gone_ends_and_is_erased() {
    let InUse { rig, cluster, worker, row } = InUse::new().await;
    rig.world.clusters.remove(&cluster);
    let start = rig.world.registry.now();
    while rig.get(row.id).await.state != State::WaitedOut {
        assert!(rig.world.registry.now().duration_since(start).as_hours() < 30);
        rig.step(&worker).await;
    }
    assert!(!rig.get(row.id).await.has_password);
    assert!(minted(&rig) <= 3, "{}", minted(&rig));
}

/// The order is given while the cluster uses it; the entry is taken out of the pull secret days later.
#[tokio::test]
async fn a_token_that_is_to_be_retired_is_renewed_until_it_is_not_named() {
    let InUse { rig, cluster, worker, row } = InUse::new().await;
    let statement = Statement { actor: "ann", reason: "another registry", now: rig.world.registry.now() };
    worker.ledger.retire(row.id, &statement).await.unwrap();
    work_for(&rig, &worker, &cluster, 48).await;
    assert!(minted(&rig) > 4, "{}", minted(&rig));
    assert_eq!(rig.get(row.id).await.reason, Reason::StillNamed);
    let other = Login { username: "other".to_owned(), password: "other".into() };
    rig.world.clusters.put(&cluster, "memory.invalid", other);
    let start = rig.world.registry.now();
    while rig.get(row.id).await.state != State::WaitedOut {
        assert!(rig.world.registry.now().duration_since(start).as_hours() < 13);
        rig.step(&worker).await;
    }
    assert_eq!(token(&rig, &cluster).as_deref(), Some("other"), "it is not written again");
}

/// The cluster gets the credential of AMS back amid a renewal: what it adopted before is not what it adopts once it is moved again.
#[tokio::test]
async fn a_token_that_is_kept_back_amid_a_renewal_was_not_adopted() {
    let InUse { rig, cluster, worker, row } = InUse::new().await;
    let script = Script { action: Action::Probe, after: 0, cut: Cut::Refused };
    *rig.world.script.lock().unwrap() = Some(script);
    while rig.get(row.id).await.state != State::Created {
        work_for(&rig, &worker, &cluster, 1).await;
    }
    assert!(rig.get(row.id).await.record.adopted.is_some(), "it is being renewed");
    let statement = Statement { actor: "ann", reason: "back to AMS", now: rig.world.registry.now() };
    let kept = worker.ledger.keep_back(row.id, &statement).await.unwrap();
    assert_eq!((kept.state, kept.record.held), (State::Created, true));
    assert_eq!((kept.record.published, kept.record.adopted), (None, None));
}

/// As a person does who takes the registry's entry over.
#[tokio::test]
async fn a_renewal_writes_over_no_entry_of_others() {
    let InUse { rig, cluster, worker, row } = InUse::new().await;
    let put = |user: &str| {
        let login = Login { username: user.to_owned(), password: "other".into() };
        rig.world.clusters.put(&cluster, "memory.invalid", login);
    };
    let works = async |hours: i64| {
        let start = rig.world.registry.now();
        while rig.world.registry.now().duration_since(start).as_hours() < hours {
            rig.step(&worker).await;
        }
    };
    put("other");
    works(30).await;
    assert_eq!(token(&rig, &cluster).as_deref(), Some("other"));
    assert_eq!(rig.get(row.id).await.reason, Reason::Displaced);
    // The entry is given back, as it once was.
    put("token");
    works(1).await;
    rig.live(&cluster);
    assert!(good_for(&rig, &rig.get(row.id).await) >= 3);

    put("other");
    let statement = Statement { actor: "ann", reason: "taken over", now: rig.world.registry.now() };
    worker.ledger.retire(row.id, &statement).await.unwrap();
    works(26).await;
    assert_eq!(rig.get(row.id).await.state, State::WaitedOut);
    assert_eq!(token(&rig, &cluster).as_deref(), Some("other"));
}

#[tokio::test]
async fn a_revoked_token_is_replaced_and_said_to_live_until_it_expires() {
    let InUse { rig, cluster, worker, row: old } = InUse::new().await;
    let leaked = token(&rig, &cluster);
    let statement = Statement { actor: "ann", reason: "leak", now: rig.world.registry.now() };
    let approval = credentials::credential::Approval::None;
    worker.ledger.revoke(old.id, approval, &statement).await.unwrap();
    let new = rig.assign(&cluster, Some(old.id)).await;
    rig.until(&worker, &cluster, new.id, State::Adopted).await;
    assert_ne!(token(&rig, &cluster), leaked);
    let found = rig.get(old.id).await;
    assert_eq!((found.state, found.reason), (State::Adopted, Reason::AwaitingExpiry));
    work_for(&rig, &worker, &cluster, 13).await;
    let found = rig.get(old.id).await;
    assert_eq!((found.state, found.has_password), (State::WaitedOut, false));
    work_for(&rig, &worker, &cluster, 24).await;
    assert!(good_for(&rig, &rig.get(new.id).await) >= 3);
}
