//! The HTTP API over the ledger, for those who ask about one cluster, and for clients of AMS. Kubernetes says who may.

mod answer;
mod chain;
mod directory;
pub mod openapi;
mod problem;
mod pull_secrets;
mod rate;
mod recent;
mod request;
mod reviews;
mod rotation;
mod rotations;
mod route;
mod serve;
mod state;

pub use directory::{ApiDirectory, Directory, KnownCluster, Offered, Unread};
pub use reviews::{KubernetesReviewer, Permission, Reviewer, Unreviewed};
pub use serve::router;
pub use state::{Api, Limits, Parts};
