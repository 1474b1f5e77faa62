//! The next step of one credential, by its state, its evidence and the orders of people.

#![expect(clippy::unnecessary_wraps, reason = "as the record has them")]

use std::time::Duration;

use jiff::Timestamp;
use registry_account::contract::{Capabilities, Disables, Identities, Lists, Passwords};
use rstest::rstest;

use crate::credential::{
    ClusterRef, Credential, Evidence, Naming, NodesEvidence, ObservedDocument, ObservedUsage, Order, Policy, Proof,
    Record, Retire, Successor,
};
use crate::decide::{Facts, Step, lane, step};
use crate::reason::Reason;
use crate::state::{Action, Lane, State};

/// Hours since 1970 of these tests.
const NOW: i64 = 1000;

fn at(hour: i64) -> Timestamp {
    Timestamp::from_second(hour * 3600).unwrap()
}

fn minutes(minutes: i64) -> Timestamp {
    Timestamp::from_second(NOW * 3600 + minutes * 60).unwrap()
}

fn proof() -> Option<Proof> {
    Some(Proof { at: at(NOW), source: "test".to_owned() })
}

fn document(at: Timestamp, naming: Naming) -> Option<ObservedDocument> {
    Some(ObservedDocument { at, naming })
}

fn usage(at: Timestamp, last_pull: Option<Timestamp>) -> Option<ObservedUsage> {
    Some(ObservedUsage { at, last_pull, complete: true })
}

fn order(break_glass: bool) -> Option<Order> {
    Some(Order { actor: "ann".to_owned(), reason: "leak".to_owned(), at: at(NOW), break_glass })
}

/// The time of these tests.
pub(super) fn now() -> Timestamp {
    at(NOW)
}

/// A credential of a cluster in a state.
pub(super) fn credential(state: State) -> Credential {
    given(state).credential
}

/// The facts of a row of a table.
#[derive(Clone)]
struct Given {
    credential: Credential,
    successor: Option<Successor>,
    capabilities: Capabilities,
    policy: Policy,
}

/// A credential of a cluster that has passed every step up to a state, 100 hours ago; its successor is another change.
fn given(state: State) -> Given {
    let past = |from: State| (state >= from).then(|| at(NOW - 100));
    let record = Record {
        login: past(State::Created).map(|_| "org+x".to_owned()),
        generation: 3_u32.into(),
        last_create: past(State::Created),
        created: past(State::Created),
        probed: past(State::Pooled),
        last_publish: past(State::Published),
        published: past(State::Published),
        adopted: past(State::Adopted),
        deleted: past(State::Dead),
        dead: past(State::Dead),
        ..Record::default()
    };
    let credential = Credential {
        id: "01932b5c-9f3e-7c2a-8e1d-0123456789ab".parse().unwrap(),
        registry: "quay".parse().unwrap(),
        account: "hf-x".parse().unwrap(),
        state,
        reason: Reason::ToCreate,
        cluster: Some(ClusterRef { id: "cls-1".to_owned(), incarnation: 1 }),
        replaces: None,
        has_password: state >= State::Created,
        record,
    };
    let hour = Duration::from_hours(1);
    let policy = Policy { retire: Retire::WhenAdopted, quiet: hour * 24, deadline: hour * 24, ..Policy::default() };
    let capabilities = Capabilities {
        identities: Identities::Accounts,
        expires: false,
        new_accounts_pull: false,
        passwords: Passwords::Kept,
        lists: Lists::All,
        usage_log: true,
        disables: Disables::Never,
        token_life: hour,
        calls_per_minute: 60,
        max_name_bytes: 49,
        max_description: 255,
    };
    Given { credential, successor: None, capabilities, policy }
}

// === impl Given ===

impl Given {
    fn record(mut self, change: impl FnOnce(&mut Record)) -> Self {
        change(&mut self.credential.record);
        self
    }

    fn evidence(self, change: impl FnOnce(&mut Evidence)) -> Self {
        self.record(|record| change(&mut record.evidence))
    }

    fn published(self) -> Self {
        self.record(|record| record.last_publish = Some(at(NOW - 100)))
    }

    fn unpublished(self) -> Self {
        self.record(|record| record.last_publish = None)
    }

    fn policy(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        change(&mut self.policy);
        self
    }

    fn capable(mut self, change: impl FnOnce(&mut Capabilities)) -> Self {
        change(&mut self.capabilities);
        self
    }

    fn pooled(mut self) -> Self {
        self.credential.cluster = None;
        self
    }

    /// A newer credential was published 50 hours ago.
    fn superseded(mut self, adopted: bool) -> Self {
        let id = "01932b5c-9f3e-7c2a-8e1d-0123456789ac".parse().unwrap();
        let adopted_at = adopted.then(|| at(NOW - 49));
        let state = if adopted { State::Adopted } else { State::Published };
        self.successor = Some(Successor { id, state, published: Some(at(NOW - 50)), adopted: adopted_at });
        self
    }

    fn step(&self) -> Step {
        let Self { credential, successor, capabilities, policy } = self;
        step(&Facts { credential, successor: successor.as_ref(), capabilities, policy, now: at(NOW) })
    }
}

fn quiet(state: State) -> Given {
    given(state).superseded(true).evidence(|evidence| evidence.usage = usage(minutes(-5), None))
}

#[rstest]
#[case::reserved(given(State::Reserved), Action::Create, State::Created)]
#[case::created(given(State::Created), Action::Permit, State::Permitted)]
#[case::permitted(given(State::Permitted), Action::Probe, State::Probed)]
#[case::of_the_pool(given(State::Permitted).pooled(), Action::Probe, State::Pooled)]
#[case::probed(
    given(State::Probed).record(|it| it.probed = Some(minutes(-1))),
    Action::Publish,
    State::Published
)]
#[case::published(given(State::Published), Action::ObserveAdoption, State::Published)]
#[case::reported(
    given(State::Published).evidence(|it| (it.report, it.nodes) = (proof(), proof())),
    Action::ObserveUsage,
    State::Published
)]
#[case::in_use(given(State::Adopted), Action::ObserveDocument, State::Adopted)]
#[case::held(given(State::Probed).record(|it| it.held = true), Action::ObserveDocument, State::Probed)]
#[case::old(given(State::Adopted).superseded(true), Action::ObserveUsage, State::Adopted)]
#[case::old_of_a_cluster_that_is_gone(
    given(State::Adopted).evidence(|it| it.document = document(at(NOW - 1), Naming::ClusterGone)),
    Action::ObserveUsage,
    State::Adopted
)]
#[case::silence_is_not_fresh(
    quiet(State::Quiet).evidence(|it| it.usage = usage(minutes(-16), None)),
    Action::ObserveUsage,
    State::Quiet
)]
#[case::quiet(quiet(State::Quiet), Action::ObserveDocument, State::Quiet)]
#[case::unnamed_is_not_fresh(
    quiet(State::Quiet).evidence(|it| it.document = document(minutes(-16), Naming::NotNamed)),
    Action::ObserveDocument,
    State::Quiet
)]
#[case::old_of_the_pool_is_tried_again(given(State::Probed), Action::Probe, State::Probed)]
#[case::tried_at_a_later_time_of_another_clock(
    given(State::Probed).record(|it| it.probed = Some(minutes(1))),
    Action::Probe,
    State::Probed
)]
#[case::retiring_unseen_for_long(given(State::Retiring).published(), Action::ObserveDocument, State::Retiring)]
#[case::retiring(
    given(State::Retiring).published().evidence(|it| it.document = document(minutes(-1), Naming::NotNamed)),
    Action::Delete,
    State::Retiring
)]
#[case::retiring_of_a_cluster_that_is_gone(
    given(State::Retiring).published().evidence(|it| it.document = document(minutes(-1), Naming::ClusterGone)),
    Action::Delete,
    State::Retiring
)]
#[case::retiring_what_was_never_published(given(State::Retiring).unpublished(), Action::Delete, State::Retiring)]
#[case::revoking(given(State::Retiring).published().record(|it| it.order = order(true)), Action::Delete, State::Retiring)]
#[case::deleted(given(State::Retiring).record(|it| it.deleted = Some(minutes(-1))), Action::ConfirmRefused, State::Dead)]
#[case::disabled_first(
    given(State::Retiring)
        .unpublished()
        .capable(|it| it.disables = Disables::Reversibly)
        .policy(|it| it.disabled_for = Duration::from_hours(1)),
    Action::Disable,
    State::Retiring
)]
fn one_action_leads_to_the_next_state(#[case] given: Given, #[case] action: Action, #[case] next: State) {
    let step = given.step();
    assert_eq!((step.action, step.next), (Some(action), next), "{step:?}");
}

#[rstest]
#[case::assigned(given(State::Pooled), State::Probed, Reason::ToPublish)]
#[case::adopted(
    given(State::Published).evidence(|it| (it.report, it.nodes, it.first_pull) = (proof(), proof(), proof())),
    State::Adopted,
    Reason::InUse
)]
#[case::adopted_without_nodes(
    given(State::Published)
        .evidence(|it| (it.report, it.first_pull) = (proof(), proof()))
        .policy(|it| it.nodes = NodesEvidence::Renounced),
    State::Adopted,
    Reason::InUse
)]
#[case::old_and_quiet(quiet(State::Adopted), State::Quiet, Reason::Superseded)]
#[case::never_adopted_and_quiet(quiet(State::Published), State::Quiet, Reason::Superseded)]
#[case::attested(
    given(State::Adopted).superseded(true).capable(|it| it.usage_log = false).evidence(|it| it.quiet = proof()),
    State::Quiet,
    Reason::Superseded
)]
#[case::not_named(
    quiet(State::Quiet).evidence(|it| it.document = document(minutes(-1), Naming::NotNamed)),
    State::Retiring,
    Reason::Superseded
)]
#[case::approved(
    quiet(State::Quiet)
        .policy(|it| it.retire = Retire::Manual)
        .record(|it| it.order = order(false))
        .evidence(|it| it.document = document(minutes(-1), Naming::NotNamed)),
    State::Retiring,
    Reason::Superseded
)]
#[case::cluster_gone(
    given(State::Quiet)
        .evidence(|it| (it.usage, it.document) = (usage(minutes(-1), None), document(minutes(-1), Naming::ClusterGone))),
    State::Retiring,
    Reason::ClusterGone
)]
#[case::held_of_a_cluster_that_is_gone(
    given(State::Probed)
        .record(|it| it.held = true)
        .evidence(|it| it.document = document(minutes(-1), Naming::ClusterGone)),
    State::Retiring,
    Reason::ClusterGone
)]
#[case::given_up(given(State::Created).record(|it| it.given_up = Some(Reason::Corrupt)), State::Retiring, Reason::Corrupt)]
#[case::given_up_before_the_answer(
    given(State::Reserved).record(|it| (it.last_create, it.given_up) = (Some(minutes(-1)), Some(Reason::Corrupt))),
    State::Retiring,
    Reason::Corrupt
)]
#[case::never_created(given(State::Reserved).record(|it| it.order = order(false)), State::Spent, Reason::Ordered)]
#[case::ordered_out_of_the_pool(
    given(State::Pooled).pooled().record(|it| it.order = order(false)),
    State::Retiring,
    Reason::Ordered
)]
#[case::break_glass(given(State::Published).record(|it| it.order = order(true)), State::Retiring, Reason::BreakGlass)]
#[case::break_glass_in_use(
    given(State::Adopted)
        .record(|it| it.order = order(true))
        .evidence(|it| it.document = document(minutes(-1), Naming::Named)),
    State::Retiring,
    Reason::BreakGlass
)]
#[case::without_a_password(
    given(State::Retiring).record(|it| it.deleted = Some(minutes(-1))),
    State::Dead,
    Reason::AwaitingTokenExpiry
)]
#[case::named_again_before_the_deletion(
    given(State::Retiring).published().evidence(|it| it.document = document(minutes(-1), Naming::Named)),
    State::Quiet,
    Reason::StillNamed
)]
#[case::waited_out(given(State::Dead), State::WaitedOut, Reason::Done)]
fn a_state_follows_from_evidence(#[case] mut given: Given, #[case] next: State, #[case] reason: Reason) {
    if given.credential.state == State::Retiring {
        given.credential.has_password = false;
    }
    let step = given.step();
    assert_eq!((step.action, step.next, step.reason), (None, next, reason));
}

#[rstest]
#[case::in_pool(given(State::Pooled).pooled(), Reason::InPool, None)]
#[case::held(
    given(State::Probed)
        .record(|it| it.held = true)
        .evidence(|it| it.document = document(at(NOW - 1), Naming::NotNamed)),
    Reason::Held,
    Some(at(NOW + 23))
)]
#[case::no_report(
    given(State::Published).record(|it| it.published = Some(at(NOW - 1))).evidence(|it| it.observed = Some(minutes(-1))),
    Reason::AwaitingReport,
    Some(minutes(4))
)]
#[case::never_a_report(
    given(State::Published).evidence(|it| it.observed = Some(minutes(-1))),
    Reason::NeverReported,
    Some(minutes(4))
)]
#[case::no_nodes(
    given(State::Published).evidence(|it| (it.report, it.observed) = (proof(), Some(minutes(-1)))),
    Reason::NodesNeverReported,
    Some(minutes(4))
)]
#[case::no_pull(
    given(State::Published)
        .evidence(|it| (it.report, it.nodes, it.usage) = (proof(), proof(), usage(minutes(-1), None))),
    Reason::NeverPulled,
    Some(minutes(4))
)]
#[case::no_usage_log(
    given(State::Published).capable(|it| it.usage_log = false).evidence(|it| (it.report, it.nodes) = (proof(), proof())),
    Reason::NoUsageLog,
    Some(at(NOW + 24))
)]
#[case::displaced(
    given(State::Published).evidence(|it| {
        (it.report, it.nodes, it.first_pull) = (proof(), proof(), proof());
        (it.observed, it.document) = (Some(minutes(-1)), document(minutes(-1), Naming::NotNamed));
    }),
    Reason::Displaced,
    Some(minutes(4))
)]
#[case::successor_not_adopted(
    given(State::Adopted).superseded(false).evidence(|it| it.document = document(at(NOW - 1), Naming::NotNamed)),
    Reason::AwaitingSuccessor,
    Some(at(NOW + 23))
)]
#[case::order_before_the_successor_is_adopted(
    given(State::Adopted)
        .superseded(false)
        .record(|it| it.order = order(false))
        .evidence(|it| it.document = document(at(NOW), Naming::NotNamed)),
    Reason::AwaitingSuccessor,
    Some(at(NOW + 24))
)]
#[case::still_used(
    given(State::Adopted).superseded(true).evidence(|it| it.usage = usage(minutes(-1), Some(at(NOW - 2)))),
    Reason::StillUsed,
    Some(at(NOW + 22))
)]
#[case::not_quiet_long_enough(
    given(State::Adopted).superseded(true).policy(|it| it.quiet = Duration::from_hours(51)),
    Reason::AwaitingQuiet,
    Some(at(NOW + 1))
)]
#[case::usage_is_incomplete(
    quiet(State::Adopted).evidence(|it| it.usage.as_mut().unwrap().complete = false),
    Reason::UsageIncomplete,
    Some(minutes(15))
)]
#[case::nothing_tells_of_silence(
    given(State::Adopted).superseded(true).capable(|it| it.usage_log = false),
    Reason::NoUsageLog,
    Some(at(NOW + 24))
)]
#[case::not_approved(
    quiet(State::Quiet).policy(|it| it.retire = Retire::Manual),
    Reason::AwaitingApproval,
    Some(at(NOW + 24))
)]
#[case::still_named(
    quiet(State::Quiet).evidence(|it| it.document = document(minutes(-1), Naming::Named)),
    Reason::StillNamed,
    Some(minutes(15))
)]
#[case::late_publication(
    given(State::Quiet)
        .record(|it| {
            (it.order, it.last_publish) = (order(false), Some(minutes(-1)));
            it.evidence.quiet = proof();
        })
        .evidence(|it| it.document = document(minutes(0), Naming::NotNamed)),
    Reason::AwaitingLateRequest,
    Some(minutes(14))
)]
#[case::late_creation(
    given(State::Retiring).record(|it| (it.last_create, it.last_delete) = (Some(minutes(-5)), Some(minutes(-1)))),
    Reason::AwaitingLateRequest,
    Some(minutes(10))
)]
#[case::disabled(
    given(State::Retiring)
        .capable(|it| it.disables = Disables::Reversibly)
        .policy(|it| it.disabled_for = Duration::from_hours(1))
        .record(|it| it.disabled = Some(minutes(-10))),
    Reason::Disabled,
    Some(minutes(50))
)]
#[case::tokens_are_good(
    given(State::Dead).record(|it| it.deleted = Some(minutes(-1))),
    Reason::AwaitingTokenExpiry,
    Some(minutes(59))
)]
#[case::back_off(
    given(State::Reserved).record(|it| (it.failure, it.retry_at) = (Some(Reason::Denied), Some(minutes(7)))),
    Reason::Denied,
    Some(minutes(7))
)]
#[case::done(given(State::WaitedOut), Reason::Done, None)]
#[case::spent(given(State::Spent).record(|it| it.order = order(true)), Reason::Done, None)]
fn nothing_happens_for_a_reason(#[case] given: Given, #[case] reason: Reason, #[case] not_before: Option<Timestamp>) {
    let expected = Step { action: None, next: given.credential.state, reason, not_before };
    assert_eq!(given.step(), expected);
}

#[test]
fn use_after_the_silence_takes_a_credential_back() {
    let used = quiet(State::Quiet).evidence(|evidence| evidence.usage = usage(minutes(-1), Some(at(NOW - 1))));
    let step = used.step();
    assert_eq!((step.action, step.next, step.reason), (None, State::Adopted, Reason::StillUsed));
    // One that was superseded before its cluster adopted it is not adopted by that.
    assert_eq!(used.record(|record| record.adopted = None).step().next, State::Published);
}

/// Without a break-glass order, no time that passes deletes an account that a pull secret may name.
#[rstest]
#[case::never_reported(given(State::Published))]
#[case::never_pulled(given(State::Published).evidence(|it| (it.report, it.nodes) = (proof(), proof())))]
#[case::displaced(given(State::Adopted).evidence(|it| it.document = document(at(NOW), Naming::NotNamed)))]
#[case::successor_not_adopted(given(State::Adopted).superseded(false))]
#[case::not_quiet(given(State::Adopted).superseded(true).evidence(|it| it.usage = usage(at(NOW), Some(at(NOW)))))]
#[case::not_approved(quiet(State::Quiet).policy(|it| it.retire = Retire::Manual))]
#[case::named(quiet(State::Quiet).evidence(|it| it.document = document(at(NOW), Naming::Named)))]
fn no_timer_alone_revokes(#[case] given: Given) {
    for hours in [0, 1, 24, 48, 1000, 100_000] {
        let Given { credential, successor, capabilities, policy } = &given;
        let now = at(NOW + hours);
        let step = step(&Facts { credential, successor: successor.as_ref(), capabilities, policy, now });
        assert!(step.next < State::Retiring && step.action != Some(Action::Delete), "{hours}: {step:?}");
    }
}

#[rstest]
#[case(given(State::Reserved), Action::Create, Lane::NewCluster)]
#[case(given(State::Reserved).pooled(), Action::Create, Lane::Refill)]
#[case(given(State::Published), Action::ObserveUsage, Lane::Audit)]
#[case(given(State::Retiring), Action::Delete, Lane::Rotation)]
#[case(given(State::Retiring).record(|it| it.order = order(true)), Action::Delete, Lane::BreakGlass)]
fn a_call_has_the_lane_of_its_purpose(#[case] given: Given, #[case] action: Action, #[case] expected: Lane) {
    assert_eq!(lane(&given.credential, action), expected);
}

#[test]
fn a_replacement_is_a_rotation() {
    let mut given = given(State::Reserved);
    given.credential.replaces = "01932b5c-9f3e-7c2a-8e1d-0123456789ac".parse().ok();
    assert_eq!(lane(&given.credential, Action::Create), Lane::Rotation);
}
