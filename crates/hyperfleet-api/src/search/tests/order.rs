//! Orders: their SQL, refusals and results.

use std::cmp::Ordering;

use rstest::rstest;

use super::*;

#[rstest]
#[case(&[], "r.created_time DESC, r.id DESC")]
#[case(&["", " "], "r.created_time DESC, r.id DESC")]
#[case(&["name"], "r.name, r.id")]
#[case(&["name desc, generation asc", " kind\tdesc "], "r.name DESC, r.generation, r.kind DESC, r.id DESC")]
#[case(&["id desc, name"], "r.id DESC")]
#[case(&[",name,,", ","], "r.name, r.id")]
#[case(&["name, name desc"], "r.name, r.id")]
#[case(&["deleted_time desc, owner_id"], "r.deleted_time DESC NULLS LAST, r.owner_id NULLS FIRST, r.id")]
fn an_order_becomes_sql(#[case] items: &[&str], #[case] sql: &str) {
    assert_eq!(Order::parse(&texts(items)).unwrap().sql(), sql);
}

#[rstest]
#[case("name DESC", "'name DESC' is not a column with asc or desc: write for example 'created_time desc'")]
#[case("name; drop", "'name; drop' is not a column with asc or desc: write for example 'created_time desc'")]
#[case("name desc desc", "'name desc desc' is not a column with asc or desc: write for example 'created_time desc'")]
#[case("labels.a", "'labels.a' is not a column with asc or desc: write for example 'created_time desc'")]
#[case(
    "tenancy",
    "invalid field in search or order query: 'tenancy' is not one of id, kind, name, href, \
     generation, created_time, created_by, updated_time, updated_by, deleted_time, deleted_by, owner_id, owner_href, \
     owner_kind"
)]
fn an_order_is_refused(#[case] item: &str, #[case] message: &str) {
    let error = Order::parse(&texts(&[item])).unwrap_err();
    assert_eq!(error.to_string(), format!("order: {message}"));
    assert_eq!((error.code(), error.column()), ("VAL-005", None));
}

#[rstest]
#[case("name", Ordering::Less)]
#[case("name desc", Ordering::Greater)]
#[case("deleted_by", Ordering::Less)]
#[case("deleted_by desc", Ordering::Greater)]
#[case("kind", Ordering::Greater)]
#[case("kind desc", Ordering::Less)]
fn an_order_is_applied(#[case] item: &str, #[case] expected: Ordering) {
    let one = Resource { name: "a".to_owned(), id: "2".to_owned(), deleted_by: None, ..example() };
    let other = Resource { name: "b".to_owned(), id: "1".to_owned(), deleted_by: Some("x".to_owned()), ..example() };
    assert_eq!(Order::parse(&texts(&[item])).unwrap().compare(&one, &other), expected);
}
