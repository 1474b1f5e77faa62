//! The ledger: rows of credentials and append-only events in SQLite or PostgreSQL; passwords sealed.

mod advance;
mod ams;
mod chain;
mod claim;
mod entries;
mod handle;
mod inventory;
mod members;
mod model;
mod of_cluster;
mod orders;
mod pool;
mod put_back;
mod read;
mod rekey;
mod rotations;
mod rows;
pub mod schema;
mod write;

pub use ams::{AmsUse, OwnCredentials};
pub use entries::{EntryFilter, LastRead, PassKind};
pub use handle::{Ledger, LedgerError};
pub use inventory::{Count, Filter};
pub use model::{
    Advance, Advanced, Attested, Call, Change, Claim, Claimed, Entry, Fresh, KnownAccount, NewRotation, Outcome,
    Password, PoolCounts, Refill, Reservation, Revocation, RotationRequest, Slot, Start, Started, Statement,
};
pub use of_cluster::ClusterCredential;
pub use rekey::Rekeyed;
