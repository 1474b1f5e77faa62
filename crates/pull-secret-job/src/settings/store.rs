//! Checks the settings of the secret store.

use std::path::PathBuf;

use secret_store::{ProjectId, StorePath, StoreSettings, VaultLogin, VaultSettings};

use super::parse::Parser;
use super::table::Given;
use super::vault::{StoreKind, Vault, VaultAuth};

/// The token of the Pod's service account.
const SERVICE_ACCOUNT_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

impl Parser<'_> {
    /// Returns the first store; `None` only when a problem says why.
    pub(super) fn store(&mut self) -> Option<StoreSettings> {
        let Given { secret_store: kind, secret_store_mirror: mirror, .. } = *self.given;
        let choice = format!("SECRET_STORE={}", kind.as_str());
        let is_of_mirror_given = self.given.replication_policy_mirror.is_some() && !self.given.delete;
        if mirror.is_none() && is_of_mirror_given {
            self.problems
                .push("REPLICATION_POLICY_MIRROR has no effect without SECRET_STORE_MIRROR: leave it out".to_owned());
        }
        // A command on the mirror alone has the variables of both stores as well.
        if kind != StoreKind::Google && mirror != Some(kind) {
            self.refuse_settings_of_others(&choice, |other| other == kind || mirror == Some(other));
        }
        if matches!(kind, StoreKind::Vault | StoreKind::Azure) {
            let is_given = self.given.replication_policy.is_some() && !self.given.delete;
            self.without_effect(&choice, &[("REPLICATION_POLICY", is_given)]);
        }
        self.of_kind(kind, &choice)
    }

    /// Returns `None` if there is no mirror, or a problem says why there can be none.
    pub(super) fn mirror(&mut self) -> Option<StoreSettings> {
        let Given { secret_store: first, secret_store_mirror: mirror, .. } = *self.given;
        let kind = mirror?;
        if kind == first {
            let choice = first.as_str();
            self.problems.push(format!("SECRET_STORE_MIRROR: must be another store than SECRET_STORE, {choice}"));
            return None;
        }
        let choice = format!("SECRET_STORE_MIRROR={}", kind.as_str());
        if matches!(kind, StoreKind::Vault | StoreKind::Azure) {
            let is_given = self.given.replication_policy_mirror.is_some() && !self.given.delete;
            self.without_effect(&choice, &[("REPLICATION_POLICY_MIRROR", is_given)]);
        }
        self.of_kind(kind, &choice)
    }

    fn of_kind(&mut self, kind: StoreKind, choice: &str) -> Option<StoreSettings> {
        match kind {
            StoreKind::Google => self.google().map(StoreSettings::Google),
            StoreKind::Vault => self.vault(choice).map(StoreSettings::Vault),
            StoreKind::Aws => self.aws(choice).map(StoreSettings::Aws),
            StoreKind::Azure => self.azure().map(StoreSettings::Azure),
        }
    }

    fn google(&mut self) -> Option<secret_store::Settings> {
        let given = self.given;
        let project = self.required::<ProjectId>("GCP_PROJECT_ID", "gcp-project-id", given.gcp_project_id.as_deref());
        let location = self.parsed("GCP_LOCATION", given.gcp_location.as_deref());
        let endpoint = self.endpoint();
        let call_timeout = given.gcp_api_timeout;
        Some(secret_store::Settings { project: project?, location, endpoint, call_timeout, calls: None })
    }

    fn vault(&mut self, choice: &str) -> Option<VaultSettings> {
        let Given { vault: given, .. } = self.given;
        let address = self.required("VAULT_ADDR", "vault-addr", given.addr.as_deref());
        let namespace = self.parsed("VAULT_NAMESPACE", given.namespace.as_deref()).and_then(StorePath::unless_root);
        let mount = self.parsed("VAULT_MOUNT", Some(&given.mount));
        let folder = self.parsed("VAULT_FOLDER", Some(&given.folder));
        let login = self.vault_login(given);
        self.retained_within(choice, VaultSettings::VERSIONS_KEPT);
        Some(VaultSettings {
            address: address?,
            namespace,
            mount: mount?,
            folder: folder?,
            login: login?,
            ca_file: given.cacert.clone(),
            call_timeout: given.client_timeout,
            calls: None,
        })
    }

    /// Refuses the places at Google and in Vault, unless that store is one of those that are used.
    fn refuse_settings_of_others(&mut self, choice: &str, is_used: impl Fn(StoreKind) -> bool) {
        let given = self.given;
        let (google, vault) = (is_used(StoreKind::Google), is_used(StoreKind::Vault));
        let without_effect = [
            ("GCP_PROJECT_ID", given.gcp_project_id.is_some() && !google),
            ("GCP_LOCATION", given.gcp_location.is_some() && !google),
            ("SECRET_MANAGER_EMULATOR_HOST", given.secret_manager_emulator_host.is_some() && !google),
            ("SECRET_MANAGER_EMULATOR_TOKEN_FILE", given.secret_manager_emulator_token_file.is_some() && !google),
            ("GCP_SECRET_MANAGER_ENDPOINT", given.gcp_secret_manager_endpoint.is_some() && !google),
            ("VAULT_ADDR", given.vault.addr.is_some() && !vault),
        ];
        self.without_effect(choice, &without_effect);
    }

    /// The store removes versions beyond those by itself, so the Job's rule must be within them.
    pub(super) fn retained_within(&mut self, choice: &str, kept: usize) {
        if !self.given.delete && !(1..=kept).contains(&self.given.retain_versions) {
            self.problems.push(format!("RETAIN_VERSIONS: must be 1 to {kept} with {choice}"));
        }
    }

    fn vault_login(&mut self, given: &Vault) -> Option<VaultLogin> {
        use VaultAuth::{AppRole, Jwt, Kubernetes, Token};
        let auth = given.auth;
        let is_signed = matches!(auth, Kubernetes | Jwt);
        let without_effect = [
            ("VAULT_AUTH_MOUNT", given.auth_mount.is_some() && auth == Token),
            ("VAULT_ROLE", given.role.is_some() && !is_signed),
            ("VAULT_JWT_FILE", given.jwt_file.is_some() && !is_signed),
            ("VAULT_ROLE_ID", given.role_id.is_some() && auth != AppRole),
            ("VAULT_SECRET_ID_FILE", given.secret_id_file.is_some() && auth != AppRole),
            ("VAULT_TOKEN_FILE", given.token_file.is_some() && auth != Token),
        ];
        self.without_effect(&format!("VAULT_AUTH={}", auth.as_str()), &without_effect);
        let mount = given.auth_mount.as_deref().unwrap_or(auth.as_str());
        let mount = self.path("VAULT_AUTH_MOUNT", mount);
        match auth {
            Kubernetes | Jwt => {
                let role = self.path_of("VAULT_ROLE", "vault-role", given.role.as_deref());
                let token_file = given.jwt_file.clone().unwrap_or_else(|| PathBuf::from(SERVICE_ACCOUNT_TOKEN));
                Some(VaultLogin::Jwt { mount: mount?, role: role?, token_file })
            }
            AppRole => {
                let role_id = self.path_of("VAULT_ROLE_ID", "vault-role-id", given.role_id.as_deref());
                let file = given.secret_id_file.clone();
                let secret_id_file = self.given_file("VAULT_SECRET_ID_FILE", "vault-secret-id-file", file);
                Some(VaultLogin::AppRole { mount: mount?, role_id: role_id?, secret_id_file: secret_id_file? })
            }
            Token => {
                let file = self.given_file("VAULT_TOKEN_FILE", "vault-token-file", given.token_file.clone());
                Some(VaultLogin::TokenFile(file?))
            }
        }
    }

    fn without_effect(&mut self, choice: &str, settings: &[(&str, bool)]) {
        let given = settings.iter().filter(|(_, is_given)| *is_given);
        self.problems.extend(given.map(|(name, _)| format!("{name} has no effect with {choice}: leave it out")));
    }

    fn given_file(&mut self, name: &str, flag: &str, file: Option<PathBuf>) -> Option<PathBuf> {
        let missing = format!("missing required environment variable: {name} (or --{flag})");
        self.problems.extend(file.is_none().then_some(missing));
        file
    }

    fn path_of(&mut self, name: &str, flag: &str, text: Option<&str>) -> Option<String> {
        let text = self.required::<String>(name, flag, text)?;
        self.path(name, &text)
    }

    pub(super) fn path(&mut self, name: &str, text: &str) -> Option<String> {
        self.parsed::<StorePath>(name, Some(text)).map(|path| path.to_string())
    }
}
