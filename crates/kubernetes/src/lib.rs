//! A Kubernetes API server for this project: apply with ownership, watches with a cache, Jobs and their results, Events, Leases.
//!
//! A [`Cluster`] is one API server with one identity. The invariants:
//!
//! - No method retries; [`KubernetesError`] says whether another attempt may help (`a_failing_server_is_asked_once_a_call`).
//! - An object is written only as it was observed, by uid and resourceVersion (`objects_are_written_as_they_were_observed`,
//!   `a_change_since_the_observation_is_not_overwritten`). Ownership is decided by labels ([`fleet_model::Owner`]).
//! - An apply leaves the fields of other managers alone, except where its caller is to be the only manager
//!   (`an_apply_leaves_the_fields_of_others`, `an_exclusive_field_has_no_other_manager`).
//! - A watch recovers from every outage, and its cache says when it is incomplete (`a_cache_follows_through_outages`,
//!   `a_cache_reports_why_it_is_incomplete`).
//! - A Lease expires by the observer's own monotonic clock
//!   (`a_standby_with_a_wrong_clock_does_not_take_a_live_lease`).
//! - Neither errors nor `Debug` print a credential (`credentials_that_cannot_be_used_are_not_quoted`,
//!   `the_content_is_never_printed`).
//!
//! ```no_run
//! # async fn example() -> Result<(), kubernetes::KubernetesError> {
//! let cluster = kubernetes::Cluster::connect(&kubernetes::Settings::default()).await?;
//! let key = kubernetes::SecretKey { namespace: "clusters-1".to_owned(), name: "pull-secret".to_owned() };
//! let secret = cluster.find_secret(&key).await?;
//! println!("{key} has resourceVersion {:?}", secret.map(|secret| secret.resource_version));
//! # Ok(())
//! # }
//! ```

pub mod access;
pub mod cluster;
pub mod describe;
pub mod error;
pub mod event;
pub mod images;
pub mod job;
pub mod job_watch;
pub mod jobs;
pub mod leadership;
pub mod lease;
pub mod object;
pub mod ownership;
pub mod prerequisites;
pub mod review;
pub mod secret;
mod transport;
pub mod verb;
mod warnings;
pub mod watch;

pub use access::{Access, Operation};
pub use cluster::{Cluster, Settings};
pub use describe::{JobSummary, LeaseSummary, NamespaceSummary, PodSummary, SecretMetadata};
pub use error::{ErrorKind, KubernetesError};
pub use images::PodImages;
pub use job::ObservedJob;
pub use job_watch::{JobCache, JobEvent, JobWatch};
pub use object::Object;
pub use review::Identity;
pub use secret::{AppliedSecret, Form, ListedSecret, ObservedSecret, OwnerJob, SecretKey};
pub use verb::Verb;
pub use watch::{Cache, Selection};

/// The field manager of what is written where [`Settings::program`] names no other.
pub const FIELD_MANAGER: &str = "pull-secret";
