//! The HTML pages: their content, the escaping of hostile input, and their layout in a real browser.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test fails by panicking, and prints which real part is missing"
)]

mod browser;
mod contrast;
mod document;
mod escaping;
mod fleet;
mod overview;
mod resource;
#[path = "../rig/server.rs"]
mod server;
