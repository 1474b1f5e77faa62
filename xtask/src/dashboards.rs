//! Grafana's dashboards, generated from a table of panels.

mod global;
mod panel;
mod performance;
mod service;

use panel::Dashboard;

/// All dashboards.
pub(crate) const ALL: [&Dashboard; 4] =
    [&service::OVERVIEW, &service::ERRORS, &performance::DASHBOARD, &global::DASHBOARD];
