//! Reconciles a resource of the HyperFleet API by running Jobs, and reports their results as conditions.
//!
//! One reconcile pass reads the resource and its Jobs ([`observe`](mod@observe)), decides ([`decide`]), carries out the
//! actions ([`act`](mod@act)) and reports the conditions ([`report`]). A pass is caused by an event of the Sentinel, by the
//! end of a Job, or by a timer ([`run`](mod@run)). The preconditions, the image and the variables of the Jobs are
//! configuration; [`config`] has those of the pull secret adapter built in.
//!
//! | invariant | test |
//! |---|---|
//! | one run succeeds per generation, however many events arrive | `story::many_events_cause_one_run` |
//! | a stored pull secret stays stored when a precondition fails later | `decide::tests::a_success_whose_job_is_gone_is_not_repeated` |
//! | an input is removed only in the version that was observed | `decide::tests::an_input_is_removed_in_the_observed_version_only` |
//! | an older generation never overwrites the input of a newer run | `conflicts::an_older_observation_does_not_replace_the_input_of_a_newer_run` |
//! | unmanaged objects are named and not changed | `conflicts::unmanaged_objects_are_named_and_not_changed` |
//! | `Finalized` is reported after every applying Job has stopped and the clean-up has succeeded | `decide::tests::a_deletion_stops_applying_jobs_then_cleans_up_then_confirms` |
//! | what was deleted, disabled or changed in a secret store is found and repaired | `stored` |
//! | no outage of API, broker or Kubernetes loses an event | `outages` |
//!
//! ```text
//! given   generation 3, preconditions met, no Job
//! decide  create the input and Job pullsecret-cls-1-gen3
//! report  Applied=True, Available=False/WorkloadInProgress, Health=True
//! ```

pub mod access;
pub mod act;
pub mod binding;
pub mod config;
pub mod decide;
pub mod dry_run;
#[cfg(test)]
mod fuzz;
pub mod limits;
pub mod manifest;
pub mod metrics;
pub mod observe;
pub mod outcome;
pub mod reason;
pub mod report;
pub mod rights;
pub mod run;
pub mod server;
pub mod store;
pub mod store_check;

pub use config::{Checked, Config};
pub use reason::Reason;
pub use server::{Adapter, Parts, StartError};
pub use store::{Opened, StoreView, Stores, unopened};
