//! The listener of the HTTP API.

use std::net::SocketAddr;
use std::time::Duration;

use daemon::certificates::Certificates;
use daemon::serve::{self, Endpoint, Listener, ServeOptions};
use kubernetes::Cluster;
use registry_account::contract::Registry;
use tokio_util::sync::CancellationToken;

use super::start::StartError;
use crate::credential::RegistryName;
use crate::http::{Api, ApiDirectory, KubernetesReviewer, Limits, Offered, Parts, router};
use crate::metrics::Metrics;
use crate::publish::ApiClusters;
use crate::run::{Served, Worker};
use crate::settings::{Checked, ServerSettings, table};

/// Maximum time for a client to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time for open requests to finish at a shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time of a review by Kubernetes.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time to find a cluster.
const FIND_TIMEOUT: Duration = Duration::from_secs(10);

/// The HTTP API with its bound listener.
#[derive(Debug)]
pub(super) struct ApiListener {
    listener: Listener,
    options: ServeOptions,
    api: Api<KubernetesReviewer, ApiDirectory>,
}

// === impl ApiListener ===

impl ApiListener {
    /// Binds the listener, if the HTTP API is served. No request is sent.
    pub(super) async fn prepare<R: Registry>(
        checked: &Checked,
        worker: &Worker<R, ApiClusters>,
        directory: ApiDirectory,
        metrics: Metrics,
        certificates: &Certificates,
    ) -> Result<Option<Self>, StartError> {
        let settings = &checked.settings.server;
        if !settings.enabled {
            return Ok(None);
        }
        let ServerSettings { host, port, audience, kubeconfig, requests_per_minute, rotations_per_hour, .. } = settings;
        let reviews = kubernetes::Settings {
            kubeconfig: kubeconfig.clone(),
            call_timeout: REVIEW_TIMEOUT,
            ..kubernetes::Settings::default()
        };
        let unusable = |error: kubernetes::KubernetesError| StartError::Setting(format!("server.kubeconfig: {error}"));
        let cluster = Cluster::connect(&reviews).await.map_err(unusable)?;
        if let Some(certificate) = cluster.client_certificate() {
            certificates.add_client("server.kubeconfig", certificate);
        }
        let search =
            |name: &RegistryName| checked.registries.iter().find(|configured| configured.name == *name)?.search.clone();
        let offered = worker.registries.iter().map(|(name, served)| {
            let Served { registry, prefix, policy, .. } = served;
            let (host, replaced_within) = (registry.host().to_owned(), policy.deadline.saturating_add(policy.quiet));
            Offered {
                name: name.clone(),
                host,
                prefix: prefix.clone(),
                search: search(name),
                revocation: policy.revocation,
                replaced_within,
            }
        });
        let api = Api::new(Parts {
            ledger: worker.ledger.clone(),
            registries: offered.collect(),
            sources: worker.sources.clone(),
            directory,
            reviewer: KubernetesReviewer { cluster, audience: audience.clone() },
            metrics,
            limits: Limits {
                per_minute: *requests_per_minute,
                rotations_per_hour: *rotations_per_hour,
                ..Limits::default()
            },
        });
        let endpoint = Endpoint::new(&table::TABLE, "server", "the HTTP API", host, *port);
        let (listener, options) = (serve::listen(&endpoint).await?, options(settings, certificates)?);
        Ok(Some(Self { listener, options, api }))
    }

    /// Returns what finds clusters for it.
    pub(super) fn directory(client: &hyperfleet_client::Client, stop: CancellationToken) -> ApiDirectory {
        ApiDirectory { client: client.clone(), time: FIND_TIMEOUT, stop }
    }

    /// Returns the bound address.
    pub(super) fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Serves until `stop`; open requests are finished first.
    pub(super) async fn serve(self, stop: CancellationToken) {
        self.listener.serve(router(self.api), self.options, stop).await;
    }
}

fn options(settings: &ServerSettings, certificates: &Certificates) -> Result<ServeOptions, StartError> {
    let tls = match (&settings.tls.cert_file, &settings.tls.key_file) {
        (Some(certificate), Some(key)) => Some(serve::tls(certificate, key, certificates)),
        _ => None,
    };
    let tls = tls.transpose().map_err(|error| StartError::Setting(format!("server.tls: {error}")))?;
    Ok(ServeOptions { head_timeout: HEAD_TIMEOUT, drain_timeout: DRAIN_TIMEOUT, tls })
}
