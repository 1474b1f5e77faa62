//! Client of AMS (`accounts_mgmt`): the registry credentials that it has made, read by a cursor of ids, and deleted.
//!
//! Without `order`, AMS returns rows in any order, and numbered pages shift when a row is inserted. So lists are ordered by
//! id, and the next page starts after the last id; ids sort by the time of creation.
//! Answers contain tokens in clear: each is a [`secrecy::SecretString`] from the parser on. AMS's own messages may quote a
//! search: errors carry AMS's status and code, never its text.
//!
//! The identity is a service account of the SSO: the client asks for an access token by the client-credentials grant, and again
//! before it expires, or at once when AMS refuses it.
//!
//! | invariant | test |
//! |---|---|
//! | A list contains each row once, even if rows are inserted while it is read. | `tests/accounts.rs` |
//! | A token that has expired or is refused is replaced once in a call. | `tests/accounts.rs` |
//! | An error names operation, object and remedy, and holds nothing of an answer. | `tests/accounts.rs` |
//! | A deletion whose answer was lost is detected when it is repeated. | `tests/accounts.rs` |

mod client;
mod connected;
pub mod contract;
mod error;
pub mod id;
mod settings;
mod token;
mod wire;

pub use client::AmsClient;
pub use contract::{Accounts, ImportedCredential, Page, Registry};
pub use error::{AmsError, ErrorKind, Operation};
pub use id::{Ksuid, RegistryId};
pub use settings::AmsSettings;
