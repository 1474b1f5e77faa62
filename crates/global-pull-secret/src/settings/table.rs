//! The table of the controller's settings; `docs/reference/global-pull-secret-settings.md` and `--help` are generated from it.

use daemon::settings::{Section as _, Table};

use super::shape::Settings;

/// The variable that names the configuration file.
pub const CONFIG_VARIABLE: &str = "GLOBAL_PULL_SECRET_CONFIG";

/// All settings of the controller.
pub const TABLE: Table = Table {
    variable: |path| daemon::settings::variable("GLOBAL_PULL_SECRET", path),
    rows: Settings::ROWS,
    retired: &[("settle", "leave it out: nodes confirm what they have applied")],
    families: &["GLOBAL_PULL_SECRET_"],
    further: &[CONFIG_VARIABLE],
};
