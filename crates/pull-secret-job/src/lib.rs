//! Stores one cluster's pull secret, verifies it by reading it back, and applies the Kubernetes Secret for HyperShift.
//!
//! Both phases reconcile: observe, [`decide`], act, until the observed state is the desired one; a run that observes it from
//! the start writes nothing. [`run`](run::run) carries a run out, [`settings`] reads its settings, [`report`] writes its
//! result.
//!
//! # Invariants
//!
//! | invariant | test |
//! |---|---|
//! | An unmanaged secret is never changed. | `decide::tests::an_unmanaged_secret_is_not_changed_and_its_owner_named` |
//! | An older generation never replaces a newer one. | `decide::tests::an_older_generation_changes_nothing` |
//! | Only versions of this project are destroyed. | `decide::tests::the_surplus_is_destroyed_last_and_only_own_versions` |
//! | A killed run is completed by the next. | `decide::tests::a_run_killed_before_it_added_is_completed_by_the_next` |
//! | An unmanaged Kubernetes Secret is adopted only on request. | `decide::kubernetes_secret::tests::an_unmanaged_secret_is_adopted_only_on_request` |
//! | What a mirror lacks after a failure, the next run stores. | `run::tests::a_run_that_is_killed_in_any_call_of_the_mirror_is_completed_by_the_next` |
//! | All faults of settings are named at once, without values. | `settings::tests::all_that_is_wrong_is_named_at_once` |
//!
//! # Example
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use pull_secret_job::settings;
//!
//! let variables = BTreeMap::from([
//!     ("CLUSTER_ID", "cls-1"),
//!     ("GCP_PROJECT_ID", "my-project-1"),
//!     ("PULL_SECRET_FILE", "/var/run/pull-secret/pullsecret"),
//! ]);
//! let settings = settings::resolve(&BTreeMap::new(), &variables).unwrap();
//! assert_eq!(settings.secret.as_str(), "hyperfleet-cls-1-pull-secret");
//! ```

pub mod decide;
pub mod prune;
pub mod record;
pub mod report;
pub mod run;
pub mod settings;
pub mod sweep;

mod act;
mod observe;
mod outcome;
mod session;
mod source;

pub use outcome::{Details, Outcome};
pub use run::run;
pub use settings::Settings;
