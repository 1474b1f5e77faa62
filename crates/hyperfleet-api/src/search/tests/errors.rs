//! Refused searches and their messages.

use rstest::rstest;

use super::*;

const FIELDS: &str = "is not one of id, kind, name, href, generation, created_time, created_by, updated_time, updated_by, \
     deleted_time, deleted_by, owner_id, owner_href, owner_kind, labels.<key>, spec.<path>, status.conditions.<Type> (also with \
     .reason, .observed_generation, .last_updated_time or .last_transition_time)";

#[rstest]
#[case("x') or (1=1", 2, "the quote ' is never closed: add it at the end")]
#[case("name = 'x') or (1=1", 11, "expected and, or, or the end, not ')'")]
#[case("name = 'x' or (1=1)", 18, "expected a field, not '1'")]
#[case("'x' = 'x'", 7, "expected a field, not ''x''")]
#[case("'x' in name", 5, "expected a comparison such as =, not 'in'")]
#[case("'x'", 4, "expected a comparison such as =, but the search ends here")]
#[case("true", 5, "expected a comparison such as =, but the search ends here")]
#[case("-'x' = name", 2, "expected a value, not ''x''")]
#[case(
    "'abc' = generation",
    1,
    "'generation' is compared with a whole number of at most 32 bits without quotes, not with ''abc''"
)]
#[case("true < spec.a", 6, "true and false have no order: compare them by = or !=")]
#[case("not 'x' = labels.a", 9, "not is not supported on labels: use !=, as with 'labels.a'")]
#[case(
    "'True' < status.conditions.A",
    8,
    "the status of a condition supports only = and is null, as with 'status.conditions.A'"
)]
#[case(
    "'x' = status.conditions.A",
    1,
    "'status.conditions.A' is compared with 'True', 'False' or 'Unknown', not with ''x''"
)]
#[case("labels.a is not null", 10, "not is not supported on labels: use !=, as with 'labels.a'")]
#[case("status.conditions.A is not null", 21, "not is not supported on conditions, as with 'status.conditions.A'")]
#[case(
    "generation = 2147483648",
    14,
    "'generation' is compared with a whole number of at most 32 bits without quotes, not with '2147483648'"
)]
#[case(
    "generation > -2147483649",
    14,
    "'generation' is compared with a whole number of at most 32 bits without quotes, not with '-'"
)]
#[case(
    "generation < 3G",
    14,
    "'generation' is compared with a whole number of at most 32 bits without quotes, not with '3G'"
)]
#[case(
    "status.conditions.A.observed_generation < 3000000000",
    43,
    "'status.conditions.A.observed_gen'… is compared with a whole number of at most 32 bits without quotes, not with '3000000000'"
)]
#[case(
    "status.conditions.A.last_updated_time > '2026-01-01'",
    41,
    "'status.conditions.A.last_updated'… is compared with a time such as '2026-01-31T12:00:00Z', not with ''2026-01-01''"
)]
#[case(
    "2026-01-01 < status.conditions.A.last_transition_time",
    1,
    "'status.conditions.A.last_transit'… is compared with a time such as '2026-01-31T12:00:00Z', not with '2026-01-01'"
)]
#[case("spec.a-b = 'x'", 7, "arithmetic is not supported: compare a field with a value")]
#[case("spec.a/b = 'x'", 7, "arithmetic is not supported: compare a field with a value")]
#[case("name-x = 'x'", 5, "arithmetic is not supported: compare a field with a value")]
#[case("name = 'x'; drop table resources", 11, "';' is unexpected: put text in quotes")]
#[case("name", 5, "expected a comparison such as =, but the search ends here")]
#[case("name =", 7, "expected a value, but the search ends here")]
#[case("name = workers", 8, "expected a value (put text in quotes), not 'workers'")]
#[case("name = 'x' 'y'", 12, "expected and, or, or the end, not ''y''")]
#[case("name = 'ä\u{1}' ü", 13, "'ü' is unexpected: put text in quotes")]
#[case("(name = 'x'", 12, "expected and, or, or ')', but the search ends here")]
#[case("name is 'x'", 9, "expected null or not null, not ''x''")]
#[case("name not = 'x'", 10, "expected in, between, like or ilike, not '='")]
#[case(
    "generation = 'x'",
    14,
    "'generation' is compared with a whole number of at most 32 bits without quotes, not with ''x''"
)]
#[case(
    "generation = 1.5",
    14,
    "'generation' is compared with a whole number of at most 32 bits without quotes, not with '1.5'"
)]
#[case(
    "generation = true",
    14,
    "'generation' is compared with a whole number of at most 32 bits without quotes, not with 'true'"
)]
#[case("generation = 9223372036854775808", 14, "'9223372036854775808' is not a number of 64 bits: put text in quotes")]
#[case("generation = 8Ei", 14, "'8Ei' is not a number of 64 bits: put text in quotes")]
#[case("spec.a = 1e999", 10, "'1e999' is not a number of 64 bits: put text in quotes")]
#[case("spec.a = 3apples", 10, "'3apples' is not a number of 64 bits: put text in quotes")]
#[case("name = 5", 8, "'name' is compared with a text in quotes, not with '5'")]
#[case("labels.a = 5", 12, "'labels.a' is compared with a text in quotes, not with '5'")]
#[case("created_time > 2026-02-30", 16, "'2026-02-30' is not a time: put text in quotes")]
#[case(
    "created_time > 'soon'",
    16,
    "'created_time' is compared with a time such as '2026-01-31T12:00:00Z' or \
     '2026-01-31', not with ''soon''"
)]
#[case(
    "created_time > 5",
    16,
    "'created_time' is compared with a time such as '2026-01-31T12:00:00Z' or \
     '2026-01-31', not with '5'"
)]
#[case("name = 'a\0'", 10, "a search has no NUL character: remove it")]
#[case("name like 'a\\\\'", 11, "the pattern ends in a single backslash: double it or remove it")]
#[case("name like 5", 11, "a pattern is a text in quotes, such as 'prod-%'")]
#[case("generation like '1%'", 12, "like and ilike are supported on texts only, as with 'generation'")]
#[case("name in 'a'", 9, "expected a list such as ['a', 'b'], not ''a''")]
#[case("name in []", 10, "expected a value, not ']'")]
#[case("name in ['a')", 13, "expected ',' or ']', not ')'")]
#[case("spec.a in ['a', 1]", 17, "a list has values of one type: combine two lists by or")]
#[case("spec.a between 'a' and 1", 16, "between needs two texts, two numbers or two times")]
#[case("generation between 1 or 2", 22, "expected and with the upper end of between, not 'or'")]
#[case("spec.a < true", 8, "true and false have no order: compare them by = or !=")]
#[case("generation + 1 = 2", 12, "arithmetic is not supported: compare a field with a value")]
#[case("generation = 2 * 3", 16, "arithmetic is not supported: compare a field with a value")]
#[case("generation/2 = 1", 11, "arithmetic is not supported: compare a field with a value")]
#[case("name ~= 'a'", 6, "regular expressions are not supported: use like or ilike")]
#[case("len labels.a > 1", 1, "len, any, all and sum are not supported: compare a field with a value")]
#[case("not labels.a = 'x'", 14, "not is not supported on labels: use !=, as with 'labels.a'")]
#[case("labels.a not in ['x']", 10, "not is not supported on labels: use !=, as with 'labels.a'")]
#[case("not (labels.a='x' or name='y')", 14, "not is not supported on labels: use !=, as with 'labels.a'")]
#[case("not not labels.a = 'x'", 18, "not is not supported on labels: use !=, as with 'labels.a'")]
#[case("not status.conditions.A = 'True'", 25, "not is not supported on conditions, as with 'status.conditions.A'")]
#[case(
    "status.conditions.A != 'True'",
    21,
    "the status of a condition supports only = and is null, as with 'status.conditions.A'"
)]
#[case(
    "status.conditions.A in ['True']",
    21,
    "the status of a condition supports only = and is null, as with 'status.conditions.A'"
)]
#[case(
    "status.conditions.A = 'true'",
    23,
    "'status.conditions.A' is compared with 'True', 'False' or 'Unknown', \
     not with ''true''"
)]
#[case(
    "status.conditions.A.observed_generation in [1]",
    41,
    "this part of a condition supports only =, !=, <, <=, >, >= and is null, as with 'status.conditions.A.observed_gen'…"
)]
fn a_search_is_refused(#[case] search: &str, #[case] column: usize, #[case] message: &str) {
    let error = Search::parse(search).unwrap_err();
    assert_eq!(error.to_string(), format!("search, column {column}: {message}"));
    assert_eq!((error.code(), error.column()), ("VAL-005", Some(column)));
}

#[rstest]
#[case("nom = 'x'", "nom")]
#[case("is_deleted = true", "is_deleted")]
#[case("Name = 'x'", "Name")]
#[case("state = 'x'", "state")]
#[case("spec = 'x'", "spec")]
#[case("labels. = 'x'", "labels.")]
#[case("spec.a..b = 'x'", "spec.a..b")]
#[case("spec.A = 'x'", "spec.A")]
#[case("spec.platform.gcp.projectID = 'x'", "spec.platform.gcp.projectID")]
#[case("spec.pullSecret.data.digest like 'hmac%'", "spec.pullSecret.data.digest")]
#[case("status.conditions.ready = 'True'", "status.conditions.ready")]
#[case("status.conditions.Re_ady = 'True'", "status.conditions.Re_ady")]
#[case("status.conditions.A.message = 'x'", "status.conditions.A.message")]
fn a_name_is_unknown(#[case] search: &str, #[case] name: &str) {
    let expected = format!("search, column 1: invalid field in search or order query: '{name}' {FIELDS}");
    assert_eq!(Search::parse(search).unwrap_err().to_string(), expected);
}

#[rstest]
#[case::parentheses("(", 65)]
#[case::negations("not ", 257)]
fn nesting_is_limited(#[case] opening: &str, #[case] column: usize) {
    let search = opening.repeat(MAX_LENGTH / opening.len());
    let expected = format!("search, column {column}: parentheses and not nest at most 64 deep: remove some of them");
    assert_eq!(Search::parse(&search).unwrap_err().to_string(), expected);
}

#[test]
fn characters_are_counted_and_not_bytes() {
    let search = |letters: usize| format!("name = '{}'", "ä".repeat(letters));
    assert!(Search::parse(&search(MAX_LENGTH - 9)).is_ok());
    let error = Search::parse(&search(MAX_LENGTH - 8)).unwrap_err().to_string();
    assert_eq!(error, "search, column 4097: a search has at most 4096 characters: split it into several searches");
}

#[test]
fn a_quote_is_short_and_harmless() {
    let error = Search::parse(&format!("created_time = '\u{1b}[31m\u{202e}{}'", "x".repeat(999))).unwrap_err();
    let message = error.to_string();
    assert!(message.ends_with("not with ''\\u{1b}[31m\\u{202e}xxxxxxxxxxxxx'…"), "{message}");
}
