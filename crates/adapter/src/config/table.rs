//! The table of an adapter's settings; `docs/reference/adapter-settings.md` and `--help` are generated from it.

use daemon::settings::{Section as _, Table};

use super::shape::Config;

/// All settings of an adapter.
pub const TABLE: Table = Table {
    variable,
    rows: Config::ROWS,
    retired: RETIRED,
    families: &["HYPERFLEET_", "BROKER_"],
    further: &["HYPERFLEET_ADAPTER_CONFIG", "PUBSUB_EMULATOR_HOST"],
};

/// The variable of a setting that names none: `spec.limits.writesPerMinute` is
/// `HYPERFLEET_ADAPTER_LIMITS_WRITES_PER_MINUTE`.
fn variable(path: &str) -> String {
    let path = path.strip_prefix("spec.").unwrap_or(path);
    let mut text = String::new();
    for char in path.chars() {
        if char.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(char.to_ascii_lowercase());
    }
    daemon::settings::variable("HYPERFLEET_ADAPTER", &text)
}

/// Keys that other versions of the configuration have.
const RETIRED: &[(&str, &str)] = &[
    ("spec.criteria.ruleEngine", "expressions are the specification's; leave it out"),
    ("spec.hyperfleetApi", "write spec.hyperfleetAPI"),
    ("spec.messageBroker", "write spec.broker"),
    ("spec.params", "map values to variables with spec.jobTemplate.env"),
    ("spec.resources", "describe the Job with spec.jobTemplate"),
    ("spec.post", "reports are built in"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_hyperfleets_or_follow_the_path() {
        assert_eq!(variable("spec.limits.writesPerMinute"), "HYPERFLEET_ADAPTER_LIMITS_WRITES_PER_MINUTE");
        let rows = TABLE.scalars();
        let url = rows.iter().find(|row| row.path == "spec.hyperfleetAPI.url").unwrap();
        assert_eq!(TABLE.variable_of(url).unwrap(), "HYPERFLEET_API_BASE_URL");
        let mut names = TABLE.variables();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
