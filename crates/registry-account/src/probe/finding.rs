//! The result of a probe.

use std::fmt;

/// The result of one probe. `Display` completes "the registry …" for people; nothing of the registry's answer is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The verdict.
    pub verdict: Verdict,
    /// The part of the registry that gave the answer.
    pub place: Place,
    /// The cause of the verdict.
    pub cause: Cause,
}

/// The verdict on a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The credential may pull the image.
    Pulls,
    /// The registry accepts the credential; no image was asked for.
    Accepted,
    /// The registry accepts the credential for something else than pulls of the image. Harbor answers so to a wrong
    /// password, too.
    NotPermitted,
    /// The registry refuses the credential.
    Refused,
    /// The registry gives no conclusive answer.
    Inconclusive,
}

/// The part of a registry that gave an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The registry itself.
    Registry,
    /// The service that issues its tokens.
    TokenEndpoint,
    /// The address of the image's manifest.
    Manifest,
}

/// The cause of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The login succeeded.
    Takes,
    /// Pulls are permitted.
    Permits,
    /// The token permits no pull of the repository.
    PermitsNothing,
    /// An answer with this HTTP status.
    Status(u16),
    /// A redirect.
    Redirect,
    /// No credential is demanded.
    IsOpen,
    /// Status 200, but not the content that proves it.
    NoProof,
    /// The answer is too long.
    TooLong,
    /// No answer in time.
    NoAnswer,
    /// No connection.
    Unreachable,
    /// The connection broke off.
    Broken,
    /// An address that the [`Gate`](super::Gate) does not allow.
    NotAllowed,
    /// A host that the [`Gate`](super::Gate) denies.
    Denied,
    /// An address without TLS.
    NotHttps,
    /// An address with a user in it.
    HasUser,
    /// An address without a host.
    NoHost,
    /// No address can be made of the host.
    NoAddress,
    /// The token endpoint's address is none.
    BadRealm,
    /// No known kind of credential is demanded.
    UnknownChallenge,
    /// The credential cannot be sent.
    BadCredential,
    /// The login succeeded, and nothing says what it permits.
    SaysNothing,
    /// The manifest does not exist, or is hidden.
    NoManifest,
}

// === impl Finding ===

impl Finding {
    pub(crate) fn inconclusive(place: Place, cause: Cause) -> Self {
        Self { verdict: Verdict::Inconclusive, place, cause }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.place {
            Place::Registry => "",
            Place::TokenEndpoint => "its token endpoint ",
            Place::Manifest => "its manifest endpoint ",
        })?;
        fmt::Display::fmt(&self.cause, formatter)
    }
}

// === impl Verdict ===

impl Verdict {
    /// Returns the verdict in one word, as a metric's label and a log's field.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pulls => "pulls",
            Self::Accepted => "accepted",
            Self::NotPermitted => "not-permitted",
            Self::Refused => "refused",
            Self::Inconclusive => "inconclusive",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Status(status) => return write!(formatter, "answers HTTP status {status}"),
            Self::Takes => "takes it",
            Self::Permits => "permits pulls",
            Self::PermitsNothing => "takes it, but permits no pulls of the repository",
            Self::Redirect => "answers with a redirect, which is not followed",
            Self::IsOpen => "demands no credential at /v2/, so the credential cannot be verified",
            Self::NoProof => "answers 200 without what proves it",
            Self::TooLong => "answers more than can be meant",
            Self::NoAnswer => "gives no answer in time",
            Self::Unreachable => "cannot be reached by TLS: no such host, no connection, or no trusted certificate",
            Self::Broken => "breaks the connection off",
            Self::NotAllowed => "has a private, local or reserved address",
            Self::Denied => "is on the deny list",
            Self::NotHttps => "is not https",
            Self::HasUser => "has a user in it",
            Self::NoHost => "names no host",
            Self::NoAddress => "has no usable address",
            Self::BadRealm => "names a token endpoint that is no URL",
            Self::UnknownChallenge => "asks for no kind of credential that is known here",
            Self::BadCredential => "cannot be given this credential",
            Self::SaysNothing => "takes it, but does not say what it permits: name a tag or a digest of the repository",
            Self::NoManifest => "has no such manifest, or hides it",
        })
    }
}
