//! Properties that hold for every search.

use proptest::prelude::*;

use super::generated::{resource, search};
use super::*;
use crate::tenancy::Reach;

/// The fixed texts of the SQL. Beside them and placeholders nothing may contain quotes.
const FIXED: &[&str] = &[
    "ESCAPE '\\'",
    "'null'",
    "'text'",
    "'integer'",
    "'real'",
    "'true'",
    "'false'",
    "'string'",
    "'number'",
    "'boolean'",
    "'{}'",
    "\"C\"",
];

pub(super) fn check(text: &str) -> Result<(), TestCaseError> {
    let search = match Search::parse(text) {
        Ok(search) => search,
        Err(error) => {
            let column = error.column().unwrap();
            prop_assert!((1..=text.chars().count() + 1).contains(&column), "{}", error);
            prop_assert!(!error.to_string().contains(char::is_control), "{:?}", error);
            return Ok(());
        }
    };
    search.matches(&example());
    for (sql, parameters) in written(&search) {
        let rest = FIXED.iter().fold(sql.clone(), |sql, fixed| sql.replace(fixed, ""));
        prop_assert!(!rest.contains(['\'', '"', '`', '\\', ';']) && !rest.contains("--"), "{}", sql);
        for number in 1..=parameters.0.len() {
            prop_assert!(sql.contains(&format!("${number}")), "{} lacks ${}", sql, number);
        }
    }
    Ok(())
}

/// The search as SQL: as a condition, as one for resources that are found by other means, and as ranges of indexes.
fn written(search: &Search) -> Vec<(String, Parameters)> {
    let mut written = Vec::new();
    let mut write = |sql: &dyn Fn(&mut Parameters) -> Option<String>| {
        let mut parameters = Parameters::default();
        written.extend(sql(&mut parameters).map(|sql| (sql, parameters)));
    };
    write(&|parameters| Some(search.filter(parameters)));
    for dialect in [Dialect::Sqlite, Dialect::Postgres] {
        write(&|parameters| Some(search.sql(dialect, parameters)));
        for number in 0..3 {
            for reach in [Reach::Unlimited, Reach::default()] {
                let scope = Scope { kind: "Cluster", reach: &reach };
                write(&|parameters| search.range(number, scope, dialect, parameters));
            }
        }
    }
    written
}

proptest! {
    #[test]
    fn no_text_breaks_the_parser(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn no_sequence_of_tokens_breaks_the_parser(
        parts in proptest::collection::vec(
            proptest::sample::select(&[
                "name", "labels.a-b", "spec.a.0", "status.conditions.Ready", "generation", "created_time", "=", "!=", "<>",
                "<", "not", "and", "or", "in", "between", "like", "ilike", "is", "null", "(", ")", "[", "]", ",", "'x'",
                "''", "'", "\"a'b\"", "`", "\\", "1", "-1", "1.5Ki", "2026-01-01", "true", "--", ";", "\0", "é", "1e", "9Ei",
            ][..]), 0..12),
        glue in "[ \n]?",
    ) {
        check(&parts.join(&glue))?;
    }

    #[test]
    fn every_valid_search_is_parsed(text in search(), resource in resource()) {
        check(&text)?;
        let search = Search::parse(&text).map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
        search.matches(&resource);
    }

    #[test]
    fn no_order_and_no_selection_breaks_the_parser(items in proptest::collection::vec(any::<String>(), 0..3)) {
        if let Ok(order) = Order::parse(&items) {
            prop_assert!(order.sql().contains("r.id"));
        }
        if let Ok(Some(fields)) = Fields::parse(&items) {
            fields.apply(r#"{"id": "1"}"#).unwrap();
        }
    }
}
