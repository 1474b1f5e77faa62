//! The search as an SQL condition.

use std::ops::Range;

use database::{Dialect, Parameters, Value};
use serde_json::{Value as Json, json};

use super::expression::{Expression, Test};
use super::field::Field;
use super::scalar::{self, Comparison, Scalar};
use crate::tenancy::Reach;

/// The resources that a range is restricted to.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// Only this kind.
    pub kind: &'a str,
    /// Only resources within reach.
    pub reach: &'a Reach,
}

/// Writes conditions over the table alias `r` and adds their parameters in the order of their occurrence.
pub(super) struct Writer<'a> {
    pub(super) dialect: Dialect,
    pub(super) parameters: &'a mut Parameters,
    pub(super) ids: Ids,
}

/// The way in which labels and conditions are tested.
#[derive(Clone, Copy)]
pub(super) enum Ids {
    /// The ids of all that pass are looked up by the table's index on the value, once for the statement.
    Found,
    /// The row of each resource with this id is looked up: few resources are left.
    Of(&'static str),
}

/// A column of a table with many rows per resource, each with a key.
struct KeyedColumn {
    table: &'static str,
    key: &'static str,
    name: &'static str,
    nullable: bool,
}

/// A test of a label or a condition that everything that is searched for passes.
struct Required<'a> {
    /// Its place among the parts of the search.
    place: usize,
    column: KeyedColumn,
    key: &'a str,
    test: &'a Test,
}

const LABELS: KeyedColumn = KeyedColumn { table: "resource_labels", key: "key", name: "value", nullable: false };

const fn conditions(name: &'static str, nullable: bool) -> KeyedColumn {
    KeyedColumn { table: "resource_conditions", key: "type", name, nullable }
}

/// The SQL of a value in the spec, of its JSON type, and of the JSON itself.
struct SpecValue {
    value: String,
    kind: String,
    json: String,
}

// === impl Writer ===

impl Writer<'_> {
    pub(super) fn expression(&mut self, expression: &Expression) -> String {
        match expression {
            Expression::All(parts) => self.joined(parts, " AND "),
            Expression::Any(parts) => self.joined(parts, " OR "),
            Expression::Test(field, test) => self.field(field, test),
        }
    }

    fn joined(&mut self, parts: &[Expression], word: &str) -> String {
        let parts: Vec<_> = parts.iter().map(|part| self.expression(part)).collect();
        format!("({})", parts.join(word))
    }

    fn field(&mut self, field: &Field, test: &Test) -> String {
        match field {
            Field::Column(column) => self.test(&format!("r.{}", column.name), test),
            Field::Label(key) => self.keyed(&LABELS, key, test),
            Field::Status(kind) => self.keyed(&conditions("status", false), kind, test),
            Field::Part(kind, part) => self.keyed(&conditions(part.name, part.nullable), kind, test),
            Field::Spec(path) => self.spec(path, test),
        }
    }

    fn keyed(&mut self, column: &KeyedColumn, key: &str, test: &Test) -> String {
        let not = not(matches!(test, Test::Null { negated: false }));
        match self.ids {
            Ids::Found => format!("r.id {not}IN ({})", self.ids(column, key, test)),
            Ids::Of(id) => format!("{not}EXISTS ({} AND m.resource_id = {id})", self.ids(column, key, test)),
        }
    }

    /// The ids of resources with a row of that key that passes the test, or with any value if the test is for absence.
    fn ids(&mut self, column: &KeyedColumn, key: &str, test: &Test) -> String {
        let key_parameter = self.text(key);
        let KeyedColumn { table, key, name, nullable } = column;
        let ids = format!("SELECT m.resource_id FROM {table} m WHERE m.{key} = {key_parameter}");
        match test {
            Test::Null { negated: false } if *nullable => format!("{ids} AND m.{name} IS NOT NULL"),
            Test::Null { .. } => ids,
            _ => format!("{ids} AND {}", self.test(&format!("m.{name}"), test)),
        }
    }

    /// The ids that pass one of the tests that an index finds and that everything that is searched for passes: the one with
    /// that number among them.
    pub(super) fn found_by_index(&mut self, expression: &Expression, number: usize) -> Option<String> {
        let Required { column, key, test, .. } = required(parts(expression)).nth(number)?;
        Some(self.ids(&column, key, test))
    }

    /// The range of an index that has the rows of the test with that number, and the tests of the other parts. Only the rows
    /// of an equality are in the order of creation, but all that is counted and sorted is in the index.
    pub(super) fn range(
        &mut self,
        expression: &Expression,
        number: usize,
        Scope { kind, reach }: Scope<'_>,
    ) -> Option<String> {
        let parts = parts(expression);
        let Required { place, column, key, test } = required(parts).nth(number)?;
        let is_label = column.table == LABELS.table;
        let is_equality = matches!(test, Test::Compare(Comparison::Equal, _));
        // Conditions change often, so they have no index by tenancy.
        let has_index = if reach.is_limited() {
            is_label && is_equality && reach.is_indexed()
        } else {
            ["value", "status", "reason"].contains(&column.name)
        };
        if !has_index || !parts.iter().all(is_keyed) {
            return None;
        }
        let mut conditions = vec![
            format!("f.{} = {}", column.key, self.text(key)),
            self.test(&format!("f.{}", column.name), test),
            format!("f.kind = {}", self.text(kind)),
        ];
        if is_label {
            conditions.push(reach.sql("f.tenancy", self.parameters));
        }
        let others = parts.iter().enumerate().filter(|(other, _)| *other != place);
        conditions.extend(others.map(|(_, part)| self.expression(part)));
        Some(format!("{} f WHERE {}", column.table, conditions.join(" AND ")))
    }

    fn spec(&mut self, path: &[String], test: &Test) -> String {
        match (test, self.dialect) {
            (Test::Null { negated }, _) => {
                let kind = self.spec_value(path).kind;
                let comparison = Comparison::Equal.negated_if(*negated).sql();
                format!("COALESCE({kind}, 'null') {comparison} 'null'")
            }
            (Test::Compare(Comparison::Equal, Scalar::Text(text)), Dialect::Postgres) => {
                self.contained(path, text, test)
            }
            _ => {
                let operand = self.guarded(path, test);
                self.test(&operand, test)
            }
        }
    }

    /// Equality with a text in PostgreSQL. Only containment uses the index over all paths (GIN); a text that
    /// may also be that of a number or a boolean is searched as each of them.
    fn contained(&mut self, path: &[String], text: &str, test: &Test) -> String {
        let mut alternatives = vec![self.contains(path, json!(text))];
        match serde_json::from_str(text) {
            Ok(Json::Bool(value)) => alternatives.push(self.contains(path, json!(value))),
            Ok(Json::Number(number)) => {
                // Containment finds equal numbers of another text as well, such as 10.0 for 10.
                let (contains, operand) = (self.contains(path, json!(number)), self.guarded(path, test));
                alternatives.push(format!("({contains} AND {})", self.test(&operand, test)));
            }
            _ => {}
        }
        match &alternatives[..] {
            [only] => only.clone(),
            _ => format!("({})", alternatives.join(" OR ")),
        }
    }

    fn contains(&mut self, path: &[String], value: Json) -> String {
        let document = path.iter().rfold(value, |inner, segment| json!({ segment: inner }));
        format!("r.spec @> {}::jsonb", self.text(&document.to_string()))
    }

    /// The value at the path if it has the type of the test, else null, so that no stored value makes a cast fail.
    fn guarded(&mut self, path: &[String], test: &Test) -> String {
        let SpecValue { value, kind, json } = self.spec_value(path);
        let (kinds, value) = match (test.sample(), self.dialect) {
            (Some(Scalar::Number(_) | Scalar::Real(_)), Dialect::Sqlite) => {
                ("'integer', 'real'", format!("CAST({value} AS REAL)"))
            }
            (Some(Scalar::Number(_) | Scalar::Real(_)), Dialect::Postgres) => {
                ("'number'", format!("({value})::double precision"))
            }
            (Some(Scalar::Bool(_)), Dialect::Sqlite) => ("'true', 'false'", kind.clone()),
            (Some(Scalar::Bool(_)), Dialect::Postgres) => ("'boolean'", format!("({value})::text")),
            (Some(Scalar::Text(_)) | None, Dialect::Sqlite) => {
                let plain = is_plain(&format!("CAST({value} AS REAL)"));
                return format!(
                    "(CASE WHEN {kind} IN ('text') THEN {value} WHEN {kind} IN ('true', 'false') THEN {kind} \
                     WHEN {kind} IN ('integer', 'real') AND {plain} THEN {json} END)"
                );
            }
            (Some(Scalar::Text(_)) | None, Dialect::Postgres) => {
                // `#>>` is the only way to a JSON string's text; an empty path is the value itself.
                let text = format!("(({value}) #>> '{{}}') COLLATE \"C\"");
                let plain = is_plain(&format!("({value})::double precision"));
                return format!(
                    "(CASE WHEN {kind} IN ('string', 'boolean') THEN {text} \
                     WHEN {kind} = 'number' THEN CASE WHEN {plain} THEN {text} END END)"
                );
            }
        };
        format!("(CASE WHEN {kind} IN ({kinds}) THEN {value} END)")
    }

    /// The value at the path. A segment is always the name of a member, never the index of an array.
    fn spec_value(&mut self, path: &[String]) -> SpecValue {
        match self.dialect {
            Dialect::Sqlite => {
                let path = self.text(&format!("$.\"{}\"", path.join("\".\"")));
                SpecValue {
                    value: format!("json_extract(r.spec, {path})"),
                    kind: format!("json_type(r.spec, {path})"),
                    json: format!("r.spec -> {path}"),
                }
            }
            Dialect::Postgres => {
                let steps: Vec<_> = path.iter().map(|segment| format!("{}::text", self.text(segment))).collect();
                let value = format!("r.spec -> {}", steps.join(" -> "));
                SpecValue { kind: format!("jsonb_typeof({value})"), json: value.clone(), value }
            }
        }
    }

    fn test(&mut self, operand: &str, test: &Test) -> String {
        match test {
            Test::Null { negated } => format!("{operand} IS {}NULL", not(*negated)),
            Test::Compare(comparison, value) => {
                format!("{operand} {} {}", comparison.sql(), self.parameters.add(value.parameter()))
            }
            Test::In { negated, values } => {
                let values: Vec<_> = values.iter().map(|value| self.parameters.add(value.parameter())).collect();
                format!("{operand} {}IN ({})", not(*negated), values.join(", "))
            }
            Test::Like { negated, pattern } => {
                let operand = match (pattern.ignores_case, self.dialect) {
                    (false, _) => operand.to_owned(),
                    (true, Dialect::Sqlite) => format!("lower({operand})"),
                    // In this collation only ASCII letters have cases, as in SQLite.
                    (true, Dialect::Postgres) => format!("lower({operand} COLLATE \"C\")"),
                };
                format!("{operand} {}LIKE {} ESCAPE '\\'", not(*negated), self.text(pattern.text()))
            }
        }
    }

    fn text(&mut self, text: &str) -> String {
        self.parameters.add(Value::Text(text.to_owned()))
    }
}

/// The parts of a search that all must hold.
fn parts(expression: &Expression) -> &[Expression] {
    match expression {
        Expression::All(parts) => parts,
        one => std::slice::from_ref(one),
    }
}

/// The tests among these parts that find rows of labels or conditions.
fn required(parts: &[Expression]) -> impl Iterator<Item = Required<'_>> {
    parts.iter().enumerate().filter_map(|(place, part)| match part {
        Expression::Test(field, test) if !matches!(test, Test::Null { negated: false }) => {
            let (column, key) = keyed(field)?;
            Some(Required { place, column, key, test })
        }
        _ => None,
    })
}

/// The column of labels or conditions that has the values of a field, and their key.
fn keyed(field: &Field) -> Option<(KeyedColumn, &str)> {
    match field {
        Field::Label(key) => Some((LABELS, key)),
        Field::Status(kind) => Some((conditions("status", false), kind)),
        Field::Part(kind, part) => Some((conditions(part.name, part.nullable), kind)),
        Field::Column(_) | Field::Spec(_) => None,
    }
}

/// True if all tests are of labels and conditions.
fn is_keyed(expression: &Expression) -> bool {
    match expression {
        Expression::All(parts) | Expression::Any(parts) => parts.iter().all(is_keyed),
        Expression::Test(field, _) => keyed(field).is_some(),
    }
}

/// The condition that a number's text is the same everywhere.
fn is_plain(number: &str) -> String {
    let Range { start, end } = scalar::PLAIN;
    format!("({number} = 0 OR (abs({number}) >= {start:e} AND abs({number}) < {end:e}))")
}

fn not(negated: bool) -> &'static str {
    if negated { "NOT " } else { "" }
}
