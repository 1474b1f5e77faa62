//! The table of the settings; `docs/reference/credentials-settings.md` and `--help` are generated from it.

use daemon::settings::{Section as _, Table};
use database::connect::URL_VARIABLE;

use super::shape::Settings;

/// Variable that names the file.
pub const CONFIG_VARIABLE: &str = "HYPERFLEET_CREDENTIALS_CONFIG";

/// All settings of the credentials service.
pub const TABLE: Table = Table {
    variable,
    rows: Settings::ROWS,
    retired: &[],
    families: &["HYPERFLEET_CREDENTIALS_", "HYPERFLEET_API_"],
    further: &[CONFIG_VARIABLE, URL_VARIABLE],
};

/// The variable of a setting: that of HyperFleet's programs for the client of the API.
fn variable(path: &str) -> String {
    match path.strip_prefix("clients.hyperfleet_api.") {
        Some(rest) => daemon::settings::variable("HYPERFLEET_API", rest),
        None => daemon::settings::variable("HYPERFLEET_CREDENTIALS", path),
    }
}
