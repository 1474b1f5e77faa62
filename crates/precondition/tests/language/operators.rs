//! Every operator with every mixture of types, absent ones among them.

use rstest::rstest;
use serde_json::{Value, json};

use super::answer;

fn document() -> Value {
    json!({
        "spec": {
            "one": 1, "half": 0.5, "text": "abc", "yes": true, "null": null, "list": [1, "a", null], "object": { "a": 1 },
            "big": 9_007_199_254_740_993_u64, "near": 9_007_199_254_740_992.0, "most": u64::MAX, "least": i64::MIN,
            "objects": [{ "type": "Available", "status": "True" }, { "type": "Degraded", "status": "False" }],
        },
    })
}

#[rstest]
// Equality takes everything; what differs in type is not equal.
#[case("spec.one == 1.0", true)]
#[case("spec.big == 9007199254740993", true)]
#[case("spec.big == spec.near", false)]
#[case("spec.big > spec.near", true)]
#[case("spec.most == 18446744073709551615", true)]
#[case("spec.most > spec.least and spec.least == -9223372036854775808", true)]
#[case("spec.one == '1'", false)]
#[case("spec.one != '1'", true)]
#[case("spec.null == nil and spec.missing == nil and spec.missing.deeper.still == nil", true)]
#[case("spec.missing == false or spec.missing == 0 or spec.missing == ''", false)]
#[case("spec.list == [1, 'a', nil]", true)]
#[case("spec.list == [1, 'a']", false)]
#[case("spec.object == spec.object and spec.object != spec.list", true)]
#[case("spec.objects == filter(spec.objects, true)", true)]
// Order.
#[case("spec.half < spec.one and spec.one <= 1 and spec.one >= 1 and not (spec.one > 1)", true)]
#[case("'a' < 'b' and 'a' <= 'a' and 'b' > 'a' and 'Z' < 'a'", true)]
// Within: nothing is in nothing, and nil may be in a list.
#[case("1 in spec.list and 1.0 in spec.list and nil in spec.list and spec.missing in spec.list", true)]
#[case("'1' in spec.list", false)]
#[case("'a' in spec.object and 'b' not in spec.object", true)]
#[case("1 in spec.missing", false)]
#[case("1 not in spec.missing", true)]
#[case("spec.object in [spec.object]", true)]
// Texts; an absent one has no content.
#[case(
    "spec.text contains 'b' and spec.text startsWith 'a' and spec.text endsWith 'c' and spec.text contains ''",
    true
)]
#[case("spec.text matches '^a.c$' and spec.text matches spec.text", true)]
#[case(
    "spec.missing contains 'b' or spec.missing matches '.*' or spec.missing startsWith '' or spec.text endsWith nil",
    false
)]
#[case("spec.missing not contains 'b'", true)]
#[case(r"'123456789012' matches `^\d{12}$` and 'a-b9' matches `^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`", true)]
#[case(r"'zone_1-x' matches `^\w{3,9}-\w$` and 'Ä' matches `^(?i)ä$`", true)]
// Logic stops as soon as the answer is known.
#[case("false and spec.one", false)]
#[case("true or spec.one", true)]
#[case("true ? true : spec.one", true)]
#[case("(1 ?? spec.text.x) == 1", true)]
// Members, elements and lengths.
#[case("spec.list[0] == 1 and spec.list[-3] == 1 and spec.list[3] == nil and spec.list[-4] == nil", true)]
#[case("spec.list[9223372036854775807] == nil and spec.list[-9223372036854775808] == nil", true)]
#[case("spec.missing[0] == nil and spec.missing['a'] == nil and spec.missing[nil] == nil", true)]
#[case("spec.object['a'] == 1 and spec.object.b == nil", true)]
#[case("len(spec.list) == 3 and len(spec.text) == 3 and len(spec.object) == 1 and len([]) == 0", true)]
// Predicates.
#[case("any(spec.objects, {.type == 'Available' and .status == 'True'})", true)]
#[case("any([], {true}) or not all([], {false}) or not none([], {true})", false)]
#[case("all(spec.objects, {.status == 'True'})", false)]
#[case("none(spec.objects, {.status == 'Unknown'})", true)]
#[case("count(spec.objects, {.status == 'True'}) == 1 and len(filter(spec.objects, {.missing == nil})) == 2", true)]
#[case("any(spec.list, {# == nil})", true)]
#[case("any(spec.missing ?? [], {true})", false)]
fn has_an_answer(#[case] expression: &str, #[case] expected: bool) {
    assert_eq!(answer(&document(), expression), expected.to_string());
}

#[rstest]
// The whole, and what logic takes, is true or false; nil is neither.
#[case("spec.text", "`spec.text` cannot be answered: a precondition takes true or false, but this is \"abc\"")]
#[case(
    "spec.missing",
    "`spec.missing` cannot be answered: a precondition takes true or false, but this is nil (spec has no \"missing\"); add `?? false` if that means no"
)]
#[case("spec.one and true", "`spec.one` cannot be answered: `and` takes true or false, but this is 1")]
#[case(
    "true and spec.null",
    "`spec.null` cannot be answered: `and` takes true or false, but this is nil; add `?? false` if that means no"
)]
#[case("false or spec.list", "`spec.list` cannot be answered: `or` takes true or false, but this is [1, \"a\", nil]")]
#[case(
    "not spec.object",
    "`spec.object` cannot be answered: `not` takes true or false, but this is an object with 1 member; `not` binds tighter than comparisons, so these need parentheses"
)]
#[case("spec.one ? true : false", "`spec.one` cannot be answered: `… ? … : …` takes true or false, but this is 1")]
#[case(
    "spec.objects[0].status",
    "`spec.objects[0].status` cannot be answered: a precondition takes true or false, but this is \"True\"; compare it with `== \"True\"`"
)]
// Order takes two of a kind.
#[case(
    "spec.missing < 1",
    "`spec.missing < 1` cannot be answered: `<` takes two numbers or two texts, but left side is nil (spec has no \"missing\"), right side is 1"
)]
#[case(
    "nil >= nil",
    "`nil >= nil` cannot be answered: `>=` takes two numbers or two texts, but left side is nil, right side is nil"
)]
#[case(
    "spec.text > 1",
    "`spec.text > 1` cannot be answered: `>` takes two numbers or two texts, but left side is \"abc\", right side is 1"
)]
#[case(
    "spec.yes <= true",
    "`spec.yes <= true` cannot be answered: `<=` takes two numbers or two texts, but left side is true, right side is true"
)]
// Within, and texts.
#[case(
    "'a' in spec.text",
    "`'a' in spec.text` cannot be answered: `in` takes a list or an object on the right; for a text write `… contains …`"
)]
#[case("1 in spec.one", "`1 in spec.one` cannot be answered: `in` takes a list or an object, but right side is 1")]
#[case(
    "1 in spec.object",
    "`1 in spec.object` cannot be answered: members of an object have names, but left side is 1"
)]
#[case(
    "spec.list contains 1",
    "`spec.list contains 1` cannot be answered: `contains` takes a text on the left; for a list write `… in list`"
)]
#[case(
    "spec.one contains '1'",
    "`spec.one contains '1'` cannot be answered: `contains` takes a text, but left side is 1"
)]
#[case(
    "spec.text startsWith 1",
    "`spec.text startsWith 1` cannot be answered: `startsWith` takes a text, but right side is 1"
)]
#[case(
    "spec.missing matches 1",
    "`spec.missing matches 1` cannot be answered: `matches` takes a text, but right side is 1"
)]
#[case(
    "spec.text matches ('(' ?? '')",
    "`spec.text matches ('(' ?? '')` cannot be answered: right side is not a pattern: unclosed group"
)]
// Members.
#[case("spec.text.length == 3", "`spec.text.length` cannot be answered: spec.text is a text and has no members")]
#[case(
    "spec.list.a == 3",
    "`spec.list.a` cannot be answered: spec.list is a list: use a whole number as the index, or any(…)"
)]
#[case(
    "spec.list[0.5] == 3",
    "`spec.list[0.5]` cannot be answered: spec.list is a list: use a whole number as the index, or any(…)"
)]
#[case(
    "spec.object[0] == 3",
    "`spec.object[0]` cannot be answered: spec.object is an object: its members have names, so the index cannot be a number"
)]
#[case(
    "spec.object[spec.missing] == 3",
    "`spec.object[spec.missing]` cannot be answered: spec.object is an object: its members have names, so the index cannot be nil"
)]
// Functions.
#[case(
    "len(spec.missing) == 0",
    "`len(spec.missing)` cannot be answered: `len` takes a text, a list or an object, but this is nil (spec has no \"missing\")"
)]
#[case(
    "len(spec.one) == 0",
    "`len(spec.one)` cannot be answered: `len` takes a text, a list or an object, but this is 1"
)]
#[case(
    "any(spec.missing, {true})",
    "`any(spec.missing, {true})` cannot be answered: `any` takes a list, but this is nil (spec has no \"missing\"); add `?? []` if that means none"
)]
#[case(
    "all(spec.object, {true})",
    "`all(spec.object, {true})` cannot be answered: `all` takes a list, but this is an object with 1 member"
)]
#[case("any(spec.list, {#})", "`#` cannot be answered: a predicate takes true or false, but this is 1")]
#[case("any(spec.list, {.type == 'a'})", "`.type` cannot be answered: spec.list[] is a number and has no members")]
fn has_none(#[case] expression: &str, #[case] explained: &str) {
    assert_eq!(answer(&document(), expression), explained);
}
