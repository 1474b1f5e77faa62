//! Leader election: one of several Sentinels leads, and another one takes over.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use daemon::environment::{Environment as _, ProcessEnvironment};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kubernetes::Cluster;
use kubernetes::lease::{LeaseCandidate, LeaseClaim, Now};
use rstest::rstest;
use sentinel::leader::Election;
use sentinel::position::PositionStore;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::api_server::{ApiServer, Kind};
use testkit::rights::{self, Account, AuditLog};
use tokio_util::sync::CancellationToken;

use crate::changes::QUIET;
use crate::rig::{broker, received, reconcile, start_with};
use testkit::hyperfleet::HyperFleetApi;

const NAME: &str = "hyperfleet-sentinel-clusters-1-of-1";

/// A namespace of an API server, where the Sentinel has the rights of `deploy/`.
struct Leases {
    server: ApiServer,
    namespace: String,
    folder: TempDir,
}

impl Leases {
    async fn start(kind: Kind) -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let server = ApiServer::start(kind).await?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("sentinel-{}-{number}", std::process::id());
        server.create_namespace(&namespace).await;
        let deploy = include_str!("../../../../deploy/sentinel.yaml").replace("hyperfleet-system", &namespace);
        let objects: Vec<Value> = serde_saphyr::from_multiple(&deploy).unwrap();
        for object in objects {
            match object.get("kind").and_then(Value::as_str).unwrap() {
                "ServiceAccount" => drop(server.create::<ServiceAccount>(&namespace, object).await),
                "Role" => drop(server.create::<Role>(&namespace, object).await),
                "RoleBinding" => drop(server.create::<RoleBinding>(&namespace, object).await),
                _ => {}
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = serde_json::to_string(&server.kubeconfig_of(&namespace, "sentinel").await).unwrap();
        daemon::file::replace(&folder.path().join("kubeconfig"), kubeconfig.as_bytes()).unwrap();
        Some(Self { server, namespace, folder })
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
        Election::by_lease(cluster, self.namespace.clone(), NAME.to_owned(), holder.to_owned())
    }
}

/// One Sentinel leads. When it is killed, the second one leads; when that one stops, a third one does.
/// Each goes on where its predecessor was.
async fn leadership_changes(mut elections: impl AsyncFnMut(&str) -> (Election, PositionStore)) {
    let api = HyperFleetApi::start().await;
    let (to, mut events) = broker().await;
    let mut start = async |holder: &str| {
        let (election, positions) = elections(holder).await;
        start_with(&api, QUIET, to.clone(), election, Some(positions)).await
    };
    let mut first = start("first").await;
    first.until(|progress| progress.leads && progress.is_complete).await;
    let mut second = start("second").await;
    api.create("cls-1").await;
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-1", 1)]);
    assert!(!second.progress.borrow().leads);
    // A standby is ready.
    assert_eq!(second.probe("/healthz").await.0, 200);
    first.kill().await;
    api.patch("cls-1", json!({"a": 1})).await;
    second.until(|progress| progress.leads).await;
    let mut published = received(&mut events, 1).await;
    // The killed Sentinel may not have recorded its last event, which its successor repeats then.
    if published == [reconcile("cls-1", 1)] {
        published = received(&mut events, 1).await;
    }
    assert_eq!(published, [reconcile("cls-1", 2)]);
    let mut third = start("third").await;
    second.stop().await;
    third.until(|progress| progress.leads && progress.is_complete).await;
    // The cluster is not reconciled, and its second generation was published by the predecessor, which may not have recorded it.
    api.patch("cls-1", json!({"a": 2})).await;
    let mut published = received(&mut events, 1).await;
    if published == [reconcile("cls-1", 2)] {
        published = received(&mut events, 1).await;
    }
    assert_eq!(published, [reconcile("cls-1", 3)]);
    third.stop().await;
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_taken_over(#[case] kind: Kind) {
    let Some(leases) = Leases::start(kind).await else { return };
    let audit = if leases.server.is_real() { AuditLog::here() } else { None };
    leadership_changes(async |holder| {
        let positions = PositionStore::lease(leases.cluster().await, leases.namespace.clone(), NAME);
        (leases.election(holder).await, positions)
    })
    .await;
    if let Some(audit) = audit {
        let account = Account { namespace: leases.namespace.clone(), name: "sentinel".to_owned() };
        let role = rights::Role { namespace: Some(leases.namespace.clone()), name: "sentinel".to_owned() };
        audit.assert_sufficient(&account);
        audit.assert_minimal(&leases.server.client, &account, &[role]).await;
    }
}

/// A former holder's clock that was an hour ahead does not delay the takeover by an hour.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_of_another_time_is_taken_over() {
    let leases = Leases::start(Kind::Emulator).await.unwrap();
    let claim = LeaseClaim {
        namespace: leases.namespace.clone(),
        name: NAME.to_owned(),
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
    leadership_changes(async |_| {
        (Election::by_lock(url.clone().into(), &name), PositionStore::row(url.clone().into(), name.clone()))
    })
    .await;
}
