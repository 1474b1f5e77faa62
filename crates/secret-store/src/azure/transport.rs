//! The transport of the vendor's client: to the vault and to the service for tokens, and to nothing else.

use std::sync::Arc;

use async_trait::async_trait;
use azure_core::error::{Error, ErrorKind};
use azure_core::http::headers::Headers;
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{AsyncRawResponse, Body, Context, Request, Url};
use daemon::calls::CallLog;
use daemon::connections::{Connections, Server, SetupError};
use http::header::{AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tokio::time::Instant;

use crate::AzureSettings;
use crate::quote::quotes;
use daemon::exchange::{Answered, Exchange};

/// Maximum size of an answer that is read, in bytes: a page of versions that have as many tags as they can is a tenth of it.
const MAX_ANSWER: usize = 2 * 1024 * 1024;

/// The way of all requests.
#[derive(Debug)]
pub(super) struct Gate {
    vault: Url,
    tokens: Url,
    secure: Connections,
    /// To a service for tokens on this machine, which has no TLS.
    plain: Option<Connections>,
    log: Option<CallLog>,
}

/// A request's name in metrics, and its time: what the context of a request carries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    pub(super) name: &'static str,
    pub(super) deadline: Instant,
}

/// A request to a host that gets no tokens.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a request would go to a host that is neither the vault nor the service for tokens")]
pub(super) struct Stray;

// === impl Gate ===

impl Gate {
    pub(super) fn new(settings: &AzureSettings, vault: Url, tokens: Url) -> Result<Self, SetupError> {
        let server = |is_plain, authorities| Server {
            authorities,
            is_plain,
            ca_file: settings.ca_file.clone(),
            certificate: None,
            user_agent: concat!("pull-secret/", env!("CARGO_PKG_VERSION")).to_owned(),
            connect_timeout: settings.call_timeout,
        };
        let secure = Connections::new(server(false, "the certificate authorities of the secret store"))?;
        let plain = (tokens.scheme() == "http").then(|| Connections::new(server(true, "no certificate authorities")));
        Ok(Self { vault, tokens, secure, plain: plain.transpose()?, log: settings.calls.clone() })
    }

    /// Returns the connections for a request; none if it would go elsewhere, as a link in an answer can ask for.
    fn connections(&self, request: &Request) -> Option<&Connections> {
        let origin = request.url().origin();
        let is_authorized = request.headers().iter().any(|(name, _)| name.as_str() == AUTHORIZATION.as_str());
        if origin == self.vault.origin() {
            return Some(&self.secure);
        }
        let is_for_token = origin == self.tokens.origin() && !is_authorized;
        is_for_token.then_some(self.plain.as_ref().unwrap_or(&self.secure))
    }
}

#[async_trait]
#[expect(elided_lifetimes_in_paths, reason = "the trait leaves it out, and the macro tells both forms apart")]
impl Policy for Gate {
    async fn send(&self, context: &Context, request: &mut Request, _next: &[Arc<dyn Policy>]) -> PolicyResult {
        let connections = self.connections(request).ok_or_else(|| Error::new(ErrorKind::Other, Stray))?;
        let sending = context.value::<Sending>().copied();
        let sending = sending.ok_or_else(|| Error::with_message(ErrorKind::Other, "the request has no time limit"))?;
        let method = Method::from_bytes(request.method().as_ref().as_bytes()).map_err(unsendable)?;
        let headers = headers(request).map_err(unsendable)?;
        let Body::Bytes(body) = request.body().clone() else { return Err(unsendable("the body is a stream")) };
        let token = headers.get(AUTHORIZATION).and_then(|token| token.to_str().ok()).map(str::to_owned);
        let http = connections.current();
        let exchange = Exchange {
            request: http.request(method, request.url().as_str()).headers(headers).body(body),
            deadline: sending.deadline,
            longest: MAX_ANSWER,
            name: sending.name,
            log: self.log.as_ref(),
        };
        let Answered { status, headers, body } =
            exchange.send().await.map_err(|unanswered| Error::new(ErrorKind::Io, unanswered))?;
        let is_echo = || token.is_some_and(|token| quotes(&String::from_utf8_lossy(&body), &token));
        let body = if status >= 400 && is_echo() { Vec::new() } else { body };
        let mut answer = Headers::new();
        for (name, value) in &headers {
            if let Ok(value) = value.to_str() {
                answer.insert(name.as_str().to_owned(), value.to_owned());
            }
        }
        Ok(AsyncRawResponse::from_bytes(status.into(), answer, body))
    }
}

fn headers(request: &Request) -> Result<HeaderMap, http::Error> {
    let header = |(name, value): (&azure_core::http::headers::HeaderName, &azure_core::http::headers::HeaderValue)| {
        let name = HeaderName::from_bytes(name.as_str().as_bytes())?;
        let mut value = HeaderValue::from_str(value.as_str())?;
        value.set_sensitive(name == AUTHORIZATION);
        Ok((name, value))
    };
    // The program's name is in each request already; the vendor's client has no room for it.
    let of_request = request.headers().iter().filter(|(name, _)| name.as_str() != USER_AGENT.as_str());
    of_request.map(header).collect()
}

fn unsendable(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::Other, cause)
}
