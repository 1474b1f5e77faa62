//! The server is sealed, killed or silent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use daemon::retry::Transient as _;
use secrecy::ExposeSecret as _;
use secret_store::{
    ErrorKind, LiveVersion, NewVersion, Operation, SecretStore as _, StoreError, VaultSettings, VaultStore, Version,
    VersionNumber,
};
use tokio::sync::{RwLock, mpsc};
use tokio::task::JoinSet;

use super::server::OpenBao;
use crate::rig::{OPERATIONS, attempt, bytes, number, secret_id, texts};

const WRITERS: usize = 20;
/// Number of versions that each writer adds. A secret keeps 100.
const EACH: usize = 4;

/// The failures of all operations while the server is away. It is back before anything is asserted, since other tests need it.
async fn failures_between(server: &OpenBao, store: &VaultStore, (away, back): (&str, &str)) -> Vec<StoreError> {
    server.script(away).await;
    let mut results = Vec::new();
    for operation in OPERATIONS {
        results.push(attempt(store, operation).await);
    }
    server.script(back).await;
    results.into_iter().map(|result| result.unwrap_err()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sealed_server_is_unavailable_until_it_is_unsealed() {
    let Some(server) = OpenBao::alone().await else { return };
    let store = server.store();
    attempt(&store, Operation::Create).await.unwrap();
    for error in failures_between(&server, &store, ("seal", "unseal")).await {
        assert_eq!((error.kind, error.is_transient()), (ErrorKind::Unavailable, true), "{error}");
        assert!(error.to_string().contains("sealed"), "{error}");
        assert_eq!(error.hint().as_deref(), Some("unseal the server"));
    }
    attempt(&store, Operation::AddVersion).await.unwrap();
    attempt(&store, Operation::ReadVersion).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_server_is_waited_for_as_long_as_one_call_may_take() {
    let Some(server) = OpenBao::alone().await else { return };
    attempt(&server.store(), Operation::Create).await.unwrap();
    let settings = VaultSettings { call_timeout: Duration::from_millis(200), ..server.settings() };
    let store = VaultStore::connect(&settings).unwrap();
    for error in failures_between(&server, &store, ("pause", "resume")).await {
        assert_eq!((error.kind, error.is_transient()), (ErrorKind::TimedOut, true), "{error}");
    }
    attempt(&server.store(), Operation::Find).await.unwrap();
}

/// Each version that was answered is there, each number has one content, and none is missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_version_is_lost_or_doubled_when_the_server_is_killed() {
    let Some(server) = OpenBao::alone().await else { return };
    let store = Arc::new(server.store());
    attempt(&*store, Operation::Create).await.unwrap();
    let is_up = Arc::new(RwLock::new(()));
    let (report, mut reports) = mpsc::unbounded_channel();
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (store, is_up, report) = (Arc::clone(&store), Arc::clone(&is_up), report.clone());
        writers.spawn(async move {
            let mut added = Vec::new();
            for round in 0..EACH {
                let content = format!("{writer}/{round}");
                let number = add(&store, &is_up, &content).await;
                report.send(()).unwrap();
                added.push((number, content));
            }
            added
        });
    }
    drop(report);
    for _ in 0..2 {
        for _ in 0..10 {
            reports.recv().await.unwrap();
        }
        server.script("crash").await;
        let down = is_up.write().await;
        server.script("start").await;
        drop(down);
    }
    let added: Vec<_> = writers.join_all().await.into_iter().flatten().collect();
    let by_number: BTreeMap<_, _> = added.iter().cloned().collect();
    assert_eq!((added.len(), by_number.len()), (WRITERS * EACH, WRITERS * EACH), "no number is given twice");
    let total = u64::try_from(WRITERS * EACH).unwrap();
    assert!(by_number.keys().map(|number| number.get()).eq(1..=total), "{by_number:?}");
    for (version, content) in by_number {
        let read = store.read_version(&secret_id(), version).await.unwrap();
        let is_same = matches!(&read, Version::Live(LiveVersion { content: found, record })
            if found.expose_secret() == content.as_bytes() && record["writer"] == content);
        assert!(is_same, "{version}: {read:?}");
    }
}

/// Adds the content as the next version, whichever that is, as often as it must be tried.
async fn add(store: &VaultStore, is_up: &RwLock<()>, content: &str) -> VersionNumber {
    let (secret, bytes, record) = (secret_id(), bytes(content.as_bytes()), texts(&[("writer", content)]));
    let mut next = number(1);
    loop {
        drop(is_up.read().await);
        match store.add_version(&secret, &NewVersion { number: next, content: &bytes, record: &record }).await {
            Ok(number) => return number,
            // The answer may be lost, and the version there: the same number is asked for again.
            Err(error) if error.is_transient() => tokio::task::yield_now().await,
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Changed, "{error}");
                let Ok(newest) = store.newest_version(&secret).await else { continue };
                next = newest.map_or(next, |newest| newest.number.next());
            }
        }
    }
}
