//! The order of published events, and what is kept when publishing fails.

use super::*;

const POLICY: Policy = Policy {
    min_interval: Duration::from_secs(10),
    max_interval: Duration::from_mins(1),
    resync: Duration::from_mins(30),
    is_conditional: false,
};

fn at(second: i64) -> Moment {
    Moment(1_800_000_000_000 + second * 1_000)
}

fn observation(generation: u32, reconciled: bool, changed: i64) -> Observation {
    let state = State { generation: generation.into(), ..State::default() };
    Observation {
        facts: Facts { state, reconciled: Some(reconciled), changed: Some(at(changed)), is_inherited: false },
        content: EventContent {
            kind: "Cluster".into(),
            data: format!("{{\"generation\":{generation}}}").into(),
            trace: None,
        },
    }
}

/// Records an observation by the stream.
fn observe(fleet: &mut Fleet, id: &str, observation: Observation, now: Moment) -> Decision {
    fleet.observe(id, observation, ObservedBy::Stream, now).unwrap()
}

/// Publishes everything that is due at a second; each event is confirmed at once.
fn published(fleet: &mut Fleet, second: i64) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(due) = fleet.take(at(second)) {
        all.push(format!("{} {} {}", due.id, due.reason, due.state.generation));
        fleet.published(&due.id, due.state, at(second));
    }
    all
}

#[test]
fn a_change_is_published_once_and_repeated_until_it_is_reconciled() {
    let mut fleet = Fleet::new(POLICY);
    observe(&mut fleet, "a", observation(1, false, 0), at(0));
    assert_eq!(published(&mut fleet, 0), ["a New 1"]);
    assert_eq!(observe(&mut fleet, "a", observation(1, false, 0), at(1)).reason, Reason::BackOff);
    assert_eq!(published(&mut fleet, 9), [""; 0]);
    assert_eq!(published(&mut fleet, 12), ["a RepublishDue 1"]);
    observe(&mut fleet, "a", observation(2, false, 13), at(13));
    assert_eq!(published(&mut fleet, 13), ["a GenerationChanged 2"]);
    assert_eq!(observe(&mut fleet, "a", observation(2, true, 14), at(14)).reason, Reason::UpToDate);
    assert_eq!(published(&mut fleet, 60), [""; 0]);
    assert_eq!(published(&mut fleet, 60 + 1_800), ["a ResyncDue 2"]);
}

#[test]
fn a_change_during_a_publication_is_published_after_it() {
    let mut fleet = Fleet::new(POLICY);
    observe(&mut fleet, "a", observation(1, false, 0), at(0));
    let due = fleet.take(at(0)).unwrap();
    assert_eq!((fleet.take(at(0)), fleet.pending()), (None, 1));
    assert_eq!(observe(&mut fleet, "a", observation(2, false, 1), at(1)).reason, Reason::AwaitingConfirmation);
    fleet.published(&due.id, due.state, at(2));
    assert_eq!(published(&mut fleet, 2), ["a GenerationChanged 2"]);
    assert_eq!(fleet.pending(), 0);
}

#[test]
fn a_refused_event_is_published_later_with_the_newest_state() {
    let mut fleet = Fleet::new(POLICY);
    observe(&mut fleet, "a", observation(1, false, 0), at(0));
    let due = fleet.take(at(0)).unwrap();
    fleet.publish_failed(&due.id, at(0));
    assert_eq!(fleet.take(at(0)), None);
    assert_eq!(observe(&mut fleet, "a", observation(3, false, 0), at(0)).reason, Reason::AwaitingBroker);
    assert!(fleet.next_due().unwrap() >= at(1));
    assert_eq!(published(&mut fleet, 2), ["a New 3"]);
}

#[test]
fn refused_changes_come_before_scheduled_events() {
    let mut fleet = Fleet::new(POLICY);
    for id in 0..100 {
        observe(&mut fleet, &format!("cls-{id}"), observation(1, true, 0), at(0));
    }
    observe(&mut fleet, "z", observation(1, false, 3_600), at(3_600));
    let due = fleet.take(at(3_600)).unwrap();
    fleet.publish_failed(&due.id, at(3_600));
    assert_ne!(fleet.take(at(3_600)).unwrap().id, due.id, "the others do not wait for it");
    assert_eq!(published(&mut fleet, 3_602)[0], "z New 1");
}

#[test]
fn changes_come_before_scheduled_events_and_in_their_order() {
    let mut fleet = Fleet::new(POLICY);
    for id in ["x", "y"] {
        observe(&mut fleet, id, observation(1, true, 0), at(0));
    }
    observe(&mut fleet, "b", observation(1, false, 3_600), at(3_600));
    observe(&mut fleet, "a", observation(1, false, 3_601), at(3_601));
    observe(&mut fleet, "b", observation(2, false, 3_602), at(3_602));
    let order = published(&mut fleet, 3_603);
    assert_eq!(order[..2], ["b New 2", "a New 1"]);
    assert_eq!(order.len(), 4, "{order:?}");
}

#[test]
fn a_page_that_is_older_than_the_stream_changes_nothing() {
    let mut fleet = Fleet::new(POLICY);
    fleet.begin_round();
    observe(&mut fleet, "a", observation(2, true, 10), at(10));
    assert_eq!(fleet.observe("a", observation(1, false, 5), ObservedBy::Page, at(11)), None);
    fleet.remove("a");
    assert_eq!(fleet.observe("a", observation(2, true, 10), ObservedBy::Page, at(11)), None, "a deleted resource");
    assert_eq!(published(&mut fleet, 11), [""; 0]);
    // The stream counts whatever the times are; so does a page that is ahead of it.
    assert_eq!(observe(&mut fleet, "a", observation(1, false, 5), at(12)).reason, Reason::New);
    let ahead = fleet.observe("a", observation(2, false, 4), ObservedBy::Page, at(12)).unwrap();
    assert_eq!(ahead.reason, Reason::New);
    assert_eq!(published(&mut fleet, 12), ["a New 2"]);
}

#[test]
fn a_resource_that_was_reconciled_before_its_first_event_is_resynced() {
    let mut fleet = Fleet::new(Policy { is_conditional: true, ..POLICY });
    assert_eq!(observe(&mut fleet, "a", observation(1, false, 0), at(0)).reason, Reason::PublishWhenNotMet);
    let mut met = observation(1, true, 1);
    met.facts.state.met = 1;
    assert_eq!(observe(&mut fleet, "a", met, at(1)).reason, Reason::UpToDate);
    assert_eq!(published(&mut fleet, 1_801), ["a ResyncDue 1"]);
}

#[test]
fn deleted_resources_are_removed() {
    let mut fleet = Fleet::new(POLICY);
    for id in ["a", "b", "c"] {
        observe(&mut fleet, id, observation(1, false, 0), at(0));
    }
    let in_flight = fleet.take(at(0)).unwrap();
    fleet.remove("a");
    fleet.published(&in_flight.id, in_flight.state, at(1));
    assert_eq!((fleet.len(), fleet.pending()), (2, 2));
    // A list by pages may miss a resource; it is removed when it is missing twice.
    fleet.begin_round();
    observe(&mut fleet, "b", observation(1, false, 0), at(2));
    assert_eq!(fleet.end_round(true), 0);
    fleet.begin_round();
    observe(&mut fleet, "b", observation(1, false, 0), at(3));
    assert_eq!(fleet.end_round(true), 1);
    // Published by the stream, what is missing is gone.
    fleet.begin_round();
    assert_eq!(fleet.end_round(false), 1);
    assert!(fleet.is_empty() && fleet.next_due().is_none());
}

#[test]
fn a_restart_with_a_reconciled_fleet_makes_no_burst() {
    let mut fleet = Fleet::new(POLICY);
    for id in 0..3_600 {
        observe(&mut fleet, &format!("cls-{id}"), observation(1, true, 0), at(0));
    }
    let busiest = (1..=1_800).map(|second| published(&mut fleet, second).len()).max();
    assert!(busiest <= Some(12), "{busiest:?}");
}

#[test]
fn a_condition_that_is_met_again_is_published_again_after_the_back_off() {
    let mut fleet = Fleet::new(Policy { is_conditional: true, ..POLICY });
    let observed = |met: u64, second: i64| {
        let mut observation = observation(1, true, second);
        observation.facts.reconciled = None;
        observation.facts.state.met = met;
        observation
    };
    observe(&mut fleet, "a", observed(1, 0), at(0));
    assert_eq!(published(&mut fleet, 0), ["a New 1"]);
    assert_eq!(observe(&mut fleet, "a", observed(0, 1), at(1)).reason, Reason::PublishWhenNotMet);
    assert_eq!(observe(&mut fleet, "a", observed(1, 2), at(2)).reason, Reason::BackOff);
    assert_eq!(published(&mut fleet, 12), ["a PublishWhenMet 1"]);
    // The same while its event is in flight.
    observe(&mut fleet, "a", observed(3, 20), at(20));
    let due = fleet.take(at(20)).unwrap();
    observe(&mut fleet, "a", observed(1, 21), at(21));
    fleet.published(&due.id, due.state, at(22));
    assert_eq!(observe(&mut fleet, "a", observed(3, 23), at(23)).reason, Reason::BackOff);
    assert_eq!(published(&mut fleet, 35), ["a PublishWhenMet 1"]);
}

/// Without a `Reconciled` condition the time of the last change decides on startup; later it may be that of a clock that is behind.
#[test]
fn a_new_resource_is_published_at_once_whatever_the_api_s_clock_says() {
    let mut fleet = Fleet::new(POLICY);
    let silent = |second: i64| {
        let mut observation = observation(1, false, second);
        observation.facts.reconciled = None;
        observation
    };
    assert_eq!(observe(&mut fleet, "old", silent(0), at(7_200)).reason, Reason::UpToDate);
    fleet.end_round(false);
    assert_eq!(observe(&mut fleet, "new", silent(10), at(7_210)).reason, Reason::New);
    assert_eq!(published(&mut fleet, 7_210), ["new New 1"]);
    // What was there stays so, also when it is read again.
    assert_ne!(observe(&mut fleet, "old", silent(0), at(7_220)).reason, Reason::New);
}

#[test]
fn an_abandoned_round_does_not_count() {
    let mut fleet = Fleet::new(POLICY);
    observe(&mut fleet, "a", observation(1, true, 0), at(0));
    observe(&mut fleet, "b", observation(1, true, 0), at(0));
    // It failed before either was observed.
    fleet.begin_round();
    fleet.abandon_round();
    // `a` is missing for the first time.
    fleet.begin_round();
    observe(&mut fleet, "b", observation(1, true, 0), at(1));
    assert_eq!(fleet.end_round(true), 0);
    fleet.begin_round();
    assert_eq!(fleet.end_round(true), 1, "missing twice");
}

#[test]
fn deleted_resources_are_remembered_only_while_the_fleet_is_read() {
    let mut fleet = Fleet::new(POLICY);
    // The first list is read.
    observe(&mut fleet, "z", observation(1, true, 0), at(0));
    fleet.remove("z");
    assert_eq!(fleet.deleted.len(), 1);
    fleet.end_round(false);
    for id in 0..100 {
        let id = id.to_string();
        observe(&mut fleet, &id, observation(1, true, 0), at(0));
        fleet.remove(&id);
    }
    assert!(fleet.deleted.is_empty());
    fleet.begin_round();
    observe(&mut fleet, "a", observation(1, true, 0), at(0));
    fleet.remove("a");
    assert_eq!(fleet.deleted.len(), 1);
    fleet.end_round(true);
    assert!(fleet.deleted.is_empty());
}

/// Resources that a successor reads in pages are published already, except those that the stream delivers as changed since.
#[test]
fn a_successor_publishes_only_what_the_stream_delivers() {
    let mut fleet = Fleet::new(POLICY);
    fleet.begin_inheritance();
    observe(&mut fleet, "new", observation(1, false, 5), at(10));
    assert!(fleet.is_unpublished("new"));
    for id in ["new", "old", "raced"] {
        fleet.observe(id, observation(1, false, 5), ObservedBy::Inherited, at(11));
    }
    assert_eq!(published(&mut fleet, 11), ["new New 1"]);
    assert!(!fleet.is_unpublished("new") && !fleet.is_unpublished("old"));
    // It was created after the position, and the page was read before the stream delivered it.
    assert_eq!(observe(&mut fleet, "raced", observation(1, false, 5), at(12)).reason, Reason::New);
    assert_eq!(published(&mut fleet, 12), ["raced New 1"]);
    // What is not reconciled is repeated after the minimum interval, as with the predecessor.
    assert_eq!(published(&mut fleet, 23).iter().filter(|event| event.starts_with("old RepublishDue")).count(), 1);
    // Later, an event of the stream without a change is none.
    fleet.observe("late", observation(1, false, 5), ObservedBy::Inherited, at(23));
    fleet.end_inheritance();
    assert_eq!(observe(&mut fleet, "late", observation(1, false, 5), at(24)).reason, Reason::BackOff);
}

/// The API does not hold the changes since the position any more: the stream delivers the whole fleet.
#[test]
fn a_successor_whose_position_cannot_be_used_publishes_everything() {
    let mut fleet = Fleet::new(POLICY);
    fleet.begin_inheritance();
    fleet.observe("a", observation(1, false, 5), ObservedBy::Inherited, at(10));
    assert!(!fleet.is_unpublished("a"));
    fleet.disown();
    assert_eq!(observe(&mut fleet, "a", observation(1, false, 5), at(11)).reason, Reason::New);
    assert_eq!(published(&mut fleet, 11), ["a New 1"]);
    // What it has published itself stays so.
    fleet.disown();
    assert_eq!(observe(&mut fleet, "a", observation(1, false, 5), at(12)).reason, Reason::BackOff);
}
