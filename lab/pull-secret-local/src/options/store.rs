//! The secret store that a flag and the environment name.

use daemon::environment::Environment;
use fleet_model::names::variable;
use secret_store::{AwsIdentity, AwsSettings, AzureIdentity, AzureSettings, InvalidName, VaultLogin, VaultSettings};

use super::{
    ASSERTION_VARIABLE, AUTHORITY_VARIABLE, AWS_ENDPOINT_VARIABLE, AZURE_CA_VARIABLE, CLIENT_VARIABLE, STORE_TIMEOUT,
    Store, TENANT_VARIABLE, TOKEN_FILE_VARIABLE,
};
use crate::cli::StoreKind;

/// The folder of pull secrets in stores that have folders.
const FOLDER: &str = "pull-secrets";

/// Returns the store that a flag and the environment name.
pub(crate) fn store(kind: StoreKind, environment: &impl Environment) -> Result<Store, String> {
    match kind {
        StoreKind::Google => Ok(Store::Embedded),
        StoreKind::Vault => vault(environment).map(Store::Vault),
        StoreKind::Aws => aws(environment).map(Store::Aws),
        StoreKind::Azure => Ok(azure(environment)?.map_or(Store::EmbeddedAzure, Store::Azure)),
    }
}

/// Returns the vault that the variables name, with a workload identity; `None` if they name none.
fn azure(environment: &impl Environment) -> Result<Option<AzureSettings>, String> {
    let text = |name: &str| environment.text(name).map_err(|error| error.to_string());
    let required = |name: &str| text(name)?.ok_or_else(|| format!("--store azure: {name} is not set"));
    let address = |name: &str, address: &str| address.parse().map_err(|error| format!("{name}: {error}"));
    let Some(vault) = text(variable::AZURE_KEY_VAULT_URL)? else { return Ok(None) };
    let authority = text(AUTHORITY_VARIABLE)?.unwrap_or_else(|| "https://login.microsoftonline.com".to_owned());
    Ok(Some(AzureSettings {
        vault: address(variable::AZURE_KEY_VAULT_URL, &vault)?,
        identity: AzureIdentity::Workload {
            authority: address(AUTHORITY_VARIABLE, &authority)?,
            tenant: required(TENANT_VARIABLE)?,
            client_id: required(CLIENT_VARIABLE)?,
            token_file: required(ASSERTION_VARIABLE)?.into(),
        },
        ca_file: text(AZURE_CA_VARIABLE)?.map(Into::into),
        purge: true,
        call_timeout: STORE_TIMEOUT,
        calls: None,
    }))
}

/// Returns the region that the variables name, and the address in place of the region's, if there is one.
fn aws(environment: &impl Environment) -> Result<AwsSettings, String> {
    let text = |name: &str| environment.text(name).map_err(|error| error.to_string());
    let region = text(variable::AWS_REGION)?.ok_or_else(|| {
        "--store aws: AWS_REGION is not set; hack/real-parts/moto.sh up starts a stand-in for tests".to_owned()
    })?;
    let region = region.parse().map_err(|error| format!("{}: {error}", variable::AWS_REGION))?;
    let endpoint = text(AWS_ENDPOINT_VARIABLE)?.map(|endpoint| endpoint.parse());
    let endpoint = endpoint.transpose().map_err(|error| format!("{AWS_ENDPOINT_VARIABLE}: {error}"))?;
    Ok(AwsSettings {
        region,
        endpoint,
        folder: FOLDER.parse().map_err(|error: InvalidName| error.to_string())?,
        identity: AwsIdentity::Environment,
        recovery_days: None,
        call_timeout: STORE_TIMEOUT,
        calls: None,
    })
}

/// Returns the place of OpenBao or Vault that the variables name, in the engine and folder that the guide names.
fn vault(environment: &impl Environment) -> Result<VaultSettings, String> {
    let text = |name: &str| match environment.text(name) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => {
            Err(format!("--store vault: {name} is not set; hack/real-parts/openbao.sh up starts a server for tests"))
        }
        Err(error) => Err(error.to_string()),
    };
    let address = text(variable::VAULT_ADDR)?;
    let address = address.parse().map_err(|error| format!("{}: {error}", variable::VAULT_ADDR))?;
    let path = |text: &str| text.parse().map_err(|error: InvalidName| error.to_string());
    Ok(VaultSettings {
        address,
        namespace: None,
        mount: path("secret")?,
        folder: path(FOLDER)?,
        login: VaultLogin::TokenFile(text(TOKEN_FILE_VARIABLE)?.into()),
        ca_file: None,
        call_timeout: STORE_TIMEOUT,
        calls: None,
    })
}
