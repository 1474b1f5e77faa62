//! The pages for people: what they say, that nothing breaks out of them, and how they stand in a real browser.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "in a test that is the right way to fail, and to say what is missing"
)]

mod browser;
mod contrast;
mod document;
mod escaping;
mod fleet;
mod overview;
mod resource;
