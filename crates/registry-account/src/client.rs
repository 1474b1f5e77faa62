//! Sends one operation's requests to the API of a registry: within the time of a call, with bounded answers.

use std::path::PathBuf;
use std::time::Duration;

use daemon::calls::CallLog;
use daemon::causes;
use daemon::connections::{Connections, Server};
use daemon::endpoint::EndpointUrl;
use daemon::exchange::{Answered, Exchange, Unanswered};
use fleet_model::names::client::{PULL_SECRET, REGISTRY_PROBE};
use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use secrecy::zeroize::Zeroizing;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

#[cfg(any(feature = "harbor", feature = "quay", feature = "red_hat"))]
use crate::contract::NewAccount;
use crate::error::{AccountError, ErrorKind, Operation};
use crate::identity::Identity;
use crate::probe::{Gate, Prober, ProberSettings};
use crate::request::Request;

/// Maximum size of an answer in bytes: a list of all robots of Quay, of which 100,000 take 15 MB.
const MAX_ANSWER: usize = 32 * 1024 * 1024;

/// The API of a registry, and the way to call it.
pub(crate) struct Api {
    pub(crate) address: EndpointUrl,
    /// Path of the API behind the address, with slashes around it.
    pub(crate) root: &'static str,
    pub(crate) identity: Identity,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) call_timeout: Duration,
    pub(crate) calls: Option<CallLog>,
    pub(crate) remedies: Remedies,
}

/// Remedies of refusals, by status.
pub(crate) struct Remedies {
    /// 401.
    pub(crate) unauthenticated: String,
    /// 403.
    pub(crate) denied: String,
    /// 404 and 405 of an address that must be there.
    pub(crate) not_found: String,
}

/// The way to a registry.
pub(crate) struct Client {
    connections: Connections,
    api: Api,
}

/// The requests of one operation, which share its time.
pub(crate) struct Call<'a> {
    client: &'a Client,
    operation: Operation,
    /// The login of the account, or what accounts belong to.
    pub(crate) resource: String,
    deadline: Instant,
}

/// Answer of any status; it may hold a password.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Zeroizing<Vec<u8>>,
    headers: HeaderMap,
}

/// Returns the key in `auths`: the host of images, or that of the address with its port.
pub(crate) fn host_of_images<'a>(address: &'a EndpointUrl, host: Option<&'a String>) -> &'a str {
    if let Some(host) = host {
        return host;
    }
    let address = address.as_str();
    let authority = address.split_once("://").map_or(address, |(_scheme, rest)| rest);
    authority.split('/').next().unwrap_or(authority)
}

// === impl Client ===

impl Client {
    pub(crate) fn new(api: Api) -> Result<Self, AccountError> {
        let (address, certificate) = (api.address.as_str(), api.identity.certificate());
        let server = Server {
            authorities: match &certificate {
                Some(_) => "the client's certificate or the certificate authorities of the registry",
                None => "the certificate authorities of the registry",
            },
            is_plain: api.address.plain_host().is_some(),
            ca_file: api.ca_file.clone(),
            certificate,
            user_agent: format!("{PULL_SECRET}/{}", env!("CARGO_PKG_VERSION")),
            connect_timeout: api.call_timeout,
        };
        let connections = Connections::new(server)
            .map_err(|error| AccountError::new(Operation::Connect, address, ErrorKind::Invalid).with_detail(error))?;
        Ok(Self { connections, api })
    }

    /// Returns a prober of the same registry.
    pub(crate) fn prober(&self) -> Result<Prober, AccountError> {
        let Api { address, ca_file, call_timeout, .. } = &self.api;
        let gate = Gate {
            deny: Vec::new(),
            // The operator has named the address.
            allow_private: true,
            plain_loopback: address.plain_host().is_some(),
        };
        let user_agent = format!("{REGISTRY_PROBE}/{}", env!("CARGO_PKG_VERSION"));
        let settings = ProberSettings { gate, ca_file: ca_file.clone(), timeout: *call_timeout, user_agent };
        Prober::new(settings).map_err(|error| {
            AccountError::new(Operation::Connect, address.as_str(), ErrorKind::Invalid).with_detail(error)
        })
    }

    /// Forgets a proof of the identity that the service has refused.
    #[cfg(feature = "ecr")]
    pub(crate) async fn forget_identity(&self) {
        self.api.identity.forget().await;
    }

    /// Begins an operation.
    pub(crate) fn call(&self, operation: Operation, resource: String) -> Call<'_> {
        Call { client: self, operation, resource, deadline: Instant::now() + self.api.call_timeout }
    }
}

// === impl Call ===

impl Call<'_> {
    /// Returns the call with another deadline, which it shares with one of another server.
    #[cfg(feature = "acr")]
    pub(crate) fn until(self, deadline: Instant) -> Self {
        Self { deadline, ..self }
    }

    /// Checks the length of an account's description, in characters.
    #[cfg(any(feature = "harbor", feature = "quay", feature = "red_hat"))]
    pub(crate) fn check_description(&self, new: &NewAccount, longest: usize) -> Result<(), AccountError> {
        let length = new.description.chars().count();
        if length <= longest {
            return Ok(());
        }
        let detail = format!("the description has {length} characters; {longest} are allowed");
        Err(self.failed(ErrorKind::Invalid).with_detail(detail))
    }

    /// Returns an error of this operation.
    pub(crate) fn failed(&self, kind: ErrorKind) -> AccountError {
        AccountError::new(self.operation, &self.resource, kind)
    }

    /// Returns the error of an answer that is not of its form.
    pub(crate) fn unreadable(&self) -> AccountError {
        self.failed(ErrorKind::Internal).with_detail("the answer cannot be read")
    }

    /// Returns the error of an identity that lacks a permission, which the detail shows.
    pub(crate) fn denied(&self, detail: &str) -> AccountError {
        let hint = Some(self.client.api.remedies.denied.clone());
        AccountError { hint, ..self.failed(ErrorKind::PermissionDenied) }.with_detail(detail)
    }

    /// Returns the error of an answer that the operation does not expect.
    pub(crate) fn refused(&self, answer: &Answer) -> AccountError {
        let status = answer.status.as_u16();
        let remedies = &self.client.api.remedies;
        let hint = match status {
            401 => Some(remedies.unauthenticated.clone()),
            403 => Some(remedies.denied.clone()),
            404 | 405 => Some(remedies.not_found.clone()),
            _ => None,
        };
        let failed = AccountError { hint, retry_after: answer.retry_after(), ..self.failed(kind_of(status)) };
        failed.with_detail(format!("HTTP status {status}"))
    }

    /// Sends a request once, and records it.
    pub(crate) async fn send(&self, request: &Request) -> Result<Answer, AccountError> {
        let Api { address, root, identity, calls, .. } = &self.client.api;
        let url = format!("{}{root}{}", address.as_str(), request.path);
        let headers = timeout_at(self.deadline, identity.headers(request, &url)).await;
        let headers = headers.map_err(|_elapsed| self.failed(ErrorKind::TimedOut))?;
        let headers = headers.map_err(|unproved| self.failed(unproved.kind).with_detail(unproved.detail))?;
        let builder = self.client.connections.current().request(request.method.clone(), url);
        let exchange = Exchange {
            request: builder.headers(headers).headers(request.headers.clone()).body(request.body.clone()),
            deadline: self.deadline,
            longest: MAX_ANSWER,
            name: request.name,
            log: calls.as_ref(),
        };
        match exchange.send().await {
            Ok(Answered { status, headers, body }) => {
                let body = Zeroizing::new(body);
                let status = StatusCode::from_u16(status).map_err(|_error| self.unreadable())?;
                Ok(Answer { status, body, headers })
            }
            Err(unanswered) => Err(self.unanswered(unanswered)),
        }
    }
}

impl Call<'_> {
    /// Returns the error of a request without an answer. A server that refuses the client's certificate ends the connection.
    fn unanswered(&self, unanswered: Unanswered) -> AccountError {
        let error = unanswered.into_error(self.failed(ErrorKind::Unavailable));
        let Api { identity, remedies, .. } = &self.client.api;
        let is_refused = error.detail.as_ref().is_some_and(|detail| detail.contains("received fatal alert"));
        if is_refused && identity.certificate().is_some() {
            return AccountError { hint: Some(remedies.unauthenticated.clone()), ..error };
        }
        error
    }
}

/// Returns the kind of a status that no operation expects.
fn kind_of(status: u16) -> ErrorKind {
    match status {
        401 => ErrorKind::Unauthenticated,
        403 => ErrorKind::PermissionDenied,
        408 | 504 => ErrorKind::TimedOut,
        429 => ErrorKind::QuotaExceeded,
        200..=299 | 500 => ErrorKind::Internal,
        300..=499 => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    }
}

// === impl Answer ===

impl Answer {
    /// Returns the document in the answer; the parser's error would quote values.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.body).ok()
    }

    /// Returns the answer as if it had another status.
    #[cfg(any(feature = "acr", feature = "ecr"))]
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Returns the text of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    fn retry_after(&self) -> Option<Duration> {
        causes::retry_after(self.header(RETRY_AFTER.as_str()))
    }
}
