//! Authorization tokens for Amazon Elastic Container Registry (private registries).
//!
//! There are no accounts: ECR mints tokens of one IAM role, which may only read images. The identity of this program assumes that
//! role, and is never handed out. A token names its own end, twelve hours later; before that only the role's permissions revoke it,
//! for all its tokens at once.

mod settings;

use std::fmt;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_credential_types::provider::SharedCredentialsProvider;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use daemon::endpoint::unsafe_variable;
use daemon::environment::ProcessEnvironment;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use jiff::{SignedDuration, Timestamp};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;

use crate::client::{Api, Client, Remedies};
use crate::error::{AccountError, ErrorKind, Operation};
use crate::identity::{Identity, Role, Signer};
use crate::refusals::{Known, refused};
use crate::request::Request;
use crate::tokens::{Mint, Minted, TokenRegistry};

pub use settings::{EcrSettings, InvalidRegion, InvalidRole, Region, RoleArn};

/// The name of the service in signatures.
const SERVICE: &str = "ecr";
/// The header that names the action.
const TARGET: HeaderName = HeaderName::from_static("x-amz-target");
/// The action.
const GET_TOKEN: HeaderValue = HeaderValue::from_static("AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken");
/// The form of the request.
const JSON: HeaderValue = HeaderValue::from_static("application/x-amz-json-1.1");
/// Life of what the registry gives for a token: nothing, as nodes send the token itself.
const BEARER_LIFE: Duration = Duration::ZERO;

/// The errors of the action, and those that all actions share.
const KNOWN: [Known; 12] = [
    Known { name: "AccessDeniedException", status: StatusCode::FORBIDDEN },
    Known { name: "ExpiredTokenException", status: StatusCode::UNAUTHORIZED },
    Known { name: "IncompleteSignatureException", status: StatusCode::UNAUTHORIZED },
    Known { name: "InternalFailure", status: StatusCode::INTERNAL_SERVER_ERROR },
    Known { name: "InvalidSignatureException", status: StatusCode::UNAUTHORIZED },
    Known { name: "MissingAuthenticationTokenException", status: StatusCode::UNAUTHORIZED },
    Known { name: "RequestExpired", status: StatusCode::UNAUTHORIZED },
    Known { name: "ServerException", status: StatusCode::INTERNAL_SERVER_ERROR },
    Known { name: "ServiceUnavailableException", status: StatusCode::SERVICE_UNAVAILABLE },
    Known { name: "ThrottlingException", status: StatusCode::TOO_MANY_REQUESTS },
    Known { name: "TooManyRequestsException", status: StatusCode::TOO_MANY_REQUESTS },
    Known { name: "UnrecognizedClientException", status: StatusCode::UNAUTHORIZED },
];

/// Amazon Elastic Container Registry.
pub type EcrRegistry = TokenRegistry<Ecr>;

/// Mints tokens of a role.
pub struct Ecr {
    settings: EcrSettings,
    client: Client,
}

/// The answer with tokens: one, as no registries are named.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    authorization_data: Vec<Authorization>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Authorization {
    /// User and password, as Basic authentication has them.
    authorization_token: SecretString,
    /// Seconds since 1970.
    expires_at: f64,
}

// === impl EcrRegistry ===

impl EcrRegistry {
    /// Sets up the client; the identity of the environment assumes the role of the settings. No request is sent.
    ///
    /// # Errors
    ///
    /// A file of the settings that cannot be used, or an address in the environment to which tokens may not be sent.
    pub fn connect(settings: EcrSettings) -> Result<Self, AccountError> {
        if let Some(name) = unsafe_variable(&ProcessEnvironment, &["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS"]) {
            let detail = format!("the environment's {name} is neither https nor of this machine");
            return Err(AccountError::new(Operation::Connect, settings.host(), ErrorKind::Invalid).with_detail(detail));
        }
        let role = Role::assumed(settings.role.to_string(), settings.call_timeout);
        Self::with_role(settings, role)
    }

    /// Sets up the client with given credentials of the role.
    ///
    /// # Errors
    ///
    /// A file of the settings that cannot be used.
    pub fn connect_as(settings: EcrSettings, provider: SharedCredentialsProvider) -> Result<Self, AccountError> {
        let role = Role::provided(settings.role.to_string(), settings.call_timeout, provider);
        Self::with_role(settings, role)
    }

    /// Sets up the client with an identity that assumes the role, and the token service.
    ///
    /// # Errors
    ///
    /// A file of the settings that cannot be used.
    pub fn connect_by(settings: EcrSettings, identity: &SdkConfig) -> Result<Self, AccountError> {
        let role = Role::assumed_at(settings.role.to_string(), settings.call_timeout, identity);
        Self::with_role(settings, role)
    }

    fn with_role(settings: EcrSettings, role: Role) -> Result<Self, AccountError> {
        let arn = &settings.role;
        let client = Client::new(Api {
            address: settings.token_address.clone(),
            root: "/",
            identity: Identity::Aws(Signer::new(role, SERVICE, settings.region.to_string())),
            ca_file: settings.ca_file.clone(),
            call_timeout: settings.call_timeout,
            calls: settings.calls.clone(),
            remedies: Remedies {
                unauthenticated: format!(
                    "check the credentials of the environment, that the role {arn} trusts them, and the clock of this host"
                ),
                denied: format!("grant the role {arn} the action ecr:GetAuthorizationToken on *"),
                not_found: "check region and token_url".to_owned(),
            },
        })?;
        let prober = client.prober()?;
        Ok(Self::new(Ecr { settings, client }, prober))
    }
}

impl Mint for Ecr {
    const USER: &'static str = "AWS";

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
        let call = self.client.call(operation, self.settings.role.to_string());
        let request = Request::new("get_authorization_token", Method::POST, String::new()).with_body(&json!({}));
        let request = request.with_header(CONTENT_TYPE, JSON).with_header(TARGET, GET_TOKEN);
        let answer = call.send(&request).await?;
        if answer.status != StatusCode::OK {
            let refused = refused(&call, answer, &KNOWN);
            if matches!(refused.kind, ErrorKind::PermissionDenied | ErrorKind::Unauthenticated) {
                self.client.forget_identity().await;
            }
            return Err(refused);
        }
        let minted = answer.parse::<Answer>().and_then(|answer| answer.authorization_data.into_iter().next()?.minted());
        minted.ok_or_else(|| call.unreadable())
    }
}

impl fmt::Debug for Ecr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Ecr").field("settings", &self.settings).finish_non_exhaustive()
    }
}

// === impl Authorization ===

impl Authorization {
    /// Returns the password and its end; `None` if it is not of its form.
    fn minted(&self) -> Option<Minted> {
        let pair = STANDARD.decode(self.authorization_token.expose_secret()).map(Zeroizing::new).ok()?;
        let (user, password) = std::str::from_utf8(&pair).ok()?.split_once(':')?;
        let expires = SignedDuration::try_from_secs_f64(self.expires_at).ok()?;
        let token = (user == Ecr::USER && !password.is_empty()).then(|| SecretString::from(password))?;
        Some(Minted { token, expires: Timestamp::from_duration(expires).ok()? })
    }
}
