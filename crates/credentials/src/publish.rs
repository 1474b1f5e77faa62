//! Clusters of the HyperFleet API: reads and writes one entry of `spec.pullSecret.data`.

mod clusters;
mod compose;
pub(crate) mod meaning;
mod secrets;

pub use clusters::ApiClusters;
pub use compose::PullSecret;
pub use secrets::ApiPullSecrets;
