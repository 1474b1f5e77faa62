//! Declares the settings of Azure Key Vault.

use std::path::PathBuf;
use std::time::Duration;

use daemon::settings::Row;

daemon::settings! {
    /// Azure Key Vault, as given.
    pub struct Azure {
        /// Address of the vault in Azure Key Vault, such as https://NAME.vault.azure.net
        pub key_vault_url: Option<String> = Row::at("azure.key_vault_url")
            .flag("azure-key-vault-url")
            .placeholder("URL")
            .unset("required with SECRET_STORE=azure"),
        /// File with the token of the workload, which is exchanged for one of Azure; without it the machine's managed identity acts
        pub federated_token_file: Option<PathBuf> = Row::at("azure.federated_token_file")
            .flag("azure-federated-token-file")
            .placeholder("FILE")
            .unset("none: a managed identity"),
        /// Tenant of the workload identity
        pub tenant_id: Option<String> = Row::at("azure.tenant_id")
            .flag("azure-tenant-id")
            .placeholder("ID")
            .unset("required with AZURE_FEDERATED_TOKEN_FILE"),
        /// Client id of the workload identity, or of a user-assigned managed identity
        pub client_id: Option<String> = Row::at("azure.client_id")
            .flag("azure-client-id")
            .placeholder("ID")
            .unset("required with AZURE_FEDERATED_TOKEN_FILE"),
        /// Address of the service that exchanges tokens
        pub authority_host: String = Row::at("azure.authority_host")
            .flag("azure-authority-host")
            .placeholder("URL")
            .default("https://login.microsoftonline.com"),
        /// File with the certificate authorities of the vault and of that service, PEM
        pub ca_file: Option<PathBuf> =
            Row::at("azure.ca_file").flag("azure-ca-file").placeholder("FILE").unset("the system's"),
        /// Purge a deleted secret at once, so that its name is free; a vault with purge protection refuses it
        pub purge: bool = Row::at("azure.purge").flag("azure-purge").default("false"),
        /// Maximum time of a call to Azure Key Vault, a token included
        pub api_timeout: Duration =
            Row::at("azure.api_timeout").flag("azure-api-timeout").default("30s").within("1ms", "24h"),
    }
}
