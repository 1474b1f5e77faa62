//! The stores that the adapter checks: all projects at Google, and the folders of the stores of its Jobs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use adapter::config::{JobStore, StoreKind};
use adapter::{Opened, Stores, unopened};
use daemon::environment::{Environment, ProcessEnvironment};
use fleet_model::StoredCopy;
use fleet_model::names::{self, variable};
use pull_secret_job::settings::resolve_store;
use secret_store::{AnyStore, Endpoint, StoreSettings};
use tokio::sync::Mutex;

use super::{fault, not_built};

/// Maximum number of folders whose client, with its login, is kept.
const MAX_FOLDERS: usize = 100;

/// Returns the stores that the adapter checks.
pub(crate) fn stores(endpoint: Endpoint, configured: Vec<JobStore>) -> Stores {
    let checked = Arc::new(CheckedStores { google: google(endpoint), configured, clients: Mutex::default() });
    Stores::new(move |copy| {
        let checked = Arc::clone(&checked);
        Box::pin(async move { checked.open(&copy.without_name()).await })
    })
}

/// Returns all projects at Google.
#[cfg(feature = "google")]
fn google(endpoint: Endpoint) -> Stores {
    let projects = Arc::new(secret_store::GoogleProjects::new(endpoint, super::CALL_TIMEOUT));
    Stores::of_projects(move |project, location| {
        let projects = Arc::clone(&projects);
        async move { projects.client(project, location).await }
    })
}

#[cfg(not(feature = "google"))]
fn google(_endpoint: Endpoint) -> Stores {
    Stores::new(|copy| Box::pin(async move { Err(unopened(&copy, &not_built(names::STORE_GOOGLE))) }))
}

/// Returns the fault of a store of which this build has no client.
pub(crate) fn fault_of(store: StoreKind) -> Option<String> {
    let is_built = match store {
        StoreKind::Google => cfg!(feature = "google"),
        StoreKind::Vault => cfg!(feature = "vault"),
        StoreKind::Aws => cfg!(feature = "aws"),
        StoreKind::Azure => cfg!(feature = "azure"),
    };
    (!is_built).then(|| format!("spec.secretStore: {}", not_built(store.name())))
}

struct CheckedStores {
    google: Stores,
    configured: Vec<JobStore>,
    clients: Mutex<BTreeMap<StoredCopy, Arc<AnyStore>>>,
}

/// The configuration's own place in a store, and the variables that name it.
struct Own {
    place: StoredCopy,
    variables: BTreeMap<&'static str, Option<String>>,
}

/// The environment of this process, in which a place takes precedence.
struct AtPlace(BTreeMap<&'static str, Option<String>>);

// === impl CheckedStores ===

impl CheckedStores {
    async fn open(&self, place: &StoredCopy) -> Opened {
        if matches!(place, StoredCopy::Secret { .. }) {
            return self.google.open(place).await;
        }
        let mut clients = self.clients.lock().await;
        if let Some(client) = clients.get(place) {
            return Ok(Arc::<AnyStore>::clone(client));
        }
        let settings = settings(&self.configured, place).map_err(|why| unopened(place, &why))?;
        let client = Arc::new(AnyStore::connect(&settings, None).await?);
        if clients.len() < MAX_FOLDERS {
            clients.insert(place.clone(), Arc::clone(&client));
        }
        Ok(client)
    }
}

/// Returns the settings of a folder's client: the place is the configuration's, the identity that of the environment. A token is sent
/// to no other server than the configuration's, whatever a report names.
///
/// # Errors
///
/// The reason for which there is none.
fn settings(configured: &[JobStore], place: &StoredCopy) -> Result<StoreSettings, String> {
    let own = configured.iter().find_map(|store| Own::of(store, place));
    let own = own.ok_or("it is in another store than those of spec.secretStore, and is not checked")?;
    if own.place != *place {
        return Err("it is in another place than that of spec.secretStore, and is not checked".to_owned());
    }
    let mut variables = own.variables;
    // This process has the variables of the other stores as well.
    variables.entry(variable::VAULT_ADDR).or_default();
    let store = resolve_store(None, &AtPlace(variables)).map_err(|faults| faults.to_string())?;
    let store = store.ok_or("it is not known which store this is")?;
    fault(&store).map_or(Ok(store), Err)
}

impl Own {
    /// Returns the place of the configuration in the folder of a copy; `None` for a copy in another store.
    fn of(store: &JobStore, place: &StoredCopy) -> Option<Self> {
        let text = |text: &str| Some(text.to_owned());
        Some(match (store, place) {
            (JobStore::Vault(vault), StoredCopy::VaultSecret { folder, .. }) => {
                let [server, mount] = [vault.address.to_string(), vault.mount.to_string()];
                let namespace = vault.namespace.as_ref().map(ToString::to_string);
                let variables = BTreeMap::from([
                    (variable::SECRET_STORE, text(names::STORE_VAULT)),
                    (variable::VAULT_ADDR, text(&server)),
                    (variable::VAULT_NAMESPACE, namespace.clone()),
                    (variable::VAULT_MOUNT, text(&mount)),
                    (variable::VAULT_FOLDER, text(folder)),
                ]);
                let folder = folder.clone();
                let place = StoredCopy::VaultSecret { server, namespace, mount, folder, name: String::new() };
                Self { place, variables }
            }
            (JobStore::Aws(aws), StoredCopy::AwsSecret { folder, .. }) => {
                let region = aws.region.to_string();
                let variables = BTreeMap::from([
                    (variable::SECRET_STORE, text(names::STORE_AWS)),
                    (variable::AWS_REGION, text(&region)),
                    (variable::AWS_FOLDER, text(folder)),
                ]);
                let place = StoredCopy::AwsSecret { region, folder: folder.clone(), name: String::new() };
                Self { place, variables }
            }
            (JobStore::Azure(vault), StoredCopy::AzureSecret { .. }) => {
                let vault = vault.to_string();
                let variables = BTreeMap::from([
                    (variable::SECRET_STORE, text(names::STORE_AZURE)),
                    (variable::AZURE_KEY_VAULT_URL, text(&vault)),
                ]);
                Self { place: StoredCopy::AzureSecret { vault, name: String::new() }, variables }
            }
            _ => return None,
        })
    }
}

impl Environment for AtPlace {
    fn raw(&self, name: &str) -> Option<OsString> {
        match self.0.get(name) {
            Some(value) => value.as_ref().map(Into::into),
            None => ProcessEnvironment.raw(name),
        }
    }

    fn names(&self) -> Vec<String> {
        ProcessEnvironment.names().into_iter().chain(self.0.keys().map(|name| (*name).to_owned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    /// The stores of a configuration.
    fn all(config: adapter::Checked) -> Vec<JobStore> {
        config.stores.all().into_values().cloned().chain(config.mirror).collect()
    }

    /// The Jobs store in `kv` at `https://v:8200`, each cluster in a folder of its own.
    fn configured() -> Vec<JobStore> {
        let config = adapter::Checked::load(
            BTreeMap::new(),
            &BTreeMap::from([
                ("HYPERFLEET_API_BASE_URL", "http://localhost:8000"),
                ("HYPERFLEET_ADAPTER_SECRET_STORE_TYPE", "vault"),
                ("HYPERFLEET_ADAPTER_SECRET_STORE_VAULT_ADDRESS", "https://v:8200"),
                ("HYPERFLEET_ADAPTER_SECRET_STORE_VAULT_MOUNT", "kv"),
            ]),
        );
        all(config.unwrap())
    }

    #[rstest]
    #[case::the_place(json!({"server": "https://v:8200", "mount": "kv", "folder": "any"}), "VAULT_ROLE")]
    #[case::another_server(json!({"server": "https://evil:8200", "mount": "kv", "folder": "any"}), "another place")]
    #[case::another_mount(json!({"server": "https://v:8200", "mount": "sys", "folder": "any"}), "another place")]
    #[case::another_namespace(
        json!({"server": "https://v:8200", "namespace": "n", "mount": "kv", "folder": "any"}),
        "another place"
    )]
    fn a_token_is_sent_to_the_configured_place_only(#[case] place: Value, #[case] expected: &str) {
        let mut copy = json!({"kind": "vaultSecret", "name": ""});
        copy.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
        let fault = settings(&configured(), &serde_json::from_value(copy).unwrap()).unwrap_err();
        assert!(fault.contains(expected), "{fault}");
        let at_aws = json!({"kind": "awsSecret", "region": "eu-west-1", "folder": "f", "name": ""});
        let fault = settings(&configured(), &serde_json::from_value(at_aws).unwrap()).unwrap_err();
        assert!(fault.contains("another store"), "{fault}");
    }

    /// The names of the settings that are missing tell which store was chosen.
    #[rstest]
    #[case::vault(
        json!({"kind": "vaultSecret", "server": "https://v:8200", "mount": "secret", "folder": "f", "name": ""}),
        "VAULT_ROLE"
    )]
    #[case::azure(json!({"kind": "azureSecret", "vault": "https://fleet.vault.azure.net", "name": ""}), "fleet.vault")]
    #[case::another_vault(json!({"kind": "azureSecret", "vault": "https://evil.vault.azure.net", "name": ""}), "another place")]
    #[case::another_store(json!({"kind": "awsSecret", "region": "eu-west-1", "folder": "f", "name": ""}), "another store")]
    fn every_store_of_the_configuration_is_checked(#[case] place: Value, #[case] expected: &str) {
        let file = "{apiVersion: hyperfleet.redhat.com/v1alpha1, kind: AdapterConfig, metadata: {name: a, namespace: b}, spec: {
            adapterType: pullsecret, hyperfleetAPI: {url: 'http://localhost:8000'}, secretStore: {
            byProvider: {a: vault, b: azure}, vault: {address: 'https://v:8200'},
            azure: {vaultUrl: 'https://fleet.vault.azure.net'}}}}";
        let config = adapter::Config::read(Some(file.to_owned()), BTreeMap::new(), &BTreeMap::<&str, &str>::new());
        let config = config.and_then(adapter::Config::check).unwrap();
        let settings = settings(&all(config), &serde_json::from_value(place).unwrap());
        let said = settings.map_or_else(|fault| fault, |settings| format!("{settings:?}"));
        assert!(said.contains(expected), "{said}");
    }

    #[test]
    fn the_mirror_is_checked_in_its_place_too() {
        let config = adapter::Checked::load(
            BTreeMap::new(),
            &BTreeMap::from([
                ("HYPERFLEET_API_BASE_URL", "http://localhost:8000"),
                ("HYPERFLEET_ADAPTER_SECRET_STORE_TYPE", "vault"),
                ("HYPERFLEET_ADAPTER_SECRET_STORE_MIRROR", "aws"),
                ("HYPERFLEET_ADAPTER_SECRET_STORE_VAULT_ADDRESS", "https://v:8200"),
                ("HYPERFLEET_ADAPTER_SECRET_STORE_AWS_REGION", "eu-west-1"),
            ]),
        );
        let configured = all(config.unwrap());
        let at_aws = |region: &str| {
            let copy = json!({"kind": "awsSecret", "region": region, "folder": "f", "name": ""});
            settings(&configured, &serde_json::from_value(copy).unwrap())
        };
        assert!(matches!(at_aws("eu-west-1"), Ok(StoreSettings::Aws(_))), "{:?}", at_aws("eu-west-1"));
        assert!(at_aws("us-east-1").unwrap_err().contains("another place"));
    }
}
