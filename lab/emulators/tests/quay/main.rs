//! The Quay emulator over a real socket: the answers of Quay's own code (`golden`, one test a file), and what else there is.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what is missing fails the test that looks for it")]

mod faults;
mod golden;
mod lags;
mod state;
mod transport;
