//! The guide's page: its examples, and its table of flags.

use serde_json::Value;

use crate::rig::PROGRAM;

const PAGE: &str = include_str!("../../../../docs/guides/keyless.md");

/// The guide's YAML documents of a kind.
pub(crate) fn example(kind: &str) -> Value {
    let blocks = PAGE.split("```yaml\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let documents = blocks.flat_map(|block| serde_saphyr::from_multiple::<Value>(block).unwrap());
    let found: Vec<_> = documents.filter(|document| document["kind"] == kind).collect();
    let [document] = <[Value; 1]>::try_from(found).unwrap();
    document
}

#[test]
fn the_table_of_flags_is_the_helps() {
    let output = std::process::Command::new(PROGRAM).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = help.lines().collect();
    let flags = lines.windows(3).filter(|lines| lines[0].starts_with("  --"));
    let rows: Vec<_> = flags
        .map(|lines| {
            let [flag, meaning, default] = [lines[0], lines[1], lines[2]].map(str::trim);
            let default = default.strip_prefix("[default: ").and_then(|rest| rest.strip_suffix(']')).unwrap();
            format!("| `{flag}` | {meaning} | {default} |\n")
        })
        .collect();
    assert_eq!(rows.len(), 6);
    for row in rows {
        assert!(PAGE.contains(&row), "{row}");
    }
}

#[test]
fn the_machine_config_is_of_this_configuration() {
    let unit = &example("MachineConfig")["spec"]["config"]["systemd"]["units"][0]["contents"];
    let unit = unit.as_str().unwrap();
    let config = example("CredentialProviderConfig");
    for provider in config["providers"].as_array().unwrap() {
        assert!(unit.contains(provider["name"].as_str().unwrap()), "{provider}");
    }
    let version = env!("CARGO_PKG_VERSION");
    for versioned in [format!("/keyless-credential-provider:{version}\n"), format!("/libexec/keyless-{version}\n")] {
        assert!(unit.contains(&versioned), "{unit}");
    }
    // A unit with a complete folder is skipped.
    let last = config["providers"][1]["name"].as_str().unwrap();
    assert!(unit.contains(&format!("ConditionPathExists=!/usr/local/libexec/keyless-{version}/{last}\n")), "{unit}");
}
