//! Properties of every aggregation.

use proptest::prelude::*;

use super::*;

const ADAPTERS: [&str; 4] = ["a", "b", "c", "d"];

fn a_status() -> impl Strategy<Value = Status> {
    prop::sample::select(vec![Status::True, Status::True, Status::True, Status::False, Status::Unknown])
}

fn a_report() -> impl Strategy<Value = Report> {
    let finalized = prop::option::of(a_status());
    (prop::sample::select(ADAPTERS.to_vec()), 1..5_u32, a_status(), finalized, 1..200_i64).prop_map(
        |(adapter, generation, available, finalized, second)| {
            let mut report = report(adapter, generation, available, second);
            report.conditions.extend(finalized.map(|status| reported(FINALIZED, status)));
            report
        },
    )
}

fn a_previous(kind: &'static str) -> impl Strategy<Value = Option<Condition>> {
    prop::option::of((any::<bool>(), 1..4_u32, 1..200_i64).prop_map(move |(holds, generation, second)| Condition {
        kind: kind.to_owned(),
        status: if holds { Status::True } else { Status::False },
        reason: None,
        message: None,
        observed_generation: generation.into(),
        created_time: at(0),
        last_updated_time: at(second),
        last_transition_time: at(second),
        reason_since_time: at(second),
    }))
}

prop_compose! {
    fn a_situation()(
        required in prop::sample::subsequence(ADAPTERS.to_vec(), 0..=3),
        generation in 1..5_u32,
        deleting in any::<bool>(),
        children in any::<bool>(),
        reports in prop::collection::vec(a_report(), 0..5),
        reconciled in a_previous(RECONCILED),
        last_known in a_previous(LAST_KNOWN_RECONCILED),
    ) -> Situation {
        let mut resource = resource(generation);
        resource.deleted_time = deleting.then(|| at(100));
        resource.state.reports = reports.into_iter().map(|report| (report.adapter.clone(), report)).collect();
        resource.state.conditions = reconciled.into_iter().chain(last_known).collect();
        Situation { required: required.into_iter().map(str::to_owned).collect(), resource, children }
    }
}

proptest! {
    #[test]
    fn reconciled_means_that_all_have_observed_the_current_generation(situation in a_situation()) {
        let generation = situation.resource.generation;
        let expected = if situation.resource.is_terminating() { FINALIZED } else { AVAILABLE };
        for condition in situation.conditions().iter().filter(|condition| condition.kind == RECONCILED) {
            prop_assert_eq!(condition.observed_generation, generation);
            if condition.status == Status::True {
                for adapter in &situation.required {
                    let report = reports(&situation).get(adapter);
                    prop_assert!(report.is_some_and(|report| report.observed_generation == generation
                        && report.status(expected) == Status::True));
                }
                prop_assert!(!(situation.resource.is_terminating() && situation.children));
            }
        }
    }

    #[test]
    fn aggregating_again_changes_nothing(situation in a_situation()) {
        let stored = situation.stored();
        prop_assert_eq!(stored.conditions(), stored.resource.state.conditions);
    }

    #[test]
    fn the_order_of_adapters_changes_only_the_order(situation in a_situation()) {
        let mut turned = situation.clone();
        turned.required.reverse();
        let sorted = |situation: &Situation| {
            let mut conditions = situation.conditions();
            conditions.sort_by(|one, other| one.kind.cmp(&other.kind));
            conditions
        };
        prop_assert_eq!(sorted(&turned), sorted(&situation));
    }

    #[test]
    fn conditions_are_never_unknown_and_types_are_unique(situation in a_situation()) {
        let conditions = situation.conditions();
        let kinds: std::collections::BTreeSet<_> = conditions.iter().map(|condition| &condition.kind).collect();
        prop_assert_eq!(kinds.len(), conditions.len());
        prop_assert!(conditions.iter().all(|condition| condition.status != Status::Unknown));
    }

    #[test]
    fn reports_of_other_adapters_do_not_matter(situation in a_situation(), extra in a_report()) {
        let mut disturbed = situation.clone();
        let stranger = Report { adapter: "stranger".to_owned(), ..extra };
        disturbed.resource.state.reports.insert(stranger.adapter.clone(), stranger);
        prop_assert_eq!(disturbed.conditions(), situation.conditions());
    }
}
