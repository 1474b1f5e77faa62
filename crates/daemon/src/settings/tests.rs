//! Precedence of values, and the wording of faults.

use std::collections::BTreeMap;
use std::time::Duration;

use rstest::rstest;
use serde::Deserialize;

use super::common::Log;
use super::*;

crate::settings! {
    /// Settings of a test.
    #[derive(PartialEq)]
    struct Desired {
        /// A section
        pub server: Server,
        /// A text
        pub name: Option<String> = Row::at("name"),
        /// A list
        #[serde(default)]
        pub items: Vec<Item> = Row::at("items"),
    }
}

crate::settings! {
    /// A section.
    #[derive(PartialEq)]
    struct Server {
        /// A port
        pub port: u16 = Row::at("server.port").flag("port").default("80").or_keys(&["listen.port"]).or_variables(&["PORT"]),
        /// A switch
        pub secure: bool = Row::at("server.secure").default("false"),
        /// A time
        pub timeout: Duration = Row::at("server.timeout").default("5s").within("1s", "2m"),
        /// A number
        pub workers: u32 = Row::at("server.workers").default("2").within("1", "8"),
        /// A choice
        pub mode: Mode = Row::at("server.mode").default("fast"),
    }
}

crate::choices! {
    /// A choice.
    enum Mode {
        /// One.
        Fast = "fast" | "quick",
        /// The other.
        Slow = "slow",
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    kind: String,
    #[serde(default)]
    size: u8,
}

const TABLE: Table = Table {
    variable: |path| variable("X", path),
    retired: &[("server.old", "use server.port"), ("items.old", "leave it out"), ("gone.old", "leave it out")],
    families: &["X_"],
    further: &["X_CONFIG", "X_URL"],
    ..Table::of(Desired::ROWS)
};

fn loaded(file: &str, environment: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Result<Desired, Vec<String>> {
    let environment: BTreeMap<&str, &str> = environment.iter().copied().collect();
    let flags = flags.iter().map(|(flag, value)| (*flag, (*value).to_owned())).collect();
    let file = Some(File { name: "/etc/x.yaml".to_owned(), text: file.to_owned() });
    load(&TABLE, &environment, &Given { file, flags, ignored: Vec::new() }).done()
}

fn faults(file: &str, environment: &[(&str, &str)]) -> Vec<String> {
    loaded(file, environment, &[]).err().unwrap_or_default()
}

fn desired(port: u16, secure: bool, timeout: u64) -> Desired {
    let timeout = Duration::from_millis(timeout);
    Desired { server: Server { port, secure, timeout, workers: 2, mode: Mode::Fast }, name: None, items: Vec::new() }
}

#[test]
fn flags_come_before_variables_before_the_file_before_defaults() {
    assert_eq!(loaded("", &[], &[]).unwrap(), desired(80, false, 5_000));
    let file = "server: {port: 81, timeout: 1m30s}";
    assert_eq!(loaded(file, &[], &[]).unwrap(), desired(81, false, 90_000));
    assert_eq!(
        loaded(file, &[("X_SERVER_PORT", "82"), ("X_SERVER_SECURE", "true")], &[]).unwrap(),
        desired(82, true, 90_000)
    );
    assert_eq!(loaded(file, &[("X_SERVER_PORT", "82")], &[("port", "83")]).unwrap(), desired(83, false, 90_000));
    assert_eq!(loaded(file, &[("X_SERVER_PORT", " ")], &[("port", "")]).unwrap(), desired(81, false, 90_000));
}

#[test]
fn other_spellings_are_accepted() {
    assert_eq!(loaded("listen: {port: 81}", &[], &[]).unwrap().server.port, 81);
    assert_eq!(loaded("", &[("PORT", "82")], &[]).unwrap().server.port, 82);
    assert_eq!(loaded("", &[("PORT", "82"), ("X_SERVER_PORT", "83")], &[]).unwrap().server.port, 83);
    assert_eq!(loaded("server: {mode: quick}", &[], &[]).unwrap().server.mode, Mode::Fast);
    assert_eq!(loaded("server: {mode: SLOW}", &[], &[]).unwrap().server.mode, Mode::Slow);
    assert_eq!(
        faults("listen: {port: hunter2}", &[]),
        ["listen.port: must be a whole number up to 65535 (in /etc/x.yaml)"]
    );
    assert_eq!(
        faults("{listen: {port: 81}, server: {port: 82}}", &[]),
        ["server.port: given twice, also as listen.port (in /etc/x.yaml)"]
    );
}

#[rstest]
#[case("server: {port: hunter2}", "server.port: must be a whole number up to 65535 (in /etc/x.yaml)")]
#[case("server: {port: 65536}", "server.port: must be a whole number up to 65535 (in /etc/x.yaml)")]
#[case("server: {port: [hunter2]}", "server.port: must be a single value (in /etc/x.yaml)")]
#[case("server: {secure: hunter2}", "server.secure: must be true or false (in /etc/x.yaml)")]
#[case("server: {workers: 9}", "server.workers: must be a whole number from 1 to 8 (in /etc/x.yaml)")]
#[case(
    "server: {timeout: 0s}",
    "server.timeout: must be a duration from 1s to 2m, such as 500ms, 5s or 1m30s (in /etc/x.yaml)"
)]
#[case("server: {mode: hunter2}", "server.mode: must be one of fast, slow (in /etc/x.yaml)")]
#[case("server: {mode: slwo}", "server.mode: must be one of fast, slow; did you mean slow? (in /etc/x.yaml)")]
#[case("server: {old: 1}", "server.old: not a key of this program: use server.port (in /etc/x.yaml)")]
#[case("gone: {old: 1}", "gone.old: not a key of this program: leave it out (in /etc/x.yaml)")]
#[case("gone: {prot: 1}", "gone.prot: unknown key (in /etc/x.yaml)")]
#[case("server: {prot: hunter2}", "server.prot: unknown key; did you mean server.port? (in /etc/x.yaml)")]
#[case("port: hunter2", "port: unknown key; did you mean server.port? (in /etc/x.yaml)")]
#[case("listen: {prot: 1}", "listen.prot: unknown key (in /etc/x.yaml)")]
#[case("nonsense: 1", "nonsense: unknown key (in /etc/x.yaml)")]
#[case("server.port: 1", "server.port: unknown key: write each part of a key as a mapping of its own (in /etc/x.yaml)")]
#[case("server: hunter2", "server: must be a mapping of keys (in /etc/x.yaml)")]
#[case("items: [{kind: a, szie: 1}]", "items[0].szie: unknown key; did you mean size? (in /etc/x.yaml)")]
#[case("items: [{kind: a, size: hunter2}]", "items[0].size: has the wrong form (in /etc/x.yaml)")]
#[case("hunter2", "/etc/x.yaml: must be a mapping of keys")]
fn faults_name_their_place_and_never_the_value(#[case] file: &str, #[case] expected: &str) {
    assert_eq!(faults(file, &[]), [expected]);
}

#[test]
fn a_list_beside_a_retired_key_is_read() {
    assert_eq!(loaded("items: [{kind: a}]", &[], &[]).unwrap().items.len(), 1);
}

#[test]
fn malformed_yaml_is_named_by_line_and_column() {
    assert!(faults("a: [", &[])[0].starts_with("/etc/x.yaml: not valid YAML at line"));
}

#[test]
fn all_faults_are_listed_at_once() {
    let file = "{nonsense: 1, server: {prot: 1, secure: 2}, items: [{kind: a, szie: 1}, {kind: b, kidn: 2}]}";
    let environment = [("X_SERVER_TIMEOUT", "hunter2"), ("X_SERVER_WORKRES", "1")];
    let faults = faults(file, &environment).join("\n");
    let origins: Vec<&str> = faults.lines().filter_map(|fault| fault.split(':').next()).collect();
    assert_eq!(
        origins,
        [
            "nonsense",
            "server.prot",
            "server.secure",
            "X_SERVER_TIMEOUT",
            "X_SERVER_WORKRES",
            "items[0].szie",
            "items[1].kidn"
        ]
    );
    assert!(!faults.contains("hunter2"));
}

#[test]
fn a_check_of_the_whole_adds_its_faults_to_the_others() {
    let environment = BTreeMap::from([("X_SERVER_PORT", "hunter2"), ("X_SERVER_SECURE", "true")]);
    let loaded = load::<Desired>(&TABLE, &environment, &Given::default());
    let faults = loaded.checked(|settings| {
        assert_eq!(
            (settings.server.port, settings.server.secure),
            (80, true),
            "the default in place of what is faulty"
        );
        vec!["whole".to_owned()]
    });
    assert_eq!(faults.unwrap_err(), ["X_SERVER_PORT: must be a whole number up to 65535", "whole"]);
}

#[test]
fn variables_one_edit_away_from_a_known_one_are_refused() {
    for name in ["X_SERVER_PROT", "X_SERVER_PRT", "X_SERVER_PORTS", "X_SERVRE_PORT"] {
        assert_eq!(faults("", &[(name, "81")]), [format!("{name}: unknown variable; did you mean X_SERVER_PORT?")]);
    }
    let harmless =
        [("X_CONFIG", "a"), ("PROT", "1"), ("PATH", "/bin"), ("X_SOMETHING_ELSE", "1"), ("X_SERVER_PERIOD", "1")];
    assert_eq!(loaded("", &harmless, &[]).unwrap(), desired(80, false, 5_000));
}

#[test]
fn kubernetes_variables_of_services_are_never_refused() {
    let of_services = [
        ("X_SERVER_PORT", "tcp://10.0.0.1:80"),
        ("X_SERVERS_PORT", "tcp://10.0.0.1:80"),
        ("X_SERVER_SERVICE_HOST", "10.0.0.1"),
        ("X_SERVER_SERVICE_PORT", "80"),
        ("X_SERVER_PORT_80_TCP_PORT", "80"),
    ];
    assert_eq!(loaded("", &of_services, &[]).unwrap(), desired(80, false, 5_000));
}

#[test]
fn keys_of_another_program_are_noted() {
    let inert = &[("server.colour", "it has none"), ("other", "leave it out")];
    let text = "server: {port: 5, colour: red, old: 1}\nother: {a: {b: 1}}\nothers: 1\n".to_owned();
    let given = Given { file: Some(File { name: "/etc/x.yaml".to_owned(), text }), ..Given::default() };
    let loaded = load_beside::<Desired>(&TABLE, inert, &BTreeMap::<&str, &str>::new(), &given);
    let notes = [
        "server.colour: no effect here: it has none (in /etc/x.yaml)",
        "other: no effect here: leave it out (in /etc/x.yaml)",
    ];
    assert_eq!(loaded.notes(), notes);
    let faults = loaded.done().unwrap_err();
    assert_eq!(faults.len(), 2, "what neither program knows is still refused: {faults:?}");
}

#[test]
fn ignored_settings_are_not_read() {
    let given = Given { ignored: vec!["server.port"], ..Given::default() };
    let environment = BTreeMap::from([("X_SERVER_PORT", "hunter2")]);
    assert_eq!(load::<Desired>(&TABLE, &environment, &given).done().unwrap().server.port, 80);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let environment = BTreeMap::from([("X_CONFIG", "/nowhere/config.yaml")]);
    let fault = configuration(None, &environment, "X_CONFIG", &[]).unwrap_err();
    assert_eq!(fault, "X_CONFIG: cannot read /nowhere/config.yaml: entity not found");
    let credential = configuration(Some("hunter2"), &environment, "X_CONFIG", &[]).unwrap_err();
    assert!(!credential.contains("hunter2"), "{credential}");
}

#[test]
fn every_daemon_spells_the_log_level_alike() {
    const LOG: Table = Table::of(&[Row::section().of(<Log as Setting>::KIND)]);
    #[derive(Deserialize)]
    struct Whole {
        log: Log,
    }
    for file in ["log: {level: debug}", "logging: {level: debug}", "spec: {log: {level: debug}}"] {
        let file = Some(File { name: String::new(), text: file.to_owned() });
        let given = Given { file, ..Given::default() };
        let whole = load::<Whole>(&LOG, &BTreeMap::<&str, &str>::new(), &given).done().unwrap();
        assert_eq!(whole.log.level.to_string(), "debug");
    }
    for name in ["LOG_LEVEL", "HYPERFLEET_LOGGING_LEVEL"] {
        let whole = load::<Whole>(&LOG, &BTreeMap::from([(name, "DEBUG")]), &Given::default()).done().unwrap();
        assert_eq!(whole.log.level.to_string(), "debug");
    }
}

#[test]
fn a_dump_has_the_source_of_each_value() {
    let dumped = |name: &str| {
        let text = "items: [{kind: a}]\nlisten: {port: 81}\n".to_owned();
        let given = Given { file: Some(File { name: name.to_owned(), text }), ..Given::default() };
        let environment = BTreeMap::from([("X_SERVER_TIMEOUT", "9s"), ("X_CONFIG", "/etc/x.yaml"), ("X_URL", "u")]);
        let dump = load::<Desired>(&TABLE, &environment, &given).dumped(Ok).unwrap();
        let line = |setting: &dump::Effective| {
            format!("{}={} {:?} {}", setting.key, setting.value, setting.source, setting.name)
        };
        (dump.settings.iter().map(line).collect::<Vec<_>>(), dump)
    };
    let (lines, dump) = dumped("/etc/x.yaml");
    assert_eq!(
        lines,
        [
            "server.port=81 File listen.port",
            "server.secure=false Default ",
            "server.timeout=\"9s\" Variable X_SERVER_TIMEOUT",
            "server.workers=2 Default ",
            "server.mode=\"fast\" Default ",
            "name=null Unset ",
            "items=[{\"kind\":\"a\"}] File items",
        ]
    );
    assert_eq!((dump.file.as_deref(), dump.further_variables), (Some("/etc/x.yaml"), vec!["X_URL".to_owned()]));
    let (lines, dump) = dumped("");
    assert!(lines.contains(&"items=[{\"kind\":\"a\"}] Default ".to_owned()), "a text that is no file is built in");
    assert_eq!(dump.file, None);
}
