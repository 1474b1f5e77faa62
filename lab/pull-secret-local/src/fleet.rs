//! The whole fleet plane in one process: started in order, watched over, ended in order.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use daemon::environment::{Environment as _, ProcessEnvironment};
use emulators::key_vault::{self, KeyVault};
use emulators::kubernetes::{self as emulated, Authorization, Kubernetes, User};
use emulators::secret_manager::{self, SecretManager as SecretManagerEmulator};
use hyperfleet_client::{BaseUrl, Client};
use kubernetes::Cluster;
use message_broker::memory::Memory;
use message_broker::{Broker, Name};
use secret_store::{AzureIdentity, AzureSettings, Endpoint, EndpointUrl};
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;
use tracing::level_filters::LevelFilter;

use crate::adapter::{self, NAMESPACE, SERVICE_ACCOUNT};
use crate::daemons::{self, HOST};
use crate::emulator;
use crate::folder::{Folder, Port, Ports};
use crate::options::{Options, STORE_TIMEOUT, Store};
use crate::parts::Parts;
use crate::ready;
use crate::scenario::Scenario;
use crate::store::StorePlace;

/// Lifetime of the assertion for the emulator of Azure Key Vault, which nothing renews.
const ASSERTION_LIFETIME: Duration = Duration::from_hours(24 * 365);

/// The topic that Sentinel and adapter share.
const TOPIC: &str = "hyperfleet-clusters";

/// One call to Kubernetes may take so long.
const KUBERNETES_TIMEOUT: Duration = Duration::from_secs(10);

/// Variables by which Jobs export traces as this process does.
const TRACES_VARIABLES: [&str; 6] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_CERTIFICATE",
    "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
];

/// A running fleet plane.
#[derive(Debug)]
pub(crate) struct Fleet {
    /// The data directory.
    pub(crate) folder: Folder,
    /// The addresses of all parts.
    pub(crate) places: Places,
    clients: Clients,
    parts: Parts,
}

/// The addresses of all parts.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// The API's address, without its path.
    pub(crate) api: String,
    /// The kubeconfig that leads to the cluster.
    pub(crate) kubeconfig: PathBuf,
    /// The cluster's address.
    pub(crate) kubernetes: String,
    /// The place of pull secrets.
    pub(crate) store: StorePlace,
    /// The place of the mirror.
    pub(crate) mirror: Option<StorePlace>,
    /// Every listener by its name.
    pub(crate) listeners: BTreeMap<&'static str, SocketAddr>,
}

/// Clients with which the demo reports as the other adapters.
#[derive(Clone, Debug)]
pub(crate) struct Clients {
    pub(crate) client: Client,
    pub(crate) cluster: Cluster,
    pub(crate) broker: Broker,
    pub(crate) topic: Name,
    /// The file with the key of all digests.
    pub(crate) digest_key: PathBuf,
    /// The kubeconfig that leads to the cluster.
    pub(crate) kubeconfig: PathBuf,
}

/// The state of the start.
struct Start<'a> {
    options: &'a Options,
    folder: Folder,
    ports: Ports,
    parts: Parts,
    listeners: BTreeMap<&'static str, SocketAddr>,
}

/// The program that the Jobs' image stands for.
pub(crate) fn job_program() -> anyhow::Result<PathBuf> {
    let running = std::env::current_exe().context("cannot find this program's own file")?;
    let program = daemon::program::find("pull-secret", &running, &ProcessEnvironment)?;
    program.context("the program pull-secret, which Jobs run, is neither beside this program nor on PATH; build it with: cargo build --package pull-secret")
}

// === impl Fleet ===

impl Fleet {
    /// Starts everything and waits until all of it is ready. What has started is ended again where something cannot.
    pub(crate) async fn start(options: &Options) -> anyhow::Result<Self> {
        let folder = Folder::open(options.data_dir.as_deref())?;
        let ports = folder.ports(options.port);
        ports.check()?;
        let start = Start { options, folder, ports, parts: Parts::new(), listeners: BTreeMap::new() };
        let mut fleet = Box::pin(start.all()).await?;
        tokio::select! {
            ready = ready::wait(&fleet.places) => ready?,
            error = fleet.parts.failure() => {
                fleet.stop().await;
                return Err(error);
            }
        }
        Ok(fleet)
    }

    /// Clients with which the demo reports as the other adapters.
    pub(crate) fn clients(&self) -> Clients {
        self.clients.clone()
    }

    /// Adds a part, which is ended before those that are there.
    pub(crate) fn add<W>(&mut self, name: &'static str, work: impl FnOnce(CancellationToken) -> W)
    where
        W: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        self.parts.start(name, work);
    }

    /// Waits until a part has ended by itself, and says why.
    pub(crate) async fn failure(&mut self) -> anyhow::Error {
        self.parts.failure().await
    }

    /// Ends everything: first nothing new is begun, then what was begun is finished, then what it needed goes.
    pub(crate) async fn stop(self) {
        let Self { folder, parts, clients, .. } = self;
        let _cut = parts.stop().await;
        drop(clients);
        folder.close();
    }
}

// === impl Start ===

impl Start<'_> {
    async fn all(mut self) -> anyhow::Result<Fleet> {
        let store = self.place(&self.options.store).await?;
        let mirror = match &self.options.mirror {
            Some(mirror) => Some(self.place(mirror).await?),
            None => None,
        };
        let kubeconfig = self.kubernetes().await?;
        let settings = kubernetes::Settings {
            kubeconfig: Some(kubeconfig.clone()),
            call_timeout: KUBERNETES_TIMEOUT,
            ..kubernetes::Settings::default()
        };
        let cluster = Cluster::connect(&settings).await?;
        cluster.ensure_namespace(NAMESPACE).await?;
        cluster.ensure_service_account(NAMESPACE, SERVICE_ACCOUNT).await?;
        let broker = self.broker().await?;
        let topic: Name = TOPIC.parse()?;
        let api = self.api().await?;
        let client = Client::new(hyperfleet_client::Settings::new(api.parse::<BaseUrl>()?))?;
        let wiring = adapter::Wiring {
            folder: &self.folder,
            ports: &self.ports,
            api: &api,
            image: &self.options.image,
            environment: self.job_environment(&kubeconfig, [&store].into_iter().chain(&mirror))?,
            topic: &topic,
            store: &store,
            mirror: mirror.as_ref(),
            secret_namespaces: self.options.scenario.map(Scenario::secret_namespaces).unwrap_or_default(),
        };
        let adapter = Box::pin(adapter::prepare(&wiring, broker.clone(), cluster.clone())).await?;
        self.listeners
            .extend([("adapter health", adapter.health_address()), ("adapter metrics", adapter.metrics_address())]);
        self.parts.start("adapter", |stop| async move {
            Box::pin(adapter.run(stop)).await;
            Ok(())
        });
        let sentinel = daemons::sentinel(&self.folder, &self.ports, &api, broker.clone(), &topic).await?;
        self.listeners
            .extend([("sentinel health", sentinel.health_address()), ("sentinel metrics", sentinel.metrics_address())]);
        self.parts.start("sentinel", |stop| async move {
            Box::pin(sentinel.run(stop)).await;
            Ok(())
        });
        let Self { folder, parts, listeners, .. } = self;
        let taken = listeners.iter().map(|(name, address)| (name.replace(' ', "-"), address.port())).collect();
        folder.remember(&taken)?;
        let kubernetes = cluster.server().trim_end_matches('/').to_owned();
        let places = Places { api, kubeconfig: kubeconfig.clone(), kubernetes, store, mirror, listeners };
        let digest_key = folder.key("digest-key")?;
        let clients = Clients { client, cluster, broker, topic, digest_key, kubeconfig };
        Ok(Fleet { folder, places, clients, parts })
    }

    async fn place(&mut self, store: &Store) -> anyhow::Result<StorePlace> {
        let endpoint = match store {
            Store::Vault(vault) => return Ok(StorePlace::Vault(vault.clone())),
            Store::Aws(aws) => return Ok(StorePlace::Aws(aws.clone())),
            Store::Azure(azure) => return Ok(StorePlace::Azure(azure.clone())),
            Store::EmbeddedAzure => return self.key_vault().await.map(StorePlace::Azure),
            Store::Google => Endpoint::Provider,
            Store::Emulator(host) => {
                let token_file = ProcessEnvironment.text("SECRET_MANAGER_EMULATOR_TOKEN_FILE")?.map(PathBuf::from);
                Endpoint::Emulator { host: host.clone(), token_file }
            }
            Store::Embedded => {
                let listen = (HOST, self.ports.of(Port::SecretManager)).into();
                let data_dir = self.folder.is_kept().then(|| self.folder.path("secret-manager"));
                let token_file = self.folder.token("secret-manager-token")?;
                let required_token = Some(fs::read_to_string(&token_file).context("cannot read the emulator's token")?);
                let settings = secret_manager::Settings {
                    listen,
                    data_dir,
                    required_token,
                    faults: self.options.faults.secret_manager.clone(),
                    ..secret_manager::Settings::default()
                };
                let mut server = SecretManagerEmulator::start(settings).await?;
                let address = server.address();
                self.listeners.insert("secret-manager", address);
                self.parts.start("secrets", |stop| async move {
                    tokio::select! {
                        () = stop.cancelled() => server.shutdown().await,
                        () = server.stopped() => bail!("the emulator has stopped"),
                    }
                    Ok(())
                });
                Endpoint::Emulator { host: address.to_string(), token_file: Some(token_file) }
            }
        };
        Ok(StorePlace::SecretManager(endpoint))
    }

    /// Starts the emulator of Azure Key Vault, with a workload identity whose assertion lasts as long as anything here.
    async fn key_vault(&mut self) -> anyhow::Result<AzureSettings> {
        let identity = key_vault::Identity::admin();
        let subject = identity.subject.clone().unwrap_or_default();
        let settings = key_vault::Settings {
            listen: (HOST, self.ports.of(Port::SecretManager)).into(),
            token_lifetime: ASSERTION_LIFETIME,
            identities: vec![identity.clone()],
            ..key_vault::Settings::default()
        };
        let tenant = settings.tenant.clone();
        let mut server = KeyVault::start(settings).await?;
        let [ca_file, token_file] = ["key-vault-ca.crt", "key-vault-assertion"].map(|name| self.folder.path(name));
        daemon::file::replace(&ca_file, server.authority().as_bytes())?;
        daemon::file::replace(&token_file, server.assertion(&subject).as_bytes())?;
        let url: EndpointUrl = server.url().parse()?;
        self.listeners.insert("key-vault", server.address());
        self.parts.start("secrets", |stop| async move {
            tokio::select! {
                () = stop.cancelled() => server.shutdown().await,
                () = server.stopped() => bail!("the emulator has stopped"),
            }
            Ok(())
        });
        Ok(AzureSettings {
            vault: url.clone(),
            identity: AzureIdentity::Workload { authority: url, tenant, client_id: identity.client_id, token_file },
            ca_file: Some(ca_file),
            purge: true,
            call_timeout: STORE_TIMEOUT,
            calls: None,
        })
    }

    async fn kubernetes(&mut self) -> anyhow::Result<PathBuf> {
        if let Some(kubeconfig) = &self.options.kubeconfig {
            return std::path::absolute(kubeconfig).context("--kubeconfig");
        }
        let program = job_program()?;
        let (pod_lines, lines) = unbounded_channel();
        let data_dir = self.folder.is_kept().then(|| self.folder.path("kubernetes"));
        let settings = emulated::Settings {
            listen: (HOST, self.ports.of(Port::Kubernetes)).into(),
            authorization: Authorization::Rbac,
            tokens: BTreeMap::from([(emulator::token(data_dir.as_deref())?, User::admin())]),
            data_dir,
            pods_dir: Some(self.folder.path("pods")),
            run_pods: BTreeMap::from([(self.options.image.clone(), program)]),
            pod_lines: Some(pod_lines),
            faults: self.options.faults.kubernetes.clone(),
            ..emulated::Settings::default()
        };
        let mut server = Kubernetes::start(settings).await?;
        let kubeconfig = self.folder.path("kubeconfig");
        daemon::file::replace(&kubeconfig, server.kubeconfig().as_bytes())?;
        self.listeners.insert("kubernetes", server.address());
        self.parts.start("cluster", |stop| async move {
            let logging = tokio::spawn(crate::jobs::log(lines));
            tokio::select! {
                () = stop.cancelled() => server.shutdown().await,
                () = server.stopped() => bail!("the emulator has stopped"),
            }
            logging.abort();
            Ok(())
        });
        Ok(kubeconfig)
    }

    async fn broker(&self) -> anyhow::Result<Broker> {
        match &self.options.broker {
            Some(broker) => Ok(broker.clone()),
            None => Ok(Broker::Memory(Memory::open(&self.folder.path("broker.db")).await?)),
        }
    }

    async fn api(&mut self) -> anyhow::Result<String> {
        let server = Box::pin(daemons::api(&self.folder, &self.ports, self.options)).await?;
        self.listeners.extend([
            ("api", server.address()),
            ("api health", server.health_address()),
            ("api metrics", server.metrics_address()),
        ]);
        let place = format!("http://{}", server.address());
        self.parts.start("api", |stop| async move {
            Box::pin(server.run(stop)).await.context("the database cannot be used")
        });
        Ok(place)
    }

    /// Additional environment variables of Jobs.
    fn job_environment<'a>(
        &self,
        kubeconfig: &std::path::Path,
        stores: impl Iterator<Item = &'a StorePlace>,
    ) -> anyhow::Result<BTreeMap<String, String>> {
        let mut environment = BTreeMap::new();
        let mut set = |name: &str, value: String| environment.insert(name.to_owned(), value);
        if self.options.level != LevelFilter::OFF {
            set("LOG_LEVEL", self.options.level.to_string());
        }
        // Headers stay out: the Pods' environment is no place for a credential.
        for name in self.options.export.iter().flat_map(|_| TRACES_VARIABLES) {
            if let Some(value) = ProcessEnvironment.text(name)? {
                set(name, value);
            }
        }
        if self.options.kubeconfig.is_some() {
            // Files of this machine are not in a cluster's pods; their identity comes from the cluster.
            let variables = stores.flat_map(StorePlace::variables);
            environment.extend(variables.map(|(name, value)| (name.to_owned(), value)));
            return Ok(environment);
        }
        set("DIGEST_KEY_FILE", self.folder.key("digest-key")?.display().to_string());
        set("MANAGEMENT_KUBECONFIG", kubeconfig.display().to_string());
        for store in stores {
            environment.extend(store.job_variables()?.into_iter().map(|(name, value)| (name.to_owned(), value)));
        }
        Ok(environment)
    }
}
