//! The errors of expressions that cannot be parsed: position, expected text and hint.

use precondition::Precondition;
use rstest::rstest;

#[rstest]
#[case("spec.provider = 'gcp'", 15, "expected an operator or the end, found `=`", "`==` compares")]
#[case("spec.a == 1 & spec.b == 2", 13, "expected an operator or the end, found `&`", "write `&&` or `and`")]
#[case("spec.a | spec.b", 8, "expected an operator or the end, found `|`", "write `||` or `or`")]
#[case("spec.a === 1", 8, "expected an operator or the end, found `===`", "write `==`")]
#[case("spec.a <> 1", 8, "expected an operator or the end, found `<>`", "write `!=`")]
#[case("spec.a =~ 'x'", 8, "expected an operator or the end, found `=~`", "write `… matches \"pattern\"`")]
#[case("spec.a AND spec.b", 8, "expected an operator or the end, found `AND`", "write `and`")]
#[case("spec.a startswith 'x'", 8, "expected an operator or the end, found `startswith`", "write `startsWith`")]
#[case("spec.a + 1 == 2", 8, "expected an operator or the end, found `+`", "there is no arithmetic in this language")]
#[case("-spec.a == 2", 1, "expected a value, found `-`", "there is no arithmetic in this language")]
#[case(
    "spec.a in 1..3",
    12,
    "expected an operator or the end, found `..`",
    "there are no ranges in this language; compare with `<` and `>=`"
)]
#[case(
    "spec.list[1:2] == []",
    12,
    "expected `]` to close the index, found `:`",
    "there are no slices in this language, and `:` needs a `?` before it"
)]
#[case(
    "spec == {}",
    9,
    "expected a value, found `{`",
    "there are no objects in this language; predicates stand in any(list, {…}) and its kin"
)]
#[case(
    "status.adapters.landing-zone.available",
    24,
    "expected an operator or the end, found `-`",
    "a name with a dash goes into brackets: status.adapters[landing-zone]"
)]
#[case(
    "has(spec.gcp)",
    1,
    "there is no function `has`; there are len, any, all, none, filter or count",
    "`has(…)` is CEL; an absent member is `nil` here: write `… != nil`"
)]
#[case(
    "size(spec.a) == 1",
    1,
    "there is no function `size`; there are len, any, all, none, filter or count",
    "`size(…)` is CEL; write `len(…)`"
)]
#[case(
    "lenn(spec.a) == 1",
    1,
    "there is no function `lenn`; there are len, any, all, none, filter or count",
    "did you mean `len`?"
)]
#[case(
    "status.list.exists(x, x == 1)",
    13,
    "values have no methods, so there is no `.exists(…)`",
    "`.exists(x, …)` is CEL; write any(list, {…})"
)]
#[case(
    "spec.a.startsWith('x')",
    8,
    "values have no methods, so there is no `.startsWith(…)`",
    "write `… startsWith \"text\"`"
)]
#[case(
    "stauts.phase == 'x'",
    1,
    "`stauts` is not known; a path begins with spec, status, metadata, event or cluster",
    "did you mean `status`?"
)]
#[case(
    "spec.provider == gcp",
    18,
    "`gcp` is not known; a path begins with spec, status, metadata, event or cluster",
    "a text stands in quotes: \"gcp\""
)]
#[case(
    "spec.a == null",
    11,
    "`null` is not known; a path begins with spec, status, metadata, event or cluster",
    "write `nil`"
)]
#[case(
    "status.x == True",
    13,
    "`True` is not known; a path begins with spec, status, metadata, event or cluster",
    "write `true`, or \"True\" for a condition's status"
)]
#[case(
    "adapters.x == 1",
    1,
    "`adapters` is not known; a path begins with spec, status, metadata, event or cluster",
    "write `status.adapters`"
)]
#[case(
    "cluster != nil",
    1,
    "`cluster` is the whole document",
    "name one of its members: cluster.spec, cluster.status, cluster.name"
)]
#[case("1 < spec.a < 3", 12, "comparisons do not chain", "join two with `and`, or put one in parentheses")]
#[case("spec.a ?? 1 == 2", 13, "`??` is followed by another operator", "put `… ?? …` in parentheses")]
#[case("spec.a ?? true and true", 16, "`??` is followed by another operator", "put `… ?? …` in parentheses")]
#[case("any(spec.list)", 14, "`any` has no predicate", "write any(list, {.member == \"value\"})")]
#[case(
    "# == 1",
    1,
    "there is no element outside of a predicate",
    "`#` and `.member` belong into any(list, {…}) and its kin; elsewhere name a root"
)]
#[case("any(spec.l, {#index == 1})", 15, "`#index` is not part of this language", "`#` is the element")]
#[case("spec.a == “x”", 11, "unexpected character '“'", "write texts in plain quotes: \"…\" or '…'")]
#[case("spec.a == 'x", 11, "this text does not end", "a text ends with the quote it begins with, on the same line")]
#[case(
    r"spec.a == '\d'",
    12,
    "this escape is unknown",
    r#"known are \\ \" \' \/ \n \r \t \b \f \xHH \uHHHH; `…` takes everything as it is"#
)]
fn is_refused(#[case] expression: &str, #[case] column: usize, #[case] message: &str, #[case] hint: &str) {
    let error = Precondition::parse(expression).unwrap_err();
    assert_eq!((error.line(), error.column(), error.message(), error.hint()), (1, column, message, Some(hint)));
}

#[rstest]
#[case("", "the expression is empty")]
#[case("  \n ", "the expression is empty")]
#[case("spec.", "expected a member's name, found the end")]
#[case("spec.a ==", "expected a value, found the end")]
#[case("(spec.a", "expected `)` to close the parenthesis, found the end")]
#[case("spec.a == 1 ? true", "expected `:` between the two answers of `… ? … : …`, found the end")]
#[case(
    "spec.a not 1",
    "expected `not in`, `not matches`, `not contains`, `not startsWith` or `not endsWith`, found `not`"
)]
#[case("spec.a == 12a", "`12a` is not a number")]
#[case("spec.a == 0xZZ", "`0xZZ` is not a number")]
#[case("spec.a == 18446744073709551616", "`18446744073709551616` is too large")]
#[case("spec.a == 1e999", "`1e999` is too large")]
#[case("spec.a matches '('", "this pattern is not one: unclosed group")]
#[case("spec.a matches '(a{1000}){1000}'", "this pattern is not one: it is too large once compiled")]
#[case("spec.a ^ 2", "expected an operator or the end, found `^`")]
fn is_refused_with(#[case] expression: &str, #[case] message: &str) {
    assert_eq!(Precondition::parse(expression).unwrap_err().message(), message);
}

#[test]
fn an_error_shows_its_place() {
    let message = |expression| Precondition::parse(expression).unwrap_err().to_string();
    assert_eq!(
        message("spec.a == 'ä' and\n  status.phase = 'Ready'\n"),
        "line 2, column 16: expected an operator or the end, found `=`\n    status.phase = 'Ready'\n                 ^\nhint: `==` compares"
    );
    assert_eq!(
        message("spec.a == 'ä' and stauts.b"),
        "line 1, column 19: `stauts` is not known; a path begins with spec, status, metadata, event or cluster\n  spec.a == 'ä' and stauts.b\n                    ^^^^^^\nhint: did you mean `status`?"
    );
    let long = format!("{} = 1", ["spec.a"; 100].join(" and "));
    let error = Precondition::parse(&long).unwrap_err();
    assert!(error.to_string().lines().all(|line| line.chars().count() <= 110), "{error}");
}
