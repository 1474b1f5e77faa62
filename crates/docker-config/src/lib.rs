//! The credential document (Docker config JSON): parse, validate, normalise, merge, digest, redact.
//!
//! [`parse`] takes the bytes of a pull secret and gives back either a [`DockerConfig`], which says what the document is
//! about and keeps none of its credentials, or [`Problems`], which name every fault with its path, line and column and
//! never with a value, and list the entries that are good.
//!
//! # Which entries are good
//!
//! Two readers on a node look at the document, and they do not agree:
//!
//! | what an entry holds | kubelet | containers/image (CRI-O) |
//! |---|---|---|
//! | `auth`, padded base64 of `user:password` | yes | yes |
//! | the same without padding | yes | no |
//! | `username` and `password` without `auth` | yes | no |
//! | `identitytoken` beside an `auth` | uses `auth` only | yes |
//! | `identitytoken` without an `auth` | no | no |
//! | nothing, but `credHelpers` names the registry | no | yes |
//! | `registrytoken` | no | no |
//!
//! One malformed `auth` makes kubelet drop the whole file, so it is always a problem. What only one reader can use is
//! accepted with a warning that says which. An identity token without `auth` is accepted too, because `docker` reads
//! it, with a warning that no reader on a node does.
//!
//! Where `auth` and `username`/`password` disagree, every reader lets `auth`
//! win: the document works, so it is a warning.
//!
//! Both readers match member names without regard to case. `Auth` alone is reported as a misspelling (other readers do
//! not see it); `Auth` beside `auth` is refused, since which of the two counts depends on their order.
//!
//! # Sameness
//!
//! The digest covers meaning, not bytes: which credential which reader can use for which images. To add the padding or
//! the `auth` that a warning asks for is therefore a change, and another spelling that both readers take alike is none.
//! The canonical form is written down in the module `canonical`.
//!
//! [`RegistryKey::normalized`] is coarser: it finds keys that mean one registry, though a reader may not see it. Keys
//! are always shown as they were written.
//!
//! # Writing on
//!
//! A [`Document`] keeps the credentials, for whoever has to write them somewhere else; [`merge`](fn@merge) makes one of several and says
//! which source won where. [`lookup`] says what either reader makes of the keys for one image.
//!
//! # Secrecy
//!
//! Text read from the document lives in zeroizing memory that is allocated once at its full size, in types that have no
//! `Debug`. Member names appear in paths; what stands before an `@`, and what looks like an encoded or plain
//! `user:password`, is masked there.

mod base64_text;
mod canonical;
mod digest;
mod document;
mod entry;
mod json;
mod kept;
pub mod lookup;
pub mod merge;
mod path;
mod placeholder;
mod problem;
mod problems;
mod registry_key;
mod shape;

pub use digest::{Digest, KeyedDigest};
pub use document::{DockerConfig, Limits, parse};
pub use entry::{CredentialKind, Entry};
pub use kept::{Document, KeptEntry};
pub use merge::merge;
pub use problem::{JsonType, Position, Problem, ProblemKind};
pub use problems::Problems;
pub use registry_key::RegistryKey;

/// A key as it may be shown, whatever stands there: escaped, cut where it is long, and without a credential that somebody
/// put there by mistake.
pub fn shown_key(key: &str) -> String {
    path::shown(key)
}
