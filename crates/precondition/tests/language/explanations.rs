//! The sentences, exactly.

use rstest::rstest;
use serde_json::{Value, json};

use precondition::{Answer, Context, Precondition, Shown};

use super::explained;

fn document() -> Value {
    json!({
        "spec": { "nodes": 2, "yes": true, "no": false, "name": "x".repeat(500), "many": [1, 2, 3, 4, 5, 6, 7], "line": "a\nb\"c" },
        "status": {
            "phase": "Ready",
            "conditions": [
                { "type": "Available", "status": "False" },
                { "type": "Degraded", "status": "True" },
                { "type": "Progressing", "status": "True" },
                { "type": "Upgradeable", "status": "True" },
            ],
        },
    })
}

#[rstest]
// Each part that is to blame has a line.
#[case(
    "spec.nodes == 3 or status.phase == 'NotReady'",
    "`spec.nodes == 3` is false: left side is 2\n`status.phase == 'NotReady'` is false: left side is \"Ready\""
)]
#[case(
    "spec.nodes == 2 and (spec.no or spec.nodes > 2)",
    "`spec.no` is false\n`spec.nodes > 2` is false: left side is 2"
)]
#[case("not (spec.nodes == 2 and spec.yes)", "`spec.nodes == 2` is true: left side is 2\n`spec.yes` is true")]
#[case("not (spec.nodes == 3 or spec.yes)", "`spec.yes` is true")]
#[case("not not spec.no", "`spec.no` is false")]
#[case("false", "`false` is false")]
#[case("1 == 2", "`1 == 2` is false")]
#[case("3 == spec.nodes", "`3 == spec.nodes` is false: right side is 2")]
#[case(
    "spec.nodes > len(status.conditions)",
    "`spec.nodes > len(status.conditions)` is false: left side is 2, right side is 4"
)]
#[case("spec.nodes == '2'", "`spec.nodes == '2'` is false: left side is 2 (a number never equals a text)")]
#[case("spec.missing ?? spec.no", "`spec.missing ?? spec.no` is false")]
#[case(
    "spec.yes ? spec.nodes == 3 : true",
    "`spec.nodes == 3` is false: left side is 2; evaluated because `spec.yes` is true"
)]
#[case("spec.no ? true : spec.no", "`spec.no` is false; evaluated because `spec.no` is false")]
// Long and strange values.
#[case("spec.name == 'y'", &format!("`spec.name == 'y'` is false: left side is \"{}…\"", "x".repeat(64)))]
#[case("8 in spec.many", "`8 in spec.many` is false: right side is [1, 2, 3, 4, 5, … 7 elements]")]
#[case("spec.line == ''", r#"`spec.line == ''` is false: left side is "a\nb\"c""#)]
#[case("spec == nil", "`spec == nil` is false: left side is an object with 6 members")]
#[case("status.conditions == nil", "`status.conditions == nil` is false: left side is [{…}, {…}, {…}, {…}]")]
#[case("spec.many[7] == 8", "`spec.many[7] == 8` is false: left side is nil (spec.many has 7 elements, and none at 7)")]
#[case("event.type == 'x'", "`event.type == 'x'` is false: left side is nil (there is no event)")]
#[case("cluster.kind == 'x'", "`cluster.kind == 'x'` is false: left side is nil (cluster has no \"kind\")")]
#[case("spec\n  .nodes\n == 3", "`spec .nodes == 3` is false: left side is 2")]
// Predicates.
#[case(
    "any(status.conditions, {.type == 'Reconciled'})",
    "`any(status.conditions, {.type == 'Reconciled'})` is false: no element satisfies it: [0] `.type == 'Reconciled'` is false: left side is \"Available\"; [1] `.type == 'Reconciled'` is false: left side is \"Degraded\"; [2] `.type == 'Reconciled'` is false: left side is \"Progressing\"; and 1 more"
)]
#[case(
    "all(status.conditions, {.type != 'Degraded'})",
    "`all(status.conditions, {.type != 'Degraded'})` is false: an element does not satisfy it: [1] `.type != 'Degraded'` is false: left side is \"Degraded\""
)]
#[case(
    "none(status.conditions, {.type == 'Degraded'})",
    "`none(status.conditions, {.type == 'Degraded'})` is false: an element satisfies it: [1] `.type == 'Degraded'` is true: left side is \"Degraded\""
)]
#[case(
    "not any(status.conditions, {.type == 'Degraded'})",
    "`any(status.conditions, {.type == 'Degraded'})` is true: an element satisfies it: [1] `.type == 'Degraded'` is true: left side is \"Degraded\""
)]
#[case("any(spec.missing ?? [], {true})", "`any(spec.missing ?? [], {true})` is false: `spec.missing ?? []` is empty")]
#[case("any([], {true})", "`any([], {true})` is false: the list is empty")]
#[case(
    "count(status.conditions, {.status == 'True'}) == 4",
    "`count(status.conditions, {.status == 'True'}) == 4` is false: left side is 3"
)]
#[case(
    "any([spec], {.nodse == 3})",
    "`any([spec], {.nodse == 3})` is false: no element satisfies it: [0] `.nodse == 3` is false: left side is nil (spec has no \"nodse\", did you mean \"nodes\"?)"
)]
#[case(
    "any(status.conditions, {.tpye == 'A'})",
    "`any(status.conditions, {.tpye == 'A'})` is false: no element satisfies it: [0] `.tpye == 'A'` is false: left side is nil (status.conditions[] has no \"tpye\", did you mean \"type\"?); [1] `.tpye == 'A'` is false: left side is nil (status.conditions[] has no \"tpye\", did you mean \"type\"?); [2] `.tpye == 'A'` is false: left side is nil (status.conditions[] has no \"tpye\", did you mean \"type\"?); and 1 more"
)]
fn explanations(#[case] expression: &str, #[case] expected: &str) {
    assert_eq!(explained(&document(), expression), expected);
}

#[test]
fn a_tree_tells_everything_and_what_was_not_looked_at() {
    let document = document();
    let source = "spec.nodes == 3 and (spec.yes or spec.no) or any(status.conditions, {.status == 'True'})";
    let evaluation = Precondition::parse(source).unwrap().evaluate(&Context::of(&document));
    let expected = "\
`spec.nodes == 3 and (spec.yes or spec.no) or any(status.conditions, {.status == 'True'})`: true
  `spec.nodes == 3 and (spec.yes or spec.no)`: false
    `spec.nodes == 3`: false
      `spec.nodes`: 2
    `spec.yes or spec.no`: not evaluated
  `any(status.conditions, {.status == 'True'})`: true
    `status.conditions`: [{…}, {…}, {…}, {…}]
    [1] `.status == 'True'`: true
      `.status`: \"True\"";
    assert_eq!(evaluation.explanation.tree().to_string(), expected);

    let root = evaluation.explanation.root();
    assert_eq!(root.answer(), &Answer::Is(Shown::Bool(true)));
    assert_eq!(root.parts()[0].parts()[1].answer(), &Answer::NotEvaluated);
    assert_eq!(evaluation.explanation.source_of(&root.parts()[0].parts()[0]), "spec.nodes == 3");
    assert_eq!(root.parts()[1].parts()[1].element(), Some(1));
}

#[test]
fn an_explanation_is_not_longer_than_a_person_reads() {
    let document = document();
    let or = vec!["spec.nodes == 3"; 200].join(" or ");
    let evaluation = Precondition::parse(&or).unwrap().evaluate(&Context::of(&document));
    let lines = evaluation.explanation.lines();
    assert_eq!((lines.len(), lines.last().unwrap().as_str()), (21, "… and 180 more"));
}
