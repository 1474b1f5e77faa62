//! The clusters of a HyperFleet API.

use std::time::Duration;

use daemon::retry::{Budget, Transient as _};
use fleet_model::{Generation, names};
use hyperfleet_client::{Calls, Client, Error, Patch, Resource, View, WithPullSecret};
use registry_account::contract::Login;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroize as _;

use super::compose::{PullSecret, Unreadable};
use crate::credential::{ClusterRef, Proof};
use crate::entries::{EntryDigests, ObservedPullSecret};
use crate::run::{ClusterError, ClusterErrorKind, Clusters, Document, Entry, ObserveRequest, Observed};

/// The clusters of a HyperFleet API, whose pull secrets the client may read and write. The API knows no nodes: their evidence
/// has to come from elsewhere.
#[derive(Clone, Debug)]
pub struct ApiClusters {
    client: Client,
    time: Duration,
    stop: CancellationToken,
}

/// A cluster with its pull secret.
pub(super) struct Found {
    pub(super) resource: Resource,
    pub(super) secret: PullSecret,
}

// === impl ApiClusters ===

impl ApiClusters {
    /// Returns the clusters of an API. `time` limits each observation and each publication; `stop` ends them at once.
    pub fn new(client: Client, time: Duration, stop: CancellationToken) -> Self {
        Self { client, time, stop }
    }

    /// Reads the entries of a cluster's pull secret; `None` if the cluster does not exist, or is being deleted.
    pub async fn entries(&self, id: &str, digests: &EntryDigests) -> Result<Option<ObservedPullSecret>, ClusterError> {
        let budget = self.budget();
        let found = self.client.within(&budget).get_with_pull_secret("clusters", id).await;
        let found = found.map_err(|error| unread(&error))?.filter(|found| !found.resource.is_deleting());
        let Some(found) = found else { return Ok(None) };
        let Some(created) = found.resource.created_time else { return Ok(None) };
        let cluster = ClusterRef { id: id.to_owned(), incarnation: created.as_microsecond() };
        let generation = found.resource.generation;
        let entries = readable(&found).map(|secret| secret.entries(digests));
        Ok(Some(ObservedPullSecret { cluster, generation, entries }))
    }

    fn budget(&self) -> Budget {
        Budget::new(self.time, self.stop.clone())
    }
}

impl Clusters for ApiClusters {
    async fn observe(&self, request: &ObserveRequest<'_>) -> Result<Observed, ClusterError> {
        let budget = self.budget();
        let calls = self.client.within(&budget);
        let Some(Found { resource, secret }) = find(&calls, request.cluster).await? else { return Ok(Observed::Gone) };
        let resource = calls.with_adapters("clusters", resource).await.map_err(|error| unread(&error))?;
        let report = report(&resource, request.generation).map(|source| Proof { at: self.client.observe(), source });
        let entry = secret.find(request.host, request.login);
        Ok(Observed::Found(Document {
            generation: resource.generation,
            is_same: entry.as_ref().is_some_and(|entry| entry.is_same),
            user: entry.and_then(|entry| entry.user),
            report,
            nodes: None,
        }))
    }

    async fn publish(
        &self,
        cluster: &ClusterRef,
        entry: &Entry<'_>,
        at: Generation,
    ) -> Result<Generation, ClusterError> {
        let budget = self.budget();
        let calls = self.client.within(&budget);
        let found = find(&calls, cluster).await?.filter(|found| found.resource.generation == at);
        let Some(Found { resource, mut secret }) = found else { return Err(changed(cluster)) };
        let Entry { host, login } = *entry;
        let text = composed(&mut secret, host, login).map_err(|_unreadable| unwritable(cluster))?;
        let mut patch = Patch { spec: Some(with_content(resource, &text)), ..Patch::default() };
        let written = calls.patch("clusters", &cluster.id, &patch, Some(at)).await;
        patch.spec.as_mut().map(wipe);
        match written {
            Ok(written) => Ok(written.generation),
            Err(error) if matches!(error.status(), Some(404 | 409 | 412)) => Err(changed(cluster)),
            Err(error) => Err(unwritten(&error)),
        }
    }
}

/// Reads a cluster; `None` if this incarnation of it does not exist.
pub(super) async fn find(calls: &Calls<'_>, cluster: &ClusterRef) -> Result<Option<Found>, ClusterError> {
    let found = calls.get_with_pull_secret("clusters", &cluster.id).await.map_err(|error| unread(&error))?;
    let Some(found) = found else { return Ok(None) };
    match found.resource.created_time {
        Some(created) if created.as_microsecond() != cluster.incarnation => return Ok(None),
        Some(_) => {}
        // Without it the cluster could be another one.
        None => return Err(unwritable(cluster)),
    }
    let secret = readable(&found).ok_or_else(|| unwritable(cluster))?;
    Ok(Some(Found { resource: found.resource, secret }))
}

/// Returns the pull secret of a cluster; `None` if it is by reference, hidden from the caller, or no credential document.
fn readable(found: &WithPullSecret) -> Option<PullSecret> {
    match &found.pull_secret {
        Some(text) => PullSecret::parse(text).ok(),
        None => has_none(&found.resource.spec).then(PullSecret::empty),
    }
}

/// Returns true if a spec has no pull secret at all: neither inline nor by reference.
fn has_none(spec: &Value) -> bool {
    let is_absent = |path: &str| spec.pointer(path).is_none_or(Value::is_null);
    is_absent("/pullSecret/data") && is_absent("/pullSecret/secretRef")
}

/// Returns the source of the evidence that the adapter has the pull secret of that generation available, or of a later one.
fn report(cluster: &Resource, generation: Generation) -> Option<String> {
    let view = View::of(cluster);
    let report = view.report(names::ADAPTER)?;
    let observed = report.generation()?.known()?;
    let proves = report.is_available() && generation.known().is_some_and(|generation| observed >= generation);
    proves.then(|| format!("report of adapter {} about generation {observed}", names::ADAPTER))
}

fn composed(secret: &mut PullSecret, host: &str, login: &Login) -> Result<SecretString, Unreadable> {
    secret.set(host, login)?;
    secret.text()
}

/// Returns the spec of a cluster with another pull secret, and everything else as it was.
fn with_content(cluster: Resource, text: &SecretString) -> Map<String, Value> {
    let Value::Object(mut spec) = cluster.spec else { return Map::new() };
    let secret = spec.entry("pullSecret").or_insert_with(|| json!({}));
    if !secret.is_object() {
        *secret = json!({});
    }
    if let Some(members) = secret.as_object_mut() {
        members.insert("data".to_owned(), Value::from(text.expose_secret()));
    }
    spec
}

fn wipe(spec: &mut Map<String, Value>) {
    if let Some(Value::String(text)) = spec.get_mut("pullSecret").and_then(|secret| secret.get_mut("data")) {
        text.zeroize();
    }
}

fn changed(cluster: &ClusterRef) -> ClusterError {
    let message = format!("cannot publish to cluster {cluster}: it has changed since it was read");
    ClusterError { kind: ClusterErrorKind::Changed, message, retry_after: None }
}

fn unwritable(cluster: &ClusterRef) -> ClusterError {
    let message = format!(
        "cannot use the pull secret of cluster {cluster}: it is not inline, is no credential document, or the API hides it: have \
         reads_pull_secrets granted"
    );
    ClusterError { kind: ClusterErrorKind::NotWritable, message, retry_after: None }
}

pub(super) fn unread(error: &Error) -> ClusterError {
    let kind = if error.transient() { ClusterErrorKind::Transient } else { ClusterErrorKind::Denied };
    ClusterError { kind, message: error.to_string(), retry_after: error.retry_after() }
}

/// A change may have been made unless the API has refused it.
fn unwritten(error: &Error) -> ClusterError {
    let is_refused = error.status().is_some_and(|status| status < 500 && status != 408);
    let kind = match (is_refused, error.transient()) {
        (false, _) => ClusterErrorKind::Ambiguous,
        (true, true) => ClusterErrorKind::Transient,
        (true, false) => ClusterErrorKind::Denied,
    };
    ClusterError { kind, message: error.to_string(), retry_after: error.retry_after() }
}
