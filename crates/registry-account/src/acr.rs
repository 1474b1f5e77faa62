//! Refresh tokens for Azure Container Registry.
//!
//! There are no accounts: Microsoft Entra ID gives an application, which may only pull images, a token for the token that the
//! environment has for it (workload identity federation), and the registry exchanges that for a refresh token, which nodes send as
//! password. It names its own end, about three hours later, and nothing revokes it before.

mod settings;

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Method, StatusCode};
use jiff::Timestamp;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::client::{Api, Call, Client, Remedies, host_of_images};
use crate::error::{AccountError, ErrorKind, Operation};
use crate::identity::Identity;
use crate::refusals::{Known, refused};
use crate::request::{Field, Request};
use crate::tokens::{Mint, Minted, TokenRegistry};

pub use settings::AcrSettings;

/// The audience of the tokens that registries exchange.
const SCOPE: &str = "https://containerregistry.azure.net/.default";
/// The form of the token that proves the application (RFC 7523).
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Life of the access tokens that the registry gives for a refresh token.
const BEARER_LIFE: Duration = Duration::from_mins(75);

/// The names with which Entra ID refuses an application.
const KNOWN: [Known; 3] = [
    Known { name: "invalid_client", status: StatusCode::UNAUTHORIZED },
    Known { name: "invalid_grant", status: StatusCode::UNAUTHORIZED },
    Known { name: "unauthorized_client", status: StatusCode::UNAUTHORIZED },
];

/// Azure Container Registry.
pub type AcrRegistry = TokenRegistry<Acr>;

/// Mints tokens of an application.
pub struct Acr {
    settings: AcrSettings,
    entra: Client,
    registry: Client,
}

/// The answer of Entra ID.
#[derive(Deserialize)]
struct Entered {
    access_token: SecretString,
}

/// The answer of the registry.
#[derive(Deserialize)]
struct Exchanged {
    refresh_token: SecretString,
}

/// The claims of a token that matter.
#[derive(Deserialize)]
struct Claims {
    /// Its end, in seconds since 1970.
    exp: i64,
}

// === impl AcrRegistry ===

impl AcrRegistry {
    /// Sets up the clients. No request is sent.
    ///
    /// # Errors
    ///
    /// A file of the settings that cannot be used.
    pub fn connect(settings: AcrSettings) -> Result<Self, AccountError> {
        let (tenant, application) = (settings.tenant, settings.application);
        let entra = Client::new(Api {
            address: settings.token_address.clone(),
            root: "/",
            identity: Identity::InBody,
            ca_file: settings.ca_file.clone(),
            call_timeout: settings.call_timeout,
            calls: settings.calls.clone(),
            remedies: Remedies {
                unauthenticated: format!(
                    "check that the application {application} has a federated credential for the issuer, subject and audience \
                     of the token file"
                ),
                denied: format!("check the access policies of the tenant {tenant} for the application {application}"),
                not_found: "check tenant_id and token_url".to_owned(),
            },
        })?;
        let registry = Client::new(Api {
            address: settings.address.clone(),
            root: "/oauth2/",
            identity: Identity::InBody,
            ca_file: settings.ca_file.clone(),
            call_timeout: settings.call_timeout,
            calls: settings.calls.clone(),
            remedies: Remedies {
                unauthenticated: format!(
                    "grant the application {application} the role that pulls from the registry, and check tenant_id"
                ),
                denied: format!(
                    "grant the application {application} the role that pulls, and check the registry's firewall"
                ),
                not_found: "check url: it must be the login server of the registry".to_owned(),
            },
        })?;
        let prober = registry.prober()?;
        Ok(Self::new(Acr { settings, entra, registry }, prober))
    }
}

// === impl Acr ===

impl Acr {
    /// Gets a token of the application for registries.
    async fn enter(&self, call: &Call<'_>) -> Result<SecretString, AccountError> {
        let AcrSettings { tenant, application, token, .. } = &self.settings;
        let assertion =
            token.read("token").map_err(|detail| call.failed(ErrorKind::Unauthenticated).with_detail(detail))?;
        let path = format!("{tenant}/oauth2/v2.0/token");
        let request = Request::new("get_entra_token", Method::POST, path).with_form(&[
            Field { name: "grant_type", value: "client_credentials" },
            Field { name: "client_id", value: &application.to_string() },
            Field { name: "scope", value: SCOPE },
            Field { name: "client_assertion_type", value: ASSERTION },
            Field { name: "client_assertion", value: &assertion },
        ]);
        post::<Entered>(call, &request).await.map(|Entered { access_token }| access_token)
    }

    /// Exchanges it for a token of the registry.
    async fn exchange(&self, call: &Call<'_>, entered: &SecretString) -> Result<Minted, AccountError> {
        let request = Request::new("exchange_token", Method::POST, "exchange".to_owned()).with_form(&[
            Field { name: "grant_type", value: "access_token" },
            Field { name: "service", value: host_of_images(&self.settings.address, None) },
            Field { name: "tenant", value: &self.settings.tenant.to_string() },
            Field { name: "access_token", value: entered.expose_secret() },
        ]);
        let Exchanged { refresh_token } = post(call, &request).await?;
        let expires = end_of(refresh_token.expose_secret()).ok_or_else(|| call.unreadable())?;
        Ok(Minted { token: refresh_token, expires })
    }
}

impl Mint for Acr {
    /// The user of a login with a refresh token.
    const USER: &'static str = "00000000-0000-0000-0000-000000000000";

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
        let deadline = Instant::now() + self.settings.call_timeout;
        let application = self.settings.application.to_string();
        let entered = self.enter(&self.entra.call(operation, application.clone()).until(deadline)).await?;
        self.exchange(&self.registry.call(operation, application).until(deadline), &entered).await
    }
}

impl fmt::Debug for Acr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Acr").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Sends a request, and reads the answer of a success.
async fn post<T: DeserializeOwned>(call: &Call<'_>, request: &Request) -> Result<T, AccountError> {
    let answer = call.send(request).await?;
    if answer.status == StatusCode::OK {
        answer.parse().ok_or_else(|| call.unreadable())
    } else {
        Err(refused(call, answer, &KNOWN))
    }
}

/// Returns the end that a token names; its signature is the registry's own matter.
fn end_of(token: &str) -> Option<Timestamp> {
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).map(Zeroizing::new).ok()?;
    let Claims { exp } = serde_json::from_slice(&payload).ok()?;
    Timestamp::from_second(exp).ok()
}
