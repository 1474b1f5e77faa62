//! Rotations: new pull secrets for many clusters, in waves, under the quota of the secret store.
//!
//! A [`plan::Plan`] says which clusters get which content in which wave; it holds digests and no content. [`run::Run`]
//! records it in the management cluster and works through it: it writes `spec.pullSecret` of each cluster through the API,
//! waits until the wave is available, and stops when too many clusters of it are not. [`record`] keeps what has to outlive the
//! process, and takes the requests of other processes to pause or to abort.
//!
//! Invariants:
//!
//! - `decide` is pure; each step has a row in the tables of `decide/tests.rs`, and a rotation that is killed after any step goes on
//!   without writing a cluster twice (`a_run_that_is_killed_after_any_step_goes_on`).
//! - A cluster is written only at the generation that was planned; a change by another caller is never overwritten
//!   (`lab/scenarios/tests/scenarios/rotate.rs`).
//! - Plan, record, errors and events hold digests only, truncated HMACs under the API's key (`lab/scenarios/tests/scenarios/rotate.rs`).

pub mod decide;
pub mod digest;
pub mod event;
pub mod fleet;
pub mod observe;
pub mod plan;
pub mod record;
pub mod run;
pub mod source;
pub mod state;
pub mod status;
