//! No explanation holds a secret, by whatever way it was come at.

use precondition::{Context, Precondition};
use rstest::rstest;
use serde_json::{Value, json};

const SECRET: &str = "hunter2";

fn document() -> Value {
    json!({
        "name": "one",
        "spec": {
            "pullSecret": { "data": SECRET, "list": [SECRET, { "x": SECRET }], "object": { SECRET: 1 } },
            "gcp": { "apiKey": SECRET, "credentials": [SECRET], "auths": { "quay.io": { "auth": SECRET } } },
            "private": { "deep": [{ "value": SECRET }] },
        },
        "status": { "adapters": { "pullsecret": { "available": "False", "token": SECRET } } },
        "metadata": { "annotations": { "example.com/auth-token": SECRET } },
    })
}

#[rstest]
#[case("spec.pullSecret.data == 'x'")]
#[case("spec.pullSecret.data > 1")]
#[case("spec.pullSecret.data")]
#[case("spec['pullSecret']['data'] == 'x'")]
#[case("cluster.spec.pullSecret.data == 'x'")]
#[case("spec.pullSecret[spec.missing ?? 'data'] == 'x'")]
#[case("spec.pullSecret.list == []")]
#[case("spec.pullSecret.list[0] == 'x'")]
#[case("spec.pullSecret.object == 1")]
#[case("spec.pullSecret.object.hunter == 1")]
#[case("[spec.pullSecret.data] == 1")]
#[case("[[spec.pullSecret.data]] == 1")]
#[case("(spec.missing ?? spec.pullSecret.data) == 'x'")]
#[case("(true ? spec.pullSecret.data : 1) == 'x'")]
#[case("any(spec.pullSecret.list, {# == 'x'})")]
#[case("any(spec.pullSecret.list, {#.x == 'y'})")]
#[case("any([spec], {.pullSecret.data == 'x'})")]
#[case("any([spec.pullSecret.data], {# == 'x'})")]
#[case("filter(spec.pullSecret.list, true) == 1")]
#[case("filter([spec.pullSecret.data], true)[0] == 'x'")]
#[case("filter(spec.pullSecret.list, true)[0] == 'x'")]
#[case("all(spec.pullSecret.data, true)")]
#[case("len(spec.pullSecret.data) == 0")]
#[case("spec[spec.pullSecret.data] == 1")]
#[case("spec[spec.pullSecret.data].x == 1")]
#[case("status.adapters[spec.pullSecret.data].available == 1")]
#[case("'x' matches spec.pullSecret.data")]
#[case("spec.pullSecret.data in 1")]
#[case("spec.pullSecret.data in spec.pullSecret.data")]
#[case("spec.pullSecret.data.x == 1")]
#[case("spec.gcp.apiKey == 'x'")]
#[case("spec.gcp.credentials == 'x'")]
#[case("spec.gcp.auths['quay.io'].auth == 'x'")]
#[case("metadata.annotations['example.com/auth-token'] == 'x'")]
#[case("status.adapters[pullsecret].token == 'x'")]
#[case("spec.private.deep[0].value == 'x'")]
#[case("any(spec.private.deep, {.value == 'x'})")]
fn nothing_is_shown(#[case] expression: &str) {
    let document = document();
    let context = Context::of(&document).with_adapters([]).hiding("spec.private.deep");
    let evaluation = Precondition::parse(expression).unwrap().evaluate(&context);
    let output = format!("{}\n{}\n{evaluation:?}", evaluation.explanation, evaluation.explanation.tree());
    assert!(!output.contains(SECRET), "{output}");
}

#[test]
fn that_something_is_there_or_not_is_no_secret() {
    let explained = |expression| super::explained(&document(), expression);
    assert_eq!(
        explained("spec.pullSecret.data == nil"),
        "`spec.pullSecret.data == nil` is false: left side is a text that is not shown"
    );
    assert_eq!(
        explained("spec.pullSecret.missing != nil"),
        "`spec.pullSecret.missing != nil` is false: left side is nil (spec.pullSecret has no \"missing\")"
    );
    // An adapter's name makes no secret of its report.
    assert_eq!(
        explained("status.adapters[pullsecret].available == 'True'"),
        "`status.adapters[pullsecret].available == 'True'` is false: left side is \"False\""
    );
}
