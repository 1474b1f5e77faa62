//! The metrics of all components, for the reference page and for checks.

use super::{Catalogue, adapter, api, common, credentials, global_pull_secret, sentinel, syncer};

/// The metrics of all components.
pub const ALL: [Catalogue; 8] = [
    Catalogue { component: "API", metrics: api::METRICS },
    Catalogue { component: "Sentinel", metrics: sentinel::METRICS },
    Catalogue { component: "Adapter", metrics: adapter::METRICS },
    Catalogue { component: "Jobs of an adapter", metrics: adapter::JOB_METRICS },
    Catalogue { component: "Credentials", metrics: credentials::METRICS },
    Catalogue { component: "Global Pull Secret controller", metrics: global_pull_secret::METRICS },
    Catalogue { component: "Node syncer", metrics: syncer::METRICS },
    Catalogue { component: "API, adapter and Global Pull Secret controller", metrics: common::METRICS },
];
