//! The next step of a rotation, and the progress of its clusters.

use std::num::NonZeroU32;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rstest::rstest;

use super::credentials::{credential, now};
use crate::credential::{Credential, Naming, ObservedDocument};
use crate::decide::rotation::pay;
use crate::decide::{Judged, RotationFacts, RotationStep, judge, obstacle, rotation_eta, rotation_step};
use crate::reason::Reason;
use crate::rotation::{ClusterProgress, GroupCounts, RotationPlan, RotationReason, Window};
use crate::state::State;

/// Waiting, in progress, succeeded, failed.
type Group = [u64; 4];

fn plan(window: Option<&str>) -> RotationPlan {
    RotationPlan {
        groups: vec!["labels.canary = 'true'".to_owned(), "the rest".to_owned()],
        max_concurrency: 10,
        max_failures: 2,
        min_success_time: SignedDuration::from_mins(10),
        progress_deadline: SignedDuration::from_hours(1),
        window: window.map(|window| window.parse().unwrap()),
        max_calls_per_minute: None,
        from_ams: false,
    }
}

fn counts([waiting, in_progress, succeeded, failed]: Group) -> GroupCounts {
    GroupCounts { waiting, in_progress, succeeded, failed, skipped: 1 }
}

/// 02:00 in UTC.
fn night() -> Timestamp {
    "2026-11-27T02:00:00Z".parse().unwrap()
}

#[rstest]
#[case::begins(0, [3, 0, 0, 0], [50, 0, 0, 0], 0, None, RotationStep::Begin(3))]
#[case::others_of_the_group_count(1, [0, 0, 3, 0], [50, 4, 0, 0], 0, None, RotationStep::Begin(6))]
#[case::as_many_as_may_be(1, [0, 0, 3, 0], [50, 10, 0, 0], 0, None, RotationStep::Wait(RotationReason::Rotating))]
#[case::the_first_group_soaks(0, [0, 1, 2, 0], [50, 0, 0, 0], 0, None, RotationStep::Wait(RotationReason::Soaking))]
#[case::the_first_group_is_done(0, [0, 0, 3, 0], [50, 0, 0, 0], 0, None, RotationStep::NextGroup)]
#[case::an_empty_group(0, [0, 0, 0, 0], [50, 0, 0, 0], 0, None, RotationStep::NextGroup)]
#[case::none_of_the_first_group_may_fail(
    0, [1, 1, 0, 1], [50, 0, 0, 0], 0, None, RotationStep::Stop(RotationReason::FirstGroupFailed)
)]
#[case::a_person_tolerates_it(0, [1, 1, 0, 1], [50, 0, 0, 0], 1, None, RotationStep::Begin(1))]
#[case::failures_are_tolerated(1, [0, 0, 3, 0], [9, 0, 0, 2], 0, None, RotationStep::Begin(9))]
#[case::too_many_failures(
    1, [0, 0, 3, 0], [9, 0, 0, 3], 0, None, RotationStep::Stop(RotationReason::TooManyFailures)
)]
#[case::failures_that_were_seen(1, [0, 0, 2, 1], [9, 0, 0, 3], 2, None, RotationStep::Begin(9))]
#[case::in_the_window(0, [3, 0, 0, 0], [0, 0, 0, 0], 0, Some("22:00-06:00"), RotationStep::Begin(3))]
#[case::outside_the_window(
    0, [3, 0, 0, 0], [0, 0, 0, 0], 0, Some("06:00-22:00"), RotationStep::Wait(RotationReason::OutsideWindow)
)]
#[case::the_end_needs_no_window(1, [0, 0, 3, 0], [0, 0, 9, 0], 0, Some("06:00-22:00"), RotationStep::Finish)]
#[case::the_last_ones_soak(1, [0, 0, 3, 0], [0, 1, 8, 0], 0, None, RotationStep::Wait(RotationReason::Soaking))]
#[case::the_end(1, [0, 0, 3, 0], [0, 0, 7, 2], 0, None, RotationStep::Finish)]
fn the_next_step(
    #[case] group: usize,
    #[case] first: Group,
    #[case] rest: Group,
    #[case] tolerated: u64,
    #[case] window: Option<&str>,
    #[case] expected: RotationStep,
) {
    let (plan, counts) = (plan(window), [counts(first), counts(rest)]);
    let facts = RotationFacts { plan: &plan, group, counts: &counts, tolerated, paid_off: night(), now: night() };
    assert_eq!(rotation_step(&facts), expected);
}

/// The clusters that begin at once, and the time until one more may begin after them: 9 calls each.
#[rstest]
#[case::all_at_once(None, 10, 0)]
#[case::as_a_minute_pays(Some(36), 4, 15)]
#[case::no_more_than_may_be(Some(900), 10, 0)]
#[case::less_than_one_in_a_minute(Some(3), 1, 180)]
fn a_budget_paces_the_beginnings(#[case] calls: Option<u32>, #[case] first: u64, #[case] wait: i64) {
    let plan = RotationPlan { max_calls_per_minute: calls.and_then(NonZeroU32::new), ..plan(None) };
    let counts = [counts([0, 0, 3, 0]), counts([50, 0, 0, 0])];
    let step = |paid_off: Timestamp, seconds: i64| {
        let now = night() + SignedDuration::from_secs(seconds);
        rotation_step(&RotationFacts { plan: &plan, group: 1, counts: &counts, tolerated: 0, paid_off, now })
    };
    assert_eq!(step(night(), 0), RotationStep::Begin(first));
    let paid_off = pay(&plan, night(), first, night());
    if wait > 0 {
        let waits = RotationStep::Wait(RotationReason::AwaitingBudget);
        // To a replica whose clock is behind, it is not yet now.
        for seconds in [-5, 0, wait - 1] {
            assert_eq!(step(paid_off, seconds), waits);
        }
        assert_eq!(step(paid_off, wait), RotationStep::Begin(1));
    }
    if calls.is_some() {
        let ahead = night() + SignedDuration::from_hours(6);
        assert_eq!(step(ahead, 0), RotationStep::Begin(first), "a clock that was ahead stops nothing");
    }
    // A long pause pays for no more than a minute.
    assert_eq!(step(paid_off, 24 * 60 * 60), RotationStep::Begin(first));
}

fn with(change: impl FnOnce(&mut Credential)) -> Credential {
    let mut credential = credential(State::Published);
    credential.reason = Reason::AwaitingReport;
    change(&mut credential);
    credential
}

fn minutes_ago(minutes: i64) -> Timestamp {
    now().saturating_sub(SignedDuration::from_mins(minutes)).unwrap()
}

#[rstest]
#[case::on_its_way(Some(with(|_| {})), 59, ClusterProgress::InProgress, None)]
#[case::too_late(Some(with(|_| {})), 60, ClusterProgress::Failed, Some(Reason::AwaitingReport))]
#[case::soaks(Some(with(|it| it.record.adopted = Some(minutes_ago(9)))), 300, ClusterProgress::InProgress, None)]
#[case::done(Some(with(|it| it.record.adopted = Some(minutes_ago(10)))), 300, ClusterProgress::Succeeded, None)]
#[case::is_renewed(
    Some(with(|it| (it.state, it.record.adopted) = (State::Created, Some(minutes_ago(10))))),
    300,
    ClusterProgress::Succeeded,
    None
)]
#[case::cluster_gone(
    Some(with(|it| it.record.evidence.document = Some(ObservedDocument { at: now(), naming: Naming::ClusterGone }))),
    1,
    ClusterProgress::Skipped,
    Some(Reason::ClusterGone)
)]
#[case::revoked(
    Some(with(|it| (it.state, it.reason) = (State::Retiring, Reason::BreakGlass))), 1, ClusterProgress::Skipped, Some(Reason::BreakGlass)
)]
#[case::put_back(None, 1, ClusterProgress::Skipped, Some(Reason::RolledBack))]
fn the_progress_of_a_cluster(
    #[case] successor: Option<Credential>,
    #[case] started: i64,
    #[case] progress: ClusterProgress,
    #[case] cause: Option<Reason>,
) {
    let judged = judge(successor.as_ref(), minutes_ago(started), &plan(None), now());
    assert_eq!(judged, Judged { progress, cause });
}

#[rstest]
#[case::in_use(with(|it| it.state = State::Adopted), false, None)]
#[case::replaced(with(|it| it.state = State::Adopted), true, Some(Reason::AwaitingSuccessor))]
#[case::not_adopted(with(|_| {}), false, Some(Reason::AwaitingReport))]
#[case::cluster_gone(
    with(|it| {
        it.state = State::Adopted;
        it.record.evidence.document = Some(ObservedDocument { at: now(), naming: Naming::ClusterGone });
    }),
    true,
    Some(Reason::ClusterGone)
)]
fn a_cluster_is_left_when_its_turn_comes(
    #[case] credential: Credential,
    #[case] has_successor: bool,
    #[case] expected: Option<Reason>,
) {
    assert_eq!(obstacle(&credential, has_successor), expected);
}

#[rstest]
#[case::by_the_rate([0, 0, 0, 0], [90, 10, 0, 0], 60, 1, 900)]
#[case::by_the_clusters_at_the_same_time([0, 0, 0, 0], [90, 10, 0, 0], 6000, 600, 6000)]
#[case::each_group_has_rounds_of_its_own([1, 0, 0, 0], [11, 0, 0, 0], 6000, 600, 1800)]
#[case::done([0, 0, 3, 0], [0, 0, 5, 0], 60, 600, 0)]
fn the_end_is_estimated(
    #[case] first: Group,
    #[case] rest: Group,
    #[case] per_minute: u32,
    #[case] each: u64,
    #[case] seconds: i64,
) {
    let found = rotation_eta(&plan(None), &[counts(first), counts(rest)], per_minute, Duration::from_secs(each), now());
    assert_eq!(found.unwrap().duration_since(now()).as_secs(), seconds);
}

#[rstest]
#[case("22:00-06:00", "2026-11-27T21:59:59Z", false)]
#[case("22:00-06:00", "2026-11-27T22:00:00Z", true)]
#[case("22:00-06:00", "2026-11-27T05:59:59Z", true)]
#[case("22:00-06:00", "2026-11-27T06:00:00Z", false)]
#[case("08:30-17:00", "2026-11-27T08:30:00Z", true)]
#[case("08:30-17:00", "2026-11-27T17:00:00Z", false)]
fn a_window_may_go_past_midnight(#[case] window: &str, #[case] at: &str, #[case] expected: bool) {
    let parsed: Window = window.parse().unwrap();
    assert_eq!((parsed.contains(at.parse().unwrap()), parsed.to_string().as_str()), (expected, window));
}

#[rstest]
#[case("")]
#[case("22:00")]
#[case("22:00-22:00")]
#[case("24:00-06:00")]
#[case("22-06")]
fn other_texts_are_no_window(#[case] text: &str) {
    assert!(text.parse::<Window>().is_err());
}
