//! The secret stores of the pull secret adapter's Jobs, checked, and the choice of a resource's store.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use daemon::settings::missing;
use hyperfleet_client::View;
use secret_store::{EndpointUrl, Location, StorePath};
use serde_json::Value;

use super::builtin;
use super::secret_store::{Aws, Azure, FOLDER, SecretStore, StoreKind, Vault};
use super::shape::Spec;
use super::table::TABLE;
use crate::binding::{FieldPath, ValueSource};

/// Maximum length of a provider in a message.
const MAX_SHOWN: usize = 64;

/// The secret stores of the runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobStores {
    /// One store for all resources.
    One(JobStore),
    /// The store of each value of `spec.provider`.
    ByProvider(BTreeMap<String, JobStore>),
}

/// A secret store, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobStore {
    /// Google Secret Manager; the variables of the Job's template name the project.
    Google,
    /// OpenBao or Vault.
    Vault(VaultPlace),
    /// AWS Secrets Manager.
    Aws(AwsPlace),
    /// The vault in Azure Key Vault.
    Azure(EndpointUrl),
}

/// The place of pull secrets in OpenBao or Vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultPlace {
    /// The address of the server.
    pub address: EndpointUrl,
    /// The namespace at the server; `None` for the root.
    pub namespace: Option<StorePath>,
    /// The mount of the KV engine.
    pub mount: StorePath,
    /// The folder of a resource.
    pub folder: ValueSource,
}

/// The place of pull secrets in AWS Secrets Manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwsPlace {
    /// The region.
    pub region: Location,
    /// The folder of a resource.
    pub folder: ValueSource,
}

/// The secret stores of a configuration.
pub(super) struct Stores {
    pub(super) first: JobStores,
    pub(super) mirror: Option<JobStore>,
}

/// Checks the secret stores; the error lists every fault.
pub(super) fn checked(spec: &Spec) -> Result<Stores, Vec<String>> {
    let given = &spec.secret_store;
    let mut faults = contradictions(spec);
    let folder = Some(given.folder.as_deref().unwrap_or("pull-secrets"));
    let folder = parsed::<StorePath>("spec.secretStore.folder", folder, &mut faults);
    let folder = folder.map(|folder| ValueSource {
        from: FOLDER.parse::<FieldPath>().into_iter().collect(),
        value: Some(folder.to_string()),
    });
    let mut stores = BTreeMap::new();
    for kind in given.kinds().into_iter().chain(given.mirror) {
        let store = match kind {
            StoreKind::Google => Some(JobStore::Google),
            StoreKind::Vault => vault(&given.vault, folder.clone(), &mut faults),
            StoreKind::Aws => aws(&given.aws, folder.clone(), &mut faults),
            StoreKind::Azure => azure(&given.azure, &mut faults),
        };
        stores.extend(store.map(|store| (kind, store)));
    }
    let of_kind = |kind: &StoreKind| stores.get(kind).cloned();
    let first = match &given.by_provider {
        None => of_kind(&given.kind.unwrap_or(StoreKind::Google)).map(JobStores::One),
        Some(map) => {
            let stores = map.iter().map(|(provider, kind)| Some((provider.clone(), of_kind(kind)?)));
            stores.collect::<Option<_>>().map(JobStores::ByProvider)
        }
    };
    let mirror = given.mirror.as_ref().and_then(of_kind);
    first.filter(|_| faults.is_empty()).map(|first| Stores { first, mirror }).ok_or(faults)
}

/// Returns the faults of settings that contradict each other, or have no effect.
fn contradictions(spec: &Spec) -> Vec<String> {
    let SecretStore { kind, by_provider, mirror, folder, vault, aws, azure } = &spec.secret_store;
    let first = spec.secret_store.kinds();
    let is_used = |kind: StoreKind| first.contains(&kind) || *mirror == Some(kind);
    let with = |stores: &str| match by_provider {
        None => format!("spec.secretStore.type or mirror {stores}"),
        Some(_) => format!("{stores} in spec.secretStore.byProvider or mirror"),
    };
    let mut faults = choice(&spec.secret_store);
    let is_vault_given = vault.address.is_some() || vault.namespace.is_some() || vault.mount.is_some();
    let blocks = [
        ("vault", StoreKind::Vault, is_vault_given),
        ("aws", StoreKind::Aws, aws.region.is_some()),
        ("azure", StoreKind::Azure, azure.vault_url.is_some()),
    ];
    for (block, _, _) in blocks.iter().filter(|(_, of_block, is_given)| *is_given && !is_used(*of_block)) {
        faults.push(format!("spec.secretStore.{block}: has no effect without {}", with(block)));
    }
    let is_default = by_provider.is_none() && kind.is_none_or(|kind| kind == StoreKind::Google) && mirror.is_none();
    if !is_default && spec.adapter_type != builtin::PULL_SECRET {
        let adapter_type = builtin::PULL_SECRET;
        faults.push(format!("spec.secretStore: has no effect without spec.adapterType {adapter_type}"));
    }
    if folder.is_some() && !is_used(StoreKind::Vault) && !is_used(StoreKind::Aws) {
        faults.push(format!("spec.secretStore.folder: has no effect without {}", with("vault or aws")));
    }
    if spec.limits.project_variable.is_some() && !first.contains(&StoreKind::Google) {
        let google = with("google").replace(" or mirror", "");
        faults.push(format!("spec.limits.projectVariable: has no effect without {google}"));
    }
    faults
}

/// Returns the faults of the choice of the stores.
fn choice(store @ SecretStore { kind, by_provider, mirror, .. }: &SecretStore) -> Vec<String> {
    let mut faults = Vec::new();
    if let (Some(kind), Some(_)) = (kind, by_provider) {
        let kind = kind.name();
        faults.push(format!(
            "spec.secretStore.byProvider: contradicts spec.secretStore.type {kind}: leave out one of them"
        ));
    }
    if by_provider.as_ref().is_some_and(BTreeMap::is_empty) {
        faults.push("spec.secretStore.byProvider: names no provider, so no pull secret could be stored".to_owned());
    }
    if let Some(mirror) = mirror.as_ref().filter(|mirror| store.kinds().contains(mirror)) {
        let setting = if by_provider.is_some() { "byProvider" } else { "type" };
        let mirror = mirror.name();
        faults
            .push(format!("spec.secretStore.mirror: must be another store than spec.secretStore.{setting}, {mirror}"));
    }
    faults
}

fn vault(given: &Vault, folder: Option<ValueSource>, faults: &mut Vec<String>) -> Option<JobStore> {
    let address = parsed("spec.secretStore.vault.address", given.address.as_deref(), faults);
    let namespace = given.namespace.as_deref();
    let namespace = namespace.and_then(|text| parsed("spec.secretStore.vault.namespace", Some(text), faults));
    let namespace = namespace.and_then(StorePath::unless_root);
    let mount = Some(given.mount.as_deref().unwrap_or("secret"));
    let mount = parsed("spec.secretStore.vault.mount", mount, faults);
    Some(JobStore::Vault(VaultPlace { address: address?, namespace, mount: mount?, folder: folder? }))
}

fn aws(given: &Aws, folder: Option<ValueSource>, faults: &mut Vec<String>) -> Option<JobStore> {
    let region = parsed("spec.secretStore.aws.region", given.region.as_deref(), faults);
    Some(JobStore::Aws(AwsPlace { region: region?, folder: folder? }))
}

fn azure(given: &Azure, faults: &mut Vec<String>) -> Option<JobStore> {
    const VAULT: &str = "spec.secretStore.azure.vaultUrl";
    let vault = parsed::<EndpointUrl>(VAULT, given.vault_url.as_deref(), faults)?;
    if vault.plain_host().is_some() {
        faults.push(format!("{VAULT}: must be an https:// address"));
    }
    Some(JobStore::Azure(vault))
}

/// Parses a setting that is required, and collects its fault.
fn parsed<T: FromStr<Err: Display>>(key: &'static str, text: Option<&str>, faults: &mut Vec<String>) -> Option<T> {
    let parsed = match text {
        Some(text) => text.parse().map_err(|error| format!("{key}: {error}")),
        None => Err(missing(&TABLE, key)),
    };
    parsed.map_err(|fault| faults.push(fault)).ok()
}

// === impl JobStores ===

impl JobStores {
    /// Returns the store of a resource.
    ///
    /// # Errors
    ///
    /// The reason why it has none.
    pub fn of(&self, view: &View) -> Result<&JobStore, String> {
        let stores = match self {
            Self::One(store) => return Ok(store),
            Self::ByProvider(stores) => stores,
        };
        let provider = view.document.pointer("/spec/provider").and_then(Value::as_str);
        provider.and_then(|provider| stores.get(provider)).ok_or_else(|| match provider {
            Some(provider) => {
                let shown: String = format!("{provider:?}").chars().take(MAX_SHOWN).collect();
                format!("the adapter's spec.secretStore.byProvider has no store for spec.provider {shown}")
            }
            None => "spec.provider is not a string; the adapter's spec.secretStore.byProvider selects by it".to_owned(),
        })
    }

    /// Returns all stores, one per kind.
    pub fn all(&self) -> BTreeMap<StoreKind, &JobStore> {
        let stores: Vec<&JobStore> = match self {
            Self::One(store) => vec![store],
            Self::ByProvider(stores) => stores.values().collect(),
        };
        stores.into_iter().map(|store| (store.kind(), store)).collect()
    }
}

// === impl JobStore ===

impl JobStore {
    /// Returns the kind of the store.
    pub fn kind(&self) -> StoreKind {
        match self {
            Self::Google => StoreKind::Google,
            Self::Vault(_) => StoreKind::Vault,
            Self::Aws(_) => StoreKind::Aws,
            Self::Azure(_) => StoreKind::Azure,
        }
    }
}
