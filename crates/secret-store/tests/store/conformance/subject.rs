//! A store under test, with operations of an administrator that the contract does not have.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use emulators::secret_manager::{SecretManager, Settings as Emulator};
use google_cloud_auth::credentials::anonymous;
use google_cloud_secretmanager_v1::client::SecretManagerService;
use secrecy::ExposeSecret as _;
use secret_store::{
    AwsStore, AzureStore, ErrorKind, GoogleSecretManager, MemoryStore, Metadata, NewVersion, RecordingMemoryStore,
    Replication, SecretId, SecretStore, Settings, StoreError, VaultStore, Version, VersionNumber,
};

use crate::aws::moto::Moto;
use crate::azure::key_vault::FastVault;
use crate::rig::{bytes, new_secret, number, secret_id, settings, texts};
use crate::vault::hashicorp::HashiCorp;
use crate::vault::server::OpenBao;

pub(super) struct Subject<S> {
    pub(super) store: Arc<S>,
    pub(super) secret: SecretId,
    pub(super) replication: Replication,
    administrator: Administrator,
}

/// The record of a version with this content. It names the content by a digest, as the Job's does.
pub(super) fn record_of(content: &[u8]) -> BTreeMap<String, String> {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    texts(&[("hyperfleet-digest", &format!("{:016x}", hasher.finish())), ("empty", "")])
}

/// Disables versions as an administrator does.
enum Administrator {
    Memory(Arc<MemoryStore>),
    RecordingMemory(Arc<RecordingMemoryStore>),
    Emulator(SecretManager),
    OpenBao(OpenBao),
    HashiCorp(HashiCorp),
    Moto(Moto),
    KeyVault(FastVault),
}

// === impl Subject ===

impl Subject<MemoryStore> {
    #[expect(clippy::unused_async, reason = "the subjects are made alike")]
    pub(super) async fn in_memory() -> Option<Self> {
        let store = Arc::new(MemoryStore::new());
        let administrator = Administrator::Memory(Arc::clone(&store));
        Some(Self::of(store, administrator))
    }
}

impl Subject<RecordingMemoryStore> {
    #[expect(clippy::unused_async, reason = "the subjects are made alike")]
    pub(super) async fn in_memory_with_records() -> Option<Self> {
        let store = Arc::new(RecordingMemoryStore::new());
        let administrator = Administrator::RecordingMemory(Arc::clone(&store));
        Some(Self::of(store, administrator))
    }
}

impl Subject<GoogleSecretManager> {
    pub(super) async fn at_google() -> Option<Self> {
        Some(Self::over_emulator(None).await)
    }

    pub(super) async fn at_google_in_one_region() -> Option<Self> {
        Some(Self::over_emulator(Some("europe-west1")).await)
    }

    async fn over_emulator(location: Option<&str>) -> Self {
        let server = SecretManager::start(Emulator::default()).await.unwrap();
        let location = location.map(|location| location.parse().unwrap());
        let replication = match &location {
            None => Replication::Automatic { kms_key: None },
            Some(_) => Replication::Regional { kms_key: None },
        };
        let settings = Settings { location, ..settings(server.address()) };
        let store = Arc::new(GoogleSecretManager::connect(&settings).await.unwrap());
        Self { store, secret: secret_id(), replication, administrator: Administrator::Emulator(server) }
    }
}

impl Subject<VaultStore> {
    /// In a folder of its own; `None` if there is no server.
    pub(super) async fn at_openbao() -> Option<Self> {
        let server = OpenBao::shared().await?;
        Some(Self::of(Arc::new(server.store()), Administrator::OpenBao(server)))
    }

    pub(super) async fn as_hashicorp() -> Option<Self> {
        let server = HashiCorp::before(OpenBao::shared().await?).await;
        Some(Self::of(Arc::new(server.store()), Administrator::HashiCorp(server)))
    }
}

impl Subject<AwsStore> {
    /// In a folder of its own; `None` if there is no server.
    pub(super) async fn at_moto() -> Option<Self> {
        let server = Moto::new()?;
        Some(Self::of(Arc::new(server.store().await), Administrator::Moto(server)))
    }
}

impl Subject<AzureStore> {
    pub(super) async fn at_key_vault() -> Option<Self> {
        let vault = FastVault::new().await;
        Some(Self::of(Arc::new(vault.store()), Administrator::KeyVault(vault)))
    }
}

impl<S: SecretStore> Subject<S> {
    fn of(store: Arc<S>, administrator: Administrator) -> Self {
        Self { store, secret: secret_id(), replication: Replication::Automatic { kms_key: None }, administrator }
    }

    pub(super) async fn create(&self) {
        self.store.create(&self.secret, &new_secret(self.replication.clone())).await.unwrap();
    }

    /// Creates the secret with these versions.
    pub(super) async fn create_with(&self, contents: &[&str]) {
        self.create().await;
        for content in contents {
            self.add(content.as_bytes()).await.unwrap();
        }
    }

    pub(super) async fn metadata(&self) -> Metadata {
        self.store.find(&self.secret).await.unwrap().unwrap().metadata
    }

    /// Adds a version with the next number.
    pub(super) async fn add(&self, content: &[u8]) -> Result<VersionNumber, StoreError> {
        let newest = self.store.newest_version(&self.secret).await.unwrap();
        let next = newest.map_or(VersionNumber::FIRST, |newest| newest.number.next());
        self.add_as(next.get(), content).await
    }

    /// Adds a version with this number and a record that names the content.
    pub(super) async fn add_as(&self, version: u64, content: &[u8]) -> Result<VersionNumber, StoreError> {
        let (content, record) = (bytes(content), record_of(content));
        self.store
            .add_version(&self.secret, &NewVersion { number: number(version), content: &content, record: &record })
            .await
    }

    pub(super) async fn read(&self, version: u64) -> Version {
        self.store.read_version(&self.secret, number(version)).await.unwrap()
    }

    /// Checks that a version is live and what its content is.
    pub(super) async fn reads(&self, version: u64, content: &[u8]) {
        let read = self.read(version).await;
        let same = matches!(&read, Version::Live(found) if found.content.expose_secret() == content);
        assert!(same, "version {version} is {read:?}, perhaps with another content");
    }

    pub(super) async fn destroy(&self, version: u64) -> Result<(), StoreError> {
        self.store.destroy_version(&self.secret, number(version)).await
    }

    pub(super) async fn disable(&self, version: u64) {
        match &self.administrator {
            Administrator::Memory(store) => store.disable_version(&self.secret, number(version)).unwrap(),
            Administrator::RecordingMemory(store) => store.disable_version(&self.secret, number(version)).unwrap(),
            Administrator::OpenBao(server) => server.disable(&self.secret, version).await,
            Administrator::HashiCorp(server) => server.behind.disable(&self.secret, version).await,
            Administrator::KeyVault(vault) => vault.disable(&self.secret, version).await,
            Administrator::Moto(server) => server.lead_readers_back_from(&self.secret, version).await,
            Administrator::Emulator(server) => {
                let builder = SecretManagerService::builder().with_endpoint(format!("http://{}", server.address()));
                let client = builder.with_credentials(anonymous::Builder::new().build()).build().await.unwrap();
                let name = format!("{}/versions/{version}", self.store.path(&self.secret));
                client.disable_secret_version().set_name(name).send().await.unwrap();
            }
        }
    }

    /// Checks how a call on the secret failed.
    #[track_caller]
    pub(super) fn refused<T: fmt::Debug>(&self, result: Result<T, StoreError>, kind: ErrorKind) {
        let error = result.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.resource.starts_with(&self.store.path(&self.secret)), "{error}");
    }
}
