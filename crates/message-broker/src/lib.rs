//! How events travel.
