//! SQL dialects and statement parameters.

daemon::choices! {
    /// The SQL dialect of a database.
    pub enum Dialect {
        /// SQLite, the embedded default.
        Sqlite = "sqlite",
        /// PostgreSQL, for fleets.
        Postgres = "postgres" | "postgresql",
    }
}

/// The value of a statement's parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An absent text.
    NoText,
    /// An absent number.
    NoNumber,
    /// A text without NUL.
    Text(String),
    /// A number, or a time in microseconds since 1970.
    Number(i64),
    /// A number with a fraction.
    Real(f64),
    /// A column of texts, for PostgreSQL.
    Texts(Vec<Option<String>>),
    /// A column of numbers, for PostgreSQL.
    Numbers(Vec<Option<i64>>),
}

/// The parameters of a statement; adding one returns its placeholder.
#[derive(Debug, Default)]
pub struct Parameters(pub Vec<Value>);

impl Parameters {
    /// Adds rows of equal length and returns them as a table `v` with the columns `column1`, `column2`, … for a FROM clause.
    ///
    /// On PostgreSQL the text does not depend on the number of rows, so that the statement is prepared once. SQLite has no
    /// arrays; there the caller limits the number of rows.
    pub fn table(&mut self, dialect: Dialect, rows: Vec<Vec<Value>>) -> String {
        match dialect {
            Dialect::Sqlite => {
                let row = |row: Vec<Value>| {
                    let values: Vec<_> = row.into_iter().map(|value| self.add(value)).collect();
                    format!("({})", values.join(", "))
                };
                format!("(VALUES {}) AS v", rows.into_iter().map(row).collect::<Vec<_>>().join(", "))
            }
            Dialect::Postgres => {
                let columns: Vec<_> = columns(rows).into_iter().map(|column| self.add(column)).collect();
                let names: Vec<_> = (1..=columns.len()).map(|number| format!("column{number}")).collect();
                format!("UNNEST({}) AS v ({})", columns.join(", "), names.join(", "))
            }
        }
    }

    /// Adds texts and returns the condition that an operand is one of them. On PostgreSQL its text does not depend on their
    /// number.
    pub fn one_of(&mut self, dialect: Dialect, operand: &str, texts: &[String]) -> String {
        match dialect {
            Dialect::Sqlite => {
                let values: Vec<_> = texts.iter().map(|text| self.add(Value::Text(text.clone()))).collect();
                format!("{operand} IN ({})", values.join(", "))
            }
            Dialect::Postgres => {
                let texts = self.add(Value::Texts(texts.iter().cloned().map(Some).collect()));
                format!("{operand} = ANY ({texts})")
            }
        }
    }

    /// Adds a value and returns its placeholder, which both databases understand: `$1`, `$2`, …
    pub fn add(&mut self, value: Value) -> String {
        self.0.push(value);
        format!("${}", self.0.len())
    }
}

/// Turns rows into columns. A column is one of numbers if its first value is a number, or an absent one.
fn columns(rows: Vec<Vec<Value>>) -> Vec<Value> {
    let mut columns: Vec<Value> = Vec::new();
    for row in rows {
        for (index, value) in row.into_iter().enumerate() {
            if columns.len() == index {
                let is_number = matches!(value, Value::Number(_) | Value::NoNumber);
                columns.push(if is_number { Value::Numbers(Vec::new()) } else { Value::Texts(Vec::new()) });
            }
            match (columns.get_mut(index), value) {
                (Some(Value::Texts(texts)), Value::Text(text)) => texts.push(Some(text)),
                (Some(Value::Texts(texts)), _) => texts.push(None),
                (Some(Value::Numbers(numbers)), Value::Number(number)) => numbers.push(Some(number)),
                (Some(Value::Numbers(numbers)), _) => numbers.push(None),
                _ => {}
            }
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_a_table_in_both_dialects() {
        let rows = || {
            vec![
                vec![Value::Text("a".to_owned()), Value::NoText, Value::Number(1)],
                vec![Value::Text("b".to_owned()), Value::Text("c".to_owned()), Value::NoNumber],
            ]
        };
        let mut parameters = Parameters::default();
        assert_eq!(parameters.table(Dialect::Sqlite, rows()), "(VALUES ($1, $2, $3), ($4, $5, $6)) AS v");
        assert_eq!(parameters.0, rows().concat());
        let mut parameters = Parameters::default();
        let table = parameters.table(Dialect::Postgres, rows());
        assert_eq!(table, "UNNEST($1, $2, $3) AS v (column1, column2, column3)");
        let texts = |texts: [Option<&str>; 2]| Value::Texts(texts.map(|text| text.map(str::to_owned)).to_vec());
        let expected = [texts([Some("a"), Some("b")]), texts([None, Some("c")]), Value::Numbers(vec![Some(1), None])];
        assert_eq!(parameters.0, expected);
    }

    #[test]
    fn texts_are_one_condition_in_both_dialects() {
        let texts = ["a".to_owned(), "b".to_owned()];
        let mut parameters = Parameters::default();
        assert_eq!(parameters.one_of(Dialect::Sqlite, "id", &texts), "id IN ($1, $2)");
        assert_eq!(parameters.one_of(Dialect::Postgres, "id", &texts), "id = ANY ($3)");
        assert_eq!(parameters.0.len(), 3);
    }
}
