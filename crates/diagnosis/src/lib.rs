//! Diagnosis of a cluster's pull secret, from the API, the adapter's report, the preconditions and Kubernetes; and the fleet
//! at a glance.
//!
//! [`cluster::observe`] reads everything that is known of a cluster, [`decide::page`] draws the conclusion, [`page::text`]
//! formats it for a terminal; a [`facts::Page`] serialises for programs. [`fleet::Row`] and [`fleet::Summary`] are the list
//! behind `pull-secret status`, [`why::Why`] the causes behind `pull-secret status --why`. [`doctor`] checks the parts that all of
//! them depend on.
//!
//! Invariants:
//!
//! - `decide` is pure; each state of the verdict has a row in the table of `decide/tests.rs`.
//! - A page never holds content, only digests: guarded by `a_fleet_plane_prints_no_credential` of the crate `scenarios`.
//! - Kubernetes that cannot be read is a line of the page, not a failure of the command.

pub mod cluster;
pub mod copies;
pub mod credentials;
pub mod decide;
pub mod doctor;
pub mod facts;
pub mod fleet;
pub mod page;
mod pods;
pub mod retry;
pub mod why;
