//! Tables of decisions.

mod credentials;
mod rates;
