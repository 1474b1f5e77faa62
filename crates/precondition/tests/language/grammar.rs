//! The grammar: literals, names, and the precedence of operators (Go Expr's table).

use rstest::rstest;
use serde_json::{Value, json};

use super::answer;

fn document() -> Value {
    json!({
        "name": "one",
        "spec": {
            "in": "word", "not": 1, "any": 2, "nilable": true, "trueish": true, "notify": 1, "a-b": { "c": 3 },
            "yes": true, "no": false, "list": [10, 20, 30], "empty": null, "text": "a\"b'c",
        },
        "status": { "adapters": { "landing-zone": { "available": "True" }, "in": { "x": 1 }, "zone-1": { "x": 2 } } },
        "metadata": { "labels": { "app.kubernetes.io/name": "x" } },
    })
}

#[rstest]
// Literals.
#[case("0x1F == 31 and 0o17 == 15 and 0b101 == 5 and 1_000 == 1000")]
#[case("1.5 == 1.50 and 15e-1 == 1.5 and .5 == 0.5 and 1E2 == 100")]
#[case("-1 < 0 and 0 > -1.5")]
#[case(r#""a\"b'c" == spec.text and 'a"b\'c' == spec.text and `a"b'c` == spec.text"#)]
#[case(r#""\x41\u0042\U00000043\n\t" != "ABC" and "\x41\u0042" == 'AB'"#)]
#[case("nil == nil and nil != false and not (nil != nil)")]
#[case("[1, 'a', nil] == [1, \"a\", nil,] and [] == []")]
// Words that begin like others, and words of the language as names.
#[case("spec.nilable and spec.trueish and spec.notify == 1")]
#[case("spec.in == 'word' and spec.not == 1 and spec.any == 2")]
// Names in brackets.
#[case("status.adapters[landing-zone].available == 'True'")]
#[case("status.adapters[ landing-zone ].available == 'True'")]
#[case("status.adapters['landing-zone'].available == \"True\"")]
#[case("status.adapters[in].x == 1 and status.adapters[zone-1].x == 2 and spec[a-b][c] == 3")]
#[case("status?.adapters?.[landing-zone]?.available == 'True'")]
#[case("metadata.labels['app.kubernetes.io/name'] == 'x'")]
#[case("spec.list[0] == 10 and spec.list[-1] == 30 and spec.list[spec.not] == 20 and [1, 2][1] == 2")]
// The whole document.
#[case("cluster.name == 'one' and cluster.spec.yes and cluster['spec'].yes and cluster[status] == status")]
// Which binds tighter.
#[case("true or false and false")]
#[case("not false and not (true and false)")]
#[case("not spec.no or spec.missing == 1")]
#[case("!spec.no && !!spec.yes || spec.missing < 1")]
#[case("not (1 == 2)")]
#[case("1 == spec.missing ?? 1")]
#[case("1 == spec.missing ?? 1 and true")]
#[case("(spec.missing ?? spec.empty ?? 1) == 1")]
#[case("(nil ?? not false) and (nil ?? !false)")]
#[case("true ? true : false")]
#[case("false or true ? 1 == 1 : 1 == 2")]
#[case("false ? false : false ? false : true")]
#[case("(true ? 'a' : 'b') == 'a'")]
#[case("spec.list[true ? 0 : 1] == 10")]
// `not` before an operator.
#[case("2 not in [1, 3] and 'abc' not contains 'x' and 'abc' not matches '^b'")]
#[case("'abc' not startsWith 'b' and 'abc' not endsWith 'b'")]
// Predicates.
#[case("any(spec.list, {# == 20}) and any(spec.list, # == 20)")]
#[case("all(spec.list, {# >= 10}) and none(spec.list, {# > 30}) and count(spec.list, {# > 10}) == 2")]
#[case("filter(spec.list, {# != 20}) == [10, 30] and filter(spec.list, # > 10)[0] == 20")]
#[case("any([[1, 2], [3]], {any(#, {# == 3})})")]
#[case("any([spec], {#.yes and .list[0] == 10 and #['not'] == 1})")]
#[case("len(spec.list) == 3 and len('äöü') == 3 and len(spec['a-b']) == 1")]
// White space is free.
#[case("\n\ttrue\r\n  and\n(true)\n")]
fn is_true(#[case] expression: &str) {
    assert_eq!(answer(&document(), expression), "true");
}

#[rstest]
#[case("(true or false) and false")]
#[case("not false and false")]
#[case("not true or false")]
#[case("true ? false : true")]
#[case("not (2 in [1, 2])")]
fn is_false(#[case] expression: &str) {
    assert_eq!(answer(&document(), expression), "false");
}

/// `not` is tighter than a comparison, as in Go Expr, so these ask for the negation of a number.
#[rstest]
#[case(
    "not 1 == 2",
    "`1` cannot be answered: `not` takes true or false, but this is 1; `not` binds tighter than comparisons, so these need parentheses"
)]
#[case(
    "!spec.notify == 2",
    "`spec.notify` cannot be answered: `not` takes true or false, but this is 1; `not` binds tighter than comparisons, so these need parentheses"
)]
fn not_is_tight(#[case] expression: &str, #[case] explained: &str) {
    assert_eq!(answer(&document(), expression), explained);
}
