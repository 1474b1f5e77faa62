//! Sends one operation's requests: within the time of a call, with bounded answers.

use std::time::Duration;

use daemon::connections::{Connections, Server};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method};
use reqwest::RequestBuilder;
use tokio::time::Instant;

use super::errors::{self, Classified, Refused};
use super::token::Token;
use crate::error::{ErrorKind, Operation};
use crate::quote::quotes;
use crate::{Permission, StoreError, VaultSettings};
use daemon::causes;
use daemon::exchange::{Answered, Exchange};

/// Maximum size of an answer that is read, in bytes: a page of a folder whose secrets have as much metadata as they can.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// The way to the server.
pub(super) struct Client {
    connections: Connections,
    pub(super) settings: VaultSettings,
    headers: HeaderMap,
}

/// The requests of one operation, which share its time.
pub(super) struct Call<'a> {
    client: &'a Client,
    operation: Operation,
    /// Full name of the secret or version, for errors.
    resource: String,
    deadline: Instant,
}

/// One request.
pub(super) struct Request {
    /// Its name in metrics.
    pub(super) name: &'static str,
    /// The permission that it needs.
    pub(super) needs: Option<Permission>,
    pub(super) method: Method,
    /// The path after `/v1/`.
    pub(super) path: String,
    pub(super) query: String,
    pub(super) body: Option<Body>,
}

/// The body of a request.
pub(super) struct Body {
    pub(super) json: String,
    /// The part of it that no error may quote.
    pub(super) secret: Option<String>,
}

/// Answer of any status.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    retry_after: Option<Duration>,
    /// The token that the request was sent with.
    token: Option<Token>,
}

/// Answer of a request that was carried out.
pub(super) enum Reply {
    /// The body.
    Found(Vec<u8>),
    /// The thing that was asked for does not exist; the body may hold more about it.
    Absent(Vec<u8>),
}

// === impl Client ===

impl Client {
    pub(super) fn new(settings: &VaultSettings) -> Result<Self, StoreError> {
        let resource = settings.address.as_str();
        let invalid =
            |detail: String| errors::failed(Operation::Connect, resource, ErrorKind::Invalid).with_detail(detail);
        let server = Server {
            authorities: "the certificate authorities of the secret store",
            is_plain: settings.address.plain_host().is_some(),
            ca_file: settings.ca_file.clone(),
            certificate: None,
            user_agent: concat!("pull-secret/", env!("CARGO_PKG_VERSION")).to_owned(),
            connect_timeout: settings.call_timeout,
        };
        let connections = Connections::new(server).map_err(|error| invalid(error.to_string()))?;
        let mut headers = HeaderMap::from_iter([(errors::REQUEST_HEADER, HeaderValue::from_static("true"))]);
        if let Some(namespace) = &settings.namespace {
            let value = HeaderValue::from_str(namespace.as_str())
                .map_err(|_error| invalid("the namespace is no header".to_owned()))?;
            headers.insert(errors::NAMESPACE_HEADER, value);
        }
        Ok(Self { connections, settings: settings.clone(), headers })
    }

    /// Begins an operation.
    pub(super) fn call(&self, operation: Operation, resource: String) -> Call<'_> {
        Call { client: self, operation, resource, deadline: Instant::now() + self.settings.call_timeout }
    }
}

// === impl Call ===

impl Call<'_> {
    /// Returns an error of this operation.
    pub(super) fn failed(&self, kind: ErrorKind) -> StoreError {
        errors::failed(self.operation, &self.resource, kind)
    }

    /// Returns the error of an answer that is not of its form.
    pub(super) fn unreadable(&self) -> StoreError {
        self.failed(ErrorKind::Internal).with_detail("the answer cannot be read")
    }

    /// Returns the reply in an answer.
    pub(super) fn accepted(&self, request: &Request, answer: Answer) -> Result<Reply, StoreError> {
        match answer.status {
            200..=299 => Ok(Reply::Found(answer.body)),
            status => match (status, errors::refusal(&answer.body).map(|refusal| refusal.errors.unwrap_or_default())) {
                (404, Some(messages)) if messages.is_empty() => Ok(Reply::Absent(answer.body)),
                (_, messages) => Err(self.refused(request, &answer, messages.map(|messages| messages.join("; ")))),
            },
        }
    }

    fn refused(&self, request: &Request, answer: &Answer, message: Option<String>) -> StoreError {
        let content = request.body.as_ref().and_then(|body| body.secret.as_deref());
        let token = answer.token.as_ref().map(Token::text);
        let is_secret = |message: &String| content.into_iter().chain(token).any(|text| quotes(message, text));
        let message = message.filter(|message| !is_secret(message));
        let refused = Refused {
            status: answer.status,
            message: message.as_deref(),
            needs: request.needs,
            path: &request.path,
            mount: self.client.settings.mount.as_str(),
        };
        let Classified { kind, detail, hint } = errors::classify(&refused);
        StoreError { hint, retry_after: answer.retry_after, ..self.failed(kind) }.with_detail(detail)
    }

    /// Sends a request once, and records it.
    pub(super) async fn transmit(&self, request: &Request, token: Option<&Token>) -> Result<Answer, StoreError> {
        let exchange = Exchange {
            request: self.builder(request, token),
            deadline: self.deadline,
            longest: MAX_ANSWER,
            name: request.name,
            log: self.client.settings.calls.as_ref(),
        };
        match exchange.send().await {
            Ok(Answered { status, headers, body }) => {
                let retry_after = causes::retry_after(headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()));
                Ok(Answer { status, body, retry_after, token: token.cloned() })
            }
            Err(unanswered) => Err(unanswered.into_error(self.failed(ErrorKind::Unavailable))),
        }
    }

    fn builder(&self, request: &Request, token: Option<&Token>) -> RequestBuilder {
        let Request { method, path, query, body, .. } = request;
        let mark = if query.is_empty() { "" } else { "?" };
        let url = format!("{}/v1/{path}{mark}{query}", self.client.settings.address.as_str());
        let http = self.client.connections.current();
        let mut builder = http.request(method.clone(), url).headers(self.client.headers.clone());
        if let Some(token) = token {
            builder = builder.header(errors::TOKEN_HEADER, token.header());
        }
        match body {
            Some(body) => builder.header(CONTENT_TYPE, "application/json").body(body.json.clone()),
            None => builder,
        }
    }
}

// === impl Request ===

impl Request {
    /// Returns a request without query and body.
    pub(super) fn new(operation: Operation, needs: Permission, method: Method, path: String) -> Self {
        let query = String::new();
        Self { name: operation.metric_name(), needs: Some(needs), method, path, query, body: None }
    }

    #[must_use]
    pub(super) fn with_query(self, query: String) -> Self {
        Self { query, ..self }
    }

    #[must_use]
    pub(super) fn with_body(self, json: String) -> Self {
        Self { body: Some(Body { json, secret: None }), ..self }
    }
}
