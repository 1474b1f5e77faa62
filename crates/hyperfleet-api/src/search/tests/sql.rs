//! The SQL for both databases, and its parameters.

use rstest::rstest;

use super::*;
use crate::tenancy::Reach;

fn sql(search: &str, dialect: Dialect) -> String {
    let mut parameters = Parameters::default();
    let sql = Search::parse(search).unwrap().sql(dialect, &mut parameters);
    format!("{sql} {:?}", parameters.0)
}

#[rstest]
#[case("", "TRUE []")]
#[case("name = 'x'", r#"r.name = $1 [Text("x")]"#)]
#[case("not (name = 'x' or generation < 2)", r#"(r.name <> $1 AND r.generation >= $2) [Text("x"), Number(2)]"#)]
#[case(
    "name='a' or name='b' and name='c'",
    r#"(r.name = $1 OR (r.name = $2 AND r.name = $3)) [Text("a"), Text("b"), Text("c")]"#
)]
#[case("created_time < 1970-01-02", "r.created_time < $1 [Number(86400000000)]")]
#[case("deleted_time is not null", "r.deleted_time IS NOT NULL []")]
#[case("generation not in [1, 2k]", "r.generation NOT IN ($1, $2) [Number(1), Number(2000)]")]
#[case("generation between 1 and 2", "(r.generation >= $1 AND r.generation <= $2) [Number(1), Number(2)]")]
#[case("name not like 'a\\%'", r#"r.name NOT LIKE $1 ESCAPE '\' [Text("a\\%")]"#)]
#[case(
    "labels.cost-center != 'x'",
    r#"r.id IN (SELECT m.resource_id FROM resource_labels m WHERE m.key = $1 AND m.value <> $2) [Text("cost-center"), Text("x")]"#
)]
#[case("labels.a is null", r#"r.id NOT IN (SELECT m.resource_id FROM resource_labels m WHERE m.key = $1) [Text("a")]"#)]
#[case(
    "status.conditions.Reconciled = 'False'",
    r#"r.id IN (SELECT m.resource_id FROM resource_conditions m WHERE m.type = $1 AND m.status = $2) [Text("Reconciled"), Text("False")]"#
)]
#[case(
    "status.conditions.A.observed_generation > 2",
    r#"r.id IN (SELECT m.resource_id FROM resource_conditions m WHERE m.type = $1 AND m.observed_generation > $2) [Text("A"), Number(2)]"#
)]
#[case(
    "status.conditions.A.reason = 'B'",
    r#"r.id IN (SELECT m.resource_id FROM resource_conditions m WHERE m.type = $1 AND m.reason = $2) [Text("A"), Text("B")]"#
)]
#[case(
    "status.conditions.A.reason is null",
    r#"r.id NOT IN (SELECT m.resource_id FROM resource_conditions m WHERE m.type = $1 AND m.reason IS NOT NULL) [Text("A")]"#
)]
fn both_databases_get_the_same_sql(#[case] search: &str, #[case] expected: &str) {
    assert_eq!(sql(search, Dialect::Sqlite), expected);
    assert_eq!(sql(search, Dialect::Postgres), expected);
}

#[rstest]
#[case(
    "spec.a.0 = 'x'",
    r#"(CASE WHEN json_type(r.spec, $1) IN ('text') THEN json_extract(r.spec, $1) WHEN json_type(r.spec, $1) IN ('true', 'false') THEN json_type(r.spec, $1) WHEN json_type(r.spec, $1) IN ('integer', 'real') AND (CAST(json_extract(r.spec, $1) AS REAL) = 0 OR (abs(CAST(json_extract(r.spec, $1) AS REAL)) >= 1e-5 AND abs(CAST(json_extract(r.spec, $1) AS REAL)) < 1e16)) THEN r.spec -> $1 END) = $2 [Text("$.\"a\".\"0\""), Text("x")]"#,
    r#"r.spec @> $1::jsonb [Text("{\"a\":{\"0\":\"x\"}}")]"#
)]
#[case(
    "spec.a in ['true']",
    r#"(CASE WHEN json_type(r.spec, $1) IN ('text') THEN json_extract(r.spec, $1) WHEN json_type(r.spec, $1) IN ('true', 'false') THEN json_type(r.spec, $1) WHEN json_type(r.spec, $1) IN ('integer', 'real') AND (CAST(json_extract(r.spec, $1) AS REAL) = 0 OR (abs(CAST(json_extract(r.spec, $1) AS REAL)) >= 1e-5 AND abs(CAST(json_extract(r.spec, $1) AS REAL)) < 1e16)) THEN r.spec -> $1 END) IN ($2) [Text("$.\"a\""), Text("true")]"#,
    r#"(CASE WHEN jsonb_typeof(r.spec -> $1::text) IN ('string', 'boolean') THEN ((r.spec -> $1::text) #>> '{}') COLLATE "C" WHEN jsonb_typeof(r.spec -> $1::text) = 'number' THEN CASE WHEN ((r.spec -> $1::text)::double precision = 0 OR (abs((r.spec -> $1::text)::double precision) >= 1e-5 AND abs((r.spec -> $1::text)::double precision) < 1e16)) THEN ((r.spec -> $1::text) #>> '{}') COLLATE "C" END END) IN ($2) [Text("a"), Text("true")]"#
)]
#[case(
    "spec.a = 2",
    r#"(CASE WHEN json_type(r.spec, $1) IN ('integer', 'real') THEN CAST(json_extract(r.spec, $1) AS REAL) END) = $2 [Text("$.\"a\""), Real(2.0)]"#,
    r#"(CASE WHEN jsonb_typeof(r.spec -> $1::text) IN ('number') THEN (r.spec -> $1::text)::double precision END) = $2 [Text("a"), Real(2.0)]"#
)]
#[case(
    "spec.a != true",
    r#"(CASE WHEN json_type(r.spec, $1) IN ('true', 'false') THEN json_type(r.spec, $1) END) <> $2 [Text("$.\"a\""), Text("true")]"#,
    r#"(CASE WHEN jsonb_typeof(r.spec -> $1::text) IN ('boolean') THEN (r.spec -> $1::text)::text END) <> $2 [Text("a"), Text("true")]"#
)]
#[case(
    "spec.a is not null",
    r#"COALESCE(json_type(r.spec, $1), 'null') <> 'null' [Text("$.\"a\"")]"#,
    r#"COALESCE(jsonb_typeof(r.spec -> $1::text), 'null') <> 'null' [Text("a")]"#
)]
#[case(
    "name ilike 'Ab'",
    r#"lower(r.name) LIKE $1 ESCAPE '\' [Text("ab")]"#,
    r#"lower(r.name COLLATE "C") LIKE $1 ESCAPE '\' [Text("ab")]"#
)]
fn each_database_gets_its_own_sql(#[case] search: &str, #[case] sqlite: &str, #[case] postgres: &str) {
    assert_eq!(sql(search, Dialect::Sqlite), sqlite);
    assert_eq!(sql(search, Dialect::Postgres), postgres);
}

/// Equality with a text of a spec uses the index over all paths, whatever type the text may be of.
#[rstest]
#[case(
    "spec.a = 'true'",
    r#"(r.spec @> $1::jsonb OR r.spec @> $2::jsonb) [Text("{\"a\":\"true\"}"), Text("{\"a\":true}")]"#
)]
#[case("'x' = spec.a", r#"r.spec @> $1::jsonb [Text("{\"a\":\"x\"}")]"#)]
fn equality_uses_the_index_of_postgresql(#[case] search: &str, #[case] expected: &str) {
    assert_eq!(sql(search, Dialect::Postgres), expected);
}

/// A search of labels and conditions reads a range of an index; tenants have one of labels only, and only for equality, and
/// resources without an owner have none.
#[rstest]
#[case(
    "labels.a = 'x'",
    r#"resource_labels f WHERE f.key = $1 AND f.value = $2 AND f.kind = $3 AND 1 = 1 [Text("a"), Text("x"), Text("Cluster")]"#,
    r#"resource_labels f WHERE f.key = $1 AND f.value = $2 AND f.kind = $3 AND f.tenancy = $4 AND f.tenancy <> '{}' [Text("a"), Text("x"), Text("Cluster"), Text("{\"org\":\"one\"}")]"#
)]
#[case(
    "labels.a != 'x'",
    r#"resource_labels f WHERE f.key = $1 AND f.value <> $2 AND f.kind = $3 AND 1 = 1 [Text("a"), Text("x"), Text("Cluster")]"#,
    "none"
)]
#[case(
    "status.conditions.A.reason = 'x' and labels.b is null",
    r#"resource_conditions f WHERE f.type = $1 AND f.reason = $2 AND f.kind = $3 AND NOT EXISTS (SELECT m.resource_id FROM resource_labels m WHERE m.key = $4 AND m.resource_id = f.resource_id) [Text("A"), Text("x"), Text("Cluster"), Text("b")]"#,
    "none"
)]
#[case("labels.a is null", "none", "none")]
#[case("labels.a = 'x' or labels.a = 'y'", "none", "none")]
#[case("labels.a = 'x' and name = 'y'", "none", "none")]
#[case("status.conditions.A.observed_generation = 2", "none", "none")]
fn labels_and_conditions_are_ranges(#[case] search: &str, #[case] everything: &str, #[case] tenant: &str) {
    let one = Reach::Tenant([("org".to_owned(), "one".to_owned())].into());
    for (reach, expected) in [(Reach::Unlimited, everything), (one, tenant), (Reach::default(), "none")] {
        for dialect in [Dialect::Sqlite, Dialect::Postgres] {
            let mut parameters = Parameters::default();
            let range = Search::parse(search).unwrap().range(
                0,
                Scope { kind: "Cluster", reach: &reach },
                dialect,
                &mut parameters,
            );
            assert_eq!(range.map_or("none".to_owned(), |sql| format!("{sql} {:?}", parameters.0)), expected);
        }
    }
}

#[test]
fn a_text_of_digits_is_searched_as_a_number_too() {
    let sql = sql("spec.a = '10'", Dialect::Postgres);
    assert!(sql.starts_with("(r.spec @> $1::jsonb OR (r.spec @> $2::jsonb AND (CASE WHEN jsonb_typeof"), "{sql}");
    let parameters = r#" END) = $4)) [Text("{\"a\":\"10\"}"), Text("{\"a\":10}"), Text("a"), Text("10")]"#;
    assert!(sql.ends_with(parameters), "{sql}");
}
