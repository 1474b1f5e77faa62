//! Grafana's dashboards, generated from a table of panels.

mod credentials;
mod global;
mod panel;
mod performance;
mod service;

use panel::Dashboard;

/// All dashboards.
pub(crate) const ALL: [&Dashboard; 5] =
    [&service::OVERVIEW, &service::ERRORS, &performance::DASHBOARD, &credentials::DASHBOARD, &global::DASHBOARD];
