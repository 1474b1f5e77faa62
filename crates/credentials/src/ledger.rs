//! The ledger: rows of credentials and append-only events in SQLite or PostgreSQL; passwords sealed.

mod claim;
mod handle;
mod inventory;
mod model;
mod orders;
mod pool;
mod read;
mod rekey;
mod rows;
pub mod schema;
mod write;

pub use handle::{Ledger, LedgerError};
pub use inventory::{Count, Filter};
pub use model::{
    Attested, Call, Change, Claim, Claimed, Entry, Fresh, KnownAccount, Outcome, Password, PoolCounts, Refill,
    Reservation, Slot, Start, Started, Statement,
};
pub use rekey::Rekeyed;
