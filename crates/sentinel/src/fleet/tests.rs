//! The loop without its wires: what is told, in which order, and what is not lost.

use super::*;

const POLICY: Policy = Policy {
    gap: Duration::from_secs(10),
    longest_gap: Duration::from_mins(1),
    resync: Duration::from_mins(30),
    is_conditional: false,
};

fn at(second: i64) -> Moment {
    Moment(1_800_000_000_000 + second * 1_000)
}

fn seen(generation: i64, reconciled: bool, changed: i64) -> Sighting {
    let state = State { generation, ..State::default() };
    Sighting {
        facts: Facts { state, reconciled: Some(reconciled), changed: Some(at(changed)) },
        content: Content { kind: "Cluster".into(), data: format!("{{\"generation\":{generation}}}").into() },
    }
}

/// Sees a resource by the stream.
fn see(fleet: &mut Fleet, id: &str, sighting: Sighting, now: Moment) -> Decision {
    fleet.observe(id, sighting, Source::Stream, now).unwrap()
}

/// What is published at a second, each confirmed at once.
fn published(fleet: &mut Fleet, second: i64) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(due) = fleet.take(at(second)) {
        all.push(format!("{} {} {}", due.id, due.reason, due.state.generation));
        fleet.told(&due.id, due.state, at(second));
    }
    all
}

#[test]
fn a_change_is_told_once_and_repeated_until_it_is_reconciled() {
    let mut fleet = Fleet::new(POLICY);
    see(&mut fleet, "a", seen(1, false, 0), at(0));
    assert_eq!(published(&mut fleet, 0), ["a New 1"]);
    assert_eq!(see(&mut fleet, "a", seen(1, false, 0), at(1)).reason, Reason::SuppressedByGap);
    assert_eq!(published(&mut fleet, 9), [""; 0]);
    assert_eq!(published(&mut fleet, 12), ["a NotReconciledGapPassed 1"]);
    see(&mut fleet, "a", seen(2, false, 13), at(13));
    assert_eq!(published(&mut fleet, 13), ["a GenerationChanged 2"]);
    assert_eq!(see(&mut fleet, "a", seen(2, true, 14), at(14)).reason, Reason::UpToDate);
    assert_eq!(published(&mut fleet, 60), [""; 0]);
    assert_eq!(published(&mut fleet, 60 + 1_800), ["a ResyncDue 2"]);
}

#[test]
fn what_changes_while_its_event_is_on_the_way_is_told_after_it() {
    let mut fleet = Fleet::new(POLICY);
    see(&mut fleet, "a", seen(1, false, 0), at(0));
    let due = fleet.take(at(0)).unwrap();
    assert_eq!((fleet.take(at(0)), fleet.pending()), (None, 1));
    assert_eq!(see(&mut fleet, "a", seen(2, false, 1), at(1)).reason, Reason::AwaitingConfirmation);
    fleet.told(&due.id, due.state, at(2));
    assert_eq!(published(&mut fleet, 2), ["a GenerationChanged 2"]);
    assert_eq!(fleet.pending(), 0);
}

#[test]
fn what_the_broker_refuses_comes_again_as_it_is_then() {
    let mut fleet = Fleet::new(POLICY);
    see(&mut fleet, "a", seen(1, false, 0), at(0));
    let due = fleet.take(at(0)).unwrap();
    fleet.refused(&due.id, at(0));
    assert_eq!(fleet.take(at(0)), None);
    assert_eq!(see(&mut fleet, "a", seen(3, false, 0), at(0)).reason, Reason::AwaitingBroker);
    assert!(fleet.next_turn().unwrap() >= at(1));
    assert_eq!(published(&mut fleet, 2), ["a New 3"]);
}

#[test]
fn refused_news_come_before_turns_all_the_same() {
    let mut fleet = Fleet::new(POLICY);
    for id in 0..100 {
        see(&mut fleet, &format!("cls-{id}"), seen(1, true, 0), at(0));
    }
    see(&mut fleet, "z", seen(1, false, 3_600), at(3_600));
    let due = fleet.take(at(3_600)).unwrap();
    fleet.refused(&due.id, at(3_600));
    assert_ne!(fleet.take(at(3_600)).unwrap().id, due.id, "the others need not wait for it");
    assert_eq!(published(&mut fleet, 3_602)[0], "z New 1");
}

#[test]
fn news_come_before_turns_and_in_the_order_in_which_they_came() {
    let mut fleet = Fleet::new(POLICY);
    for id in ["x", "y"] {
        see(&mut fleet, id, seen(1, true, 0), at(0));
    }
    see(&mut fleet, "b", seen(1, false, 3_600), at(3_600));
    see(&mut fleet, "a", seen(1, false, 3_601), at(3_601));
    see(&mut fleet, "b", seen(2, false, 3_602), at(3_602));
    let order = published(&mut fleet, 3_603);
    assert_eq!(order[..2], ["b New 2", "a New 1"]);
    assert_eq!(order.len(), 4, "{order:?}");
}

#[test]
fn a_page_that_is_older_than_the_stream_changes_nothing() {
    let mut fleet = Fleet::new(POLICY);
    fleet.begin_round();
    see(&mut fleet, "a", seen(2, true, 10), at(10));
    assert_eq!(fleet.observe("a", seen(1, false, 5), Source::Page, at(11)), None);
    fleet.gone("a");
    assert_eq!(fleet.observe("a", seen(2, true, 10), Source::Page, at(11)), None, "a ghost");
    assert_eq!(published(&mut fleet, 11), [""; 0]);
    // The stream is believed whatever the clocks say; so is a page that is ahead of it.
    assert_eq!(see(&mut fleet, "a", seen(1, false, 5), at(12)).reason, Reason::New);
    let ahead = fleet.observe("a", seen(2, false, 4), Source::Page, at(12)).unwrap();
    assert_eq!(ahead.reason, Reason::New);
    assert_eq!(published(&mut fleet, 12), ["a New 2"]);
}

#[test]
fn what_was_held_back_until_it_was_reconciled_has_its_turns_all_the_same() {
    let mut fleet = Fleet::new(Policy { is_conditional: true, ..POLICY });
    assert_eq!(see(&mut fleet, "a", seen(1, false, 0), at(0)).reason, Reason::PublishWhenNotMet);
    let mut met = seen(1, true, 1);
    met.facts.state.met = 1;
    assert_eq!(see(&mut fleet, "a", met, at(1)).reason, Reason::UpToDate);
    assert_eq!(published(&mut fleet, 1_801), ["a ResyncDue 1"]);
}

#[test]
fn what_is_gone_is_forgotten() {
    let mut fleet = Fleet::new(POLICY);
    for id in ["a", "b", "c"] {
        see(&mut fleet, id, seen(1, false, 0), at(0));
    }
    let on_the_way = fleet.take(at(0)).unwrap();
    fleet.gone("a");
    fleet.told(&on_the_way.id, on_the_way.state, at(1));
    assert_eq!((fleet.len(), fleet.pending()), (2, 2));
    // Read page by page, something may slip; it is gone when it is missing twice.
    fleet.begin_round();
    see(&mut fleet, "b", seen(1, false, 0), at(2));
    assert_eq!(fleet.end_round(true), 0);
    fleet.begin_round();
    see(&mut fleet, "b", seen(1, false, 0), at(3));
    assert_eq!(fleet.end_round(true), 1);
    // Told by the stream, what is missing is gone.
    fleet.begin_round();
    assert_eq!(fleet.end_round(false), 1);
    assert!(fleet.is_empty() && fleet.next_turn().is_none());
}

#[test]
fn a_restart_beside_a_settled_fleet_makes_no_burst() {
    let mut fleet = Fleet::new(POLICY);
    for id in 0..3_600 {
        see(&mut fleet, &format!("cls-{id}"), seen(1, true, 0), at(0));
    }
    let busiest = (1..=1_800).map(|second| published(&mut fleet, second).len()).max();
    assert!(busiest <= Some(12), "{busiest:?}");
}

#[test]
fn a_condition_that_is_met_again_is_told_again_after_the_gap() {
    let mut fleet = Fleet::new(Policy { is_conditional: true, ..POLICY });
    let seen = |met: u64, second: i64| {
        let mut sighting = seen(1, true, second);
        sighting.facts.reconciled = None;
        sighting.facts.state.met = met;
        sighting
    };
    see(&mut fleet, "a", seen(1, 0), at(0));
    assert_eq!(published(&mut fleet, 0), ["a New 1"]);
    assert_eq!(see(&mut fleet, "a", seen(0, 1), at(1)).reason, Reason::PublishWhenNotMet);
    assert_eq!(see(&mut fleet, "a", seen(1, 2), at(2)).reason, Reason::SuppressedByGap);
    assert_eq!(published(&mut fleet, 12), ["a PublishWhenMet 1"]);
    // The same while its event was on the way.
    see(&mut fleet, "a", seen(3, 20), at(20));
    let due = fleet.take(at(20)).unwrap();
    see(&mut fleet, "a", seen(1, 21), at(21));
    fleet.told(&due.id, due.state, at(22));
    assert_eq!(see(&mut fleet, "a", seen(3, 23), at(23)).reason, Reason::SuppressedByGap);
    assert_eq!(published(&mut fleet, 35), ["a PublishWhenMet 1"]);
}

#[test]
fn a_reading_that_failed_is_no_round() {
    let mut fleet = Fleet::new(POLICY);
    see(&mut fleet, "a", seen(1, true, 0), at(0));
    see(&mut fleet, "b", seen(1, true, 0), at(0));
    // It failed before it came to either.
    fleet.begin_round();
    fleet.abandon_round();
    // Read page by page, `a` has slipped, for the first time.
    fleet.begin_round();
    see(&mut fleet, "b", seen(1, true, 0), at(1));
    assert_eq!(fleet.end_round(true), 0);
    fleet.begin_round();
    assert_eq!(fleet.end_round(true), 1, "twice is gone");
}

#[test]
fn what_has_gone_is_remembered_only_while_a_page_may_show_it() {
    let mut fleet = Fleet::new(POLICY);
    for id in 0..100 {
        let id = id.to_string();
        see(&mut fleet, &id, seen(1, true, 0), at(0));
        fleet.gone(&id);
    }
    assert!(fleet.gone.is_empty());
    fleet.begin_round();
    see(&mut fleet, "a", seen(1, true, 0), at(0));
    fleet.gone("a");
    assert_eq!(fleet.gone.len(), 1);
    fleet.end_round(true);
    assert!(fleet.gone.is_empty());
}
