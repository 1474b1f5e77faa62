//! Access tokens for Google Artifact Registry.
//!
//! There are no accounts: the IAM Service Account Credentials API mints tokens of one service account, which may only read
//! images. The identity of this program mints them, and is never handed out. A token names its own end, and nothing revokes
//! it before.

mod settings;

use std::fmt;

use google_cloud_auth::credentials::{self, Credentials};
use http::{Method, StatusCode};
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;

use crate::client::{Api, Call, Client, Remedies, Request};
use crate::contract::{
    Account, Capabilities, Credential, Disables, Identities, ListedAccounts, Login, NewAccount, Passwords, Registry,
    Usage,
};
use crate::error::{AccountError, ErrorKind, Operation};
use crate::identity::Identity;
use crate::name::{AccountName, Image};
use crate::probe::{Finding, ProbeRequest, Prober};

pub use settings::{GarSettings, InvalidServiceAccount, ServiceAccount};

/// The user of every access token.
const USER: &str = "oauth2accesstoken";
/// The scope of tokens, which is also that of the identity's own.
const READS: &str = "https://www.googleapis.com/auth/cloud-platform.read-only";
/// The scope of the identity.
const CALLS: &str = "https://www.googleapis.com/auth/cloud-platform";

/// A [`Registry`] at Google Artifact Registry.
pub struct GarRegistry {
    settings: GarSettings,
    client: Client,
    prober: Prober,
}

/// The answer with a token.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Minted {
    access_token: SecretString,
    expire_time: Timestamp,
}

// === impl GarRegistry ===

impl GarRegistry {
    /// Sets up the client with the credentials of the environment. No request is sent.
    ///
    /// # Errors
    ///
    /// No credentials, or a file of the settings that cannot be used.
    pub fn connect(settings: GarSettings) -> Result<Self, AccountError> {
        let credentials = credentials::Builder::default().with_scopes([CALLS]).build().map_err(|_error| {
            let detail = "the credentials of the environment cannot be used: check GOOGLE_APPLICATION_CREDENTIALS";
            AccountError::new(Operation::Connect, settings.host(), ErrorKind::Unauthenticated).with_detail(detail)
        })?;
        Self::connect_as(settings, credentials)
    }

    /// Sets up the client with the given credentials.
    ///
    /// # Errors
    ///
    /// A file of the settings that cannot be used.
    pub fn connect_as(settings: GarSettings, identity: Credentials) -> Result<Self, AccountError> {
        let account = &settings.service_account;
        let client = Client::new(Api {
            address: settings.iam_address.clone(),
            root: "/v1/projects/-/serviceAccounts/",
            identity: Identity::Google(identity),
            ca_file: settings.ca_file.clone(),
            call_timeout: settings.call_timeout,
            calls: settings.calls.clone(),
            remedies: Remedies {
                unauthenticated: "check the credentials of the environment".to_owned(),
                denied: format!(
                    "grant this program's identity roles/iam.serviceAccountTokenCreator on {account}, check that {account} \
                     exists, and that the IAM Service Account Credentials API is enabled in its project"
                ),
                not_found: format!("check that the service account {account} exists"),
            },
        })?;
        let prober = client.prober()?;
        Ok(Self { settings, client, prober })
    }

    fn call(&self, operation: Operation) -> Call<'_> {
        self.client.call(operation, self.settings.service_account.to_string())
    }

    /// Mints a token.
    async fn mint(&self, call: &Call<'_>) -> Result<Minted, AccountError> {
        let GarSettings { service_account, token_life, .. } = &self.settings;
        let path = format!("{service_account}:generateAccessToken");
        let body = json!({"scope": [READS], "lifetime": format!("{}s", token_life.as_secs())});
        let answer = call.send(&Request::new("generate_access_token", Method::POST, path).with_body(&body)).await?;
        match answer.status {
            StatusCode::OK => {
                let minted: Minted = answer.parse().ok_or_else(|| call.unreadable())?;
                let is_empty = minted.access_token.expose_secret().is_empty();
                if is_empty { Err(call.unreadable()) } else { Ok(minted) }
            }
            StatusCode::BAD_REQUEST => {
                let hint = "check token_life: more than 1h needs the organization policy \
                            constraints/iam.allowServiceAccountCredentialLifetimeExtension";
                let refused = call.refused(&answer);
                Err(AccountError { hint: Some(hint.to_owned()), ..refused })
            }
            _ => Err(call.refused(&answer)),
        }
    }

    fn unsupported(&self, operation: Operation) -> AccountError {
        self.call(operation).failed(ErrorKind::Unsupported)
    }
}

impl Registry for GarRegistry {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            identities: Identities::Minted,
            expires: true,
            new_accounts_pull: true,
            passwords: Passwords::ShownOnce,
            usage_log: false,
            disables: Disables::Never,
            token_life: self.settings.token_life,
            calls_per_minute: self.settings.calls_per_minute,
            max_name_bytes: usize::MAX,
            max_description: usize::MAX,
        }
    }

    fn host(&self) -> &str {
        self.settings.host()
    }

    /// Returns the user of every token.
    fn login(&self, _name: &AccountName) -> String {
        USER.to_owned()
    }

    async fn create(&self, new: &NewAccount) -> Result<Credential, AccountError> {
        let Minted { access_token, expire_time } = self.mint(&self.call(Operation::Create)).await?;
        let account = Account {
            name: new.name.clone(),
            login: USER.to_owned(),
            credential: Some(new.credential),
            description: new.description.clone(),
            created: None,
            last_access: None,
            expires: Some(expire_time),
            disabled: false,
        };
        Ok(Credential { account, password: access_token })
    }

    async fn find(&self, _name: &AccountName) -> Result<Option<Account>, AccountError> {
        Ok(None)
    }

    async fn permit(&self, _name: &AccountName) -> Result<(), AccountError> {
        Ok(())
    }

    async fn probe(&self, login: &Login, image: &Image) -> Finding {
        let credential = format!("{}:{}", login.username, login.password.expose_secret()).into_bytes().into();
        let request = ProbeRequest { host: self.host().to_owned(), credential, image: Some(image.clone()) };
        self.prober.probe(&request).await
    }

    async fn usage(&self, _name: &AccountName, _since: Timestamp) -> Result<Usage, AccountError> {
        Err(self.unsupported(Operation::Usage))
    }

    async fn disable(&self, _name: &AccountName) -> Result<(), AccountError> {
        Err(self.unsupported(Operation::Disable))
    }

    async fn delete(&self, _name: &AccountName) -> Result<bool, AccountError> {
        Ok(false)
    }

    /// Lists nothing, and proves the identity: a token is minted, and dropped.
    async fn list(&self, _page: Option<&str>) -> Result<ListedAccounts, AccountError> {
        self.mint(&self.call(Operation::List)).await.map(|_minted| ListedAccounts::default())
    }
}

impl fmt::Debug for GarRegistry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("GarRegistry")
            .field("host", &self.host())
            .field("service_account", &self.settings.service_account.to_string())
            .finish_non_exhaustive()
    }
}
