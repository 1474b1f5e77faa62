//! The Kubernetes that we touch: server-side apply with ownership, watch, Job results, Events, leases.
//!
//! A [`Cluster`] is one API server with one identity. No method retries: a failed call says in [`KubernetesError`]
//! whether another attempt may help. Who owns an object stands in its labels ([`fleet_model::Owner`]); having written it
//! once says nothing.

pub mod access;
pub mod cluster;
pub mod error;
pub mod event;
pub mod follow;
pub mod job;
pub mod jobs;
pub mod leadership;
pub mod lease;
pub mod object;
pub mod place;
pub mod secret;
pub mod sight;
pub mod verb;

pub use access::Access;
pub use cluster::{Cluster, Settings};
pub use error::{Fault, KubernetesError};
pub use follow::{Selection, View};
pub use object::Object;
pub use secret::{AppliedSecret, Form, OwnerJob, SecretKey, SeenSecret};
pub use sight::{JobSight, PodSight, SecretSight};
pub use verb::Verb;

/// The field manager of what is written where [`Settings::program`] says nothing else.
pub const FIELD_MANAGER: &str = "pull-secret";
