//! Tables of decisions.

mod credentials;
mod rates;
mod rotations;
