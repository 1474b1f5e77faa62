//! Clusters of the HyperFleet API: reads and writes one entry of `spec.pullSecret.data`.

mod clusters;
mod compose;

pub use clusters::ApiClusters;
