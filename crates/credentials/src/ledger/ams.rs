//! The ledger's part in leaving AMS: its credentials, the clusters that have them, and our own that are kept from publication.

mod clusters;
mod credentials;
mod held;
mod rekey;

pub use clusters::AmsUse;
pub use held::OwnCredentials;
pub(super) use held::release;
pub(super) use rekey::{AMS_TOKENS, erase_lost_tokens, reseal_tokens};
