//! Sending a request and having its answer: who we are, how long, how often, how much.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use daemon::backoff::RetryPolicy;
use daemon::connections::{Connections, Server};
use daemon::retry::{Budget, Failure};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use jiff::Timestamp;
use reqwest::Response;
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use zeroize::Zeroizing;

use crate::Settings;
use crate::error::{Error, SetupError};
use crate::request::Request;
use crate::retry_after;
use crate::token::TokenFile;
use crate::wire::Problem;

/// The most that is read of an answer: a full page of resources of the API's largest size.
const MAX_ANSWER: usize = 128 * 1024 * 1024;
/// The most that is read of a refusal.
const MAX_REFUSAL: usize = 64 * 1024;

/// The way to the API.
#[derive(Debug)]
pub(crate) struct Transport {
    http: Connections,
    token: Option<TokenFile>,
    attempt_timeout: Duration,
    retry: RetryPolicy,
}

/// The API's response to a request that succeeded.
pub(crate) struct Answer {
    call: String,
    pub(crate) status: StatusCode,
    body: Zeroizing<Vec<u8>>,
}

// === impl Transport ===

impl Transport {
    pub(crate) fn new(settings: &Settings) -> Result<Self, SetupError> {
        settings.check()?;
        let server = Server {
            authorities: "the API's certificate authorities",
            is_plain: settings.base_url.is_plain(),
            ca_file: settings.ca_file.clone(),
            certificate: None,
            user_agent: settings.user_agent.clone(),
            connect_timeout: settings.attempt_timeout,
        };
        Ok(Self {
            http: Connections::new(server)?,
            token: settings.token.clone().map(TokenFile::new),
            attempt_timeout: settings.attempt_timeout,
            retry: settings.retry,
        })
    }

    /// Asks until there is an answer, no further attempt is due, or the budget is spent.
    pub(crate) async fn ask(self: &Arc<Self>, request: Request, budget: &Budget) -> Result<Answer, Error> {
        let call = request.call.clone();
        let (repeatable, transport, request) = (request.repeatable, Arc::clone(self), Arc::new(request));
        // Each attempt owns its parts: with borrowed parts, the compiler cannot prove that the future is `Send`.
        let attempt = move || {
            let (transport, request) = (Arc::clone(&transport), Arc::clone(&request));
            async move { transport.attempt(&request).await }
        };
        let result = if repeatable {
            budget.retry(&self.retry, log_retry, attempt).await
        } else {
            let attempt = budget.run(attempt()).await;
            attempt
                .map_err(|interrupted| Failure::Interrupted(interrupted, None))
                .and_then(|result| result.map_err(Failure::Failed))
        };
        result.map_err(|failure| match failure {
            Failure::Failed(error) => error,
            Failure::Interrupted(interrupted, last) => {
                Error::Interrupted { call, interrupted, source: last.map(Box::new) }
            }
        })
    }

    /// Begins a response without an end. The time limit covers its beginning; its reader limits the rest.
    pub(crate) async fn open(&self, request: &Request, time_limit: Duration) -> Result<Response, Error> {
        in_time(request, time_limit, self.exchange(request)).await
    }

    /// Sends the request once, without the token; any answer will do.
    pub(crate) async fn any_answer(&self, request: &Request) -> Result<Response, Error> {
        in_time(request, self.attempt_timeout, self.send(request, None)).await
    }

    /// Reads the token, if there is a file of it.
    pub(crate) async fn token(&self) -> io::Result<Option<SecretString>> {
        match &self.token {
            Some(token) => token.read().await.map(Some),
            None => Ok(None),
        }
    }

    async fn attempt(&self, request: &Request) -> Result<Answer, Error> {
        let whole = async {
            let response = self.exchange(request).await?;
            let status = response.status();
            let body = read(response, MAX_ANSWER).await.map_err(|failure| failure.of(request))?;
            Ok(Answer { call: request.call.clone(), status, body })
        };
        in_time(request, self.attempt_timeout, whole).await
    }

    /// Sends the request; when our token is refused, once more with what the file holds now.
    async fn exchange(&self, request: &Request) -> Result<Response, Error> {
        let Some(token) = &self.token else {
            return accepted(request, self.send(request, None).await?).await;
        };
        let response = self.send(request, Some(token.header(&request.call).await?)).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return accepted(request, response).await;
        }
        let fresh = token.fresh_header(&request.call).await?;
        accepted(request, self.send(request, Some(fresh)).await?).await
    }

    async fn send(&self, request: &Request, authorization: Option<HeaderValue>) -> Result<Response, Error> {
        let http = self.http.current();
        let mut builder = http.request(request.method.clone(), request.url.clone()).headers(request.headers.clone());
        if !request.headers.contains_key(ACCEPT) {
            builder = builder.header(ACCEPT, "application/json");
        }
        if let Some(value) = authorization {
            builder = builder.header(AUTHORIZATION, value);
        }
        if let Some(body) = &request.body {
            builder = builder.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        builder.send().await.map_err(|error| unreachable(&request.call, error))
    }
}

async fn in_time<T>(
    request: &Request,
    limit: Duration,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let late = |_elapsed| Error::TimedOut { call: request.call.clone(), after: limit };
    timeout(limit, work).await.map_err(late)?
}

fn log_retry(failures: u32, wait: Duration, error: &Error) {
    tracing::warn!(failures, ?wait, %error, "retrying");
}

/// Returns the error of a failed connection, without the address.
pub(crate) fn unreachable(call: &str, error: reqwest::Error) -> Error {
    Error::Unreachable { call: call.to_owned(), source: error.without_url() }
}

/// The response if the API did what was asked.
async fn accepted(request: &Request, response: Response) -> Result<Response, Error> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let header = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = header.and_then(|value| retry_after::wait(value, Timestamp::now()));
    // What a refusal says is a courtesy: the status stands also where the body breaks off.
    let problem = read(response, MAX_REFUSAL).await.ok().and_then(|body| Problem::parse(&body)).map(Box::new);
    Err(Error::Refused { call: request.call.clone(), status: status.as_u16(), problem, retry_after })
}

enum ReadFailure {
    Broken(reqwest::Error),
    TooLong(usize),
}

impl ReadFailure {
    fn of(self, request: &Request) -> Error {
        match self {
            Self::Broken(error) => unreachable(&request.call, error),
            Self::TooLong(limit) => Error::TooLong { call: request.call.clone(), limit },
        }
    }
}

async fn read(mut response: Response, limit: usize) -> Result<Zeroizing<Vec<u8>>, ReadFailure> {
    let mut body = Zeroizing::new(Vec::new());
    while let Some(chunk) = response.chunk().await.map_err(ReadFailure::Broken)? {
        if body.len() + chunk.len() > limit {
            return Err(ReadFailure::TooLong(limit));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

// === impl Answer ===

impl Answer {
    /// Parses the body; serde's messages quote it, so an error has the position only.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| Error::Unreadable {
            call: self.call.clone(),
            line: error.line(),
            column: error.column(),
        })
    }
}
