//! Migrations are applied once, in order, and only to a database that has no others.

use rstest::rstest;

use super::*;
use crate::tests::{on_postgresql, on_sqlite};

const TWO: &[Migration] = &[
    Migration {
        id: "0001-things",
        sqlite: "CREATE TABLE things (id TEXT PRIMARY KEY) STRICT; INSERT INTO things VALUES ('a')",
        postgres: "CREATE TABLE things (id TEXT PRIMARY KEY); INSERT INTO things VALUES ('a')",
    },
    Migration {
        id: "0002-names",
        sqlite: "ALTER TABLE things ADD COLUMN name TEXT",
        postgres: "ALTER TABLE things ADD COLUMN name TEXT",
    },
];

const BROKEN: &[Migration] = &[
    Migration { id: "0001-things", sqlite: "CREATE TABLE things (id TEXT)", postgres: "CREATE TABLE things (id TEXT)" },
    Migration { id: "0002-names", sqlite: "ALTER TABLE absent ADD name", postgres: "ALTER TABLE absent ADD name TEXT" },
];

const OTHERS: &[Migration] = &[Migration {
    id: "0001-others",
    sqlite: "CREATE TABLE others (id TEXT)",
    postgres: "CREATE TABLE others (id TEXT)",
}];

/// More than [`TWO`], of which the second is another one.
const DIVERGED: &[Migration] =
    &[TWO[0], Migration { id: "0002-sizes", sqlite: "SELECT 1", postgres: "SELECT 1" }, OTHERS[0]];

const WAIT: Duration = Duration::from_secs(10);

fn schema(table: &'static str, migrations: &'static [Migration]) -> Schema {
    Schema { migrations, table, lock: 17 }
}

async fn count(database: &Database, table: &str) -> i64 {
    let sql = format!("SELECT COUNT(*) FROM {table}");
    database.fetch(sql, Parameters::default()).await.unwrap()[0].number(0).unwrap()
}

async fn are_applied_once(database: &Database) {
    let (first, both) = (schema("steps", &TWO[..1]), schema("steps", TWO));
    assert_eq!(both.pending(database).await.unwrap(), ["0001-things", "0002-names"]);
    assert_eq!(first.migrate(database, WAIT, 1).await.unwrap(), ["0001-things"]);
    assert_eq!(both.pending(database).await.unwrap(), ["0002-names"]);
    assert_eq!(both.migrate(database, WAIT, 2).await.unwrap(), ["0002-names"]);
    assert_eq!(both.migrate(database, WAIT, 3).await.unwrap(), [""; 0]);
    assert_eq!(both.pending(database).await.unwrap(), [""; 0]);
    assert_eq!(count(database, "things").await, 1);
    let times = database.fetch("SELECT applied_time FROM steps ORDER BY id".to_owned(), Parameters::default()).await;
    let times: Vec<_> = times.unwrap().iter().map(|row| row.number(0).unwrap()).collect();
    assert_eq!(times, [1, 2]);
    // Another component in the same database has a table of its own.
    assert_eq!(schema("other_steps", OTHERS).migrate(database, WAIT, 4).await.unwrap(), ["0001-others"]);
    assert_eq!(both.pending(database).await.unwrap(), [""; 0]);
}

async fn of_others_are_refused(database: &Database) {
    schema("steps", TWO).migrate(database, WAIT, 1).await.unwrap();
    for other in [&TWO[..1], OTHERS, DIVERGED] {
        let other = schema("steps", other);
        for refused in [other.migrate(database, WAIT, 2).await, other.pending(database).await] {
            let error = refused.unwrap_err();
            assert!(error.to_string().starts_with("the database was made by another or a newer version"), "{error}");
        }
    }
}

async fn that_fail_leave_nothing(database: &Database) {
    assert!(matches!(schema("steps", BROKEN).migrate(database, WAIT, 1).await, Err(DatabaseError::Internal(_))));
    assert_eq!(schema("steps", TWO).migrate(database, WAIT, 2).await.unwrap().len(), 2);
}

#[rstest]
#[case(are_applied_once)]
#[case(of_others_are_refused)]
#[case(that_fail_leave_nothing)]
#[tokio::test]
async fn migrations(#[case] test: impl AsyncFn(&Database)) {
    on_sqlite(&test).await;
    on_postgresql(&test).await;
}

/// Two servers that start at once migrate one after the other.
#[tokio::test]
async fn servers_take_turns() {
    let together = async |database: &Database| {
        let both = schema("steps", TWO);
        let (one, two) = tokio::join!(both.migrate(database, WAIT, 1), both.migrate(database, WAIT, 2));
        assert_eq!(one.unwrap().len() + two.unwrap().len(), 2);
    };
    on_sqlite(together).await;
    on_postgresql(together).await;
}

#[tokio::test(start_paused = true)]
async fn a_start_waits_for_the_database() {
    let (unavailable, attempts) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let start = tokio::time::Instant::now();
    let attempt = || async {
        attempts.set(attempts.get() + 1);
        match attempts.get() {
            1 => std::future::pending().await,
            2 => Err(DatabaseError::timed_out()),
            3 => Err(DatabaseError::Contended(sqlx::Error::PoolTimedOut.into())),
            _ => Ok((vec!["0001-things"], "checked")),
        }
    };
    let checked = migrate_until_applied(WAIT, attempt, || unavailable.set(unavailable.get() + 1)).await.unwrap();
    assert_eq!((checked, attempts.get(), unavailable.get()), ("checked", 4, 2));
    assert_eq!(start.elapsed(), WAIT + ATTEMPT_TIMEOUT + 2 * RETRY_INTERVAL);

    let unusable = || async { Err::<(_, ()), _>(DatabaseError::Schema("newer".to_owned())) };
    let ended = migrate_until_applied(WAIT, unusable, || panic!("it is available")).await;
    assert!(matches!(ended, Err(DatabaseError::Schema(_))));
}
