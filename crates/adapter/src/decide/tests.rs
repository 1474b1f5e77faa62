//! Facts and what is decided about them.
