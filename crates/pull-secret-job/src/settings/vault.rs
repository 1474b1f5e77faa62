//! Declares the choice of the secret store and the settings of OpenBao and Vault.

use std::path::PathBuf;
use std::time::Duration;

use daemon::settings::Row;

daemon::choices! {
    /// Kind of the secret store.
    pub enum StoreKind {
        /// Google Secret Manager.
        Google = "google",
        /// OpenBao or HashiCorp Vault, KV version 2.
        Vault = "vault" | "openbao",
        /// AWS Secrets Manager.
        Aws = "aws",
        /// Azure Key Vault.
        Azure = "azure",
    }
}

daemon::choices! {
    /// Method by which a run identifies itself to OpenBao or Vault.
    pub enum VaultAuth {
        /// The token of a service account, which the server has Kubernetes review.
        Kubernetes = "kubernetes",
        /// A signed token, which the server verifies by its issuer's keys.
        Jwt = "jwt",
        /// An id and a secret id.
        AppRole = "approle",
        /// A token that something else renews.
        Token = "token",
    }
}

daemon::settings! {
    /// OpenBao or Vault, as given.
    pub struct Vault {
        /// Address of OpenBao or Vault: https, or http to this machine
        pub addr: Option<String> = Row::at("vault.addr")
            .flag("vault-addr")
            .placeholder("URL")
            .unset("required with SECRET_STORE=vault"),
        /// Namespace at that server
        pub namespace: Option<String> = Row::at("vault.namespace")
            .flag("vault-namespace")
            .placeholder("NAMESPACE")
            .unset("the root"),
        /// File with the certificate authorities of that server, PEM
        pub cacert: Option<PathBuf> =
            Row::at("vault.cacert").flag("vault-cacert").placeholder("FILE").unset("the system's"),
        /// Mount of the KV engine, version 2
        pub mount: String = Row::at("vault.mount").flag("vault-mount").placeholder("PATH").default("secret"),
        /// Folder of the secrets in that mount
        pub folder: String = Row::at("vault.folder").flag("vault-folder").placeholder("PATH").default("pull-secrets"),
        /// Auth method
        pub auth: VaultAuth = Row::at("vault.auth").flag("vault-auth").default("kubernetes"),
        /// Mount of the auth method
        pub auth_mount: Option<String> = Row::at("vault.auth_mount")
            .flag("vault-auth-mount")
            .placeholder("PATH")
            .unset("the name of the method"),
        /// Role at the auth method
        pub role: Option<String> = Row::at("vault.role")
            .flag("vault-role")
            .placeholder("ROLE")
            .unset("required with VAULT_AUTH=kubernetes and jwt"),
        /// File with the token of the workload
        pub jwt_file: Option<PathBuf> = Row::at("vault.jwt_file")
            .flag("vault-jwt-file")
            .placeholder("FILE")
            .unset("that of the Pod's service account"),
        /// Id of the AppRole
        pub role_id: Option<String> = Row::at("vault.role_id")
            .flag("vault-role-id")
            .placeholder("ID")
            .unset("required with VAULT_AUTH=approle"),
        /// File with the secret id of the AppRole
        pub secret_id_file: Option<PathBuf> = Row::at("vault.secret_id_file")
            .flag("vault-secret-id-file")
            .placeholder("FILE")
            .unset("required with VAULT_AUTH=approle"),
        /// File with a token that something else renews
        pub token_file: Option<PathBuf> = Row::at("vault.token_file")
            .flag("vault-token-file")
            .placeholder("FILE")
            .unset("required with VAULT_AUTH=token"),
        /// Maximum time of a call to OpenBao or Vault, a login included
        pub client_timeout: Duration =
            Row::at("vault.client_timeout").flag("vault-client-timeout").default("30s").within("1ms", "24h"),
    }
}

// === impl StoreKind ===

impl StoreKind {
    /// Returns the value of `SECRET_STORE`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Google => "google",
            Self::Vault => "vault",
            Self::Aws => "aws",
            Self::Azure => "azure",
        }
    }
}

// === impl VaultAuth ===

impl VaultAuth {
    /// Returns the name of the method, which is also where it is mounted by default.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::Jwt => "jwt",
            Self::AppRole => "approle",
            Self::Token => "token",
        }
    }
}
