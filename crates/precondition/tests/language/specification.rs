//! The specification's own expressions: true, false, and with parts absent.

use precondition::{AdapterFacts, Context, Outcome, Precondition};
use rstest::rstest;
use serde_json::{Value, json};

fn cluster() -> Value {
    json!({
        "id": "cls-123",
        "name": "production",
        "spec": {
            "provider": "gcp",
            "gcp": { "projectId": "customer-prod-12345" },
            "pullSecret": { "data": "{\"auths\":{}}" },
        },
        "status": {
            "phase": "Provisioning",
            "adapters": {
                "validation": { "available": "True" },
                "dns": { "available": "Unknown" },
                "placement": { "available": "False" },
            },
        },
    })
}

fn reported(generation: u64) -> AdapterFacts {
    AdapterFacts { reported_generation: generation }
}

fn described(document: &Value, expression: &str) -> (Outcome, String) {
    let context = Context::of(document).at_generation(3).with_adapters([
        ("validation", reported(3)),
        ("dns", reported(2)),
        ("placement", reported(3)),
    ]);
    let evaluation = Precondition::parse(expression).unwrap().evaluate(&context);
    (evaluation.outcome, evaluation.explanation.to_string())
}

#[rstest]
#[case(r#"spec.provider == "gcp""#, r#"`spec.provider == "gcp"` is true"#)]
#[case("spec.gcp.projectId != nil", "`spec.gcp.projectId != nil` is true")]
#[case("spec.pullSecret.data != nil", "`spec.pullSecret.data != nil` is true")]
#[case(
    r#"status.adapters[validation].available == "True""#,
    r#"`status.adapters[validation].available == "True"` is true"#
)]
#[case("cluster.status.phase != 'Ready'", "`cluster.status.phase != 'Ready'` is true")]
fn met(#[case] expression: &str, #[case] explanation: &str) {
    assert_eq!(described(&cluster(), expression), (Outcome::Met, explanation.to_owned()));
}

#[rstest]
#[case(r#"spec.provider == "aws""#, r#"`spec.provider == "aws"` is false: left side is "gcp""#)]
#[case(
    r#"status.adapters[dns].available == "True""#,
    r#"`status.adapters[dns].available == "True"` is false: left side is "Unknown" (dns adapter reported at generation 2, cluster is at 3)"#
)]
#[case(
    r#"status.adapters[placement].available == "True""#,
    r#"`status.adapters[placement].available == "True"` is false: left side is "False""#
)]
#[case(
    "cluster.status.phase != 'Provisioning'",
    "`cluster.status.phase != 'Provisioning'` is false: left side is \"Provisioning\""
)]
#[case("spec.gcp.projectId == nil", "`spec.gcp.projectId == nil` is false: left side is \"customer-prod-12345\"")]
#[case("spec.pullSecret.data == nil", "`spec.pullSecret.data == nil` is false: left side is a text that is not shown")]
fn not_met(#[case] expression: &str, #[case] explanation: &str) {
    assert_eq!(described(&cluster(), expression), (Outcome::NotMet, explanation.to_owned()));
}

#[rstest]
#[case("/spec/provider", r#"spec.provider == "gcp""#, r#"left side is nil (spec has no "provider")"#)]
#[case("/spec/gcp/projectId", "spec.gcp.projectId != nil", r#"left side is nil (spec.gcp has no "projectId")"#)]
#[case("/spec/gcp", "spec.gcp.projectId != nil", r#"left side is nil (spec has no "gcp")"#)]
#[case("/spec", "spec.gcp.projectId != nil", "left side is nil (there is no spec)")]
#[case("/spec/pullSecret/data", "spec.pullSecret.data != nil", r#"left side is nil (spec.pullSecret has no "data")"#)]
#[case("/spec/pullSecret", "spec.pullSecret.data != nil", r#"left side is nil (spec has no "pullSecret")"#)]
#[case(
    "/status/adapters/dns/available",
    r#"status.adapters[dns].available == "True""#,
    r#"left side is nil (status.adapters.dns has no "available"; dns adapter reported at generation 2, cluster is at 3)"#
)]
#[case(
    "/status/adapters/placement",
    r#"status.adapters[placement].available == "True""#,
    r#"left side is nil (status.adapters has no "placement")"#
)]
#[case("/status", r#"status.adapters[placement].available == "True""#, "left side is nil (there is no status)")]
fn absent(#[case] without: &str, #[case] expression: &str, #[case] because: &str) {
    let mut document = cluster();
    let (parent, name) = without.rsplit_once('/').unwrap();
    document.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
    assert_eq!(described(&document, expression), (Outcome::NotMet, format!("`{expression}` is false: {because}")));
}

#[test]
fn a_missing_report_is_named_and_a_misspelling_suggested() {
    let message = |expression| described(&cluster(), expression).1;
    assert_eq!(
        message(r#"status.adapters[hypershift].available == "True""#),
        r#"`status.adapters[hypershift].available == "True"` is false: left side is nil (status.adapters has no "hypershift"; hypershift adapter has not reported)"#
    );
    assert_eq!(
        message(r#"status.adapters[validaton].available == "True""#),
        r#"`status.adapters[validaton].available == "True"` is false: left side is nil (status.adapters has no "validaton", did you mean "validation"?)"#
    );
    assert_eq!(
        message(r#"spec.gcp.projectID == "x""#),
        r#"`spec.gcp.projectID == "x"` is false: left side is nil (spec.gcp has no "projectID", did you mean "projectId"?)"#
    );
}

#[test]
fn all_of_them_together_name_each_that_fails_first() {
    let all = r#"spec.provider == "gcp" and spec.gcp.projectId != nil and spec.pullSecret.data != nil
        and status.adapters[validation].available == "True"
        and status.adapters[dns].available == "True"
        and status.adapters[placement].available == "True""#;
    let context = cluster();
    let evaluation = Precondition::parse(all).unwrap().evaluate(&Context::of(&context));
    assert_eq!(evaluation.outcome, Outcome::NotMet);
    assert_eq!(
        evaluation.explanation.to_string(),
        r#"`status.adapters[dns].available == "True"` is false: left side is "Unknown""#
    );
    let tree = evaluation.explanation.tree().to_string();
    let last = tree.lines().last().unwrap();
    assert_eq!(last, r#"  `status.adapters[placement].available == "True"`: not evaluated"#);
}
