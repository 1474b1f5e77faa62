//! Access tokens for Google Artifact Registry.
//!
//! There are no accounts: the IAM Service Account Credentials API mints tokens of one service account, which may only read
//! images. The identity of this program mints them, and is never handed out. A token names its own end, and nothing revokes
//! it before.

mod settings;

use std::fmt;
use std::time::Duration;

use google_cloud_auth::credentials::{self, Credentials};
use http::{Method, StatusCode};
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;

use crate::client::{Api, Client, Remedies};
use crate::error::{AccountError, ErrorKind, Operation};
use crate::identity::Identity;
use crate::request::Request;
use crate::tokens::{Mint, Minted, TokenRegistry};

pub use settings::{GarSettings, InvalidServiceAccount, ServiceAccount};

/// Life of what the registry gives for a token. Google does not state it: an hour, as that of Google's other tokens.
const BEARER_LIFE: Duration = Duration::from_hours(1);
/// The scope of tokens, which is also that of the identity's own.
const READS: &str = "https://www.googleapis.com/auth/cloud-platform.read-only";
/// The scope of the identity.
const CALLS: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Google Artifact Registry.
pub type GarRegistry = TokenRegistry<Gar>;

/// Mints tokens of a service account.
pub struct Gar {
    settings: GarSettings,
    client: Client,
}

/// The answer with a token.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
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
            address: settings.token_address.clone(),
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
        Ok(Self::new(Gar { settings, client }, prober))
    }
}

impl Mint for Gar {
    const USER: &'static str = "oauth2accesstoken";

    fn host(&self) -> &str {
        self.settings.host()
    }

    fn bearer_life(&self) -> Duration {
        BEARER_LIFE
    }

    fn calls_per_minute(&self) -> u32 {
        self.settings.calls_per_minute
    }

    async fn mint(&self, operation: Operation) -> Result<Minted, AccountError> {
        let GarSettings { service_account, token_life, .. } = &self.settings;
        let call = self.client.call(operation, service_account.to_string());
        let path = format!("{service_account}:generateAccessToken");
        let body = json!({"scope": [READS], "lifetime": format!("{}s", token_life.as_secs())});
        let answer = call.send(&Request::new("generate_access_token", Method::POST, path).with_body(&body)).await?;
        match answer.status {
            StatusCode::OK => {
                let Answer { access_token, expire_time } = answer.parse().ok_or_else(|| call.unreadable())?;
                let is_empty = access_token.expose_secret().is_empty();
                if is_empty { Err(call.unreadable()) } else { Ok(Minted { token: access_token, expires: expire_time }) }
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
}

impl fmt::Debug for Gar {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Gar").field("settings", &self.settings).finish_non_exhaustive()
    }
}
