//! A running controller: its parts put together, its probes, its end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use daemon::probes::{self, Readiness};
use daemon::serve::{self, Listener, Manners};
use fleet_model::names;
use kubernetes::{Cluster, KubernetesError};
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::decide::probe::Mode;
use crate::metrics::Metrics;
use crate::probe::{Gate, Prober, SetupError};
use crate::run::{Caches, Controller, Progress, WatchTargets};
use crate::settings::{Address, Checked};

/// A controller whose addresses are taken and that does nothing yet.
#[derive(Debug)]
pub struct Server {
    checked: Checked,
    hosted: Cluster,
    control_plane: Cluster,
    health: Listener,
    metrics: Listener,
    metered: Arc<Registry>,
    counts: Metrics,
    prober: Option<Prober>,
    progress: watch::Sender<Progress>,
}

/// Why a controller does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A cluster's client could not be set up.
    #[error("{what}")]
    Cluster {
        /// Which setting.
        what: &'static str,
        /// Why not.
        source: KubernetesError,
    },
    /// Nobody can ask registries.
    #[error(transparent)]
    Probe(#[from] SetupError),
    /// An address is taken or not ours.
    #[error("cannot listen at {what}.host and {what}.port: {kind}")]
    Listen {
        /// Which of the listeners.
        what: &'static str,
        /// Why not.
        kind: io::ErrorKind,
    },
}

/// The hosted cluster, and the one with its control plane. No request is sent.
pub async fn connect(checked: &Checked) -> Result<(Cluster, Cluster), StartError> {
    let settings = |kubeconfig: &Option<std::path::PathBuf>| kubernetes::Settings {
        kubeconfig: kubeconfig.clone(),
        call_timeout: checked.settings.call_timeout,
        program: names::GLOBAL_MANAGER,
        ..kubernetes::Settings::default()
    };
    let failed = |what| move |source| StartError::Cluster { what, source };
    let control_plane =
        Cluster::connect(&settings(&checked.settings.kubeconfig)).await.map_err(failed("kubeconfig"))?;
    let hosted = match &checked.settings.hosted_kubeconfig {
        None => control_plane.clone(),
        given => Cluster::connect(&settings(given)).await.map_err(failed("hosted_kubeconfig"))?,
    };
    Ok((hosted, control_plane))
}

impl Server {
    /// Puts a controller together and takes its addresses. No cluster need be there.
    pub async fn prepare(checked: Checked) -> Result<Self, StartError> {
        let (hosted, control_plane) = connect(&checked).await?;
        let mut registry = Registry::default();
        let counts = Metrics::register(&mut registry);
        Ok(Self {
            health: listen("health", &checked.settings.health).await?,
            metrics: listen("metrics", &checked.settings.metrics).await?,
            metered: Arc::new(registry),
            prober: prober(&checked)?,
            checked,
            hosted,
            control_plane,
            counts,
            progress: watch::Sender::new(Progress::default()),
        })
    }

    /// Where probes are answered.
    pub fn health_address(&self) -> SocketAddr {
        self.health.address()
    }

    /// Where metrics are served.
    pub fn metrics_address(&self) -> SocketAddr {
        self.metrics.address()
    }

    /// The progress.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Looks after the hosted cluster until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let Self { checked, hosted, control_plane, health, metrics, metered, counts, prober, progress } = self;
        let served = CancellationToken::new();
        let second = Duration::from_secs(1);
        let manners = Manners { head_timeout: second * 5, drain_timeout: second, tls: None };
        let (readiness, _) = watch::channel(progress.borrow().readiness());
        let probes = async {
            tokio::join!(
                health.serve(probes::health(readiness.subscribe()), manners.clone(), served.clone()),
                metrics.serve(probes::metrics(metered), manners.clone(), served.clone()),
            )
        };
        let tell_readiness = async {
            let mut progress = progress.subscribe();
            loop {
                let now = progress.borrow_and_update().readiness();
                readiness.send_if_modified(|shown| std::mem::replace(shown, now.clone()) != now);
                if progress.changed().await.is_err() {
                    return;
                }
            }
        };
        let targets = WatchTargets {
            hosted: &hosted,
            control_plane: &control_plane,
            namespace: &checked.namespace,
            original: &checked.settings.original_secret,
        };
        let controller = Controller {
            hosted: hosted.clone(),
            policy: checked.policy,
            prober,
            metrics: counts,
            progress: progress.clone(),
        };
        let work = async {
            tokio::select! {
                () = controller.run(Caches::new(checked.settings.labelled_additional), targets, stop) => {}
                () = tell_readiness => {}
            }
            readiness.send_replace(Readiness::ShuttingDown);
            served.cancel();
        };
        tokio::join!(probes, work);
    }
}

fn prober(checked: &Checked) -> Result<Option<Prober>, SetupError> {
    let (rules, settings) = (&checked.policy.probe, &checked.settings.probe);
    if rules.mode == Mode::Off {
        return Ok(None);
    }
    let gate = Gate { deny: rules.deny.clone(), allow_private: settings.allow_private };
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

async fn listen(what: &'static str, address: &Address) -> Result<Listener, StartError> {
    serve::listen(&address.host, address.port).await.map_err(|error| StartError::Listen { what, kind: error.kind() })
}
