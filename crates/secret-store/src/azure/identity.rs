//! Tokens for the vault, by the vendor's credentials.

use std::sync::Arc;

use async_trait::async_trait;
use azure_core::cloud::CustomConfiguration;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::http::{ClientMethodOptions, ClientOptions, Url};
use azure_identity::{
    ClientAssertionCredentialOptions, ManagedIdentityCredential, ManagedIdentityCredentialOptions, UserAssignedId,
    WorkloadIdentityCredential, WorkloadIdentityCredentialOptions,
};
use daemon::environment::{Environment as _, ProcessEnvironment};

use super::transport::Sending;
use crate::AzureIdentity;

/// The address at which a machine asks for the tokens of its identity.
const MACHINE: &str = "http://169.254.169.254";
/// The variable with the address at which an App Service asks for them, if it has the other one too.
const APP_SERVICE: &str = "IDENTITY_ENDPOINT";
const APP_SERVICE_HEADER: &str = "IDENTITY_HEADER";

/// The name of a request for a token in metrics.
const METRIC: &str = "token";

/// Asks for tokens for the vault, whatever scope the vault's answer names. The vendor's client keeps a token while it is accepted, so
/// each call here is answered with a new one: an old one would be the one that the vault has refused.
#[derive(Debug)]
pub(super) struct Identity {
    of: AzureIdentity,
    scope: String,
    options: ClientOptions,
}

// === impl Identity ===

impl Identity {
    pub(super) fn new(identity: &AzureIdentity, vault: &Url, mut options: ClientOptions) -> Self {
        if let AzureIdentity::Workload { authority, .. } = identity {
            let mut cloud = CustomConfiguration::default();
            authority.as_str().clone_into(&mut cloud.authority_host);
            options.cloud = Some(Arc::new(cloud.into()));
        }
        Self { of: identity.clone(), scope: scope(vault), options }
    }

    fn credential(&self) -> azure_core::Result<Arc<dyn TokenCredential>> {
        let client_options = self.options.clone();
        Ok(match &self.of {
            AzureIdentity::Workload { authority: _, tenant, client_id, token_file } => {
                WorkloadIdentityCredential::new(Some(WorkloadIdentityCredentialOptions {
                    credential_options: ClientAssertionCredentialOptions { client_options },
                    client_id: Some(client_id.clone()),
                    tenant_id: Some(tenant.clone()),
                    token_file_path: Some(token_file.clone()),
                }))?
            }
            AzureIdentity::ManagedIdentity { client_id } => {
                ManagedIdentityCredential::new(Some(ManagedIdentityCredentialOptions {
                    user_assigned_id: client_id.clone().map(UserAssignedId::ClientId),
                    client_options,
                }))?
            }
        })
    }
}

#[async_trait]
impl TokenCredential for Identity {
    async fn get_token(
        &self,
        _scopes: &[&str],
        options: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        let mut context = options.unwrap_or_default().method_options.context;
        if let Some(sending) = context.value::<Sending>().copied() {
            context.insert(Sending { name: METRIC, ..sending });
        }
        let options = TokenRequestOptions { method_options: ClientMethodOptions { context } };
        self.credential()?.get_token(&[&self.scope], Some(options)).await
    }
}

/// Returns the address of the service for tokens.
pub(super) fn token_address(identity: &AzureIdentity) -> String {
    match identity {
        AzureIdentity::Workload { authority, .. } => authority.to_string(),
        AzureIdentity::ManagedIdentity { .. } => {
            let text = |name| ProcessEnvironment.text(name).ok().flatten();
            text(APP_SERVICE).filter(|_| text(APP_SERVICE_HEADER).is_some()).unwrap_or_else(|| MACHINE.to_owned())
        }
    }
}

/// Returns the scope of a vault's tokens: its cloud's, or the public one's for an address that tells no cloud.
fn scope(vault: &Url) -> String {
    let domain = vault.host_str().and_then(|host| host.split_once('.')).map(|(_name, domain)| domain);
    let domain = domain.filter(|domain| domain.starts_with("vault."));
    format!("https://{}/.default", domain.unwrap_or("vault.azure.net"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://fleet.vault.azure.net", "https://vault.azure.net/.default")]
    #[case("https://fleet.vault.azure.cn/", "https://vault.azure.cn/.default")]
    #[case("https://fleet.vault.usgovcloudapi.net", "https://vault.usgovcloudapi.net/.default")]
    #[case("https://127.0.0.1:8443", "https://vault.azure.net/.default")]
    #[case("https://vault.example.com", "https://vault.azure.net/.default")]
    fn a_token_is_for_the_vaults_cloud(#[case] vault: &str, #[case] expected: &str) {
        assert_eq!(scope(&vault.parse().unwrap()), expected);
    }
}
