//! Tests of every aggregation rule of HyperFleet's API, one line each.

use rstest::rstest;

use super::*;

#[rstest]
// The reports that are required.
#[case::no_reports("a b", "False@1 ReconciledMissingAdapters 100 100 100")]
#[case::all_true("a b | a@1 True 50 | b@1 True 60", "True@1 ReconciledAll 100 50 50")]
#[case::one_missing("a b | a@1 True 50", "False@1 ReconciledMissingAdapters 100 50 50")]
#[case::one_false("a b | a@1 True 50 | b@1 False 40", "False@1 ReconciledMissingAdapters 100 40 40")]
#[case::one_old("a b | gen 2 | a@2 True 50 | b@1 True 40", "False@2 ReconciledMissingAdapters 100 50 50")]
#[case::all_old("a b | gen 2 | a@1 True 50 | b@1 True 40", "False@2 ReconciledMissingAdapters 100 100 100")]
#[case::unknown_is_absent("a b | a@1 True 50 | b@1 Unknown 40", "False@1 ReconciledMissingAdapters 100 50 50")]
#[case::the_future_is_absent("a b | a@1 True 50 | b@2 True 40", "False@1 ReconciledMissingAdapters 100 50 50")]
#[case::others_do_not_matter("a | a@1 True 50 | z@1 False 40", "True@1 ReconciledAll 100 50 50")]
// Deleting.
#[case::available_is_not_enough("a | deleting | a@1 True 50", "False@1 ReconciledMissingAdapters 100 50 50")]
#[case::finalized("a | deleting | a@1 False 50 Finalized", "True@1 ReconciledAll 100 50 50")]
#[case::one_finalized("a b | deleting | a@1 True 50 Finalized", "False@1 ReconciledMissingAdapters 100 50 50")]
#[case::finalized_before(
    "a | deleting | gen 2 | a@1 True 5 Finalized",
    "False@2 ReconciledMissingAdapters 100 100 100"
)]
#[case::children("a | deleting | children | a@1 True 5 Finalized", "False@1 ReconciledWaitingForChildren 100 5 5")]
#[case::children_come_last("a | deleting | children | a@1 True 5", "False@1 ReconciledMissingAdapters 100 5 5")]
#[case::children_of_the_living("a | children | a@1 True 5", "True@1 ReconciledAll 100 5 5")]
#[case::finalized_while_living("a | a@1 False 5 Finalized", "False@1 ReconciledMissingAdapters 100 5 5")]
#[case::finalized_unknown("a | deleting | a@1 Unknown 5 Finalized", "False@1 ReconciledMissingAdapters 100 100 100")]
// Times.
#[case::same_status_keeps("a | a@1 True 50 | Reconciled True@1 1 2 3", "True@1 ReconciledAll 1 50 3")]
#[case::still_false_keeps("a | Reconciled False@1 1 2 3", "False@1 ReconciledMissingAdapters 1 100 3")]
#[case::still_false_later("a | gen 2 | Reconciled False@1 1 2 3", "False@2 ReconciledMissingAdapters 1 100 3")]
#[case::to_true("a | a@1 True 50 | Reconciled False@1 1 2 3", "True@1 ReconciledAll 1 50 50")]
#[case::to_true_later("a | gen 2 | a@2 True 150 | Reconciled False@1 1 2 3", "True@2 ReconciledAll 1 150 150")]
#[case::lost("a | a@1 False 50 | Reconciled True@1 1 2 3", "False@1 ReconciledMissingAdapters 1 50 50")]
#[case::bumped("a | gen 2 | a@1 True 5 | Reconciled True@1 1 2 3", "False@2 ReconciledMissingAdapters 1 100 100")]
#[case::bumped_and_denied(
    "a | gen 2 | a@2 False 150 | Reconciled True@1 1 2 3",
    "False@2 ReconciledMissingAdapters 1 150 100"
)]
fn reconciled(#[case] situation: &str, #[case] expected: &str) {
    check(situation, RECONCILED, expected);
}

#[rstest]
// First conclusions.
#[case::no_reports("a b", "False@1 AdaptersMissingReports 100 100 100")]
#[case::all_true("a b | a@1 True 50 | b@1 True 60", "True@1 AllAdaptersReconciled 100 50 50")]
#[case::one_missing("a b | gen 3 | a@2 True 50", "False@2 AdaptersMissingReports 100 100 100")]
#[case::one_false("a b | a@1 True 50 | b@1 False 60", "False@1 AdapterReportedNotAvailable 100 50 50")]
#[case::false_is_older("a b | gen 2 | a@2 True 50 | b@1 False 6", "False@2 AdapterReportedNotAvailable 100 100 100")]
#[case::false_is_newer("a b | gen 2 | a@1 True 5 | b@2 False 60", "False@2 AdapterReportedNotAvailable 100 60 60")]
#[case::mixed("a b | gen 2 | a@1 True 5 | b@2 True 6", "False@2 AdaptersNotAtSameGeneration 100 100 100")]
#[case::missing_and_false("a b | a@1 False 50", "False@1 AdaptersMissingReports 100 50 50")]
#[case::unknown_is_absent("a | a@1 Unknown 50", "False@1 AdaptersMissingReports 100 100 100")]
#[case::the_future_is_absent("a | a@2 True 50", "False@1 AdaptersMissingReports 100 100 100")]
#[case::others_do_not_matter("a | a@1 True 50 | z@1 False 40", "True@1 AllAdaptersReconciled 100 50 50")]
#[case::all_true_of_old("a | gen 5 | a@3 True 50", "True@3 AllAdaptersReconciled 100 50 50")]
// It was true.
#[case::stays("a | a@1 True 50 | LastKnownReconciled True@1 1 2 3", "True@1 AllAdaptersReconciled 1 50 3")]
#[case::moves_on(
    "a b | gen 2 | a@2 True 50 | b@2 True 60 | LastKnownReconciled True@1 1 2 3",
    "True@2 AllAdaptersReconciled 1 50 3"
)]
#[case::mixed_keeps(
    "a b | gen 2 | a@1 True 50 | b@2 True 60 | LastKnownReconciled True@1 1 2 3",
    "True@1 AllAdaptersReconciled 1 2 3"
)]
#[case::newer_denial_keeps(
    "a b | gen 2 | a@1 True 50 | b@2 False 60 | LastKnownReconciled True@1 1 2 3",
    "True@1 AllAdaptersReconciled 1 2 3"
)]
#[case::denied_at_its_generation(
    "a b | gen 2 | a@1 False 50 | b@2 True 60 | LastKnownReconciled True@1 1 2 3",
    "False@2 AdapterReportedNotAvailable 1 2 2"
)]
#[case::denied_at_once(
    "a b | a@1 False 50 | b@1 True 40 | LastKnownReconciled True@1 1 2 3",
    "False@1 AdapterReportedNotAvailable 1 40 40"
)]
#[case::a_report_went_missing(
    "a b | a@1 True 50 | LastKnownReconciled True@1 1 2 3",
    "False@1 AdaptersMissingReports 1 2 2"
)]
#[case::all_reports_went_missing(
    "a | gen 9 | LastKnownReconciled True@7 1 2 3",
    "False@7 AdaptersMissingReports 1 2 2"
)]
// It was false.
#[case::rises("a | a@1 True 50 | LastKnownReconciled False@1 1 2 3", "True@1 AllAdaptersReconciled 1 50 50")]
#[case::mixed_does_not_rise(
    "a b | gen 2 | a@1 True 50 | b@2 True 60 | LastKnownReconciled False@1 1 2 3",
    "False@2 AdaptersNotAtSameGeneration 1 2 3"
)]
#[case::still_denied(
    "a | a@1 False 50 | LastKnownReconciled False@1 1 2 3",
    "False@1 AdapterReportedNotAvailable 1 50 3"
)]
fn last_known_reconciled(#[case] situation: &str, #[case] expected: &str) {
    check(situation, LAST_KNOWN_RECONCILED, expected);
}

#[rstest]
#[case("c b a | a@1 True 5 | b@1 False 6", "Reconciled LastKnownReconciled BSuccessful ASuccessful")]
#[case("a | z@1 True 5", "Reconciled LastKnownReconciled")]
#[case("a a | a@1 True 5", "Reconciled LastKnownReconciled ASuccessful")]
#[case::no_adapters_no_conditions(" | z@1 True 5", "")]
fn shown_in_order(#[case] situation: &str, #[case] expected: &str) {
    let kinds: Vec<String> = given(situation).conditions().into_iter().map(|condition| condition.kind).collect();
    assert_eq!(kinds.join(" "), expected);
}

#[rstest]
#[case::first("my-dns | gen 3 | my-dns@2 True 50 : Done", "True@2 Done 100 50 50")]
#[case::kept("my-dns | my-dns@1 False 50 | MyDnsSuccessful False@1 1 2 3", "False@1 - 1 50 3")]
#[case::changed("my-dns | my-dns@1 False 50 | MyDnsSuccessful True@1 1 2 3", "False@1 - 1 50 50")]
fn of_an_adapter(#[case] situation: &str, #[case] expected: &str) {
    check(situation, "MyDnsSuccessful", expected);
}

#[rstest]
#[case("validation", "ValidationSuccessful")]
#[case("my-adapter", "MyAdapterSuccessful")]
#[case("pullsecret", "PullsecretSuccessful")]
#[case("pull-secret", "PullSecretSuccessful")]
#[case("-odd--name-", "OddNameSuccessful")]
#[case("", "Successful")]
fn condition_types(#[case] adapter: &str, #[case] expected: &str) {
    assert_eq!(condition_type(adapter), expected);
}

#[rstest]
#[case("a | a@1 True 5", "All required adapters reported Available=True or Finalized=True at the current generation")]
#[case(
    "d c b a | b@1 True 5 | a@1 True 5 | d@1 False 5",
    "Required adapters not reporting Available=True: [c, d]. Currently reporting: [a, b, d]"
)]
#[case(
    "c b a | gen 2 | a@1 True 5 | b@2 False 6 | c@2 Unknown 7",
    "Required adapters not reporting Available=True: [a, b, c]. Currently reporting: [a, b]"
)]
#[case("a | ", "Required adapters not reporting Available=True: [a]. Currently reporting: []")]
#[case(
    "b a | deleting | b@1 True 5 Finalized",
    "Required adapters not reporting Finalized=True: [a]. Currently reporting: [b]"
)]
#[case(
    "a | deleting | children | a@1 True 5 Finalized",
    "Deletion in progress. All required adapters reported Finalized=True but child resources still exist"
)]
fn messages_of_reconciled(#[case] situation: &str, #[case] expected: &str) {
    check_message(situation.trim_end_matches([' ', '|']), RECONCILED, expected);
}

#[rstest]
#[case("a | a@1 True 5", "All required adapters report Available=True for the tracked generation")]
#[case("a", "Required adapters have not yet reported status")]
#[case("a | a@1 False 5", "One or more required adapters report Available=False")]
#[case("a b | gen 2 | a@1 True 5 | b@2 True 5", "Required adapters do not report a consistent Available state")]
fn messages_of_last_known_reconciled(#[case] situation: &str, #[case] expected: &str) {
    check_message(situation, LAST_KNOWN_RECONCILED, expected);
}

/// A kind without required adapters has no such conditions, but HyperFleet's API defines their rules.
#[test]
fn nothing_required_is_never_reconciled() {
    let situation = given(" | gen 4 | LastKnownReconciled False@3 1 2 3");
    let evidence = Evidence::of(&situation.required, &situation.resource, false);
    assert_eq!(line_of(&last_known::conclude(&evidence)), "LastKnownReconciled False@1 AdaptersMissingReports 1 100 3");
    assert_eq!(
        line_of(&super::super::reconciled::conclude(&evidence)),
        "Reconciled False@4 ReconciledMissingAdapters 100 100 100"
    );
}

/// A mapped condition never replaces an adapter's own.
#[test]
fn mapped_conditions_come_last_and_give_way() {
    let condition =
        |kind: &str| MappedCondition { kind: kind.to_owned(), status: Status::True, reason: None, message: None };
    let evaluated = ["ASuccessful", "Alpha", "Zulu"].map(condition);
    let kinds = |situation: &Situation| {
        let conditions = aggregate(&situation.required, &situation.resource, false, &evaluated, at(7));
        conditions.iter().map(line_of).collect::<Vec<_>>()
    };
    let adapter = "ASuccessful False@1 - 100 5 5".to_owned();
    assert_eq!(kinds(&given("a | a@1 False 5"))[2..], [adapter, mapped("Alpha", 7), mapped("Zulu", 7)]);
    assert_eq!(kinds(&given("")), [mapped("ASuccessful", 7), mapped("Alpha", 7), mapped("Zulu", 7)]);
}

fn mapped(kind: &str, second: i64) -> String {
    format!("{kind} True@1 - {second} {second} {second}")
}
