//! Sends one operation's requests: once each, within the time of a call.

use std::fmt;

use aws_config::BehaviorVersion;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::config::{Credentials, Region, StalledStreamProtectionConfig};
use aws_sdk_secretsmanager::error::{ProvideErrorMetadata, SdkError};
use daemon::calls;
use daemon::endpoint::unsafe_variable;
use daemon::environment::ProcessEnvironment;
use secrecy::ExposeSecret as _;
use tokio::time::{Instant, timeout_at};

use super::errors::{self, Classified, Fault, Refused};
use super::permission;
use crate::error::{ErrorKind, Operation};
use crate::{AwsIdentity, AwsSettings, EndpointUrl, Permission, StoreError};
use daemon::causes;

/// The way to the service.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) settings: AwsSettings,
}

/// The requests of one operation, which share its time.
pub(super) struct Call<'a> {
    session: &'a Session,
    pub(super) operation: Operation,
    /// Name of the secret or version, for errors.
    resource: String,
    pub(super) deadline: Instant,
    /// The content that no error may quote.
    secret: Option<&'a str>,
}

/// A kind of request.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// The operation that it counts as in metrics.
    pub(super) counts_as: Operation,
    /// The action that it needs.
    pub(super) needs: &'static str,
}

/// Returns the kind of the request that a permission is for.
pub(super) fn kind(counts_as: Operation, permission: Permission) -> Kind {
    Kind { counts_as, needs: permission::name(permission) }
}

// === impl Session ===

impl Session {
    pub(super) async fn new(settings: &AwsSettings) -> Result<Self, StoreError> {
        let region = Region::new(settings.region.to_string());
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .region(region)
            // Of the services for credentials; a request to the store is sent once.
            .retry_config(RetryConfig::standard())
            .timeout_config(TimeoutConfig::builder().connect_timeout(settings.call_timeout).build())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        if let AwsIdentity::Keys(keys) = &settings.identity {
            let secret = keys.secret.expose_secret();
            loader = loader.credentials_provider(Credentials::new(&keys.id, secret, None, None, "settings"));
        }
        let environment = loader.load().await;
        let mut config = aws_sdk_secretsmanager::config::Builder::from(&environment);
        config.set_retry_config(Some(RetryConfig::disabled()));
        if let Some(name) = unsafe_variable(&ProcessEnvironment, &["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS"]) {
            return Err(unsafe_address(settings, name));
        }
        match (&settings.endpoint, environment.endpoint_url()) {
            (Some(endpoint), _) => config.set_endpoint_url(Some(endpoint.as_str().to_owned())),
            // Tokens and content are sent there, by whichever setting.
            (None, Some(address)) if address.parse::<EndpointUrl>().is_err() => {
                return Err(unsafe_address(settings, "endpoint_url of the profile"));
            }
            (None, _) => &mut config,
        };
        Ok(Self { client: Client::from_conf(config.build()), settings: settings.clone() })
    }

    /// Begins an operation.
    pub(super) fn call(&self, operation: Operation, resource: impl fmt::Display) -> Call<'_> {
        let deadline = Instant::now() + self.settings.call_timeout;
        Call { session: self, operation, resource: resource.to_string(), deadline, secret: None }
    }
}

/// Returns the error about an address to which tokens may not be sent.
fn unsafe_address(settings: &AwsSettings, name: &str) -> StoreError {
    let refused = StoreError::new(Operation::Connect, &settings.region, ErrorKind::Invalid);
    refused.with_detail(format!("the environment's {name} is neither https nor of this machine"))
}

// === impl Call ===

impl<'a> Call<'a> {
    /// Keeps this text out of errors.
    pub(super) fn hiding(self, secret: Option<&'a str>) -> Self {
        Self { secret, ..self }
    }

    /// Returns an error of this operation.
    pub(super) fn failed(&self, kind: ErrorKind) -> StoreError {
        StoreError::new(self.operation, &self.resource, kind)
    }

    /// Returns the error about a secret that is scheduled for deletion.
    pub(super) fn pending_deletion(&self) -> StoreError {
        let refused = Refused {
            status: 400,
            code: "InvalidRequestException",
            message: "it is marked for deletion",
            needs: "",
            secret: None,
        };
        self.classified(&refused)
    }

    /// Sends a request once, and records it. Callers box it: the library's futures are deep, and large.
    pub(super) async fn send<T, E>(
        &self,
        kind: Kind,
        request: impl Future<Output = Result<T, SdkError<E>>>,
    ) -> Result<T, Fault>
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let start = Instant::now();
        let answered = timeout_at(self.deadline, request).await;
        if let Some(log) = &self.session.settings.calls {
            let status_code = match &answered {
                Ok(Ok(_)) => 200,
                Ok(Err(error)) => error.raw_response().map_or(calls::UNREACHABLE, |answer| answer.status().as_u16()),
                Err(_elapsed) => calls::TIMED_OUT,
            };
            log.record(kind.counts_as.metric_name(), status_code, start.elapsed());
        }
        match answered {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.fault(kind.needs, &error)),
            Err(_elapsed) => Err(Fault { code: String::new(), error: self.failed(ErrorKind::TimedOut) }),
        }
    }

    fn fault<E>(&self, needs: &'static str, error: &SdkError<E>) -> Fault
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let unanswered =
            |kind, detail: &str| Fault { code: String::new(), error: self.failed(kind).with_detail(detail) };
        let Some(answer) = error.raw_response() else {
            return match (causes::cause::<CredentialsError>(error), error) {
                (Some(credentials), _) => self.without_credentials(credentials),
                (None, SdkError::TimeoutError(_)) => unanswered(ErrorKind::TimedOut, ""),
                (None, SdkError::ConstructionFailure(_)) => {
                    unanswered(ErrorKind::Invalid, "the request cannot be made of these settings")
                }
                (None, _) => unanswered(ErrorKind::Unavailable, &causes::innermost(error)),
            };
        };
        if let SdkError::ResponseError(_) = error {
            return unanswered(ErrorKind::Internal, "the answer cannot be read");
        }
        let refused = Refused {
            status: answer.status().as_u16(),
            code: error.code().unwrap_or_default(),
            message: error.message().unwrap_or_default(),
            needs,
            secret: self.secret,
        };
        let retry_after = causes::retry_after(answer.headers().get("retry-after"));
        Fault { code: refused.code.to_owned(), error: StoreError { retry_after, ..self.classified(&refused) } }
    }

    fn classified(&self, refused: &Refused<'_>) -> StoreError {
        let Classified { kind, detail, hint } = errors::classify(refused);
        StoreError { hint, ..self.failed(kind) }.with_detail(detail)
    }

    /// The library's messages are not forwarded: they may quote files and the answers of token services.
    fn without_credentials(&self, credentials: &CredentialsError) -> Fault {
        let (kind, detail) = match credentials {
            CredentialsError::CredentialsNotLoaded(_) => {
                (ErrorKind::Unauthenticated, "the environment has no credentials")
            }
            CredentialsError::ProviderTimedOut(_) => (ErrorKind::TimedOut, "no credentials in time"),
            CredentialsError::InvalidConfiguration(_) => (
                ErrorKind::Unauthenticated,
                "the environment's credentials are not complete, or a file of theirs cannot be read",
            ),
            _ => (ErrorKind::Unauthenticated, "the service for credentials did not give any"),
        };
        let refused = Refused { status: 400, code: "MissingAuthenticationToken", message: "", needs: "", secret: None };
        let hint = errors::classify(&refused).hint;
        Fault { code: String::new(), error: StoreError { hint, ..self.failed(kind) }.with_detail(detail) }
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        fault.error
    }
}
