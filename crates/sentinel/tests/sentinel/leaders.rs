//! Leader election: one of several Sentinels leads, and another one takes over.

use std::time::Duration;

use daemon::environment::{Environment as _, ProcessEnvironment};
use emulators::kubernetes::Kubernetes;
use jiff::Timestamp;
use kubernetes::Cluster;
use kubernetes::lease::{LeaseCandidate, LeaseClaim, Now};
use sentinel::leader::Election;
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::changes::QUIET;
use crate::rig::{broker, received, reconcile, start_sentinel};
use testkit::hyperfleet::HyperFleetApi;

/// An API server with Leases, and the kubeconfig for it.
struct Leases {
    _emulator: Kubernetes,
    folder: TempDir,
}

impl Leases {
    async fn start() -> Self {
        let emulator = Kubernetes::start(emulators::kubernetes::Settings::default()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        daemon::file::replace(&folder.path().join("kubeconfig"), emulator.kubeconfig().as_bytes()).unwrap();
        Self { _emulator: emulator, folder }
    }

    async fn cluster(&self) -> Cluster {
        let settings = kubernetes::Settings {
            kubeconfig: Some(self.folder.path().join("kubeconfig")),
            call_timeout: Duration::from_secs(3),
            ..kubernetes::Settings::default()
        };
        Cluster::connect(&settings).await.unwrap()
    }

    async fn election(&self, holder: &str) -> Election {
        let cluster = self.cluster().await;
        Election::by_lease(cluster, "default".to_owned(), "sentinel".to_owned(), holder.to_owned())
    }
}

/// One Sentinel leads. When it is killed, the second one leads; when that one stops, a third one does.
async fn leadership_changes(mut elections: impl AsyncFnMut(&str) -> Election) {
    let api = HyperFleetApi::start().await;
    let (to, mut events) = broker().await;
    let mut first = start_sentinel(&api, QUIET, to.clone(), elections("first").await).await;
    first.until(|progress| progress.leads && progress.is_complete).await;
    let mut second = start_sentinel(&api, QUIET, to.clone(), elections("second").await).await;
    api.create("cls-1").await;
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-1", 1)]);
    assert!(!second.progress.borrow().leads);
    // A standby is ready.
    assert_eq!(second.probe("/healthz").await.0, 200);
    first.kill().await;
    api.patch("cls-1", json!({"a": 1})).await;
    second.until(|progress| progress.leads).await;
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-1", 2)]);
    let mut third = start_sentinel(&api, QUIET, to, elections("third").await).await;
    second.stop().await;
    third.until(|progress| progress.leads && progress.is_complete).await;
    // It does not know the published states, so each resource that is not reconciled is published once more.
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-1", 2)]);
    api.patch("cls-1", json!({"a": 2})).await;
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-1", 3)]);
    third.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_taken_over() {
    let leases = Leases::start().await;
    leadership_changes(async |holder| leases.election(holder).await).await;
}

/// A former holder's clock that was an hour ahead does not delay the takeover by an hour.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_of_another_time_is_taken_over() {
    let leases = Leases::start().await;
    let claim = LeaseClaim {
        namespace: "default".to_owned(),
        name: "sentinel".to_owned(),
        holder: "gone".to_owned(),
        duration: Duration::from_secs(10),
    };
    let ahead = Now { wall: Timestamp::now() + Duration::from_hours(1), ..Now::read() };
    LeaseCandidate::new(leases.cluster().await, claim).try_acquire(ahead).await.unwrap();
    let won = async { leases.election("second").await.won(&CancellationToken::new()).await };
    assert!(tokio::time::timeout(Duration::from_mins(2), won).await.expect("an hour is too long"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgresql_lock_is_taken_over() {
    let Ok(Some(url)) = ProcessEnvironment.text("REAL_POSTGRESQL_URL") else {
        let is_ci = ProcessEnvironment.text("CI").is_ok_and(|ci| ci.as_deref() == Some("true"));
        assert!(!is_ci, "REAL_POSTGRESQL_URL is not set");
        eprintln!("skipped: REAL_POSTGRESQL_URL is not set; hack/real-parts/with.sh postgresql -- cargo test");
        return;
    };
    let name = format!("sentinel-test-{}", std::process::id());
    leadership_changes(async |_| Election::by_lock(url.clone().into(), &name)).await;
}
