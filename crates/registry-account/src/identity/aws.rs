//! Signs requests as a role at AWS (Signature Version 4).

mod failures;

use std::pin::Pin;
use std::time::{Duration, SystemTime};

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use daemon::endpoint::EndpointUrl;
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use tokio::sync::{Mutex, OnceCell};

use super::unproved::Unproved;
use crate::request::Request;

/// Credentials of a role that end within this time are not used any more.
const SPARE: Duration = Duration::from_mins(5);
/// The name of the role's sessions, in the logs of AWS.
const SESSION: &str = "pull-secret";

/// Signs requests to a service in a region.
#[derive(Debug)]
pub(crate) struct Signer {
    role: Role,
    service: &'static str,
    region: String,
    /// The credentials of the role, until their end. Their `Debug` does not show them.
    current: Mutex<Option<Credentials>>,
}

/// A role, and the source of its credentials.
#[derive(Debug)]
pub(crate) struct Role {
    arn: String,
    call_timeout: Duration,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// The identity of the environment assumes the role; the client is made for the first request.
    Assumed(OnceCell<aws_sdk_sts::Client>),
    /// The caller provides them.
    Provided(SharedCredentialsProvider),
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, Unproved>> + Send + 'a>>;

// === impl Role ===

impl Role {
    /// Returns a role that the identity of the environment assumes.
    pub(crate) fn assumed(arn: String, call_timeout: Duration) -> Self {
        Self { arn, call_timeout, source: Source::Assumed(OnceCell::new()) }
    }

    /// Returns a role that an identity assumes at a token service.
    pub(crate) fn assumed_at(arn: String, call_timeout: Duration, environment: &SdkConfig) -> Self {
        let client = aws_sdk_sts::Client::new(environment);
        Self { arn, call_timeout, source: Source::Assumed(OnceCell::new_with(Some(client))) }
    }

    /// Returns a role whose credentials the caller provides.
    pub(crate) fn provided(arn: String, call_timeout: Duration, provider: SharedCredentialsProvider) -> Self {
        Self { arn, call_timeout, source: Source::Provided(provider) }
    }

    async fn credentials(&self, region: &str) -> Result<Credentials, Unproved> {
        let client = match &self.source {
            Source::Assumed(client) => client.get_or_try_init(|| self.connect(Region::new(region.to_owned()))).await?,
            Source::Provided(provider) => {
                return provider.provide_credentials().await.map_err(|error| failures::of_identity(&error));
            }
        };
        let role = client.assume_role().role_arn(&self.arn).role_session_name(SESSION).send();
        let assumed = role.await.map_err(|error| failures::of_role(&self.arn, &error))?;
        let unreadable = || Unproved::for_now("the answer of the token service cannot be read");
        let role = assumed.credentials.ok_or_else(unreadable)?;
        let expires = SystemTime::try_from(role.expiration).map_err(|_error| unreadable())?;
        Ok(Credentials::new(
            role.access_key_id,
            role.secret_access_key,
            Some(role.session_token),
            Some(expires),
            SESSION,
        ))
    }

    /// Returns a client of the token service.
    async fn connect(&self, region: Region) -> Result<aws_sdk_sts::Client, Unproved> {
        let environment = aws_config::defaults(BehaviorVersion::latest())
            .region(region)
            .retry_config(RetryConfig::standard())
            .timeout_config(TimeoutConfig::builder().connect_timeout(self.call_timeout).build());
        let environment = environment.load().await;
        // The identity's token is sent there.
        if environment.endpoint_url().is_some_and(|address| address.parse::<EndpointUrl>().is_err()) {
            return Err("endpoint_url of the profile is neither https nor of this machine".to_owned().into());
        }
        Ok(aws_sdk_sts::Client::new(&environment))
    }
}

// === impl Signer ===

impl Signer {
    pub(crate) fn new(role: Role, service: &'static str, region: String) -> Self {
        Self { role, service, region, current: Mutex::default() }
    }

    /// Returns the headers of a request's signature.
    pub(super) async fn headers(&self, request: &Request, url: &str) -> Result<HeaderMap, Unproved> {
        let identity = self.credentials().await?.into();
        let unsigned = || Unproved::from("the request cannot be signed".to_owned());
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(self.service)
            .time(Timestamp::now().into())
            .settings(SigningSettings::default())
            .build()
            .map_err(|_error| unsigned())?
            .into();
        let headers = request.headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let body = SignableBody::Bytes(request.body.as_bytes());
        let signable =
            SignableRequest::new(request.method.as_str(), url, headers, body).map_err(|_error| unsigned())?;
        let (signature, _) = sign(signable, &parameters).map_err(|_error| unsigned())?.into_parts();
        let header = |(name, value): (&str, &str)| {
            let mut value = HeaderValue::from_str(value).map_err(|_error| unsigned())?;
            value.set_sensitive(true);
            Ok((HeaderName::try_from(name).map_err(|_error| unsigned())?, value))
        };
        signature.headers().map(header).collect()
    }

    /// Forgets the credentials of the role: the service has refused them.
    pub(super) async fn forget(&self) {
        *self.current.lock().await = None;
    }

    /// Returns credentials that last for a while.
    async fn credentials(&self) -> Result<Credentials, Unproved> {
        let mut current = self.current.lock().await;
        let lasts = |credentials: &&Credentials| {
            credentials.expiry().is_none_or(|expiry| expiry > SystemTime::from(Timestamp::now()) + SPARE)
        };
        if let Some(credentials) = current.as_ref().filter(lasts) {
            return Ok(credentials.clone());
        }
        // Boxed: the library's futures are deeper than the compiler's limit.
        let credentials: Boxed<'_, Credentials> = Box::pin(self.role.credentials(&self.region));
        let credentials = credentials.await?;
        *current = Some(credentials.clone());
        Ok(credentials)
    }
}
