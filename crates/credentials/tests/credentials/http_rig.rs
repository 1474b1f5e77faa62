//! The HTTP API over a rig's ledger, with identities and clusters of the test.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use credentials::credential::{Approval, ClusterRef};
use credentials::http::{
    Api, Directory, KnownCluster, Limits, Offered, Parts, Permission, Reviewer, Unread, Unreviewed, router,
};
use credentials::metrics::Metrics;
use daemon::log::{self, Format, Settings};
use daemon::serve::{self, Endpoint, ServeOptions};
use fleet_model::ClusterId;
use kubernetes::Identity;
use prometheus_client::registry::Registry;
use registry_account::Registry as _;
use secrecy::{ExposeSecret as _, SecretString};
use testkit::http::{Reply, exchange};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::DefaultGuard;

use crate::database::Kind;
use crate::rig::Rig;

/// The cluster that the directory has, one that is being deleted, and one that no registry's search finds.
pub(crate) const CLUSTER: &str = "cls-abc123def456";
pub(crate) const DELETING: &str = "01932b5c-9f3e-7c2a-8e1d-0123456789ab";
pub(crate) const ELSEWHERE: &str = "elsewhere";

/// The permissions of each token. Another token is not accepted; with `away` Kubernetes does not answer.
fn permissions(token: &str) -> Option<&'static [Permission]> {
    use Permission::{
        CreatePullSecrets, CreateRotations, DeletePullSecrets, GetContent, GetPullSecrets, GetRotations, ListRotations,
    };
    match token {
        "t0ken-all" | "t0ken-another" => Some(&[
            GetPullSecrets,
            CreatePullSecrets,
            DeletePullSecrets,
            GetContent,
            GetRotations,
            ListRotations,
            CreateRotations,
        ]),
        "t0ken-viewer" => Some(&[GetPullSecrets, GetRotations]),
        "t0ken-maker" => Some(&[CreatePullSecrets]),
        "t0ken-rotator" => Some(&[CreateRotations]),
        "t0ken-none" => Some(&[]),
        _ => None,
    }
}

/// Identities by token, and the number of reviews.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roles {
    pub(crate) tokens: Arc<AtomicU32>,
    pub(crate) accesses: Arc<AtomicU32>,
}

/// The clusters of the test; `away` cannot be read.
#[derive(Clone, Debug)]
struct Clusters;

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

/// A served API. What is logged on this thread while it lives is kept.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) roles: Roles,
    pub(crate) registry: Registry,
    log: Buffer,
    _stop: DropGuard,
    _logging: DefaultGuard,
}

impl Reviewer for Roles {
    async fn identify(&self, token: &SecretString) -> Result<Option<Identity>, Unreviewed> {
        self.tokens.fetch_add(1, Ordering::Relaxed);
        let token = token.expose_secret();
        if token == "t0ken-away" {
            return Err(Unreviewed("cannot create token review: no answer in time".to_owned()));
        }
        // The name is the token, without what makes it one.
        let name = token.replace("t0ken-", "system:serviceaccount:test:");
        Ok(permissions(token).map(|_| Identity { name, ..Identity::default() }))
    }

    async fn permits(
        &self,
        identity: &Identity,
        permission: Permission,
        _cluster: &ClusterId,
    ) -> Result<bool, Unreviewed> {
        self.accesses.fetch_add(1, Ordering::Relaxed);
        let token = identity.name.replace("system:serviceaccount:test:", "t0ken-");
        Ok(permissions(&token).unwrap_or_default().contains(&permission))
    }
}

impl Directory for Clusters {
    async fn find(&self, id: &ClusterId, registries: &[Offered]) -> Result<Option<KnownCluster>, Unread> {
        let known = |is_deleting, has_registries| {
            let cluster = ClusterRef { id: id.to_string(), incarnation: 7 };
            let names = registries.iter().map(|offered| offered.name.clone()).filter(|_| has_registries);
            Ok(Some(KnownCluster { cluster, is_deleting, registries: names.collect() }))
        };
        match id.as_str() {
            CLUSTER => known(false, true),
            DELETING => known(true, true),
            ELSEWHERE => known(false, false),
            "away" => Err(Unread("cannot get clusters/away: connection refused".to_owned())),
            _ => Ok(None),
        }
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Served {
    /// Serves the API over the ledger of a rig, with its cluster.
    pub(crate) async fn new(limits: Limits) -> (Rig, ClusterRef, Self) {
        let roles = Roles::default();
        let (rig, cluster, served) = Self::with(limits, roles.clone()).await;
        (rig, cluster, Self { roles, ..served })
    }

    /// The same, with this condition for revocations.
    pub(crate) async fn with_revocation(revocation: Approval) -> (Rig, ClusterRef, Self) {
        let roles = Roles::default();
        let (rig, cluster, served) = Self::made(Limits::default(), roles.clone(), revocation).await;
        (rig, cluster, Self { roles, ..served })
    }

    /// The same, with other identities.
    pub(crate) async fn with(limits: Limits, reviewer: impl Reviewer) -> (Rig, ClusterRef, Self) {
        Self::made(limits, reviewer, Approval::None).await
    }

    async fn made(limits: Limits, reviewer: impl Reviewer, revocation: Approval) -> (Rig, ClusterRef, Self) {
        let rig = Rig::new(Kind::Sqlite).await.unwrap();
        let (cluster, ledger) = (rig.cluster(CLUSTER), rig.database.ledger(&[1]));
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry, ledger.database().meter());
        let offered = Offered {
            name: Rig::registry(),
            host: rig.world.registry.host().to_owned(),
            prefix: "hf".parse().unwrap(),
            search: None,
            revocation,
            replaced_within: Duration::from_hours(3),
        };
        let (sources, registries, roles) = (rig.sources(), vec![offered], Roles::default());
        let api = Api::new(Parts { ledger, registries, sources, directory: Clusters, reviewer, metrics, limits });
        let endpoint = Endpoint {
            purpose: "a test",
            host: "127.0.0.1",
            port: 0,
            host_setting: String::new(),
            port_setting: String::new(),
        };
        let listener = serve::listen(&endpoint).await.unwrap();
        let (address, stop, log) = (listener.address(), CancellationToken::new(), Buffer::default());
        let second = Duration::from_secs(1);
        let options = ServeOptions { head_timeout: second * 60, drain_timeout: second, tls: None };
        tokio::spawn(listener.serve(router(api), options, stop.clone()));
        let settings =
            Settings { format: Format::Json, level: LevelFilter::DEBUG, crates: &["credentials", log::AUDIT] };
        let logging = tracing::subscriber::set_default(log::subscriber(settings, log.clone()));
        (rig, cluster, Self { address, roles, registry, log, _stop: stop.drop_guard(), _logging: logging })
    }

    /// Sends a request with the token `t0ken-NAME`.
    pub(crate) async fn send(&self, name: &str, method: &str, path: &str, body: &str) -> Reply {
        let headers = format!("authorization: Bearer t0ken-{name}\r\ncontent-type: application/json\r\n");
        exchange(self.address, method, path, body, &headers).await.unwrap()
    }

    /// The lines of the log, as JSON.
    pub(crate) fn log(&self) -> Vec<BTreeMap<String, serde_json::Value>> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The log.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.log.0.lock().unwrap().clone()).unwrap()
    }
}
