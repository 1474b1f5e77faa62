//! Orders and attestations of people, and the clusters that are named to them.

use std::time::Duration;

use credentials::credential::{Approval, Credential, NodesEvidence, Retire};
use credentials::ledger::{Attested, Filter, LedgerError, Revocation, Statement};
use credentials::reason::Reason;
use credentials::state::State;
use jiff::{SignedDuration, Timestamp};
use registry_account::{CredentialId, Registry as _};
use rstest::rstest;

use crate::database::Kind;
use crate::http_rig::Served;
use crate::rig::Rig;

const TURNS: usize = 300;

fn ann(rig: &Rig, reason: &'static str) -> Statement<'static> {
    Statement { actor: "ann", reason, now: rig.world.registry.now() }
}

async fn with_reason(rig: &Rig, reason: Reason) -> Vec<Credential> {
    let mut found = rig.database.ledger(&[1]).list(&Filter::default()).await.unwrap();
    found.retain(|credential| credential.reason == reason);
    found
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_quiet_credential_waits_for_its_approval(#[case] kind: Kind) {
    let Some(mut rig) = Rig::new(kind).await else { return };
    rig.policy.retire = Retire::Manual;
    let (cluster, worker) = (rig.cluster("cls-1"), rig.worker("one"));
    let old = rig.assign(&cluster, None).await;
    rig.until(&worker, &cluster, old.id, State::Adopted).await;
    let new = rig.assign(&cluster, Some(old.id)).await;
    rig.until(&worker, &cluster, old.id, State::Quiet).await;
    for _turn in 0..TURNS {
        rig.step(&worker).await;
        rig.live(&cluster);
    }
    assert_eq!(rig.get(old.id).await.state, State::Quiet);
    let waiting = with_reason(&rig, Reason::AwaitingApproval).await;
    assert_eq!(waiting.iter().map(|credential| credential.id).collect::<Vec<_>>(), [old.id]);
    worker.ledger.retire(old.id, &ann(&rig, "rotation 7")).await.unwrap();
    rig.until(&worker, &cluster, old.id, State::WaitedOut).await;
    let events = worker.ledger.events(old.id).await.unwrap();
    let order = events.iter().find(|event| event.action == "OrderRetirement").unwrap();
    assert_eq!((order.actor.as_str(), order.remark.as_deref()), ("ann", Some("rotation 7")));
    rig.check(&[&new]).await;
    let late = worker.ledger.retire(old.id, &ann(&rig, "again")).await;
    assert!(matches!(late, Err(LedgerError::TooLate(id)) if id == old.id));
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_credential_is_replaced_once_whatever_its_state(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (cluster, worker) = (rig.cluster("cls-1"), rig.worker("one"));
    let old = rig.assign(&cluster, None).await;
    let fresh = || worker.sources.fresh(&"hf".parse().unwrap()).unwrap();
    let new = worker.ledger.replace(old.id, &fresh(), &ann(&rig, "yearly")).await.unwrap();
    let again = worker.ledger.replace(old.id, &fresh(), &ann(&rig, "again")).await.unwrap();
    assert_eq!((again.id, new.replaces, new.cluster.as_ref()), (new.id, Some(old.id), Some(&cluster)));
    rig.until(&worker, &cluster, old.id, State::WaitedOut).await;
    let late = worker.ledger.replace(old.id, &fresh(), &ann(&rig, "late")).await.unwrap();
    assert_eq!(late.id, new.id, "the newest one lives");
    let events = worker.ledger.events(old.id).await.unwrap();
    let orders = events.iter().filter(|event| event.action == "OrderReplacement");
    assert_eq!(orders.filter_map(|order| order.remark.as_deref()).collect::<Vec<_>>(), ["yearly", "again", "late"]);
    rig.check(&[&new]).await;
}

/// An order to replace never returns one that is revoked as well; the first order to revoke stays the recorded one.
#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn what_replaces_a_revoked_one_lives(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (cluster, worker) = (rig.cluster("cls-1"), rig.worker("one"));
    let first = rig.assign(&cluster, None).await;
    let fresh = || worker.sources.fresh(&"hf".parse().unwrap()).unwrap();
    let second = worker.ledger.replace(first.id, &fresh(), &ann(&rig, "yearly")).await.unwrap();
    rig.until(&worker, &cluster, second.id, State::Published).await;
    *rig.world.may_delete_in_use.lock().unwrap() = true;
    for reason in ["a leak", "again"] {
        worker.ledger.revoke(second.id, Approval::None, &ann(&rig, reason)).await.unwrap();
    }
    assert_eq!(rig.get(second.id).await.record.order.unwrap().reason, "a leak");
    for old in [&first, &second] {
        let third = worker.ledger.replace(old.id, &fresh(), &ann(&rig, "now")).await.unwrap();
        assert_eq!((third.replaces, third.cluster.as_ref()), (Some(second.id), Some(&cluster)));
        let successor = worker.ledger.successor(first.id).await.unwrap().unwrap();
        assert!([second.id, third.id].contains(&successor.id));
    }
    let third = worker.ledger.successor(second.id).await.unwrap().unwrap().id;
    // Between the two its nodes cannot pull.
    for _turn in 0..TURNS {
        rig.step(&worker).await;
        if rig.get(third).await.state >= State::Published {
            break;
        }
    }
    rig.until(&worker, &cluster, third, State::Adopted).await;
    rig.until(&worker, &cluster, first.id, State::WaitedOut).await;
    assert_eq!(worker.ledger.successor(first.id).await.unwrap().unwrap().id, third);
    rig.check(&[&rig.get(third).await]).await;
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn break_glass_revokes_at_once_and_is_recorded(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (cluster, worker) = (rig.cluster("cls-1"), rig.worker("one"));
    let leaked = rig.assign(&cluster, None).await;
    rig.until(&worker, &cluster, leaked.id, State::Adopted).await;
    *rig.world.may_delete_in_use.lock().unwrap() = true;
    let ordered: Timestamp = rig.world.registry.now();
    worker.ledger.revoke(leaked.id, Approval::None, &ann(&rig, "the password is on the internet")).await.unwrap();
    for _turn in 0..TURNS {
        if rig.get(leaked.id).await.state == State::WaitedOut {
            break;
        }
        rig.step(&worker).await;
    }
    let found = rig.get(leaked.id).await;
    assert_eq!((found.state, found.has_password), (State::WaitedOut, false));
    let (deleted, dead) = (found.record.deleted.unwrap(), found.record.dead.unwrap());
    assert!(deleted >= ordered && dead >= deleted);
    let new = rig.assign(&cluster, Some(leaked.id)).await;
    // Until then the nodes cannot pull: the order was to revoke before anything else.
    for _turn in 0..4 {
        rig.step(&worker).await;
    }
    rig.until(&worker, &cluster, new.id, State::Adopted).await;
    rig.check(&[&new]).await;
}

/// An order alone does not delete what a pull secret names.
#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_credential_that_a_pull_secret_names_is_not_deleted(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (cluster, worker) = (rig.cluster("cls-1"), rig.worker("one"));
    let used = rig.assign(&cluster, None).await;
    rig.until(&worker, &cluster, used.id, State::Adopted).await;
    worker.ledger.retire(used.id, &ann(&rig, "no longer needed")).await.unwrap();
    // No node pulls, so that it is quiet, but the pull secret has it.
    for _turn in 0..TURNS {
        rig.step(&worker).await;
    }
    assert_eq!((rig.get(used.id).await.state, rig.get(used.id).await.reason), (State::Quiet, Reason::StillNamed));
    rig.check(&[&used]).await;
    rig.world.clusters.remove(&cluster);
    rig.until(&worker, &cluster, used.id, State::WaitedOut).await;
    rig.check(&[]).await;
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn clusters_that_never_report_are_named_and_lose_nothing(#[case] kind: Kind) {
    let Some(mut rig) = Rig::new(kind).await else { return };
    rig.policy.nodes = NodesEvidence::Required;
    let (cluster, worker) = (rig.cluster("cls-1"), rig.worker("one"));
    let old = rig.assign(&cluster, None).await;
    rig.until(&worker, &cluster, old.id, State::Adopted).await;
    let new = rig.assign(&cluster, Some(old.id)).await;
    for _turn in 0..TURNS {
        // Nothing is reported, and nothing is pulled.
        rig.step(&worker).await;
    }
    let named = with_reason(&rig, Reason::NeverReported).await;
    let named: Vec<_> = named.iter().filter_map(|credential| credential.cluster.as_ref()).collect();
    assert_eq!(named, [&cluster]);
    assert!(Reason::NeverReported.needs_a_person());
    assert_eq!(rig.get(old.id).await.state, State::Adopted);
    rig.check(&[&old, &new]).await;
    for part in [Attested::Report, Attested::Nodes, Attested::FirstPull] {
        worker.ledger.attest(new.id, part, &ann(&rig, "seen on the console")).await.unwrap();
    }
    for _turn in 0..TURNS {
        rig.step(&worker).await;
    }
    assert_eq!(rig.get(old.id).await.state, State::WaitedOut);
    let evidence = rig.get(new.id).await.record.evidence;
    assert_eq!(evidence.report.unwrap().source, "attested by ann: seen on the console");
    rig.check(&[&new]).await;
}

#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_pull_secret_that_was_put_back_keeps_the_old_credential(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (cluster, worker) = (rig.cluster("cls-1"), rig.worker("one"));
    let old = rig.assign(&cluster, None).await;
    rig.until(&worker, &cluster, old.id, State::Adopted).await;
    let host = rig.world.registry.host().to_owned();
    let before = rig.world.clusters.login(&cluster, &host).unwrap();
    let new = rig.assign(&cluster, Some(old.id)).await;
    rig.until(&worker, &cluster, new.id, State::Adopted).await;
    // An operator aborts the rotation by hand.
    rig.world.clusters.put(&cluster, &host, before);
    for _turn in 0..TURNS {
        rig.step(&worker).await;
        rig.live(&cluster);
    }
    assert_eq!((rig.get(old.id).await.state, rig.get(new.id).await.reason), (State::Adopted, Reason::Displaced));
    rig.check(&[&old, &new]).await;
}

/// A credential that was replaced before its cluster adopted it does not keep the one before it alive.
#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_rotation_over_another_one_retires_both(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (cluster, worker) = (rig.cluster("cls-1"), rig.worker("one"));
    let first = rig.assign(&cluster, None).await;
    rig.until(&worker, &cluster, first.id, State::Adopted).await;
    let second = rig.assign(&cluster, Some(first.id)).await;
    // It is published, and nothing is reported or pulled before the next rotation.
    for _turn in 0..10 {
        rig.step(&worker).await;
    }
    assert_eq!(rig.get(second.id).await.state, State::Published);
    let third = rig.assign(&cluster, Some(second.id)).await;
    rig.until(&worker, &cluster, first.id, State::WaitedOut).await;
    rig.until(&worker, &cluster, second.id, State::WaitedOut).await;
    assert_eq!((rig.get(second.id).await.record.adopted, rig.get(third.id).await.state), (None, State::Adopted));
    rig.check(&[&third]).await;
}

/// A pull secret that was copied from another cluster names that cluster's account until this one has its own.
#[rstest]
#[case(Kind::Sqlite)]
#[case(Kind::Postgresql)]
#[tokio::test]
async fn a_copied_pull_secret_gets_an_account_of_its_own(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (original, worker) = (rig.cluster("cls-1"), rig.worker("one"));
    let first = rig.assign(&original, None).await;
    rig.until(&worker, &original, first.id, State::Published).await;
    let (copy, host) = (rig.cluster("cls-2"), rig.world.registry.host());
    rig.world.clusters.put(&copy, host, rig.world.clusters.login(&original, host).unwrap());
    let second = rig.assign(&copy, None).await;
    rig.until(&worker, &copy, second.id, State::Adopted).await;
    let named = |cluster| rig.world.clusters.login(cluster, host).unwrap().username;
    assert!(named(&copy).ends_with(second.account.as_str()) && named(&original).ends_with(first.account.as_str()));
}

/// Orders to revoke, at minutes after the first one, and their effects.
#[rstest]
#[case::one_person(Approval::None, &[(0, "ann", Revocation::Ordered)])]
#[case::another_person(Approval::AnotherPerson, &[(0, "ann", Revocation::Requested), (59, "bob", Revocation::Ordered)])]
#[case::the_same_person(Approval::AnotherPerson, &[(0, "ann", Revocation::Requested), (1, "ann", Revocation::Requested)])]
#[case::too_late(Approval::AnotherPerson, &[(0, "ann", Revocation::Requested), (60, "bob", Revocation::Requested)])]
#[case::approved_again(
    Approval::AnotherPerson,
    &[(0, "ann", Revocation::Requested), (60, "bob", Revocation::Requested), (61, "ann", Revocation::Ordered)]
)]
#[case::ordered_already(
    Approval::AnotherPerson,
    &[(0, "ann", Revocation::Requested), (1, "bob", Revocation::Ordered), (2, "ann", Revocation::Ordered)]
)]
#[tokio::test]
async fn a_revocation_may_need_another_person(
    #[case] approval: Approval,
    #[case] orders: &[(i64, &str, Revocation)],
    #[values(Kind::Sqlite, Kind::Postgresql)] kind: Kind,
) {
    let Some(rig) = Rig::new(kind).await else { return };
    let id = rig.assign(&rig.cluster("cls-1"), None).await.id;
    let (ledger, begin) = (rig.database.ledger(&[1]), rig.world.registry.now());
    for (minute, actor, effect) in orders {
        let now = begin + SignedDuration::from_mins(*minute);
        let statement = Statement { actor, reason: "a leak", now };
        assert_eq!(ledger.revoke(id, approval, &statement).await.unwrap(), *effect, "{actor} at minute {minute}");
        let is_ordered = rig.get(id).await.record.order.is_some_and(|order| order.break_glass);
        assert_eq!(is_ordered, *effect == Revocation::Ordered, "{actor} at minute {minute}");
    }
    let events = ledger.events(id).await.unwrap();
    let people = |action: &str| {
        let of = events.iter().filter(|event| event.action == action);
        of.map(|event| event.actor.clone()).collect::<Vec<_>>()
    };
    let first = |effect| orders.iter().filter(move |order| order.2 == effect).map(|order| order.1);
    assert_eq!(people("OrderRevocation"), first(Revocation::Ordered).take(1).collect::<Vec<_>>());
    assert!(people("RequestRevocation").iter().all(|actor| first(Revocation::Requested).any(|one| one == actor)));
}

/// A forced rotation of the HTTP API replaces at once; its revocation waits for another person.
#[tokio::test]
async fn a_forced_rotation_is_approved_by_a_command() {
    let (rig, cluster, served) = Served::with_revocation(Approval::AnotherPerson).await;
    let old = rig.assign(&cluster, None).await.id;
    let path = format!("/v1/clusters/{}/rotations", cluster.id);
    let forced = served.send("all", "POST", &path, r#"{"reason":"compromise"}"#).await.expect(201);
    let replacement = &forced["progress"]["credentials"][0];
    assert_eq!(replacement["old_credential_id"].as_str(), Some(old.to_string().as_str()));
    let record = rig.get(old).await.record;
    let caller = record.revocation_request.unwrap().actor;
    assert_eq!((record.order, caller.as_str()), (None, "system:serviceaccount:test:all"));
    let approved = rig.database.ledger(&[1]).revoke(old, Approval::AnotherPerson, &ann(&rig, "seen")).await.unwrap();
    assert_eq!(approved, Revocation::Ordered);
}

/// The same request again makes no further account, and revokes by another person only, within an hour. Once a new credential may be
/// known to others, the first person's means it too.
#[rstest]
#[case::same_person("all", State::Reserved, 0, 200)]
#[case::same_person_later("all", State::Published, 0, 201)]
#[case::another_person("another", State::Reserved, 59, 200)]
#[case::another_person_later("another", State::Published, 1, 200)]
#[case::too_late("another", State::Reserved, 60, 201)]
#[tokio::test]
async fn a_forced_rotation_is_approved_by_the_same_request(
    #[case] caller: &str,
    #[case] state: State,
    #[case] minutes: u64,
    #[case] status: u16,
) {
    let (rig, cluster, served) = Served::with_revocation(Approval::AnotherPerson).await;
    let (worker, old) = (rig.worker("one"), rig.assign(&cluster, None).await.id);
    rig.until(&worker, &cluster, old, State::Adopted).await;
    let path = format!("/v1/clusters/{}/rotations", cluster.id);
    let request = r#"{"reason":"compromise"}"#;
    let first = served.send("all", "POST", &path, request).await.expect(201);
    let replacement = &first["progress"]["credentials"][0];
    assert_eq!(replacement["old_revocation"], "requested");
    let new: CredentialId = replacement["new_credential_id"].as_str().unwrap().parse().unwrap();
    rig.until(&worker, &cluster, new, state).await;
    rig.world.registry.advance(Duration::from_mins(minutes));

    let second = served.send(caller, "POST", &path, request).await.expect(status);
    assert_eq!(first["rotation_id"] == second["rotation_id"], status == 200);
    let is_approved = caller == "another" && status == 200;
    let order = rig.get(old).await.record.order;
    assert_eq!(order.is_some_and(|order| order.break_glass && order.actor.ends_with(":another")), is_approved);
    let shown = &second["progress"]["credentials"][0]["old_revocation"];
    assert_eq!(shown, if is_approved { "ordered" } else { "requested" });
    let requested = rig.get(new).await.record.revocation_request;
    assert_eq!(requested.is_none(), status == 200, "what came for it is not revoked by an approval");
}
