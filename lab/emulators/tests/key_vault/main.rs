//! The Key Vault emulator over a real socket with TLS, one behaviour family a file.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what is missing fails the test that looks for it")]

mod deletion;
mod faults;
mod limits;
mod lists;
mod secrets;
mod tokens;
mod transport;
