//! Tables of decisions.

mod ams;
mod credentials;
mod rates;
mod rotations;
mod tokens;
