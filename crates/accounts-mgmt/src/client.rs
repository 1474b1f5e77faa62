//! The client over HTTP: one request a call, two where AMS refuses a token.

use std::fmt;
use std::time::Duration;

use daemon::exchange::{Answered, Exchange};
use http::Method;
use http::header::AUTHORIZATION;
use secrecy::zeroize::Zeroizing;
use tokio::time::Instant;

use crate::connected::{Connected, retry_after};
use crate::contract::{Accounts, ImportedCredential, PAGE, Page, Registry};
use crate::error::{AmsError, ErrorKind, Operation};
use crate::id::{Ksuid, RegistryId};
use crate::settings::AmsSettings;
use crate::token::Tokens;
use crate::wire;

/// Maximum size of an answer in bytes: a page of 100 credentials, whose tokens are signed ones of some KiB.
const MAX_ANSWER: usize = 4 * 1024 * 1024;

/// An AMS over HTTP.
pub struct AmsClient {
    connected: Connected,
    tokens: Tokens,
}

/// An operation, and the object that it is about.
struct Call<'a> {
    operation: Operation,
    resource: &'a str,
    method: Method,
    /// Path and query after `/api/accounts_mgmt/v1/`.
    path: String,
}

/// An answer of any status; it may hold tokens.
struct Answer {
    status: u16,
    body: Zeroizing<Vec<u8>>,
    retry_after: Option<Duration>,
}

// === impl AmsClient ===

impl AmsClient {
    /// Sets up the client. No request is sent.
    ///
    /// # Errors
    ///
    /// A file of certificate authorities that cannot be used.
    pub fn new(settings: AmsSettings) -> Result<Self, AmsError> {
        Ok(Self { connected: Connected::new(settings)?, tokens: Tokens::default() })
    }

    fn address(&self) -> &str {
        self.connected.settings.address.as_str()
    }

    /// Sends a call. A refused token is replaced once: it may have been withdrawn.
    async fn send(&self, call: &Call<'_>) -> Result<Answer, AmsError> {
        let deadline = Instant::now() + self.connected.settings.call_timeout;
        let token = self.tokens.header(&self.connected, deadline).await?;
        let answer = self.attempt(call, token.clone(), deadline).await?;
        if answer.status != 401 {
            return Ok(answer);
        }
        self.tokens.refused(&token).await;
        let token = self.tokens.header(&self.connected, deadline).await?;
        self.attempt(call, token, deadline).await
    }

    async fn attempt(&self, call: &Call<'_>, token: http::HeaderValue, deadline: Instant) -> Result<Answer, AmsError> {
        let url = format!("{}/api/accounts_mgmt/v1/{}", self.address(), call.path);
        let request = self.connected.ams.current().request(call.method.clone(), url).header(AUTHORIZATION, token);
        let exchange = Exchange { request, deadline, longest: MAX_ANSWER, name: "ams", log: None };
        match exchange.send().await {
            Ok(Answered { status, headers, body }) => {
                Ok(Answer { status, body: Zeroizing::new(body), retry_after: retry_after(&headers) })
            }
            Err(unanswered) => Err(unanswered.into_error(call.failed(ErrorKind::Unavailable))),
        }
    }
}

impl Accounts for AmsClient {
    async fn credentials(&self, after: Option<&Ksuid>) -> Result<Page, AmsError> {
        let size = PAGE.to_string();
        let search = after.map(|id| format!("id > '{id}'"));
        let pairs = [("order", Some("id asc")), ("size", Some(size.as_str())), ("search", search.as_deref())];
        let call = Call {
            operation: Operation::List,
            resource: self.address(),
            method: Method::GET,
            path: format!("registry_credentials?{}", query(&pairs)),
        };
        let answer = self.send(&call).await?;
        let page = if answer.status == 200 { wire::page(&answer.body) } else { return Err(call.refused(&answer)) };
        // An order that was not kept would lose rows.
        let page = page.ok_or_else(|| call.unreadable())?;
        let is_after = |(before, item): (Option<&Ksuid>, &Ksuid)| before.is_none_or(|before| before < item);
        let before = std::iter::once(after).chain(page.items.iter().map(|item| Some(&item.id)));
        if before.zip(page.items.iter().map(|item| &item.id)).all(is_after) {
            Ok(page)
        } else {
            Err(call.failed(ErrorKind::Internal).with_detail("the list is not in the order of ids"))
        }
    }

    async fn count(&self, registry: &RegistryId) -> Result<u64, AmsError> {
        let search = format!("registry_id = '{registry}'");
        let call = Call {
            operation: Operation::Count,
            resource: registry.as_str(),
            method: Method::GET,
            path: format!("registry_credentials?{}", query(&[("size", Some("1")), ("search", Some(&search))])),
        };
        let answer = self.send(&call).await?;
        match answer.status {
            200 => wire::count(&answer.body).ok_or_else(|| call.unreadable()),
            _ => Err(call.refused(&answer)),
        }
    }

    async fn registry(&self, id: &RegistryId) -> Result<Option<Registry>, AmsError> {
        let path = format!("registries/{id}");
        let call = Call { operation: Operation::ReadRegistry, resource: id.as_str(), method: Method::GET, path };
        let answer = self.send(&call).await?;
        match answer.status {
            200 => wire::registry(&answer.body).map(Some).ok_or_else(|| call.unreadable()),
            404 => Ok(None),
            _ => Err(call.refused(&answer)),
        }
    }

    async fn credential(&self, id: &Ksuid) -> Result<Option<ImportedCredential>, AmsError> {
        let call = Call::of_credential(Operation::Read, Method::GET, id);
        let answer = self.send(&call).await?;
        match answer.status {
            200 => wire::one(&answer.body).map(Some).ok_or_else(|| call.unreadable()),
            404 => Ok(None),
            _ => Err(call.refused(&answer)),
        }
    }

    async fn delete(&self, id: &Ksuid) -> Result<bool, AmsError> {
        let call = Call::of_credential(Operation::Delete, Method::DELETE, id);
        let answer = self.send(&call).await?;
        match answer.status {
            200 | 204 => Ok(true),
            404 => Ok(false),
            _ => Err(call.refused(&answer)),
        }
    }
}

// === impl Call ===

impl<'a> Call<'a> {
    fn of_credential(operation: Operation, method: Method, id: &'a Ksuid) -> Self {
        Self { operation, resource: id.as_str(), method, path: format!("registry_credentials/{id}") }
    }

    fn failed(&self, kind: ErrorKind) -> AmsError {
        AmsError::new(self.operation, self.resource, kind)
    }

    fn unreadable(&self) -> AmsError {
        self.failed(ErrorKind::Internal).with_detail("the answer cannot be read")
    }

    /// Returns the error of an answer that the operation does not expect, without words of AMS.
    fn refused(&self, answer: &Answer) -> AmsError {
        let status = answer.status;
        let code = wire::code(&answer.body).map(|code| format!(", {code}")).unwrap_or_default();
        let failed = AmsError { retry_after: answer.retry_after, ..self.failed(ErrorKind::of_status(status)) };
        failed.with_detail(format!("HTTP status {status}{code}"))
    }
}

impl fmt::Debug for AmsClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AmsClient").field("address", &self.address()).finish_non_exhaustive()
    }
}

fn query(pairs: &[(&str, Option<&str>)]) -> String {
    let given = pairs.iter().filter_map(|(name, value)| Some((*name, (*value)?)));
    form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish()
}
