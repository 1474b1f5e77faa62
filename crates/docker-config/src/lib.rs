//! The credential document (Docker config JSON): parse, validate, normalise, merge, digest, redact.
//!
//! [`parse`] validates the bytes of a pull secret. It returns either a [`DockerConfig`], which describes the document without
//! its credentials, or [`Problems`], which name every fault with its path, line and column, never with a value, and list the
//! valid entries. A [`Document`] keeps the credentials, for programs that write them elsewhere; [`merge`](fn@merge) combines
//! several and reports which one won for each registry. [`lookup`] determines the keys that a node uses for an image.
//!
//! ```
//! use docker_config::{Limits, parse};
//!
//! let config = parse(br#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#, &Limits::default())?;
//! assert_eq!(config.entries()[0].key().as_written(), "quay.io");
//! assert_eq!(config.entries()[0].masked_user().as_deref(), Some("u***"));
//! # Ok::<(), docker_config::Problems>(())
//! ```
//!
//! # Invariants
//!
//! | invariant | test |
//! |---|---|
//! | Arbitrary bytes never panic, and their errors contain no value. | `document::tests::laws::arbitrary_bytes_never_panic`, `nothing_secret_is_printed` |
//! | Every spelling of a document has the same digest; every change of meaning changes it. | `document::tests::laws::every_spelling_is_accepted_and_means_the_same`, `every_change_of_meaning_changes_the_digest` |
//! | A valid document has the same digest validated, stored and written again. | `credentials::tests::a_valid_document_means_the_same_after_a_round_trip` |
//! | A merge never loses a registry of the original, and is idempotent. | `merge::tests::no_registry_of_the_original_is_lost`, `merging_again_changes_nothing` |
//! | A protected prefix cannot be shadowed. | `merge::tests::protected_parts_are_the_originals` |
//!
//! # Valid entries
//!
//! Two readers on a node use the document, and they differ:
//!
//! | content of an entry | kubelet | containers/image (CRI-O) |
//! |---|---|---|
//! | `auth`, padded base64 of `user:password` | yes | yes |
//! | the same without padding | yes | no |
//! | `username` and `password` without `auth` | yes | no |
//! | `identitytoken` beside an `auth` | uses `auth` only | yes |
//! | `identitytoken` without an `auth` | no | no |
//! | nothing, but `credHelpers` names the registry | no | yes |
//! | `registrytoken` | no | no |
//!
//! One malformed `auth` makes kubelet reject the whole file, so it is always a problem. An entry that only one reader can use
//! is accepted with a warning that names the reader. An identity token without `auth` is accepted too, because `docker` reads
//! it, with a warning that no reader on a node does.
//!
//! If `auth` and `username`/`password` disagree, every reader uses `auth`: the document works, so it is a warning.
//!
//! Both readers match member names without regard to case. `Auth` alone is reported as a misspelling (other readers ignore
//! it); `Auth` beside `auth` is refused, since their order decides which of the two counts.
//!
//! # Equality
//!
//! The digest covers meaning, not bytes: the credential, the registry, and the readers that can use it. Adding the padding or
//! the `auth` that a warning asks for is therefore a change; another spelling that both readers treat alike is none. The
//! canonical form is described in the module `canonical`.
//!
//! [`RegistryKey::normalized`] is coarser: it finds keys that mean one registry, even if a reader does not recognise it. Keys
//! are always displayed as they were written.
//!
//! # Secrecy
//!
//! Text of the document is stored in zeroizing memory that is allocated once at its full size, in types without `Debug`.
//! Member names appear in paths; text before an `@`, and text that looks like an encoded or plain `user:password`, is masked
//! there.

mod base64_text;
mod canonical;
mod credentials;
mod digest;
mod document;
mod entry;
mod json;
pub mod lookup;
pub mod merge;
mod normal;
mod path;
mod placeholder;
mod problem;
mod problems;
mod registry_key;
mod shape;

pub use credentials::{Document, RawEntry};
pub use digest::{Digest, KeyedDigest};
pub use document::{DockerConfig, Limits, parse};
pub use entry::{CredentialKind, Entry};
pub use merge::merge;
pub use problem::{JsonType, Position, Problem, ProblemKind};
pub use problems::Problems;
pub use registry_key::RegistryKey;

/// Returns a key in a form that is safe to print: escaped, shortened, and without a credential that was put there by mistake.
pub fn shown_key(key: &str) -> String {
    path::shown(key)
}
