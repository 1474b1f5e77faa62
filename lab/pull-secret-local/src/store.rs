//! The place of pull secrets, as each part needs to know it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use adapter::Stores;
use daemon::environment::{Environment as _, ProcessEnvironment};
use fleet_model::names::{self, variable};
use secret_store::{Endpoint, GoogleProjects, VaultLogin, VaultSettings};
use serde_json::{Value, json};

use crate::options::{STORE_TIMEOUT, TOKEN_FILE_VARIABLE};

/// Variables that a Job on this machine needs to reach Google with the user's identity.
const IDENTITY_VARIABLES: [&str; 6] =
    ["HOME", "GOOGLE_APPLICATION_CREDENTIALS", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"];

/// The place of pull secrets.
#[derive(Clone, Debug)]
pub(crate) enum StorePlace {
    /// The address of Secret Manager.
    SecretManager(Endpoint),
    /// OpenBao or Vault.
    Vault(VaultSettings),
}

// === impl StorePlace ===

impl StorePlace {
    /// Returns the name of the store, for people.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::SecretManager(_) => "Secret Manager",
            Self::Vault(_) => "Vault",
        }
    }

    /// Returns the name of the store, for programs.
    pub(crate) fn key(&self) -> &'static str {
        match self {
            Self::SecretManager(_) => "secret_manager",
            Self::Vault(_) => "vault",
        }
    }

    /// Returns the address of the store.
    pub(crate) fn address(&self) -> String {
        match self {
            Self::SecretManager(Endpoint::Emulator { host, .. }) => format!("http://{host}"),
            Self::SecretManager(_) => "https://secretmanager.googleapis.com".to_owned(),
            Self::Vault(vault) => vault.address.to_string(),
        }
    }

    /// Returns the file with the token for an emulator, or for OpenBao or Vault.
    pub(crate) fn token_file(&self) -> Option<&PathBuf> {
        match self {
            Self::SecretManager(Endpoint::Emulator { token_file, .. }) => token_file.as_ref(),
            Self::Vault(VaultSettings { login: VaultLogin::TokenFile(file), .. }) => Some(file),
            Self::SecretManager(_) | Self::Vault(_) => None,
        }
    }

    /// Returns true for a store that limits the rate of writes.
    pub(crate) fn has_quota(&self) -> bool {
        matches!(self, Self::SecretManager(Endpoint::Provider))
    }

    /// Returns the variables by which programs find the store.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let (address, token_file) = match self {
            Self::SecretManager(Endpoint::Emulator { host, .. }) => {
                (("SECRET_MANAGER_EMULATOR_HOST", host.clone()), "SECRET_MANAGER_EMULATOR_TOKEN_FILE")
            }
            Self::SecretManager(_) => return Vec::new(),
            Self::Vault(vault) => ((variable::VAULT_ADDR, vault.address.to_string()), TOKEN_FILE_VARIABLE),
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
            Self::SecretManager(_) => {}
        }
        Ok(variables)
    }

    /// Returns the store in the adapter's configuration.
    pub(crate) fn adapter_settings(&self) -> Value {
        match self {
            Self::SecretManager(_) => json!({}),
            Self::Vault(VaultSettings { address, mount, folder, .. }) => json!({
                "type": names::STORE_VAULT,
                "folder": folder.as_str(),
                "vault": { "address": address.as_str(), "mount": mount.as_str() },
            }),
        }
    }

    /// Returns the view by which the adapter checks what is stored; `None` where it cannot.
    pub(crate) fn views(&self) -> Option<Stores> {
        let Self::SecretManager(endpoint) = self else { return None };
        let projects = Arc::new(GoogleProjects::new(endpoint.clone(), STORE_TIMEOUT));
        Some(Stores::new(move |project, location| {
            let projects = Arc::clone(&projects);
            async move { projects.client(project, location).await }
        }))
    }
}
