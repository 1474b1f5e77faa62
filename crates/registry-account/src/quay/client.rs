//! Sends one operation's requests: within the time of a call, with bounded answers.

use std::path::Path;
use std::time::Duration;

use daemon::causes;
use daemon::connections::{Connections, Server};
use daemon::exchange::{Answered, Exchange};
use fleet_model::names::client::PULL_SECRET;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, StatusCode};
use reqwest::RequestBuilder;
use secrecy::ExposeSecret as _;
use secrecy::zeroize::Zeroizing;
use serde_json::Value;
use tokio::time::Instant;

use super::errors::{self, Classified, Known};
use super::settings::{QuaySettings, QuayToken};
use crate::error::{AccountError, ErrorKind, Operation};

/// Maximum size of an answer in bytes: a list of all robots, of which 100,000 take 15 MB.
const MAX_ANSWER: usize = 32 * 1024 * 1024;
/// Maximum size of a file with a token in bytes.
const MAX_TOKEN: u64 = 16 * 1024;

/// The way to Quay.
pub(super) struct Client {
    connections: Connections,
    pub(super) settings: QuaySettings,
    /// Host of images.
    pub(super) host: String,
}

/// The requests of one operation, which share its time.
pub(super) struct Call<'a> {
    pub(super) client: &'a Client,
    operation: Operation,
    /// The login of the account, or the organization.
    pub(super) resource: String,
    deadline: Instant,
}

/// One request.
pub(super) struct Request {
    /// Its name in metrics.
    name: &'static str,
    method: Method,
    /// Path and query after `/api/v1/`.
    path: String,
    body: Option<String>,
}

/// Answer of any status; it may hold a password.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Zeroizing<Vec<u8>>,
    retry_after: Option<Duration>,
}

// === impl Client ===

impl Client {
    pub(super) fn new(settings: QuaySettings) -> Result<Self, AccountError> {
        let address = settings.address.as_str();
        let server = Server {
            authorities: "the certificate authorities of the registry",
            is_plain: settings.address.plain_host().is_some(),
            ca_file: settings.ca_file.clone(),
            user_agent: format!("{PULL_SECRET}/{}", env!("CARGO_PKG_VERSION")),
            connect_timeout: settings.call_timeout,
        };
        let connections = Connections::new(server)
            .map_err(|error| AccountError::new(Operation::Connect, address, ErrorKind::Invalid).with_detail(error))?;
        let host = settings.host().to_owned();
        Ok(Self { connections, settings, host })
    }

    /// Begins an operation.
    pub(super) fn call(&self, operation: Operation, resource: String) -> Call<'_> {
        Call { client: self, operation, resource, deadline: Instant::now() + self.settings.call_timeout }
    }
}

// === impl Call ===

impl Call<'_> {
    /// Returns an error of this operation.
    pub(super) fn failed(&self, kind: ErrorKind) -> AccountError {
        AccountError::new(self.operation, &self.resource, kind)
    }

    /// Returns the error of an answer that is not of its form.
    pub(super) fn unreadable(&self) -> AccountError {
        self.failed(ErrorKind::Internal).with_detail("the answer cannot be read")
    }

    /// Returns the error of an account whose password Quay does not show.
    pub(super) fn without_password(&self) -> AccountError {
        let Classified { hint, .. } = errors::classify(403, &self.client.settings);
        let failed = AccountError { hint, ..self.failed(ErrorKind::PermissionDenied) };
        failed.with_detail("the answer has no password")
    }

    /// Returns the error of an answer that the operation does not expect.
    pub(super) fn refused(&self, answer: &Answer) -> AccountError {
        let status = answer.status.as_u16();
        let Classified { kind, hint } = errors::classify(status, &self.client.settings);
        let failed = AccountError { hint, retry_after: answer.retry_after, ..self.failed(kind) };
        failed.with_detail(format!("HTTP status {status}"))
    }

    /// Sends a request once, and records it.
    pub(super) async fn send(&self, request: &Request) -> Result<Answer, AccountError> {
        let token = self.authorization()?;
        let exchange = Exchange {
            request: self.builder(request, token),
            deadline: self.deadline,
            longest: MAX_ANSWER,
            name: request.name,
            log: self.client.settings.calls.as_ref(),
        };
        match exchange.send().await {
            Ok(Answered { status, headers, body }) => {
                let body = Zeroizing::new(body);
                let status = StatusCode::from_u16(status).map_err(|_error| self.unreadable())?;
                let retry_after = causes::retry_after(headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()));
                Ok(Answer { status, body, retry_after })
            }
            Err(unanswered) => Err(unanswered.into_error(self.failed(ErrorKind::Unavailable))),
        }
    }

    fn builder(&self, request: &Request, token: HeaderValue) -> RequestBuilder {
        let Request { method, path, body, .. } = request;
        let url = format!("{}/api/v1/{path}", self.client.settings.address.as_str());
        let builder = self.client.connections.current().request(method.clone(), url).header(AUTHORIZATION, token);
        match body {
            Some(body) => builder.header(CONTENT_TYPE, "application/json").body(body.clone()),
            None => builder,
        }
    }

    /// Reads the token, as it is now.
    fn authorization(&self) -> Result<HeaderValue, AccountError> {
        let unusable = |path: &Path, problem: &str| {
            let detail = format!("the token file {} {problem}", path.display());
            self.failed(ErrorKind::Unauthenticated).with_detail(detail)
        };
        match &self.client.settings.token {
            QuayToken::Value(token) => bearer(token.expose_secret())
                .ok_or_else(|| self.failed(ErrorKind::Unauthenticated).with_detail("the token cannot be sent")),
            QuayToken::File(path) => {
                let is_small = std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_TOKEN);
                if !is_small {
                    return Err(unusable(path, "is missing, or too large for a token"));
                }
                let text = std::fs::read_to_string(path).map(Zeroizing::new);
                let text = text.map_err(|_error| unusable(path, "cannot be read"))?;
                bearer(&text).ok_or_else(|| unusable(path, "does not hold a token"))
            }
        }
    }
}

/// Returns the header of a token; `None` for a text that is none.
fn bearer(token: &str) -> Option<HeaderValue> {
    let token = Some(token.trim()).filter(|token| !token.is_empty())?;
    let text = Zeroizing::new(format!("Bearer {token}"));
    let mut header = HeaderValue::from_str(&text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

// === impl Answer ===

impl Answer {
    /// Returns the known message of a refusal.
    pub(super) fn known(&self) -> Option<Known> {
        if self.status == StatusCode::BAD_REQUEST { errors::known(&self.body) } else { None }
    }
}

// === impl Request ===

impl Request {
    /// Returns a request without a body.
    pub(super) fn new(name: &'static str, method: Method, path: String) -> Self {
        Self { name, method, path, body: None }
    }

    #[must_use]
    pub(super) fn with_body(self, body: &Value) -> Self {
        Self { body: Some(body.to_string()), ..self }
    }
}
