//! The search as an SQL condition.

use serde_json::json;

use super::expression::{Expression, Test};
use super::field::Field;
use super::scalar::{Comparison, Scalar};
use crate::store::sql::{Dialect, Parameters, Value};

/// Writes conditions over the table alias `r`, and adds their parameters in the order in which they stand.
pub(super) struct Writer<'a> {
    pub(super) dialect: Dialect,
    pub(super) parameters: &'a mut Parameters,
}

/// A table of what a resource has many of, by a key.
struct Many {
    table: &'static str,
    key: &'static str,
}

const LABELS: Many = Many { table: "resource_labels", key: "key" };
const CONDITIONS: Many = Many { table: "resource_conditions", key: "type" };

/// The value at a path of the spec, and the name of its JSON type.
struct Place {
    value: String,
    kind: String,
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
            Field::Label(key) => self.many(&LABELS, key, "value", test),
            Field::Status(kind) => self.many(&CONDITIONS, kind, "status", test),
            Field::Part(kind, part) => self.many(&CONDITIONS, kind, part.name, test),
            Field::Spec(path) => self.spec(path, test),
        }
    }

    /// The ids are looked up from the value, by the table's index, instead of anew for each resource.
    fn many(&mut self, many: &Many, key: &str, column: &str, test: &Test) -> String {
        let key_parameter = self.text(key);
        let ids = format!("SELECT m.resource_id FROM {} m WHERE m.{} = {key_parameter}", many.table, many.key);
        match test {
            Test::Null { negated: true } => format!("r.id IN ({ids})"),
            Test::Null { negated: false } => format!("r.id NOT IN ({ids})"),
            _ => format!("r.id IN ({ids} AND {})", self.test(&format!("m.{column}"), test)),
        }
    }

    fn spec(&mut self, path: &[String], test: &Test) -> String {
        match (test, self.dialect) {
            (Test::Null { negated }, _) => {
                let kind = self.place(path).kind;
                let comparison = Comparison::Equal.negated_if(*negated).sql();
                format!("COALESCE({kind}, 'null') {comparison} 'null'")
            }
            // This form, and only this one, finds its rows by an index over all paths (GIN, jsonb_path_ops).
            (Test::Compare(Comparison::Equal, Scalar::Text(text)), Dialect::Postgres) => {
                let document = path.iter().rfold(json!(text), |inner, segment| json!({ segment: inner }));
                format!("r.spec @> {}::jsonb", self.text(&document.to_string()))
            }
            _ => {
                let operand = self.guarded(path, test);
                self.test(&operand, test)
            }
        }
    }

    /// The value at the path if it has the type that the test is for, else null: no stored value can make a cast fail.
    fn guarded(&mut self, path: &[String], test: &Test) -> String {
        let Place { value, kind } = self.place(path);
        let (kinds, value) = match (test.sample(), self.dialect) {
            (Some(Scalar::Number(_) | Scalar::Real(_)), Dialect::Sqlite) => {
                ("'integer', 'real'", format!("CAST({value} AS REAL)"))
            }
            (Some(Scalar::Number(_) | Scalar::Real(_)), Dialect::Postgres) => {
                ("'number'", format!("({value})::double precision"))
            }
            (Some(Scalar::Bool(_)), Dialect::Sqlite) => ("'true', 'false'", kind.clone()),
            (Some(Scalar::Bool(_)), Dialect::Postgres) => ("'boolean'", format!("({value})::text")),
            (Some(Scalar::Text(_)) | None, Dialect::Sqlite) => ("'text'", value),
            // Without an index, `#>>` is the only way to a JSON string's text; an empty path is the value itself.
            (Some(Scalar::Text(_)) | None, Dialect::Postgres) => {
                ("'string'", format!("(({value}) #>> '{{}}') COLLATE \"C\""))
            }
        };
        format!("(CASE WHEN {kind} IN ({kinds}) THEN {value} END)")
    }

    /// A segment is always a member's name, never the index of an array, even if it consists of digits.
    fn place(&mut self, path: &[String]) -> Place {
        match self.dialect {
            Dialect::Sqlite => {
                let path = self.text(&format!("$.\"{}\"", path.join("\".\"")));
                Place { value: format!("json_extract(r.spec, {path})"), kind: format!("json_type(r.spec, {path})") }
            }
            Dialect::Postgres => {
                let steps: Vec<_> = path.iter().map(|segment| format!("{}::text", self.text(segment))).collect();
                let value = format!("r.spec -> {}", steps.join(" -> "));
                Place { kind: format!("jsonb_typeof({value})"), value }
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
                    // By this collation only ASCII has cases, as for SQLite.
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

fn not(negated: bool) -> &'static str {
    if negated { "NOT " } else { "" }
}

// === impl Test ===

impl Test {
    /// A value of the type that it is for; patterns are for texts.
    fn sample(&self) -> Option<&Scalar<'static>> {
        match self {
            Self::Compare(_, value) => Some(value),
            Self::In { values, .. } => values.first(),
            Self::Null { .. } | Self::Like { .. } => None,
        }
    }
}
