//! Maps the server's refusals to [`StoreError`].

use std::fmt;

use http::HeaderName;

use super::permission;
use super::wire::Refusal;
use crate::error::{ErrorKind, Operation};
use crate::{Permission, StoreError};

pub(super) const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-vault-token");
pub(super) const NAMESPACE_HEADER: HeaderName = HeaderName::from_static("x-vault-namespace");
/// Proves to an agent between client and server that the request is meant for the server.
pub(super) const REQUEST_HEADER: HeaderName = HeaderName::from_static("x-vault-request");

/// A request that the server does not carry out.
pub(super) struct Refused<'a> {
    pub(super) status: u16,
    /// The server's message; `None` if the answer is not the server's own, or if it quotes what was sent.
    pub(super) message: Option<&'a str>,
    pub(super) needs: Option<Permission>,
    /// The path after `/v1/`, as policies have it.
    pub(super) path: &'a str,
    pub(super) mount: &'a str,
}

/// Returns an error without detail.
pub(super) fn failed(operation: Operation, resource: impl fmt::Display, kind: ErrorKind) -> StoreError {
    StoreError::new(operation, resource, kind)
}

/// Returns the server's own form of a refusal, if the body has it.
pub(super) fn refusal(body: &[u8]) -> Option<Refusal> {
    serde_json::from_slice(body).ok()
}

/// Returns kind, detail and remedy of a refusal.
pub(super) fn classify(refused: &Refused<'_>) -> Classified {
    let Refused { status, needs, path, mount, .. } = *refused;
    let message = refused.message.unwrap_or_default();
    let detail = if message.is_empty() { format!("HTTP status {status}") } else { message.to_owned() };
    let kind = kind_of(status, message);
    let with = |hint: &str| Classified { kind, detail: detail.clone(), hint: Some(hint.to_owned()) };
    match (kind, status) {
        (ErrorKind::PermissionDenied, _) => match needs.map(permission::needed) {
            Some(needed) => Classified {
                kind,
                detail: format!("needs `{}` on `{path}`; {detail}", needed.capability),
                hint: Some(format!("grant a policy of the token `{}` on `{path}`", needed.capability)),
            },
            None => with("check the policies of the token"),
        },
        (ErrorKind::Invalid, 404) if message.contains("no handler for route") => Classified {
            kind,
            detail,
            hint: Some(format!(
                "check the mount and the namespace, or enable the engine: bao secrets enable -path={mount} -version=2 kv"
            )),
        },
        (ErrorKind::QuotaExceeded, _) => with("raise the server's rate-limit quota, or run fewer Jobs at once"),
        (ErrorKind::Unavailable, 503) if message.contains("sealed") => with("unseal the server"),
        (ErrorKind::Unavailable, 307 | 472 | 473) => with("use an address that leads to the active server"),
        _ => Classified { kind, detail, hint: None },
    }
}

/// Kind, detail and remedy of a refusal.
pub(super) struct Classified {
    pub(super) kind: ErrorKind,
    pub(super) detail: String,
    pub(super) hint: Option<String>,
}

/// A 404 with a message, or of another form, says nothing about secrets.
fn kind_of(status: u16, message: &str) -> ErrorKind {
    match status {
        // Of versions: "did not match"; of metadata: "does not match".
        400 if message.contains("check-and-set parameter d") => ErrorKind::Changed,
        // An engine that has just been made, or is being upgraded.
        400 if message.contains("will be unavailable for a brief period") => ErrorKind::Unavailable,
        401 => ErrorKind::Unauthenticated,
        403 => ErrorKind::PermissionDenied,
        408 | 504 => ErrorKind::TimedOut,
        429 => ErrorKind::QuotaExceeded,
        // Servers on standby, one that sends its client to the active server, and one that is not up to date yet.
        307 | 412 | 472 | 473 => ErrorKind::Unavailable,
        500 if message.contains("not active") => ErrorKind::Unavailable,
        500 => ErrorKind::Internal,
        300..=499 => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    }
}
