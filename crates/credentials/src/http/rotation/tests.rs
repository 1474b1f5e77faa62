//! The status of a rotation by the facts of its credentials, and the orders that events hold.

use jiff::Timestamp;
use rstest::rstest;

use super::*;
use crate::credential::{ClusterRef, Order};
use crate::ledger::Outcome;

const CLUSTER: &str = "cls-1";

fn id(number: u8) -> CredentialId {
    format!("01932b5c-9f3e-7c2a-8e1d-0000000000{number:02}").parse().unwrap()
}

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn credential(number: u8, state: State, replaces: Option<u8>) -> ClusterCredential {
    let credential = Credential {
        id: id(number),
        registry: "quay".parse().unwrap(),
        account: format!("hf-{number}").parse().unwrap(),
        state,
        reason: Reason::InUse,
        cluster: Some(ClusterRef { id: CLUSTER.to_owned(), incarnation: 1 }),
        replaces: replaces.map(id),
        has_password: true,
        record: Record::default(),
    };
    ClusterCredential { credential, has_place: true }
}

fn event(credential: u8, action: &str, remark: Option<String>, second: i64) -> Entry {
    Entry {
        credential: id(credential),
        cluster: Some(CLUSTER.to_owned()),
        actor: "ann".to_owned(),
        action: action.to_owned(),
        outcome: Outcome::Recorded,
        reason: "Ordered".to_owned(),
        remark,
        time: time(second),
    }
}

fn order() -> RotationOrder {
    RotationOrder { id: id(90), reason: RotationReason::Scheduled, is_forced: false }
}

fn adopted(record: &mut Record) {
    record.adopted = Some(time(5));
}

fn rolled_back(record: &mut Record) {
    record.given_up = Some(Reason::RolledBack);
}

fn ordered(record: &mut Record) {
    record.order = Some(Order { actor: String::new(), reason: String::new(), at: time(1), break_glass: false });
}

fn unchanged(_record: &mut Record) {}

#[rstest]
#[case::reserved(State::Adopted, State::Reserved, unchanged, "pending", "creating_credentials")]
#[case::permitted(State::Adopted, State::Permitted, unchanged, "pending", "creating_credentials")]
#[case::probed(State::Adopted, State::Probed, unchanged, "in_progress", "dual_credential_period")]
#[case::old_is_revoked(State::Dead, State::Published, unchanged, "in_progress", "awaiting_adoption")]
#[case::adopted(State::Quiet, State::Adopted, adopted, "in_progress", "retiring_old_credentials")]
#[case::done(State::WaitedOut, State::Adopted, adopted, "completed", "completed")]
#[case::done_and_replaced(State::WaitedOut, State::WaitedOut, adopted, "completed", "completed")]
#[case::done_and_renewed(State::WaitedOut, State::Created, adopted, "completed", "completed")]
#[case::put_back(State::Adopted, State::Retiring, rolled_back, "cancelled", "cancelled")]
#[case::on_its_way_out(State::Adopted, State::Published, ordered, "cancelled", "cancelled")]
#[case::lost(State::Adopted, State::Spent, unchanged, "failed", "failed")]
fn the_status_follows_from_the_rows(
    #[case] old: State,
    #[case] new: State,
    #[case] change: fn(&mut Record),
    #[case] status: &str,
    #[case] phase: &str,
) {
    let mut new = credential(2, new, Some(1));
    change(&mut new.credential.record);
    let credentials = [credential(1, old, None), new];
    let events = [event(1, "OrderReplacement", Some(order().to_string()), 3), event(2, "Reserve", None, 3)];
    let found = rotations(&credentials, &events);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].order, found[0].created, found[0].actor.as_str()), (order(), time(3), "ann"));
    assert_eq!((found[0].status().as_str(), found[0].phase()), (status, phase));
    assert_eq!(found[0].completed().is_some(), status == "completed");
}

/// The account of a new credential was lost before it was used: another one has its place.
#[test]
fn a_rotation_goes_on_with_another_account() {
    let mut lost = credential(2, State::Spent, Some(1));
    (lost.has_place, lost.credential.record.given_up) = (false, Some(Reason::AccountLost));
    let credentials = [credential(1, State::Adopted, None), lost, credential(3, State::Reserved, Some(1))];
    let events = [
        event(1, "OrderReplacement", Some(order().to_string()), 3),
        event(2, "Reserve", None, 3),
        event(3, "Reserve", None, 8),
    ];
    let found = rotations(&credentials, &events);
    let news: Vec<_> = found.iter().flat_map(|each| &each.replacements).map(|each| each.new.id).collect();
    assert_eq!((found.len(), news, found[0].order), (1, vec![id(3)], order()));
    assert_eq!(found[0].status(), RotationStatus::Pending);
}

/// The old credential was put back, and replaced again by a command and later from the pool.
#[test]
fn what_was_put_back_is_replaced_by_another_rotation() {
    let mut back = credential(2, State::Retiring, Some(1));
    (back.has_place, back.credential.record.given_up) = (false, Some(Reason::RolledBack));
    let credentials = [credential(1, State::Adopted, None), back, credential(3, State::Probed, Some(1))];
    let events = [
        event(1, "OrderReplacement", Some(order().to_string()), 3),
        event(2, "Reserve", None, 3),
        event(3, "Reserve", None, 4),
        event(1, "OrderReplacement", Some("yearly".to_owned()), 9),
        event(3, "Assign", None, 9),
    ];
    let found = rotations(&credentials, &events);
    let found_orders: Vec<_> = found.iter().map(|each| (each.order.id, each.order.reason, each.created)).collect();
    let manual = RotationReason::Manual;
    assert_eq!(found_orders, [(id(3), manual, time(9)), (id(90), RotationReason::Scheduled, time(3))]);
}

#[rstest]
#[case("rotation 01932b5c-9f3e-7c2a-8e1d-000000000090: scheduled", true)]
#[case("rotation 01932b5c-9f3e-7c2a-8e1d-000000000090: weekly", false)]
#[case("rotation 7: scheduled", false)]
#[case("01932b5c-9f3e-7c2a-8e1d-000000000090: scheduled", false)]
#[case("yearly", false)]
fn orders_are_read_from_remarks(#[case] remark: &str, #[case] is_one: bool) {
    assert_eq!(RotationOrder::parse(remark), is_one.then(order));
    let forced = RotationOrder { reason: RotationReason::Compromise, is_forced: true, ..order() };
    assert_eq!(RotationOrder::parse(&forced.to_string()), Some(forced));
}
