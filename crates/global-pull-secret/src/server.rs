//! A running Global Pull Secret controller: listeners, readiness, shutdown.

use std::net::SocketAddr;

use daemon::certificates::Certificates;
use daemon::probes::Probes;
use daemon::readiness::{Readiness, ReadinessSender};
use daemon::serve::{Endpoint, ListenError};
use fleet_model::names;
use kubernetes::{Cluster, KubernetesError};
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::finding::Mode;
use crate::metrics::Metrics;
use crate::probe::{Gate, Prober, SetupError};
use crate::run::{Caches, Controller, Progress, Source, WatchTargets};
use crate::settings::{Checked, table};

/// A controller whose listeners are bound and that has not started yet.
#[derive(Debug)]
pub struct Server {
    checked: Checked,
    hosted: Cluster,
    control_plane: Cluster,
    probes: Probes,
    metrics: Metrics,
    prober: Option<Prober>,
    progress: watch::Sender<Progress>,
}

/// Errors that prevent a controller from starting.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A cluster's client cannot be set up.
    #[error("{setting}")]
    Cluster {
        /// The setting that configures the client.
        setting: &'static str,
        /// The cause.
        source: KubernetesError,
    },
    /// The client of the registry probe cannot be set up.
    #[error(transparent)]
    Probe(#[from] SetupError),
    /// An address cannot be bound.
    #[error(transparent)]
    Listen(#[from] ListenError),
}

/// Sets up the clients of the hosted cluster and of the cluster with its control plane. Sends no request.
pub async fn connect(checked: &Checked) -> Result<(Cluster, Cluster), StartError> {
    let settings = |kubeconfig: &Option<std::path::PathBuf>| kubernetes::Settings {
        kubeconfig: kubeconfig.clone(),
        call_timeout: checked.settings.call_timeout,
        program: names::GLOBAL_MANAGER,
        ..kubernetes::Settings::default()
    };
    let failed = |setting| move |source| StartError::Cluster { setting, source };
    let control_plane =
        Cluster::connect(&settings(&checked.settings.kubeconfig)).await.map_err(failed("kubeconfig"))?;
    let hosted = match &checked.settings.hosted_kubeconfig {
        None => control_plane.clone(),
        given => Cluster::connect(&settings(given)).await.map_err(failed("hosted_kubeconfig"))?,
    };
    Ok((hosted, control_plane))
}

impl Server {
    /// Binds the listeners. The clusters may be unavailable.
    pub async fn prepare(checked: Checked) -> Result<Self, StartError> {
        let (hosted, control_plane) = connect(&checked).await?;
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let certificates = Certificates::register(&mut registry);
        let hosted_kubeconfig = checked.settings.hosted_kubeconfig.as_ref().map(|_file| ("hosted_kubeconfig", &hosted));
        for (setting, cluster) in [("kubeconfig", &control_plane)].into_iter().chain(hosted_kubeconfig) {
            if let Some(certificate) = cluster.client_certificate() {
                certificates.add_client(setting, certificate);
            }
        }
        let readiness = ReadinessSender::not_ready("has not read the clusters yet");
        let settings = &checked.settings;
        let health = Endpoint::new(&table::TABLE, "health", "probes", &settings.health.host, settings.health.port);
        let exposed = Endpoint::new(&table::TABLE, "metrics", "metrics", &settings.metrics.host, settings.metrics.port);
        Ok(Self {
            probes: Probes::listen(&health, &exposed, registry, readiness).await?,
            prober: prober(&checked)?,
            checked,
            hosted,
            control_plane,
            metrics,
            progress: watch::Sender::new(Progress::default()),
        })
    }

    /// Bound address of the health listener.
    pub fn health_address(&self) -> SocketAddr {
        self.probes.health_address()
    }

    /// Bound address of the metrics listener.
    pub fn metrics_address(&self) -> SocketAddr {
        self.probes.metrics_address()
    }

    /// Progress of the controller.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Reconciles the hosted cluster until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let Self { checked, hosted, control_plane, probes, metrics, prober, progress } = self;
        let targets = WatchTargets {
            hosted: &hosted,
            control_plane: &control_plane,
            namespace: &checked.namespace,
            original: &checked.settings.original_secret,
        };
        let source = checked.source.clone().map(|key| Source { cluster: control_plane.clone(), key });
        let controller = Controller {
            hosted: hosted.clone(),
            policy: checked.policy,
            prober,
            source,
            metrics,
            progress: progress.clone(),
        };
        let caches = Caches::new(checked.settings.labelled_additional);
        let readiness = probes.readiness();
        let work = async {
            tokio::select! {
                () = controller.run(caches, targets, stop.clone()) => {}
                () = readiness.follow(progress.subscribe(), Progress::readiness) => {}
            }
        };
        Box::pin(probes.serve_during(stop.clone(), work)).await;
    }
}

fn prober(checked: &Checked) -> Result<Option<Prober>, SetupError> {
    let (rules, settings) = (&checked.policy.probe, &checked.settings.probe);
    if rules.mode == Mode::Off {
        return Ok(None);
    }
    let gate = Gate { deny: rules.deny.clone(), allow_private: settings.allow_private, plain_loopback: false };
    Prober::new(gate, settings.ca_file.as_deref(), settings.timeout).map(Some)
}

impl Progress {
    fn readiness(&self) -> Readiness {
        match &self.failure {
            Some(message) => Readiness::NotReady(message.clone()),
            None if !self.has_synced => Readiness::NotReady("has not read the clusters yet".to_owned()),
            None => Readiness::Ready,
        }
    }
}
