//! The place of pull secrets, as each part needs to know it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use adapter::{StoreView, Stores, unopened};
use daemon::environment::{Environment as _, ProcessEnvironment};
use fleet_model::StoredCopy;
use fleet_model::names::{self, variable};
use secret_store::{
    AnyStore, AwsSettings, AzureIdentity, AzureSettings, Endpoint, GoogleProjects, StoreSettings, VaultLogin,
    VaultSettings,
};
use serde_json::{Value, json};

use crate::options::{
    ASSERTION_VARIABLE, AUTHORITY_VARIABLE, AWS_ENDPOINT_VARIABLE, AZURE_CA_VARIABLE, CLIENT_VARIABLE, STORE_TIMEOUT,
    TENANT_VARIABLE, TOKEN_FILE_VARIABLE,
};

/// Variables that a Job on this machine needs to reach Google with the user's identity.
const IDENTITY_VARIABLES: [&str; 6] =
    ["HOME", "GOOGLE_APPLICATION_CREDENTIALS", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"];

/// Variables that a Job on this machine needs to reach AWS with the user's identity. Keys stay out: the Pods' environment is no
/// place for a credential.
const AWS_VARIABLES: [&str; 8] = [
    "HOME",
    "AWS_PROFILE",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_EC2_METADATA_DISABLED",
    AWS_ENDPOINT_VARIABLE,
];

/// The place of pull secrets.
#[derive(Clone, Debug)]
pub(crate) enum StorePlace {
    /// The address of Secret Manager.
    SecretManager(Endpoint),
    /// OpenBao or Vault.
    Vault(VaultSettings),
    /// AWS Secrets Manager.
    Aws(AwsSettings),
    /// Azure Key Vault.
    Azure(AzureSettings),
}

// === impl StorePlace ===

impl StorePlace {
    /// Returns the name of the store, for people.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::SecretManager(_) => "Secret Manager",
            Self::Vault(_) => "Vault",
            Self::Aws(_) => "AWS Secrets Manager",
            Self::Azure(_) => "Azure Key Vault",
        }
    }

    /// Returns the name of the store, for programs.
    pub(crate) fn key(&self) -> &'static str {
        match self {
            Self::SecretManager(_) => "secret_manager",
            Self::Vault(_) => "vault",
            Self::Aws(_) => "aws",
            Self::Azure(_) => "azure",
        }
    }

    /// Returns the address of the store.
    pub(crate) fn address(&self) -> String {
        match self {
            Self::SecretManager(Endpoint::Emulator { host, .. }) => format!("http://{host}"),
            Self::SecretManager(_) => "https://secretmanager.googleapis.com".to_owned(),
            Self::Vault(vault) => vault.address.to_string(),
            Self::Aws(AwsSettings { endpoint: Some(endpoint), .. }) => endpoint.to_string(),
            Self::Aws(AwsSettings { region, .. }) => format!("https://secretsmanager.{region}.amazonaws.com"),
            Self::Azure(azure) => azure.vault.to_string(),
        }
    }

    /// Returns the file with the token for an emulator, or for OpenBao or Vault.
    pub(crate) fn token_file(&self) -> Option<&PathBuf> {
        match self {
            Self::SecretManager(Endpoint::Emulator { token_file, .. }) => token_file.as_ref(),
            Self::Vault(VaultSettings { login: VaultLogin::TokenFile(file), .. }) => Some(file),
            Self::SecretManager(_) | Self::Vault(_) | Self::Aws(_) | Self::Azure(_) => None,
        }
    }

    /// Returns true for a store that limits the rate of writes.
    pub(crate) fn has_quota(&self) -> bool {
        matches!(
            self,
            Self::SecretManager(Endpoint::Provider)
                | Self::Aws(AwsSettings { endpoint: None, .. })
                | Self::Azure(AzureSettings { ca_file: None, .. })
        )
    }

    /// Returns the variables by which programs find the store.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let (address, token_file) = match self {
            Self::SecretManager(Endpoint::Emulator { host, .. }) => {
                (("SECRET_MANAGER_EMULATOR_HOST", host.clone()), "SECRET_MANAGER_EMULATOR_TOKEN_FILE")
            }
            Self::SecretManager(_) => return Vec::new(),
            Self::Vault(vault) => ((variable::VAULT_ADDR, vault.address.to_string()), TOKEN_FILE_VARIABLE),
            Self::Aws(aws) => {
                let endpoint = aws.endpoint.as_ref().map(|endpoint| (AWS_ENDPOINT_VARIABLE, endpoint.to_string()));
                return [(variable::AWS_REGION, aws.region.to_string())].into_iter().chain(endpoint).collect();
            }
            Self::Azure(azure) => return azure_variables(azure),
        };
        let file = self.token_file().map(|file| (token_file, file.display().to_string()));
        [address].into_iter().chain(file).collect()
    }

    /// Returns the variables of Jobs that run on this machine. The adapter adds those that name the place.
    pub(crate) fn job_variables(&self) -> anyhow::Result<BTreeMap<&'static str, String>> {
        let mut variables: BTreeMap<_, _> = self.variables().into_iter().collect();
        match self {
            Self::Vault(_) => {
                variables.remove(variable::VAULT_ADDR);
                variables.insert("VAULT_AUTH", "token".to_owned());
            }
            Self::SecretManager(Endpoint::Provider) => {
                for name in IDENTITY_VARIABLES {
                    variables.extend(ProcessEnvironment.text(name)?.map(|value| (name, value)));
                }
            }
            Self::Aws(_) => {
                variables.remove(variable::AWS_REGION);
                for name in AWS_VARIABLES {
                    variables.extend(ProcessEnvironment.text(name)?.map(|value| (name, value)));
                }
            }
            Self::Azure(_) => {
                variables.remove(variable::AZURE_KEY_VAULT_URL);
                variables.insert("AZURE_PURGE", "true".to_owned());
            }
            Self::SecretManager(_) => {}
        }
        Ok(variables)
    }

    /// Returns the store and the mirror in the adapter's configuration.
    pub(crate) fn adapter_settings(store: &Self, mirror: Option<&Self>) -> Value {
        let kinds = [("type", json!(store.kind())), ("mirror", json!(mirror.map(Self::kind)))];
        let places = [store].into_iter().chain(mirror).flat_map(|place| match place {
            Self::SecretManager(_) => Vec::new(),
            Self::Vault(VaultSettings { address, mount, folder, .. }) => {
                let block = json!({ "address": address.as_str(), "mount": mount.as_str() });
                vec![("folder", json!(folder.as_str())), ("vault", block)]
            }
            Self::Aws(AwsSettings { region, folder, .. }) => {
                vec![("folder", json!(folder.as_str())), ("aws", json!({ "region": region.as_str() }))]
            }
            Self::Azure(azure) => vec![("azure", json!({ "vaultUrl": azure.vault.as_str() }))],
        });
        json!(kinds.into_iter().chain(places).collect::<BTreeMap<_, _>>())
    }

    /// Returns the store as the adapter's configuration has it.
    fn kind(&self) -> &'static str {
        match self {
            Self::SecretManager(_) => names::STORE_GOOGLE,
            Self::Vault(_) => names::STORE_VAULT,
            Self::Aws(_) => names::STORE_AWS,
            Self::Azure(_) => names::STORE_AZURE,
        }
    }

    /// Returns the views by which the adapter checks what is stored in these places.
    pub(crate) fn views(places: Vec<Self>) -> Stores {
        let endpoint = places.iter().find_map(|place| match place {
            Self::SecretManager(endpoint) => Some(endpoint.clone()),
            _ => None,
        });
        let projects = endpoint.map(|endpoint| Arc::new(GoogleProjects::new(endpoint, STORE_TIMEOUT)));
        let google = projects.map(|projects| {
            Stores::of_projects(move |project, location| {
                let projects = Arc::clone(&projects);
                async move { projects.client(project, location).await }
            })
        });
        Stores::new(move |copy| {
            let settings = places.iter().find_map(|place| place.settings_of(&copy));
            let google = google.clone().filter(|_| matches!(copy, StoredCopy::Secret { .. }));
            Box::pin(async move {
                if let Some(google) = google {
                    return google.open(&copy).await;
                }
                let settings = settings.ok_or_else(|| unopened(&copy, "it is in another store than this fleet's"))?;
                let view: Arc<dyn StoreView> = Arc::new(AnyStore::connect(&settings, None).await?);
                Ok(view)
            })
        })
    }

    /// Returns the settings of the client of a copy's folder in OpenBao, Vault or AWS; `None` for a copy elsewhere.
    fn settings_of(&self, copy: &StoredCopy) -> Option<StoreSettings> {
        match (self, copy) {
            (Self::Vault(vault), StoredCopy::VaultSecret { folder, .. }) => {
                Some(StoreSettings::Vault(VaultSettings { folder: folder.parse().ok()?, ..vault.clone() }))
            }
            (Self::Aws(aws), StoredCopy::AwsSecret { folder, .. }) => {
                Some(StoreSettings::Aws(AwsSettings { folder: folder.parse().ok()?, ..aws.clone() }))
            }
            (Self::Azure(azure), StoredCopy::AzureSecret { .. }) => Some(StoreSettings::Azure(azure.clone())),
            _ => None,
        }
    }
}

/// Returns the variables by which programs find a vault at Azure, and identify themselves there.
fn azure_variables(azure: &AzureSettings) -> Vec<(&'static str, String)> {
    let mut variables = vec![(variable::AZURE_KEY_VAULT_URL, azure.vault.to_string())];
    variables.extend(azure.ca_file.as_ref().map(|file| (AZURE_CA_VARIABLE, file.display().to_string())));
    if let AzureIdentity::Workload { authority, tenant, client_id, token_file } = &azure.identity {
        variables.extend([
            (AUTHORITY_VARIABLE, authority.to_string()),
            (TENANT_VARIABLE, tenant.clone()),
            (CLIENT_VARIABLE, client_id.clone()),
            (ASSERTION_VARIABLE, token_file.display().to_string()),
        ]);
    }
    variables
}
