//! Causes for which a pull gets no password.

use std::path::PathBuf;

use fleet_model::names::ANNOTATION_ROBOT;

use crate::interface::API_VERSION;
use crate::robot::InvalidRobot;

/// Exit code: settings, or a request, that no repetition cures.
const INVALID: u8 = 2;
/// Exit code: the registry refuses.
const REFUSED: u8 = 4;
/// Exit code: another attempt may help.
const TRANSIENT: u8 = 75;
/// Exit code: a defect.
const DEFECT: u8 = 1;

/// The cause for which a pull gets no password. It never holds a token, nor a word of the registry's answer: that quotes what it
/// was sent.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A wrong command line.
    #[error(
        "invalid arguments: {0}; see --help, and `args` of this provider in the kubelet's CredentialProviderConfig"
    )]
    Arguments(String),
    /// A request that cannot be read.
    #[error(
        "cannot read the kubelet's request from standard input: {0}; the kubelet starts this program, people use --help"
    )]
    Request(String),
    /// A request of another version.
    #[error(
        "the kubelet's request is not a CredentialProviderRequest of {API_VERSION}: set `apiVersion: {API_VERSION}` for this provider in the kubelet's CredentialProviderConfig"
    )]
    Version,
    /// An image of another registry.
    #[error(
        "the image is not one of {registry}: no token was sent; let `matchImages` of this provider match images of {registry} only"
    )]
    OtherRegistry {
        /// The registry that this provider is for.
        registry: String,
    },
    /// A request without a service account's token.
    #[error(
        "the kubelet sent no service-account token: set `tokenAttributes` with `requireServiceAccount: true` for this provider; static Pods have no service account and need the pull secret"
    )]
    NoToken,
    /// A token that is none.
    #[error("the kubelet's service-account token is not a JSON Web Token; it was not sent")]
    NoJwt,
    /// Neither annotation nor flag.
    #[error(
        "no robot for this service account: set its annotation {ANNOTATION_ROBOT}, list that under `requiredServiceAccountAnnotationKeys` of this provider, or give --robot"
    )]
    NoRobot,
    /// An annotation that names no robot.
    #[error("annotation {ANNOTATION_ROBOT} of the service account: {0}")]
    Robot(#[source] InvalidRobot),
    /// A certificate file that cannot be used.
    #[error("cannot read certificates from {file}: {reason}; check --ca-file", file = file.display())]
    Authority {
        /// The file.
        file: PathBuf,
        /// The system's or the parser's word.
        reason: String,
    },
    /// No certificates on this node.
    #[error("this node has no certificates of authorities to trust: set --ca-file")]
    NoAuthorities,
    /// The registry does not take the token.
    #[error(
        "the registry refused to exchange the service account's token for a password of {robot} (status {status}): its federation needs issuer {issuer} and subject {subject}, character for character, and it must reach the issuer over https"
    )]
    Refused {
        /// The robot.
        robot: String,
        /// The HTTP status.
        status: u16,
        /// The token's issuer.
        issuer: String,
        /// The token's subject.
        subject: String,
    },
    /// The registry answers with a status that is neither success nor refusal of the token.
    #[error("the exchange of the token at {endpoint} was answered with status {status}; {hint}")]
    Status {
        /// The address.
        endpoint: String,
        /// The HTTP status.
        status: u16,
        /// The next step.
        hint: &'static str,
    },
    /// The registry cannot be reached.
    #[error(
        "cannot exchange the token at {endpoint}: {reason}; check the node's way there, with its DNS and certificates"
    )]
    Unreachable {
        /// The address.
        endpoint: String,
        /// The system's or the TLS library's word.
        reason: String,
    },
    /// The registry takes too long.
    #[error(
        "the exchange of the token at {endpoint} was not answered within {seconds} s; check the node's way there, or raise --timeout"
    )]
    Slow {
        /// The address.
        endpoint: String,
        /// The limit.
        seconds: u64,
    },
    /// An answer that is none of Quay's.
    #[error("the answer of {endpoint} is unusable: {reason}; check that it is the federation of a Quay")]
    Answer {
        /// The address.
        endpoint: String,
        /// The part that is wrong, without its content.
        reason: &'static str,
    },
    /// Standard output is closed.
    #[error("cannot write to standard output: {0}")]
    Output(#[source] std::io::Error),
}

// === impl Refusal ===

impl Refusal {
    /// Returns the exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Arguments(_)
            | Self::Request(_)
            | Self::Version
            | Self::OtherRegistry { .. }
            | Self::NoToken
            | Self::NoJwt
            | Self::NoRobot
            | Self::Robot(_)
            | Self::Authority { .. }
            | Self::NoAuthorities => INVALID,
            Self::Refused { .. } => REFUSED,
            Self::Status { status, .. } if !is_transient(*status) => REFUSED,
            Self::Status { .. } | Self::Unreachable { .. } | Self::Slow { .. } | Self::Answer { .. } => TRANSIENT,
            Self::Output(_) => DEFECT,
        }
    }
}

/// Returns true for a status after which another attempt may help.
pub(crate) fn is_transient(status: u16) -> bool {
    status == 429 || status >= 500
}
