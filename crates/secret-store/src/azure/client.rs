//! Sends one operation's requests: once each, within the time of a call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use azure_core::http::{ClientOptions, Context, RetryOptions, Transport, Url};
use azure_security_keyvault_secrets::{SecretClient, SecretClientOptions};
use tokio::time::{Instant, sleep, timeout_at};

use super::errors::{self, Asked, Fault};
use super::identity::{self, Identity};
use super::permission;
use super::transport::{Gate, Sending};
use crate::error::{ErrorKind, Operation};
use crate::{AzureSettings, Permission, StoreError};

/// First wait for the vault; each is twice the one before.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// The way to the vault.
pub(super) struct Session {
    pub(super) client: SecretClient,
    pub(super) settings: AzureSettings,
}

/// The requests of one operation, which share its time.
pub(super) struct Call<'a> {
    operation: Operation,
    /// Full name of the secret or version, for errors.
    resource: String,
    deadline: Instant,
    /// The content that no error may quote.
    secret: Option<&'a str>,
}

/// A kind of request.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// The operation that it counts as in metrics.
    pub(super) counts_as: Operation,
    /// The data action that it needs.
    pub(super) needs: &'static str,
}

/// The waits for the vault within a call.
pub(super) struct Waits(Duration);

/// Returns the kind of the request that a permission is for.
pub(super) fn kind(counts_as: Operation, permission: Permission) -> Kind {
    Kind { counts_as, needs: permission::name(permission) }
}

// === impl Session ===

impl Session {
    pub(super) fn new(settings: &AzureSettings) -> Result<Self, StoreError> {
        let resource = &settings.vault;
        let invalid =
            |detail: String| StoreError::new(Operation::Connect, resource, ErrorKind::Invalid).with_detail(detail);
        if settings.vault.plain_host().is_some() {
            return Err(invalid("the vault's address must be https".to_owned()));
        }
        let parsed = |address: &str| address.parse::<Url>().map_err(|error| invalid(error.to_string()));
        let vault = parsed(settings.vault.as_str())?;
        let tokens = parsed(&identity::token_address(&settings.identity))?;
        let gate = Gate::new(settings, vault.clone(), tokens).map_err(|error| invalid(error.to_string()))?;
        let client_options = ClientOptions {
            retry: RetryOptions::none(),
            transport: Some(Transport::with_policy(Arc::new(gate))),
            ..ClientOptions::default()
        };
        let identity = Arc::new(Identity::new(&settings.identity, &vault, client_options.clone()));
        let options = SecretClientOptions {
            client_options,
            // The scope is that of the settings, whatever the challenge names.
            verify_challenge_resource: Some(false),
            ..SecretClientOptions::default()
        };
        let client = SecretClient::new(vault.as_str(), identity, Some(options));
        let client = client.map_err(|error| invalid(error.to_string()))?;
        Ok(Self { client, settings: settings.clone() })
    }

    /// Begins an operation.
    pub(super) fn call(&self, operation: Operation, resource: impl fmt::Display) -> Call<'static> {
        let deadline = Instant::now() + self.settings.call_timeout;
        Call { operation, resource: resource.to_string(), deadline, secret: None }
    }
}

// === impl Call ===

impl Call<'_> {
    /// Keeps this text out of errors.
    pub(super) fn hiding(self, secret: Option<&str>) -> Call<'_> {
        Call { secret, ..self }
    }

    /// Returns an error of this operation.
    pub(super) fn failed(&self, kind: ErrorKind) -> StoreError {
        StoreError::new(self.operation, &self.resource, kind)
    }

    /// Returns the error of an answer that is not of its form.
    pub(super) fn unreadable(&self) -> StoreError {
        self.failed(ErrorKind::Internal).with_detail("the answer cannot be read")
    }

    /// Returns the context of a request of this kind.
    pub(super) fn context(&self, kind: Kind) -> Context<'static> {
        Context::new().with_value(Sending { name: kind.counts_as.metric_name(), deadline: self.deadline })
    }

    /// Sends a request once. Callers box it: the library's futures are deep, and large.
    pub(super) async fn send<T>(
        &self,
        kind: Kind,
        request: impl Future<Output = azure_core::Result<T>>,
    ) -> Result<T, Fault> {
        let asked = Asked { needs: kind.needs, secret: self.secret };
        match timeout_at(self.deadline, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(errors::fault(&error, asked, self.failed(ErrorKind::Internal))),
            // For a token that another call has asked for.
            Err(_elapsed) => Err(Fault { code: String::new(), error: self.failed(ErrorKind::TimedOut) }),
        }
    }

    /// Waits, if the time of the call lasts; `reason` completes the error if it does not.
    pub(super) async fn wait(&self, waits: &mut Waits, reason: &str) -> Result<(), StoreError> {
        if Instant::now() + waits.0 > self.deadline {
            return Err(self.failed(ErrorKind::TimedOut).with_detail(reason));
        }
        sleep(waits.0).await;
        waits.0 = (waits.0 * 2).min(LONGEST_WAIT);
        Ok(())
    }
}

// === impl Waits ===

impl Default for Waits {
    fn default() -> Self {
        Self(FIRST_WAIT)
    }
}
