//! The stores that the adapter checks: all projects at Google, and the folders of the stores of its Jobs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use adapter::config::{StoreKind, StorePlan};
use adapter::{Opened, Stores, unopened};
use daemon::environment::{Environment, ProcessEnvironment};
use fleet_model::StoredCopy;
use fleet_model::names::{self, variable};
use pull_secret_job::settings::resolve_store;
use secret_store::{AnyStore, Endpoint, GoogleProjects, StoreSettings};
use tokio::sync::Mutex;

use super::{CALL_TIMEOUT, proxied};

/// Maximum number of folders whose client, with its login, is kept.
const MAX_FOLDERS: usize = 100;

/// Returns the stores that the adapter checks.
pub(crate) fn stores(endpoint: Endpoint, plans: Vec<StorePlan>) -> Stores {
    let projects = Arc::new(GoogleProjects::new(endpoint, CALL_TIMEOUT));
    let google = Stores::of_projects(move |project, location| {
        let projects = Arc::clone(&projects);
        async move { projects.client(project, location).await }
    });
    let checked = Arc::new(CheckedStores { google, plans, clients: Mutex::default() });
    Stores::new(move |copy| {
        let checked = Arc::clone(&checked);
        Box::pin(async move { checked.open(&copy.without_name()).await })
    })
}

struct CheckedStores {
    google: Stores,
    plans: Vec<StorePlan>,
    clients: Mutex<BTreeMap<StoredCopy, Arc<AnyStore>>>,
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
        let settings = settings(&self.plans, place).map_err(|why| unopened(place, &why))?;
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
fn settings(plans: &[StorePlan], place: &StoredCopy) -> Result<StoreSettings, String> {
    let plan = plans.iter().find(|plan| StoreKind::of(place) == Some(plan.kind()));
    let (own, mut variables) = match (plan, place) {
        (Some(StorePlan::Vault(plan)), StoredCopy::VaultSecret { folder, .. }) => {
            let [server, mount] = [plan.address.to_string(), plan.mount.to_string()];
            let namespace = plan.namespace.as_ref().map(ToString::to_string);
            let variables = [
                (variable::SECRET_STORE, Some(names::STORE_VAULT.to_owned())),
                (variable::VAULT_ADDR, Some(server.clone())),
                (variable::VAULT_NAMESPACE, namespace.clone()),
                (variable::VAULT_MOUNT, Some(mount.clone())),
                (variable::VAULT_FOLDER, Some(folder.clone())),
            ];
            let folder = folder.clone();
            (
                StoredCopy::VaultSecret { server, namespace, mount, folder, name: String::new() },
                BTreeMap::from(variables),
            )
        }
        (Some(StorePlan::Aws(plan)), StoredCopy::AwsSecret { folder, .. }) => {
            let region = plan.region.to_string();
            let variables = [
                (variable::SECRET_STORE, Some(names::STORE_AWS.to_owned())),
                (variable::AWS_REGION, Some(region.clone())),
                (variable::AWS_FOLDER, Some(folder.clone())),
            ];
            (StoredCopy::AwsSecret { region, folder: folder.clone(), name: String::new() }, BTreeMap::from(variables))
        }
        (Some(StorePlan::Azure(vault)), StoredCopy::AzureSecret { .. }) => {
            let vault = vault.to_string();
            let variables = [
                (variable::SECRET_STORE, Some(names::STORE_AZURE.to_owned())),
                (variable::AZURE_KEY_VAULT_URL, Some(vault.clone())),
            ];
            (StoredCopy::AzureSecret { vault, name: String::new() }, BTreeMap::from(variables))
        }
        _ => return Err("it is in another store than that of spec.secretStore, and is not checked".to_owned()),
    };
    if own != *place {
        return Err("it is in another place than that of spec.secretStore, and is not checked".to_owned());
    }
    // This process has the variables of the other store as well.
    variables.entry(variable::VAULT_ADDR).or_default();
    let store = resolve_store(None, &AtPlace(variables)).map_err(|faults| faults.to_string())?;
    let store = store.ok_or("it is not known which store this is")?;
    proxied(&store).map_or(Ok(store), Err)
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

    /// The Jobs store in `kv` at `https://v:8200`, each cluster in a folder of its own.
    fn plans() -> Vec<StorePlan> {
        let plan = adapter::Plan::load(
            BTreeMap::new(),
            &BTreeMap::from([
                ("HYPERFLEET_API_BASE_URL", "http://localhost:8000"),
                ("HYPERFLEET_ADAPTER_SECRET_STORE_TYPE", "vault"),
                ("HYPERFLEET_ADAPTER_SECRET_STORE_VAULT_ADDRESS", "https://v:8200"),
                ("HYPERFLEET_ADAPTER_SECRET_STORE_VAULT_MOUNT", "kv"),
            ]),
        );
        vec![plan.unwrap().store]
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
        let fault = settings(&plans(), &serde_json::from_value(copy).unwrap()).unwrap_err();
        assert!(fault.contains(expected), "{fault}");
        let at_aws = json!({"kind": "awsSecret", "region": "eu-west-1", "folder": "f", "name": ""});
        let fault = settings(&plans(), &serde_json::from_value(at_aws).unwrap()).unwrap_err();
        assert!(fault.contains("another store"), "{fault}");
    }

    #[test]
    fn the_mirror_is_checked_in_its_place_too() {
        let plan = adapter::Plan::load(
            BTreeMap::new(),
            &BTreeMap::from([
                ("HYPERFLEET_API_BASE_URL", "http://localhost:8000"),
                ("HYPERFLEET_ADAPTER_SECRET_STORE_TYPE", "vault"),
                ("HYPERFLEET_ADAPTER_SECRET_STORE_MIRROR", "aws"),
                ("HYPERFLEET_ADAPTER_SECRET_STORE_VAULT_ADDRESS", "https://v:8200"),
                ("HYPERFLEET_ADAPTER_SECRET_STORE_AWS_REGION", "eu-west-1"),
            ]),
        );
        let plan = plan.unwrap();
        let plans: Vec<_> = [plan.store].into_iter().chain(plan.mirror).collect();
        let at_aws = |region: &str| {
            let copy = json!({"kind": "awsSecret", "region": region, "folder": "f", "name": ""});
            settings(&plans, &serde_json::from_value(copy).unwrap())
        };
        assert!(matches!(at_aws("eu-west-1"), Ok(StoreSettings::Aws(_))), "{:?}", at_aws("eu-west-1"));
        assert!(at_aws("us-east-1").unwrap_err().contains("another place"));
    }
}
