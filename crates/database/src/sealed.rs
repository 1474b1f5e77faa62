//! Encryption of values at rest, and the keys for it.

pub mod column;
pub mod files;
pub mod keyring;

pub use column::{Begins, SealedColumn};
pub use files::{KeyFiles, KeySettings, key_beside};
pub use keyring::{Bound, DigestKey, KeyBytes, Keyring, Unopened, key_id};
