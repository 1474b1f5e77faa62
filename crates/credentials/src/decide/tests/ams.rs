//! Leaving AMS: differences, phases, and the obstacles to a retirement.

use std::time::Duration;

use jiff::Timestamp;
use rstest::rstest;

use crate::credential::Credential;
use crate::decide::ams::{
    Difference, EntryFacts, Obstacle, OwnFacts, Phase, PhaseFacts, RetireFacts, SilenceFacts, clean_since, difference,
    obstacle, phase,
};
use crate::decide::move_obstacle;
use crate::reason::Reason;
use crate::state::State;

fn at(hour: i64) -> Timestamp {
    Timestamp::from_second(hour * 3600).unwrap()
}

const fn hours(hours: u64) -> Duration {
    Duration::from_hours(hours)
}

#[rstest]
#[case::of_ams((true, 1, true, false, true), None)]
#[case::of_someone_else((true, 1, false, false, true), Some(Difference::Foreign))]
#[case::none((true, 0, false, false, true), Some(Difference::Missing))]
#[case::two((true, 2, true, false, true), Some(Difference::SeveralSpellings))]
#[case::old_token((true, 1, false, true, true), Some(Difference::OtherToken))]
#[case::old_token_that_stays((false, 1, false, true, false), Some(Difference::OtherToken))]
#[case::stays((false, 1, false, false, false), None)]
#[case::stays_twice((false, 2, true, false, false), None)]
#[case::would_change((false, 1, true, false, true), Some(Difference::Collateral))]
fn only_what_is_known_is_explained(
    #[case] (is_taken, spellings, is_known, has_other_token, changes): (bool, usize, bool, bool, bool),
    #[case] expected: Option<Difference>,
) {
    assert_eq!(difference(&EntryFacts { is_taken, spellings, is_known, has_other_token, changes }), expected);
}

#[rstest]
#[case::first(None, None, true, Some(100))]
#[case::goes_on(Some(60), Some(80), true, Some(60))]
#[case::differs(Some(60), Some(80), false, None)]
#[case::again(None, Some(80), true, Some(100))]
#[case::at_the_limit(Some(10), Some(52), true, Some(10))]
#[case::without_a_look(Some(10), Some(51), true, Some(100))]
#[case::a_clock_that_went_back(Some(10), Some(101), true, Some(100))]
fn a_time_without_a_difference_has_no_gap(
    #[case] before: Option<i64>,
    #[case] compared_at: Option<i64>,
    #[case] clean: bool,
    #[case] expected: Option<i64>,
) {
    assert_eq!(clean_since(before.map(at), compared_at.map(at), clean, at(100)), expected.map(at));
}

const NONE: OwnFacts = OwnFacts { state: None, is_held: false };
const HELD: OwnFacts = OwnFacts { state: Some(State::Probed), is_held: true };
const RELEASED: OwnFacts = OwnFacts { state: Some(State::Probed), is_held: false };
const PUBLISHED: OwnFacts = OwnFacts { state: Some(State::Published), is_held: false };
const ADOPTED: OwnFacts = OwnFacts { state: Some(State::Adopted), is_held: false };
const CREATED: OwnFacts = OwnFacts { state: Some(State::Created), is_held: true };

#[rstest]
#[case::new(&[NONE], None, 100, false, Phase::Imported)]
#[case::too_short(&[NONE], Some(80), 100, false, Phase::Imported)]
#[case::long_enough(&[NONE], Some(76), 100, false, Phase::Compared)]
#[case::on_its_way(&[CREATED], Some(76), 100, false, Phase::Compared)]
#[case::too_old(&[NONE], Some(2), 51, false, Phase::Imported)]
#[case::beside(&[HELD], None, 100, false, Phase::Issued)]
#[case::released(&[RELEASED], None, 100, false, Phase::Moving)]
#[case::published(&[PUBLISHED], None, 100, false, Phase::Moving)]
#[case::adopted(&[ADOPTED], None, 100, false, Phase::Moved)]
#[case::one_of_two(&[ADOPTED, HELD], None, 100, false, Phase::Issued)]
#[case::retired(&[ADOPTED, ADOPTED], None, 100, true, Phase::Retired)]
#[case::deleted_by_others(&[HELD], None, 100, true, Phase::Issued)]
#[case::no_registry(&[], None, 100, true, Phase::Imported)]
fn a_phase_follows_from_what_is_recorded(
    #[case] own: &[OwnFacts],
    #[case] clean_since: Option<i64>,
    #[case] compared_at: i64,
    #[case] is_retired: bool,
    #[case] expected: Phase,
) {
    let (clean_since, compared_at) = (clean_since.map(at), at(compared_at));
    let facts = PhaseFacts { own, clean_since, compared_at, demanded: hours(24), is_retired, now: at(100) };
    assert_eq!(phase(&facts), expected);
}

fn retiring() -> RetireFacts {
    RetireFacts {
        is_moved: true,
        are_others_moved: true,
        is_named: false,
        is_as_imported: true,
        is_attested: false,
        usage: Some(SilenceFacts { last_pull: None, is_complete: true }),
        moved: Some(at(70)),
        quiet: hours(24),
        now: at(100),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as the facts have it")]
fn used(last_pull: Option<i64>, is_complete: bool) -> Option<SilenceFacts> {
    Some(SilenceFacts { last_pull: last_pull.map(at), is_complete })
}

#[rstest]
#[case::proven(|_: &mut RetireFacts| {}, None)]
#[case::not_moved(|facts: &mut RetireFacts| facts.is_moved = false, Some(Obstacle::NotMoved))]
#[case::shared(|facts: &mut RetireFacts| facts.are_others_moved = false, Some(Obstacle::Shared))]
#[case::named(|facts: &mut RetireFacts| facts.is_named = true, Some(Obstacle::StillNamed))]
#[case::changed(|facts: &mut RetireFacts| facts.is_as_imported = false, Some(Obstacle::Changed))]
#[case::untold(|facts: &mut RetireFacts| facts.usage = None, Some(Obstacle::NoUsageLog))]
#[case::too_much(|facts: &mut RetireFacts| facts.usage = used(None, false), Some(Obstacle::NoUsageLog))]
#[case::just_moved(|facts: &mut RetireFacts| facts.moved = Some(at(77)), Some(Obstacle::AwaitingQuiet))]
#[case::never_published(|facts: &mut RetireFacts| facts.moved = None, Some(Obstacle::AwaitingQuiet))]
#[case::used(|facts: &mut RetireFacts| facts.usage = used(Some(90), true), Some(Obstacle::StillUsed))]
#[case::used_long_ago(|facts: &mut RetireFacts| facts.usage = used(Some(75), true), None)]
#[case::attested(|facts: &mut RetireFacts| (facts.usage, facts.is_attested) = (None, true), None)]
#[case::attested_but_named(
    |facts: &mut RetireFacts| (facts.is_named, facts.is_attested) = (true, true),
    Some(Obstacle::StillNamed)
)]
#[case::attested_but_not_moved(
    |facts: &mut RetireFacts| (facts.is_moved, facts.is_attested) = (false, true),
    Some(Obstacle::NotMoved)
)]
fn each_part_of_the_proof_is_demanded(
    #[case] change: impl FnOnce(&mut RetireFacts),
    #[case] expected: Option<Obstacle>,
) {
    let mut facts = retiring();
    change(&mut facts);
    assert_eq!(obstacle(&facts), expected);
}

#[rstest]
#[case::waits(State::Probed, true, None)]
#[case::on_its_way(State::Created, true, Some(Reason::InUse))]
#[case::published_by_someone(State::Probed, false, Some(Reason::InUse))]
#[case::in_use(State::Adopted, false, Some(Reason::InUse))]
fn only_a_probed_credential_that_waits_is_moved(
    #[case] state: State,
    #[case] held: bool,
    #[case] expected: Option<Reason>,
) {
    let mut credential = Credential { reason: Reason::InUse, ..super::credentials::credential(state) };
    credential.record.held = held;
    assert_eq!(move_obstacle(&credential), expected);
}
