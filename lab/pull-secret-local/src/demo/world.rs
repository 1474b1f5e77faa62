//! The demo's view of the fleet plane: it reports as the other adapters and reads every place.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use docker_config::{Digest, Limits};
use fleet_model::names;
use hyperfleet_client::{Calls, Generation, Patch, Report, Resource, Status};
use kubernetes::SecretKey;
use secrecy::{ExposeSecret as _, SecretSlice};
use secret_store::{
    AnyStore, ErrorKind, Records, SecretId, SecretStore as _, Settings, StoreError, StoreSettings, Version,
    VersionNumber, VersionState,
};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::fleet::Clients;
pub(super) use crate::peer_state::AFTER;
use crate::peer_state::{BEFORE, PeerState};
use crate::peers::{Peers, members};
use crate::store::StorePlace;

/// The story's cluster.
pub(super) const CLUSTER: &str = "cls-demo-1";
/// Its name for people.
const NAME: &str = "demo";
/// The project that its pull secret is kept in.
pub(super) const PROJECT: &str = "demo-project-1";
/// The namespace that placement creates for it.
pub(super) const NAMESPACE: &str = "clusters-cls-demo-1";

/// Maximum time of a step, on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Interval between two observations.
const INTERVAL: Duration = Duration::from_millis(10);
/// One call may take so long.
const CALL: Duration = Duration::from_secs(5);

/// Everything around the story.
pub(super) struct World<'a> {
    peers: Peers<'a>,
    store: AnyStore,
    store_name: &'static str,
    secret: SecretId,
    digest_key: SecretSlice<u8>,
}

impl<'a> World<'a> {
    pub(super) async fn of(clients: &'a Clients, place: &StorePlace) -> anyhow::Result<Self> {
        let digest_key = std::fs::read(&clients.digest_key).context("cannot read the digest key")?;
        Ok(Self {
            peers: Peers::new(clients),
            store: AnyStore::connect(&store_settings(place)?, None).await?,
            store_name: place.name(),
            secret: names::secret_name(&CLUSTER.parse()?).parse()?,
            digest_key: digest_key.into(),
        })
    }

    /// Returns the name of the store, for people.
    pub(super) fn store_name(&self) -> &'static str {
        self.store_name
    }

    /// Returns the cloud of the cluster.
    pub(super) fn provider(&self) -> &'static str {
        match self.store {
            AnyStore::Aws(_) => "aws",
            AnyStore::Azure(_) => "azure",
            AnyStore::Google(_) | AnyStore::Vault(_) => "gcp",
        }
    }

    fn calls(&self) -> Calls<'_> {
        self.peers.calls()
    }

    /// Looks until there is something to see.
    pub(super) async fn until<T>(
        &self,
        what: &str,
        look: impl AsyncFn(&Self) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let last = async || {
            let last = self.report().await?.map(|report| conditions(&report));
            Ok(format!("the adapter: {}", last.unwrap_or_else(|| "it has not reported".to_owned())))
        };
        until(what, async || look(self).await, last).await
    }

    /// The adapter's report that the pull secret is available at this generation.
    pub(super) async fn until_available(&self, generation: Generation) -> anyhow::Result<Report> {
        let available = async |world: &Self| {
            let report = world.report().await?;
            Ok(report.filter(|report| report.observed_generation == generation && is(report, "Available")))
        };
        self.until("Available=True", available).await
    }

    /// Something that must be so.
    #[expect(clippy::unused_self, reason = "it reads as what is seen in the world")]
    pub(super) fn check(&self, what: &str, holds: bool) -> anyhow::Result<()> {
        ensure!(holds, "this should be so, and is not: {what}");
        Ok(())
    }

    pub(super) async fn create(&self, spec: &Value) -> anyhow::Result<Resource> {
        self.peers.create(CLUSTER, NAME, spec).await
    }

    pub(super) async fn patch(&self, spec: &Value) -> anyhow::Result<Resource> {
        let patch = Patch { spec: Some(members(spec)), ..Patch::default() };
        Ok(self.calls().patch("clusters", CLUSTER, &patch, None).await?)
    }

    pub(super) async fn delete(&self) -> anyhow::Result<Resource> {
        self.calls().delete("clusters", CLUSTER).await?.context("the cluster is not there")
    }

    pub(super) async fn cluster(&self) -> anyhow::Result<Option<Resource>> {
        Ok(self.calls().get("clusters", CLUSTER).await?)
    }

    /// The pull secret adapter's last report.
    pub(super) async fn report(&self) -> anyhow::Result<Option<Report>> {
        let reports = self.calls().statuses("clusters", CLUSTER).await;
        let reports = match reports {
            Err(error) if error.is_absent() => return Ok(None),
            reports => reports?,
        };
        Ok(reports.into_iter().find(|report| report.adapter == names::ADAPTER))
    }

    /// Makes what placement makes.
    pub(super) async fn place(&self) -> anyhow::Result<()> {
        self.peers.clients.cluster.ensure_namespace(NAMESPACE).await?;
        Ok(())
    }

    /// Reports as another adapter that it is done.
    pub(super) async fn report_as(&self, adapter: &str, generation: Generation) -> anyhow::Result<()> {
        self.peers.report(adapter, CLUSTER, generation, PeerState::Done).await
    }

    /// Reports for all other adapters that they are done.
    pub(super) async fn report_all(&self, generation: Generation) -> anyhow::Result<()> {
        for adapter in BEFORE.into_iter().chain([AFTER]) {
            self.report_as(adapter, generation).await?;
        }
        Ok(())
    }

    /// Reports for all other adapters that nothing of theirs is left.
    pub(super) async fn finalize_all(&self, generation: Generation) -> anyhow::Result<()> {
        for adapter in BEFORE.into_iter().chain([AFTER]) {
            self.peers.report(adapter, CLUSTER, generation, PeerState::Finalized).await?;
        }
        Ok(())
    }

    /// Publishes an event for the cluster, as the Sentinel does.
    pub(super) async fn publish(&self, generation: Generation) -> anyhow::Result<()> {
        self.peers.publish(CLUSTER, generation).await
    }

    /// Deletes the Kubernetes Secret, as a user with kubectl would.
    pub(super) async fn delete_secret(&self) -> anyhow::Result<()> {
        let key = secret_key()?;
        let seen = self.peers.clients.cluster.find_secret(&key).await?.context("the Kubernetes Secret is not there")?;
        self.peers.clients.cluster.delete_secret(&key, &seen, false).await?;
        Ok(())
    }

    /// The digest of what the Kubernetes Secret holds; `None` if there is none.
    pub(super) async fn applied_secret(&self) -> anyhow::Result<Option<String>> {
        Ok(self.applied_content().await?.map(|content| self.digest(content.expose_secret())))
    }

    /// The content of the Kubernetes Secret; `None` if there is none.
    pub(super) async fn applied_content(&self) -> anyhow::Result<Option<SecretSlice<u8>>> {
        Ok(self.peers.clients.cluster.find_secret(&secret_key()?).await?.and_then(|seen| seen.content))
    }

    /// The digest of what a version holds; `None` if it holds nothing.
    pub(super) async fn stored(&self, version: u64) -> anyhow::Result<Option<String>> {
        let Some(number) = VersionNumber::new(version) else { return Ok(None) };
        Ok(match self.store.read_version(&self.secret, number).await? {
            Version::Live(live) => Some(self.digest(live.content.expose_secret())),
            _ => None,
        })
    }

    /// Returns true if a version carries the record of its run, so that a new generation needs one of its own.
    pub(super) fn has_record_in_versions(&self) -> bool {
        self.store.capabilities().records == Records::WithVersion
    }

    /// The numbers of the versions that hold this content, newest first.
    pub(super) async fn versions_with(&self, content: &[u8]) -> anyhow::Result<Vec<u64>> {
        let wanted = self.digest(content);
        let mut numbers = Vec::new();
        for version in self.store.list_versions(&self.secret).await? {
            let number = version.number.get();
            numbers.extend((self.stored(number).await?.as_ref() == Some(&wanted)).then_some(number));
        }
        Ok(numbers)
    }

    /// All versions: number, state, digest.
    pub(super) async fn versions(&self) -> anyhow::Result<Vec<[String; 3]>> {
        let versions = match self.store.list_versions(&self.secret).await {
            Err(StoreError { kind: ErrorKind::NotFound, .. }) => return Ok(Vec::new()),
            versions => versions?,
        };
        let mut rows = Vec::new();
        for version in versions {
            let state = match version.state {
                VersionState::Live => "enabled",
                VersionState::Disabled => "disabled",
                VersionState::Destroyed => "destroyed",
            };
            let digest = self.stored(version.number.get()).await?.map_or("-".to_owned(), |digest| short(&digest));
            rows.push([version.number.to_string(), state.to_owned(), digest]);
        }
        Ok(rows)
    }

    /// The digest that API, Jobs and this story show in the place of a pull secret.
    pub(super) fn digest(&self, content: &[u8]) -> String {
        let document = docker_config::parse(content, &Limits::default());
        let digest = document.map_or_else(|_problems| Digest::of_bytes(content), |document| document.digest());
        digest.keyed(self.digest_key.expose_secret()).to_string()
    }
}

/// Looks until there is something to see; `last` says how far it has come where that takes too long.
pub(super) async fn until<T>(
    what: &str,
    look: impl AsyncFn() -> anyhow::Result<Option<T>>,
    last: impl AsyncFn() -> anyhow::Result<String>,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(seen) = look().await? {
            return Ok(seen);
        }
        if Instant::now() > deadline {
            bail!("waited {} s in vain for {what}; {}", TIMEOUT.as_secs(), last().await?);
        }
        sleep(INTERVAL).await;
    }
}

/// The settings of the store's client.
fn store_settings(place: &StorePlace) -> anyhow::Result<StoreSettings> {
    Ok(match place {
        StorePlace::SecretManager(endpoint) => StoreSettings::Google(Settings {
            project: PROJECT.parse()?,
            location: None,
            endpoint: endpoint.clone(),
            call_timeout: CALL,
            calls: None,
        }),
        StorePlace::Vault(settings) => StoreSettings::Vault(settings.clone()),
        StorePlace::Aws(settings) => StoreSettings::Aws(settings.clone()),
        StorePlace::Azure(settings) => StoreSettings::Azure(settings.clone()),
    })
}

fn secret_key() -> anyhow::Result<SecretKey> {
    Ok(SecretKey { namespace: NAMESPACE.to_owned(), name: names::kubernetes_secret_name(&CLUSTER.parse()?) })
}

/// Reason and message of a report on one line.
fn conditions(report: &Report) -> String {
    let all: BTreeMap<&str, String> = report
        .conditions
        .iter()
        .map(|condition| {
            let reason = condition.reason.as_deref().unwrap_or("-");
            let message = condition.message.as_deref().unwrap_or_default().replace('\n', " ");
            (condition.kind.as_str(), format!("{} {reason}: {message}", condition.status.as_str()))
        })
        .collect();
    let all: Vec<String> = all.into_iter().map(|(kind, words)| format!("{kind} {words}")).collect();
    format!("at generation {}: {}", report.observed_generation, all.join("; "))
}

pub(super) fn is(report: &Report, condition: &str) -> bool {
    report.condition(condition).is_some_and(|condition| condition.status == Status::True)
}

/// The beginning of a digest: enough to distinguish contents.
pub(super) fn short(digest: &str) -> String {
    let end = digest.len().min(24);
    format!("{}…", digest.get(..end).unwrap_or(digest))
}
