//! Results and order in both databases, compared with the evaluation in memory.

use database::Value;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Postgres, Row as _, Sqlite, SqliteConnection};

use super::generated::{negatable, order, resource, search};
use super::*;

const RESOURCES: usize = 80;
const SEARCHES: usize = 1500;

const SCHEMA: &[&str] = &[
    "CREATE TABLE resources (id TEXT PRIMARY KEY, kind TEXT, name TEXT, href TEXT, owner_id TEXT, owner_kind TEXT, \
     owner_href TEXT, generation BIGINT, created_time BIGINT, created_by TEXT, updated_time BIGINT, updated_by TEXT, deleted_time BIGINT, deleted_by TEXT, \
     spec JSON)",
    "CREATE TABLE resource_labels (resource_id TEXT, key TEXT, value TEXT, PRIMARY KEY (resource_id, key))",
    "CREATE TABLE resource_conditions (resource_id TEXT, type TEXT, status TEXT, observed_generation BIGINT, \
     last_updated_time BIGINT, last_transition_time BIGINT, reason TEXT, PRIMARY KEY (resource_id, type))",
];

/// A search with its negation and order.
#[derive(Default)]
struct Case {
    search: String,
    /// Negates the search: in memory by the language, in the database by SQL's three-valued logic.
    not: bool,
    order: Vec<String>,
}

enum Database {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

macro_rules! query {
    ($database:ty, $sql:expr, $parameters:expr) => {
        $parameters.0.into_iter().fold(sqlx::query::<$database>(AssertSqlSafe($sql)), |query, value| match value {
            Value::NoText => query.bind(None::<String>),
            Value::NoNumber => query.bind(None::<i64>),
            Value::Text(text) => query.bind(text),
            Value::Number(number) => query.bind(number),
            Value::Real(real) => query.bind(real),
            Value::Texts(_) | Value::Numbers(_) => panic!("a search has no arrays"),
        })
    };
}

impl Database {
    fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    /// The first column of all rows.
    async fn run(&mut self, sql: String, parameters: Parameters) -> Result<Vec<String>, sqlx::Error> {
        Ok(match self {
            Self::Sqlite(connection) => {
                let rows = query!(Sqlite, sql, parameters).fetch_all(connection).await?;
                rows.iter().map(|row| row.get(0)).collect()
            }
            Self::Postgres(connection) => {
                let rows = query!(Postgres, sql, parameters).fetch_all(connection).await?;
                rows.iter().map(|row| row.get(0)).collect()
            }
        })
    }

    async fn insert(&mut self, table: &str, values: Vec<Value>) {
        let last_type = if self.dialect() == Dialect::Postgres && table == "resources" { "::jsonb" } else { "" };
        let mut parameters = Parameters::default();
        let placeholders: Vec<_> = values.into_iter().map(|value| parameters.add(value)).collect();
        let sql = format!("INSERT INTO {table} VALUES ({}{last_type})", placeholders.join(", "));
        self.run(sql, parameters).await.unwrap();
    }

    async fn fill(&mut self, resources: &[Resource]) {
        for table in SCHEMA {
            let sql = match self.dialect() {
                Dialect::Sqlite => table.replace("JSON", "TEXT"),
                Dialect::Postgres => table.replace("TEXT", "TEXT COLLATE \"C\"").replace("JSON", "JSONB"),
            };
            self.run(sql, Parameters::default()).await.unwrap();
        }
        for resource in resources {
            self.insert("resources", row(resource)).await;
            let id = || Value::Text(resource.id.clone());
            for (key, value) in &resource.state.labels {
                self.insert("resource_labels", vec![id(), Value::Text(key.clone()), Value::Text(value.clone())]).await;
            }
            for condition in &resource.state.conditions {
                let values = vec![
                    id(),
                    Value::Text(condition.kind.clone()),
                    Value::Text(condition.status.as_str().to_owned()),
                    Value::Number(condition.observed_generation.into()),
                    Value::Number(condition.last_updated_time.as_microsecond()),
                    Value::Number(condition.last_transition_time.as_microsecond()),
                    maybe(condition.reason.as_ref()),
                ];
                self.insert("resource_conditions", values).await;
            }
        }
    }

    /// The searches with another result than in memory, and the number of searches that select some but not all resources.
    async fn compare(&mut self, resources: &[Resource], cases: &[Case]) -> (Vec<String>, usize) {
        let (mut disagreements, mut selective) = (Vec::new(), 0);
        for Case { search: text, not, order } in cases {
            let effective = if *not { &format!("not ({text})") } else { text };
            let (search, order) = (Search::parse(effective).unwrap(), Order::parse(order).unwrap());
            let mut expected: Vec<_> = resources.iter().filter(|resource| search.matches(resource)).collect();
            expected.sort_by(|a, b| order.compare(a, b));
            let expected: Vec<_> = expected.into_iter().map(|resource| resource.id.clone()).collect();
            selective += usize::from(!expected.is_empty() && expected.len() < resources.len());
            for (condition, parameters) in self.conditions(text, *not) {
                let sql = format!("SELECT r.id FROM resources r WHERE {condition} ORDER BY {}", order.sql());
                let selected = self.run(sql.clone(), parameters).await.map_err(|error| error.to_string());
                if selected.as_ref() != Ok(&expected) {
                    disagreements.push(format!("{effective}\n{sql}\nin memory {expected:?}\nselected {selected:?}"));
                }
            }
        }
        (disagreements, selective)
    }

    /// The condition of a search and, on SQLite, those that begin with one of its tests.
    fn conditions(&self, text: &str, not: bool) -> Vec<(String, Parameters)> {
        let search = Search::parse(text).unwrap();
        let mut parameters = Parameters::default();
        let condition = search.sql(self.dialect(), &mut parameters);
        let mut conditions = vec![(format!("{}({condition})", if not { "NOT " } else { "" }), parameters)];
        if self.dialect() == Dialect::Sqlite && !not {
            conditions.extend((0..).map_while(|number| {
                let mut parameters = Parameters::default();
                let ids = search.found_by_index(number, Dialect::Sqlite, &mut parameters)?;
                Some((format!("r.id IN ({ids}) AND ({})", search.filter(&mut parameters)), parameters))
            }));
        }
        conditions
    }

    /// Runs the same resources and searches as in memory and returns the outcome as text.
    async fn outcome(&mut self) -> String {
        let mut runner = TestRunner::deterministic();
        let (resource, search, negatable, order) = (resource(), search(), negatable(), order());
        let mut resources = vec![example()];
        for number in 0..RESOURCES {
            resources.push(Resource { id: format!("{:04}", number * 7919 % 10_000), ..one(&mut runner, &resource) });
        }
        self.fill(&resources).await;
        let mut cases: Vec<_> = extremes().into_iter().map(|search| Case { search, ..Case::default() }).collect();
        cases.extend((0..SEARCHES).map(|number| {
            // PostgreSQL's containment is false where a comparison would be unknown, so only SQLite is compared.
            let not = number % 3 == 0 && self.dialect() == Dialect::Sqlite;
            let search = if not { one(&mut runner, &negatable) } else { one(&mut runner, &search) };
            Case { search, not, order: one(&mut runner, &order) }
        }));
        let (disagreements, selective) = self.compare(&resources, &cases).await;
        match disagreements.first() {
            Some(first) => format!("{} disagree\n{first}", disagreements.len()),
            None if selective * 3 < SEARCHES => format!("only {selective} searches are selective"),
            None => "agreed".to_owned(),
        }
    }
}

fn maybe(text: Option<&String>) -> Value {
    text.map_or(Value::NoText, |text| Value::Text(text.clone()))
}

fn row(resource: &Resource) -> Vec<Value> {
    let text = |text: &str| Value::Text(text.to_owned());
    vec![
        text(&resource.id),
        text(&resource.kind),
        text(&resource.name),
        Value::Text(resource.href.clone()),
        maybe(resource.owner.as_ref().map(|owner| &owner.id)),
        maybe(resource.owner.as_ref().map(|owner| &owner.kind)),
        maybe(resource.owner.as_ref().map(|owner| &owner.href)),
        Value::Number(resource.generation.into()),
        Value::Number(resource.created_time.as_microsecond()),
        text(&resource.created_by),
        Value::Number(resource.updated_time.as_microsecond()),
        text(&resource.updated_by),
        resource.deleted_time.map_or(Value::NoNumber, |time| Value::Number(time.as_microsecond())),
        maybe(resource.deleted_by.as_ref()),
        Value::Text(Json::Object(resource.spec.clone()).to_string()),
    ]
}

/// Searches at the limits of the databases.
fn extremes() -> Vec<String> {
    let nested = (0..21).fold("name = 'a'".to_owned(), |inner, _| format!("not (id = 'x' or ({inner} and id != 'y'))"));
    vec![
        String::new(),
        nested,
        vec!["id=''"; 450].join("or "),
        format!("id in [{}]", vec!["''"; 1300].join(",")),
        format!("not spec{} = 'x'", ".a".repeat(32)),
        format!("name like '{}'", "%a".repeat(2000)),
    ]
}

fn one<S: Strategy>(runner: &mut TestRunner, strategy: &S) -> S::Value {
    strategy.new_tree(runner).unwrap().current()
}

#[tokio::test]
async fn sqlite_agrees() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
    sqlx::query("PRAGMA case_sensitive_like = ON").execute(&mut connection).await.unwrap();
    assert_eq!(Database::Sqlite(connection).outcome().await, "agreed");
}

#[tokio::test]
async fn postgresql_agrees() {
    let Some(url) = variable("REAL_POSTGRESQL_URL") else {
        assert_ne!(variable("CI").as_deref(), Some("true"), "REAL_POSTGRESQL_URL is not set");
        eprintln!("skipped: REAL_POSTGRESQL_URL is not set");
        return;
    };
    let mut database = Database::Postgres(PgConnection::connect(&url).await.unwrap());
    let schema = format!("search_{}", uuid::Uuid::now_v7().simple());
    for sql in [format!("CREATE SCHEMA {schema}"), format!("SET search_path TO {schema}")] {
        database.run(sql, Parameters::default()).await.unwrap();
    }
    let outcome = database.outcome().await;
    database.run(format!("DROP SCHEMA {schema} CASCADE"), Parameters::default()).await.unwrap();
    assert_eq!(outcome, "agreed");
}

#[expect(clippy::disallowed_methods, reason = "the test's own switches, not a setting of the product")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
