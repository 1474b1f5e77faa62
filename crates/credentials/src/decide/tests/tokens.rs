//! The next step of a token of a registry without accounts.

use jiff::Timestamp;
use registry_account::contract::{Capabilities, Disables, Identities, Lists, Passwords};
use rstest::rstest;

use super::credentials::{credential, now};
use crate::credential::{
    Credential, Naming, NodesEvidence, ObservedDocument, Order, Policy, Proof, Record, Retire, Successor,
};
use crate::decide::facts::later;
use crate::decide::{Facts, Step, lane, step};
use crate::reason::Reason;
use crate::state::{Action, Lane, State};

/// Hours of a token's life.
const LIFE: u64 = 12;

fn hours(hours: i64) -> Timestamp {
    now() + jiff::SignedDuration::from_hours(hours)
}

/// A token of a cluster in a state, minted some hours ago.
fn token(state: State, age: i64) -> Credential {
    let mut token = credential(state);
    let past = |from: State| (state >= from).then(|| hours(-age));
    token.record = Record {
        login: Some("token".to_owned()),
        generation: 3_u32.into(),
        last_create: past(State::Created),
        created: past(State::Created),
        expires: past(State::Created).map(|created| later(created, std::time::Duration::from_hours(LIFE))),
        probed: past(State::Pooled).map(|_| now()),
        last_publish: past(State::Published),
        published: past(State::Published),
        adopted: past(State::Adopted),
        ..Record::default()
    };
    token
}

fn decided(token: &Credential, successor: Option<&Successor>) -> Step {
    let capabilities = Capabilities {
        identities: Identities::Minted,
        expires: true,
        new_accounts_pull: true,
        passwords: Passwords::ShownOnce,
        lists: Lists::Nothing,
        usage_log: false,
        disables: Disables::Never,
        token_life: std::time::Duration::from_mins(90),
        calls_per_minute: 60,
        max_name_bytes: 49,
        max_description: 255,
    };
    // Nothing is retired here, so its condition is of no effect.
    let policy = Policy { retire: Retire::Manual, nodes: NodesEvidence::Renounced, ..Policy::default() };
    step(&Facts { credential: token, successor, capabilities: &capabilities, policy: &policy, now: now() })
}

fn successor(state: State) -> Successor {
    let past = |from: State| (state >= from).then(|| hours(-1));
    let id = "01932b5c-9f3e-7c2a-8e1d-ba9876543210".parse().unwrap();
    Successor { id, state, published: past(State::Published), adopted: past(State::Adopted) }
}

/// A step as a row of a table shows it: action, state, reason.
fn shown(step: Step) -> (Option<Action>, State, Reason) {
    (step.action, step.next, step.reason)
}

#[rstest]
#[case::reserved(State::Reserved, 0, (Some(Action::Create), State::Created, Reason::ToCreate))]
#[case::created(State::Created, 0, (Some(Action::Probe), State::Probed, Reason::ToProbe))]
#[case::probed(State::Probed, 0, (Some(Action::Publish), State::Published, Reason::ToPublish))]
#[case::published(State::Published, 0, (Some(Action::ObserveAdoption), State::Published, Reason::AwaitingReport))]
#[case::in_use(State::Adopted, 0, (Some(Action::ObserveDocument), State::Adopted, Reason::InUse))]
#[case::young(State::Adopted, 7, (Some(Action::ObserveDocument), State::Adopted, Reason::InUse))]
#[case::due(State::Adopted, 9, (Some(Action::Create), State::Created, Reason::ToRenew))]
#[case::expired(State::Adopted, 99, (Some(Action::Create), State::Created, Reason::ToRenew))]
#[case::due_without_a_report(State::Published, 9, (Some(Action::Create), State::Created, Reason::ToRenew))]
#[case::due_before_it_was_published(State::Probed, 9, (Some(Action::Create), State::Created, Reason::ToRenew))]
#[case::due_before_it_was_probed(State::Created, 9, (Some(Action::Create), State::Created, Reason::ToRenew))]
fn a_token_is_minted_published_and_renewed(
    #[case] state: State,
    #[case] age: i64,
    #[case] expected: (Option<Action>, State, Reason),
) {
    assert_eq!(shown(decided(&token(state, age), None)), expected);
}

#[test]
fn a_report_is_enough_for_its_adoption() {
    let mut token = token(State::Published, 1);
    token.record.evidence.report = Some(Proof { at: now(), source: "test".to_owned() });
    assert_eq!(shown(decided(&token, None)), (None, State::Adopted, Reason::InUse));
}

#[test]
fn a_wait_ends_at_the_renewal() {
    let mut token = token(State::Adopted, 7);
    token.record.evidence.document = Some(ObservedDocument { at: now(), naming: Naming::Named });
    let waits = decided(&token, None).not_before.unwrap();
    // Eight hours after it was minted, or up to 48 minutes earlier or later.
    assert!(waits >= now() && waits <= hours(2), "{waits}");
}

#[test]
fn renewals_of_a_fleet_are_spread() {
    let mut minutes = std::collections::BTreeSet::new();
    for number in 0..200 {
        let mut token = token(State::Adopted, 0);
        token.id = format!("01932b5c-9f3e-7c2a-8e1d-{number:012}").parse().unwrap();
        token.record.evidence.document = Some(ObservedDocument { at: now(), naming: Naming::Named });
        let waits = decided(&token, None).not_before.unwrap();
        minutes.insert(waits.duration_since(now()).as_mins());
    }
    let (first, last) = (minutes.first().unwrap(), minutes.last().unwrap());
    // A tenth of eight hours is 48 minutes.
    assert!((432..440).contains(first) && (520..=528).contains(last), "{minutes:?}");
    assert!(minutes.len() > 60, "{minutes:?}");
}

#[rstest]
#[case::revoked(|record: &mut Record| record.order = Some(order(true)))]
#[case::gone(|record: &mut Record| {
    record.evidence.document = Some(ObservedDocument { at: now(), naming: Naming::ClusterGone });
})]
#[case::rolled_back(|record: &mut Record| record.given_up = Some(Reason::RolledBack))]
fn one_that_is_not_needed_any_more_ends_by_itself(#[case] change: impl Fn(&mut Record)) {
    let after = |state, age| {
        let mut token = token(state, age);
        change(&mut token.record);
        let step = decided(&token, None);
        (step.action, step.next, step.not_before)
    };
    assert_eq!(after(State::Adopted, 9), (None, State::Adopted, Some(hours(3))));
    assert_eq!(after(State::Probed, 2), (None, State::Probed, Some(hours(10))));
    assert_eq!(after(State::Adopted, 12), (None, State::Dead, None));
    assert_eq!(after(State::Reserved, 0), (None, State::Spent, None));
}

/// A person's order ends none that a cluster still uses.
#[rstest]
#[case::not_looked(None, 2, (Some(Action::ObserveDocument), State::Adopted, Reason::Ordered))]
#[case::named(Some(Naming::Named), 2, (None, State::Adopted, Reason::StillNamed))]
#[case::named_and_due(Some(Naming::Named), 9, (Some(Action::Create), State::Created, Reason::ToRenew))]
#[case::not_named(Some(Naming::NotNamed), 2, (None, State::Adopted, Reason::AwaitingExpiry))]
#[case::not_named_and_due(Some(Naming::NotNamed), 9, (None, State::Adopted, Reason::AwaitingExpiry))]
#[case::not_named_and_expired(Some(Naming::NotNamed), 12, (None, State::Dead, Reason::Ordered))]
fn one_is_retired_once_no_pull_secret_names_it(
    #[case] naming: Option<Naming>,
    #[case] age: i64,
    #[case] expected: (Option<Action>, State, Reason),
) {
    let mut token = token(State::Adopted, age);
    token.record.order = Some(order(false));
    token.record.evidence.document = naming.map(|naming| ObservedDocument { at: now(), naming });
    assert_eq!(shown(decided(&token, None)), expected);
}

#[test]
fn an_order_amid_a_renewal_lets_it_end() {
    let mut token = token(State::Probed, 0);
    (token.record.order, token.record.last_publish) = (Some(order(false)), Some(hours(-9)));
    assert_eq!(shown(decided(&token, None)), (Some(Action::Publish), State::Published, Reason::ToPublish));
}

#[test]
fn one_that_was_displaced_amid_a_renewal_is_retired() {
    let mut token = token(State::Probed, 0);
    (token.record.order, token.record.last_publish) = (Some(order(false)), Some(hours(-9)));
    token.record.failure = Some(Reason::Displaced);
    assert_eq!(shown(decided(&token, None)), (Some(Action::ObserveDocument), State::Probed, Reason::Ordered));
    token.record.evidence.document = Some(ObservedDocument { at: now(), naming: Naming::NotNamed });
    assert_eq!(shown(decided(&token, None)), (None, State::Probed, Reason::AwaitingExpiry));
}

/// The registry has given bearer tokens for it, which outlive it.
#[rstest]
#[case(13, State::Dead, Reason::AwaitingTokenExpiry)]
#[case(14, State::WaitedOut, Reason::Done)]
fn a_dead_one_is_over_with_what_was_issued_for_it(#[case] age: i64, #[case] next: State, #[case] reason: Reason) {
    assert_eq!(shown(decided(&token(State::Dead, age), None)), (None, next, reason));
}

#[rstest]
#[case::reserved(State::Probed, (Some(Action::Create), State::Created, Reason::ToRenew))]
#[case::published(State::Published, (None, State::Adopted, Reason::AwaitingExpiry))]
#[case::adopted(State::Adopted, (None, State::Adopted, Reason::AwaitingExpiry))]
fn one_is_renewed_until_its_successor_is_published(
    #[case] state: State,
    #[case] expected: (Option<Action>, State, Reason),
) {
    assert_eq!(shown(decided(&token(State::Adopted, 9), Some(&successor(state)))), expected);
}

#[test]
fn a_renewal_waits_behind_new_clusters() {
    assert_eq!(lane(&token(State::Reserved, 0), Action::Create), Lane::NewCluster);
    assert_eq!(lane(&token(State::Adopted, 9), Action::Create), Lane::Rotation);
}

fn order(break_glass: bool) -> Order {
    Order { actor: "ann".to_owned(), reason: "leak".to_owned(), at: now(), break_glass }
}
