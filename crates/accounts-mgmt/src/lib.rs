//! Client of AMS (`accounts_mgmt`): the registry credentials that it has made, read by a cursor of ids, and deleted.
//!
//! AMS answers a list without an order in any order, and pages by number shift when a row is inserted meanwhile. So a list is
//! asked for in the order of ids, which sort by the time of creation, and the next page is everything after the last id.
//! Its answers have tokens in clear: each is a [`secrecy::SecretString`] from the parser on. Its own messages may quote a
//! search, so errors have the status and the code of AMS, and no words of it.
//!
//! The identity is a service account of the SSO: the client asks for an access token by the client-credentials grant, and again
//! before it expires, or at once when AMS refuses it.
//!
//! | invariant | test |
//! |---|---|
//! | A list has each row once, whatever is inserted meanwhile. | `tests/accounts.rs` |
//! | A token that has expired, or is refused, is replaced once in a call. | `tests/accounts.rs` |
//! | An error names operation, object and remedy, and holds nothing of an answer. | `tests/accounts.rs` |
//! | An answer to a deletion that was lost is found again. | `tests/accounts.rs` |

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
