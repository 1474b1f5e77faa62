//! Signs requests as a role at AWS (Signature Version 4).

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use aws_config::retry::RetryConfig;
use aws_config::sts::AssumeRoleProvider;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region};
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_runtime_api::client::result::ConnectorError;
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

/// A role, and how its credentials are had.
#[derive(Debug)]
pub(crate) struct Role {
    arn: String,
    call_timeout: Duration,
    provider: OnceCell<SharedCredentialsProvider>,
}

// === impl Role ===

impl Role {
    /// Returns a role that the identity of the environment assumes, first when a request is signed.
    pub(crate) fn assumed(arn: String, call_timeout: Duration) -> Self {
        Self { arn, call_timeout, provider: OnceCell::new() }
    }

    /// Returns a role whose credentials the caller provides.
    pub(crate) fn provided(arn: String, call_timeout: Duration, provider: SharedCredentialsProvider) -> Self {
        Self { arn, call_timeout, provider: OnceCell::new_with(Some(provider)) }
    }

    async fn provider(&self, region: &str) -> &SharedCredentialsProvider {
        self.provider.get_or_init(|| self.assume(Region::new(region.to_owned()))).await
    }

    /// Boxed: the library's futures are deeper than the compiler's limit.
    fn assume(&self, region: Region) -> Pin<Box<dyn Future<Output = SharedCredentialsProvider> + Send>> {
        let environment = aws_config::defaults(BehaviorVersion::latest())
            .region(region)
            .retry_config(RetryConfig::standard())
            .timeout_config(TimeoutConfig::builder().connect_timeout(self.call_timeout).build());
        let role = AssumeRoleProvider::builder(&self.arn).session_name(SESSION);
        Box::pin(async move { SharedCredentialsProvider::new(role.configure(&environment.load().await).build().await) })
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

    /// Returns credentials that last for a while. An error could quote an answer, and is not repeated.
    async fn credentials(&self) -> Result<Credentials, Unproved> {
        let mut current = self.current.lock().await;
        let lasts = |credentials: &&Credentials| {
            credentials.expiry().is_none_or(|expiry| expiry > SystemTime::from(Timestamp::now()) + SPARE)
        };
        if let Some(credentials) = current.as_ref().filter(lasts) {
            return Ok(credentials.clone());
        }
        let credentials = self.role.provider(&self.region).await.provide_credentials().await;
        let credentials = credentials.map_err(|error| match error {
            error if is_for_now(&error) => {
                Unproved::for_now("the services of AWS for credentials do not answer for now")
            }
            CredentialsError::CredentialsNotLoaded(_) => "the environment has no credentials of AWS".to_owned().into(),
            _ => format!("the identity of the environment cannot assume the role {}", self.role.arn).into(),
        })?;
        *current = Some(credentials.clone());
        Ok(credentials)
    }
}

/// True for an outage of a service for credentials, or of the way to it.
fn is_for_now(error: &CredentialsError) -> bool {
    let mut cause = error.source();
    while let Some(one) = cause {
        if one.is::<ConnectorError>() || one.is::<io::Error>() {
            return true;
        }
        cause = one.source();
    }
    matches!(error, CredentialsError::ProviderTimedOut(_))
}
