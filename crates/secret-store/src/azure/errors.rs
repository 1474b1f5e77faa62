//! Maps Azure's errors to [`StoreError`].

use azure_core::error::{Error, ErrorKind as Cause};
use azure_core::http::RawResponse;
use azure_core::http::headers::HeaderName;
use serde::Deserialize;

use super::transport::Stray;
use crate::StoreError;
use crate::error::ErrorKind;
use crate::quote::quotes;
use daemon::causes;
use daemon::exchange::Unanswered;

/// Codes that this crate acts on.
pub(super) const NOT_FOUND: &str = "SecretNotFound";
pub(super) const DISABLED: &str = "SecretDisabled";
pub(super) const BEING_DELETED: &str = "ObjectIsBeingDeleted";
const RECOVERABLE: &str = "ObjectIsDeletedButRecoverable";

/// A request that was not carried out, or whose answer is not known.
#[derive(Debug)]
pub(super) struct Fault {
    /// Azure's code, the inner one if there is one; empty if the answer has none, or if there is none.
    pub(super) code: String,
    pub(super) error: StoreError,
}

/// The need and the secret of a request.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    /// The data action that it needs.
    pub(super) needs: &'static str,
    /// The text that no error may quote.
    pub(super) secret: Option<&'a str>,
}

/// An answer of the vault, or of what stands in its place.
struct Refused {
    status: u16,
    document: Refusal,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Refusal {
    code: String,
    message: String,
    innererror: Option<Inner>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Inner {
    code: String,
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        fault.error
    }
}

/// Returns the fault of a request; `failed` is the error of its operation.
pub(super) fn fault(error: &Error, asked: Asked<'_>, failed: StoreError) -> Fault {
    let unanswered = |error: StoreError| Fault { code: String::new(), error };
    if let Some(cause) = causes::cause::<Unanswered>(error) {
        return unanswered(cause.clone().into_error(failed));
    }
    if causes::cause::<Stray>(error).is_some() {
        let error = StoreError { kind: ErrorKind::Invalid, ..failed }.with_detail(Stray);
        let hint = "check the vault's address, and what answers there".to_owned();
        return unanswered(StoreError { hint: Some(hint), ..error });
    }
    match error.kind() {
        Cause::Credential => unanswered(without_token(error, failed)),
        Cause::HttpResponse { status, raw_response, .. } => {
            let refused = Refused::of((*status).into(), raw_response.as_deref());
            let retry_after = raw_response.as_deref().and_then(retry_after);
            let code = refused.code().to_owned();
            Fault { code, error: StoreError { retry_after, ..refused.classified(asked, failed) } }
        }
        Cause::Connection | Cause::Io => unanswered(StoreError { kind: ErrorKind::Unavailable, ..failed }),
        _ => unanswered(StoreError { kind: ErrorKind::Internal, ..failed }.with_detail("the answer cannot be read")),
    }
}

fn retry_after(answer: &RawResponse) -> Option<std::time::Duration> {
    causes::retry_after(answer.headers().get_optional_str(&HeaderName::from_static("retry-after")))
}

/// Returns the error of a request for a token. The messages are not forwarded: they may quote files and what was sent.
fn without_token(error: &Error, failed: StoreError) -> StoreError {
    let mut refused = std::error::Error::source(error);
    while let Some(cause) = refused {
        let found = cause.downcast_ref::<Error>().map(Error::kind);
        if let Some(Cause::HttpResponse { status, raw_response, .. }) = found {
            return without_answer(u16::from(*status), raw_response.as_deref(), failed);
        }
        refused = cause.source();
    }
    let detail = match causes::cause::<std::io::Error>(error) {
        Some(file) => format!("the file with the workload's token cannot be read: {file}"),
        None => "there is no token".to_owned(),
    };
    unauthenticated(failed, &detail)
}

/// Returns the error of an answer of the service for tokens that has no token.
fn without_answer(status: u16, answer: Option<&RawResponse>, failed: StoreError) -> StoreError {
    #[derive(Deserialize)]
    struct Refusal {
        error_description: String,
    }
    let kind = of_http(status);
    let code = answer.and_then(|answer| serde_json::from_slice::<Refusal>(answer.body()).ok());
    let code = code.as_ref().and_then(|refusal| leading_code(&refusal.error_description));
    let detail = format!("the service for tokens answers {}", code.unwrap_or(&format!("HTTP status {status}")));
    if matches!(kind, ErrorKind::Invalid | ErrorKind::Unauthenticated | ErrorKind::PermissionDenied) {
        return unauthenticated(failed, &detail);
    }
    let retry_after = answer.and_then(retry_after);
    StoreError { kind, retry_after, ..failed }.with_detail(detail)
}

fn unauthenticated(failed: StoreError, detail: &str) -> StoreError {
    let hint = "check the tenant, the client id, the file with the workload's token, and the federated credential of the \
                identity (issuer, subject, audience api://AzureADTokenExchange)";
    let hint = Some(hint.to_owned());
    StoreError { kind: ErrorKind::Unauthenticated, hint, ..failed }.with_detail(detail)
}

/// Returns the code, such as `AADSTS700016` or `AKV10022`, with which a message begins.
fn leading_code(message: &str) -> Option<&str> {
    let (code, _) = message.split_once(':')?;
    let is_code = (code.starts_with("AADSTS") || code.starts_with("AKV")) && code.len() <= 16;
    Some(code).filter(|code| is_code && code.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

// === impl Refused ===

impl Refused {
    fn of(status: u16, answer: Option<&RawResponse>) -> Self {
        #[derive(Deserialize)]
        struct Envelope {
            error: Refusal,
        }
        let envelope = answer.and_then(|answer| serde_json::from_slice::<Envelope>(answer.body()).ok());
        Self { status, document: envelope.map(|envelope| envelope.error).unwrap_or_default() }
    }

    fn code(&self) -> &str {
        let inner = self.document.innererror.as_ref().map(|inner| inner.code.as_str());
        inner.filter(|code| !code.is_empty()).unwrap_or(&self.document.code)
    }

    fn kind(&self) -> ErrorKind {
        match (self.status, self.code()) {
            (404, NOT_FOUND) => ErrorKind::NotFound,
            (409, RECOVERABLE | BEING_DELETED) => ErrorKind::PendingDeletion,
            // Another change of the same secret, or its recovery.
            (409, code) if !code.is_empty() => ErrorKind::Unavailable,
            (403, DISABLED) => ErrorKind::Invalid,
            (status, _) => of_http(status),
        }
    }

    fn classified(&self, asked: Asked<'_>, failed: StoreError) -> StoreError {
        let Refusal { code, message, .. } = &self.document;
        let kind = self.kind();
        // Others may repeat what was sent.
        let is_quotable = matches!(code.as_str(), NOT_FOUND | "Forbidden" | "Conflict" | "Throttled")
            && !asked.secret.is_some_and(|secret| quotes(message, secret));
        let detail = match (self.code(), message.as_str()) {
            ("", _) => format!("HTTP status {}", self.status),
            (code, message) if is_quotable && !message.is_empty() => format!("{code}: {message}"),
            (code, message) => leading_code(message).map_or(code.to_owned(), |leading| format!("{code}: {leading}")),
        };
        let detail =
            if kind == ErrorKind::PermissionDenied { format!("needs {}; {detail}", asked.needs) } else { detail };
        StoreError { kind, hint: hint(kind, self.code(), asked.needs), ..failed }.with_detail(detail)
    }
}

fn hint(kind: ErrorKind, code: &str, needs: &str) -> Option<String> {
    let hint = match (kind, code) {
        (ErrorKind::PermissionDenied, "ForbiddenByFirewall" | "ForbiddenByConnection") => {
            "allow this network in the vault's firewall, or use its private endpoint"
        }
        (ErrorKind::PermissionDenied, _) => {
            return Some(format!("give the identity a role on the vault that has the data action {needs}"));
        }
        (ErrorKind::PendingDeletion, _) => {
            "recover it (az keyvault secret recover --id ID), purge it, or wait until its retention has ended"
        }
        (ErrorKind::Unauthenticated, _) => {
            "check that the vault is of the tenant that issues the token, and the cloud of both"
        }
        (ErrorKind::QuotaExceeded, _) => "run fewer Jobs at once, or spread the secrets over several vaults",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Maps an answer without a known code, such as that of a proxy: its 404 says nothing about secrets.
fn of_http(status: u16) -> ErrorKind {
    match status {
        401 => ErrorKind::Unauthenticated,
        403 => ErrorKind::PermissionDenied,
        408 | 504 => ErrorKind::TimedOut,
        429 => ErrorKind::QuotaExceeded,
        300..=499 => ErrorKind::Invalid,
        // Below 300: an answer that is not of its form.
        0..=299 | 500 => ErrorKind::Internal,
        _ => ErrorKind::Unavailable,
    }
}
