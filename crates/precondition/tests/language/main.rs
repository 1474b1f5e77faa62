//! The language as its users see it: what is read, what is answered, what is said.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod specification;
