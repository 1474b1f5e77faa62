//! `config-dump` of the services: the settings in effect, their sources, and no credential.

use std::collections::BTreeMap;

use daemon::settings::{Kind, Table};
use rstest::rstest;
use serde_json::Value;
use testkit::program;

const MARKER: &str = "Hunter2Marker";

/// A service, and what its settings need beside the credentials.
struct Service {
    command: &'static [&'static str],
    table: Table,
    variables: &'static [(&'static str, &'static str)],
}

const API: Service = Service {
    command: &["api", "config-dump"],
    table: hyperfleet_api::settings::table::TABLE,
    variables: &[("HYPERFLEET_DATABASE_DIALECT", "postgres"), ("HYPERFLEET_DATABASE_USERNAME", "someone")],
};

const SENTINEL: Service = Service {
    command: &["sentinel", "config-dump"],
    table: sentinel::settings::table::TABLE,
    variables: &[
        ("HYPERFLEET_RESOURCE_TYPE", "clusters"),
        ("HYPERFLEET_API_BASE_URL", "http://localhost:8000"),
        ("HYPERFLEET_BROKER_TOPIC", "topic"),
        ("HYPERFLEET_LEADER_ELECTION_METHOD", "postgres"),
    ],
};

const ADAPTER: Service = Service {
    command: &["adapter", "config-dump"],
    table: adapter::config::table::TABLE,
    variables: &[("HYPERFLEET_API_BASE_URL", "http://localhost:8000"), ("BROKER_TYPE", "rabbitmq")],
};

impl Service {
    /// The variables of the settings that are credentials.
    fn secrets(&self) -> Vec<String> {
        let rows = self.table.scalars().into_iter().filter(|row| matches!(row.kind, Kind::Secret));
        let secrets = rows.filter_map(|row| self.table.variable_of(row));
        secrets
            .chain(self.table.further.iter().map(|name| (*name).to_owned()).filter(|name| !name.ends_with("_CONFIG")))
            .collect()
    }

    async fn dump(&self, variables: &BTreeMap<String, String>, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = program::pull_secret(self.command);
        command.args(arguments).envs(self.variables.iter().copied()).envs(variables);
        let output = command.output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }
}

#[rstest]
#[case::api(API)]
#[case::sentinel(SENTINEL)]
#[case::adapter(ADAPTER)]
#[tokio::test]
async fn no_credential_is_dumped(#[case] service: Service) {
    let secrets = service.secrets();
    assert!(!secrets.is_empty());
    let value = |name: &String| {
        if name.ends_with("_PASSWORD") {
            return (name.clone(), MARKER.to_owned());
        }
        if name.ends_with("_HEADERS") {
            return (name.clone(), format!("authorization=Bearer%20{MARKER}"));
        }
        let scheme = if name.contains("RABBITMQ") { "amqp" } else { "postgresql" };
        (name.clone(), format!("{scheme}://user:{MARKER}@host/{MARKER}?sslmode=verify-full"))
    };
    let variables = secrets.iter().map(value).collect();
    for format in ["yaml", "json"] {
        let (code, text, errors) = service.dump(&variables, &["--output", format]).await;
        assert_eq!(code, Some(0), "{errors}");
        assert!(!text.contains(MARKER) && !errors.contains(MARKER), "{text}{errors}");
        if format == "yaml" {
            assert_eq!(text.matches("(redacted)").count(), secrets.len(), "{text}");
        } else {
            let dump: Value = serde_json::from_str(&text).unwrap();
            let shown = dump["settings"].as_array().unwrap();
            let redacted = shown.iter().filter(|setting| setting["value"] == "(redacted)").count();
            assert_eq!(redacted + dump["furtherVariables"].as_array().unwrap().len(), secrets.len(), "{dump:#}");
        }
    }
}

#[tokio::test]
async fn a_credential_in_a_list_or_an_address_is_not_dumped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("adapter.yaml");
    let content = format!(
        "apiVersion: hyperfleet.redhat.com/v1alpha1\nkind: AdapterConfig\nmetadata: {{name: a, namespace: jobs}}\nspec:\n  \
         adapterType: pullsecret\n  jobTemplate:\n    args: [run, \"https://u:{MARKER}@host/\"]\n    env:\n      \
         - {{name: API_TOKEN, value: {MARKER}}}\n      - {{name: ZONE, value: a}}\n"
    );
    daemon::file::replace(&file, content.as_bytes()).unwrap();
    let file = file.display().to_string();
    for format in ["yaml", "json"] {
        let url = BTreeMap::from([("BROKER_RABBITMQ_URL".to_owned(), format!("amqp://u:{MARKER}@host"))]);
        let (code, text, errors) = ADAPTER.dump(&url, &["--config", &file, "--output", format]).await;
        assert_eq!(code, Some(0), "{errors}");
        assert!(!text.contains(MARKER) && text.contains("ZONE"), "{text}");
    }
}

#[tokio::test]
async fn each_value_has_its_source_and_the_dump_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("api.yaml");
    daemon::file::replace(&file, b"server: {port: 8001, timeouts: {read: 7s}}\nlogging: {level: debug}\n").unwrap();
    let path = file.display().to_string();
    let variables = BTreeMap::from([("HYPERFLEET_DATABASE_POOL_MAX_CONNECTIONS".to_owned(), "9".to_owned())]);
    let plain = Service { variables: &[], ..API };
    let arguments = ["--config", &path, "--db-path", "x.db"];
    let (_, text, errors) = plain.dump(&variables, &[&arguments[..], &["--output", "json"]].concat()).await;
    let dump: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{errors}"));
    assert_eq!(dump["file"], path);
    for (key, value, source, name) in [
        ("server.port", Value::from(8001), "file", Value::from("server.port")),
        ("server.timeouts.read", "7s".into(), "file", "server.timeouts.read".into()),
        ("log.level", "debug".into(), "file", "logging.level".into()),
        ("database.path", "x.db".into(), "flag", "--db-path".into()),
        ("database.pool.max_connections", 9.into(), "variable", "HYPERFLEET_DATABASE_POOL_MAX_CONNECTIONS".into()),
        ("database.port", 5432.into(), "default", Value::Null),
        ("database.username", Value::Null, "unset", Value::Null),
    ] {
        let shown = dump["settings"].as_array().unwrap().iter().find(|setting| setting["key"] == key).unwrap();
        assert_eq!((&shown["value"], &shown["source"], &shown["name"]), (&value, &source.into(), &name), "{key}");
    }
    let (_, yaml, _) = plain.dump(&variables, &arguments).await;
    assert!(yaml.contains("  port: 8001  # file server.port\n"), "{yaml}");
    daemon::file::replace(&file, yaml.as_bytes()).unwrap();
    let (code, again, errors) = plain.dump(&BTreeMap::new(), &["--config", &path, "--output", "json"]).await;
    assert_eq!(code, Some(0), "{errors}");
    let again: Value = serde_json::from_str(&again).unwrap();
    let values = |dump: &Value| -> Vec<Value> {
        dump["settings"].as_array().unwrap().iter().map(|setting| setting["value"].clone()).collect()
    };
    assert_eq!(values(&again), values(&dump), "a dump can be used as a file");
}

#[tokio::test]
async fn settings_that_would_be_refused_are_not_dumped() {
    let none = Service { variables: &[], ..SENTINEL };
    let (code, text, errors) = none.dump(&BTreeMap::new(), &["--poll-interval", "1ms"]).await;
    assert_eq!((code, text.as_str()), (Some(2), ""));
    assert!(errors.contains("resource_type: missing") && errors.contains("--poll-interval"), "{errors}");
}
