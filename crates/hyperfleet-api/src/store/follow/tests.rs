//! Readers of changes in memory and in the database get the same, on both databases.

use database::Transaction;
use jiff::Timestamp;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::*;
use crate::tenancy::{self, Tenancy};
use database::{PoolSettings, Source};

const BATCH: Batch = Batch { items: 7, bytes: 400 };

/// Two stores on one database, as of two servers.
struct Two {
    /// Reads changes into memory, on demand.
    follows: Store,
    /// Has nothing in memory.
    other: Store,
    _folder: tempfile::TempDir,
}

async fn opened(source: Source, folder: tempfile::TempDir) -> Two {
    let pool = PoolSettings {
        max_connections: 4,
        acquire_timeout: Duration::from_secs(20),
        max_lifetime: Duration::from_mins(1),
        idle_timeout: Duration::from_mins(1),
    };
    let (follows, other) = (Store::open(&source, pool).unwrap(), Store::open(&source, pool).unwrap());
    follows.migrate(Duration::from_secs(20), Timestamp::UNIX_EPOCH).await.unwrap();
    Two { follows, other, _folder: folder }
}

/// Runs a test on SQLite, and on PostgreSQL where there is one.
async fn on_both(test: impl AsyncFn(&Two)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.db");
    test(&opened(Source::Sqlite { path }, folder).await).await;
    let Some(admin) = postgresql() else { return };
    let name = format!("follow_{}", uuid::Uuid::now_v7().simple());
    let run = async |sql: String| {
        let mut connection = PgConnection::connect(&admin).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    };
    run(format!("CREATE DATABASE {name}")).await;
    let url = format!("{}/{name}", admin.rsplit_once('/').unwrap().0);
    let two = opened(Source::PostgresUrl(url.into()), tempfile::tempdir().unwrap()).await;
    test(&two).await;
    two.follows.database().close().await;
    two.other.database().close().await;
    run(format!("DROP DATABASE {name} WITH (FORCE)")).await;
}

#[expect(clippy::disallowed_methods, reason = "the environment names the real PostgreSQL")]
fn postgresql() -> Option<String> {
    let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    let url = variable("REAL_POSTGRESQL_URL");
    if url.is_none() {
        assert_ne!(variable("CI").as_deref(), Some("true"), "REAL_POSTGRESQL_URL is not set");
    }
    url
}

async fn run(transaction: &mut Transaction, sql: &str, values: Vec<Value>) {
    transaction.execute(sql.to_owned(), Parameters(values)).await.unwrap();
}

/// Commits changes of these kinds and tenancies, with an object of some size.
async fn commit(store: &Store, changes: &[(&str, &str)]) {
    for (kind, tenancy) in changes {
        let mut transaction = store.database().begin().await.unwrap();
        run(&mut transaction, "UPDATE change_counter SET version = version + 1", Vec::new()).await;
        let sql = "INSERT INTO changes (version, kind, resource_id, tenancy, type, time, object) \
                   SELECT version, $1, 'id', $2, 'ADDED', 0, $3 FROM change_counter";
        let object = format!("\"{}\"", "x".repeat(100));
        let values = [*kind, *tenancy, &object].map(|text| Value::Text(text.to_owned()));
        run(&mut transaction, sql, values.to_vec()).await;
        transaction.commit().await.unwrap();
    }
}

async fn change(store: &Store, sql: &str) {
    let mut transaction = store.database().begin().await.unwrap();
    run(&mut transaction, sql, Vec::new()).await;
    transaction.commit().await.unwrap();
}

/// All lines of a kind within reach after a position, batch by batch, with the positions between.
async fn lines(store: &Store, mut version: Version, kind: &str, reach: &Reach) -> Vec<String> {
    let mut reader = store.reader();
    let mut all = Vec::new();
    loop {
        let (changes, until) = reader.read(&version, kind, reach, BATCH).await.unwrap();
        let lines = changes.iter().map(|change| String::from_utf8(change.line(change.kind).to_vec()).unwrap());
        all.extend(lines.chain([until.to_string()]));
        if until == version {
            return all;
        }
        version = until;
    }
}

const TENANCIES: [&str; 5] =
    ["{}", r#"{"org":"acme"}"#, r#"{"org":"Acme"}"#, r#"{"org":"acme","project":"p"}"#, r#"{"org":"acme "}"#];

/// The reach of a tenant means the same in SQL and in memory.
#[tokio::test]
async fn memory_and_database_deliver_the_same() {
    on_both(async |Two { follows, other, .. }: &Two| {
        let before = follows.newest_version().await.unwrap();
        follows.read_on().await.unwrap();
        let mut changes = Vec::new();
        for turn in 0..4 {
            for tenancy in TENANCIES {
                changes.push((if turn % 2 == 0 { "Cluster" } else { "Channel" }, tenancy));
            }
        }
        commit(other, &changes).await;
        follows.read_on().await.unwrap();
        let tenants = TENANCIES.map(|text| Reach::Tenant(serde_json::from_str::<Tenancy>(text).unwrap()));
        assert!(
            tenants
                .iter()
                .zip(TENANCIES)
                .all(|(reach, text)| matches!(reach, Reach::Tenant(tenancy) if tenancy::text(tenancy) == text))
        );
        for reach in tenants.into_iter().chain([Reach::Unlimited, Reach::AllTenants]) {
            for kind in ["Cluster", "Channel", "NodePool"] {
                for number in 0..=changes.len() {
                    let begin = before.at(before.number + i64::try_from(number).unwrap());
                    assert!(follows.following.recent.reaches(&begin) && !other.following.recent.reaches(&begin));
                    let shared = lines(follows, begin.clone(), kind, &reach).await;
                    let own = lines(other, begin.clone(), kind, &reach).await;
                    let events = |lines: &[String]| {
                        lines.iter().filter(|line| line.starts_with('{')).cloned().collect::<Vec<_>>()
                    };
                    assert_eq!(events(&shared), events(&own), "{reach:?} {kind} {begin}");
                    assert_eq!(shared.last(), own.last());
                }
            }
        }
    })
    .await;
}

/// A reader that is behind the changes in memory comes to them by the database.
#[tokio::test]
async fn a_reader_catches_up_by_the_database() {
    on_both(async |Two { follows, other, .. }: &Two| {
        let before = follows.newest_version().await.unwrap();
        commit(other, &[("Cluster", "{}"); 20]).await;
        follows.read_on().await.unwrap();
        commit(other, &[("Cluster", "{}"); 20]).await;
        follows.read_on().await.unwrap();
        assert!(!follows.following.recent.reaches(&before.at(before.number + 19)));
        assert!(follows.following.recent.reaches(&before.at(before.number + 20)));
        let lines = lines(follows, before, "Cluster", &Reach::Unlimited).await;
        assert_eq!(lines.iter().filter(|line| line.starts_with('{')).count(), 40);
    })
    .await;
}

/// Changes are not lost, and memory is bounded, where the database has removed what the follower had not read.
#[tokio::test]
async fn removed_changes_are_gone() {
    on_both(async |Two { follows, other, .. }: &Two| {
        let before = follows.newest_version().await.unwrap();
        let mut reader = follows.reader();
        follows.read_on().await.unwrap();
        commit(other, &[("Cluster", "{}"); 5]).await;
        change(other, "DELETE FROM changes WHERE version <= (SELECT version - 2 FROM change_counter)").await;
        follows.read_on().await.unwrap();
        assert!(reader.wait_beyond(&before).await);
        let read = reader.read(&before, "Cluster", &Reach::Unlimited, BATCH).await;
        assert!(matches!(read, Err(FeedError::Gone)));
        assert!(matches!(reader.check(&before).await, Err(FeedError::Gone)));
        let (kept, _) = reader.read(&before.at(before.number + 3), "Cluster", &Reach::Unlimited, BATCH).await.unwrap();
        assert_eq!(kept.len(), 2);
    })
    .await;
}

/// A database of another epoch, and one that has lost commits, end what was read before.
#[tokio::test]
async fn another_epoch_and_lost_commits_are_found() {
    on_both(async |Two { follows, other, .. }: &Two| {
        commit(other, &[("Cluster", "{}"); 5]).await;
        let mut reader = follows.reader();
        follows.read_on().await.unwrap();
        let at = follows.newest_version().await.unwrap();
        change(other, "UPDATE change_counter SET epoch = 'other'").await;
        follows.read_on().await.unwrap();
        assert!(reader.wait_beyond(&at).await);
        let read = reader.read(&at, "Cluster", &Reach::Unlimited, BATCH).await;
        assert!(matches!(read, Err(FeedError::Gone)));
        let at = follows.newest_version().await.unwrap();
        change(other, "DELETE FROM changes WHERE version > 3").await;
        change(other, "UPDATE change_counter SET version = 3").await;
        follows.read_on().await.unwrap();
        assert!(!reader.wait_beyond(&at).await, "the reader must ask the database again");
        assert!(matches!(follows.reader().check(&at).await, Err(FeedError::Gone)));
    })
    .await;
}

/// The database is read while there is a reader, and memory is free afterwards.
#[tokio::test]
async fn without_readers_nothing_is_read() {
    on_both(async |Two { follows, other, .. }: &Two| {
        let store = follows.clone();
        let follower = tokio::spawn(async move { store.follow().await });
        let begin = follows.newest_version().await.unwrap();
        let mut reader = follows.reader();
        commit(other, &[("Cluster", "{}")]).await;
        assert!(reader.wait_beyond(&begin).await);
        drop(reader);
        while follows.following.recent.until().is_some() {
            tokio::task::yield_now().await;
        }
        follower.abort();
    })
    .await;
}
