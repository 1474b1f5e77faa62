//! Settings that are accepted, settings that are refused, and the examples of the documents.

use database::Source;
use rstest::rstest;
use serde_json::Value;

use super::*;
use crate::authorization::Identity;

type Variables<'a> = BTreeMap<&'a str, &'a str>;

fn loaded(file: &str, variables: &Variables<'_>) -> Result<Settings, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    daemon::file::replace(&path, file.as_bytes()).unwrap();
    let flags = [("config", path.to_string_lossy().into_owned())].into();
    Settings::load(flags, variables)
}

#[test]
fn nothing_has_to_be_given() {
    let settings = loaded("", &Variables::new()).unwrap();
    assert_eq!((settings.server.host.as_str(), settings.server.port), ("localhost", 8000));
    assert_eq!(settings.registry().unwrap().descriptors().len(), 5);
    assert!(matches!(settings.database.source(&Variables::new()), Ok(Source::Sqlite { .. })));
}

#[test]
fn a_database_url_takes_postgresql() {
    let variables = Variables::from([("DATABASE_URL", "postgresql://user:hunter2@host/name?sslmode=verify-full")]);
    let settings = loaded("", &variables).unwrap();
    let source = settings.database.source(&variables).unwrap();
    assert!(matches!(source, Source::PostgresUrl(_)));
    assert!(!format!("{source:?} {settings:?}").contains("hunter2"));
}

#[test]
fn a_url_of_another_database_is_refused() {
    let variables = Variables::from([("DATABASE_URL", "mysql://user:hunter2@host/name")]);
    let faults = loaded("", &variables).unwrap_err();
    assert_eq!(faults, ["DATABASE_URL: must be postgresql://USER:PASSWORD@HOST:PORT/NAME"]);
}

#[rstest]
#[case("server: {insecure: true}", "server.insecure: not a key of this program: authenticate callers")]
#[case("server: {tls: {enabled: true}}", "server.tls: enabled, cert_file and key_file must be set together")]
#[case("server: {tenant: {enabled: true}}", "server.tenant.enabled: names no dimension")]
#[case("server: {prot: 1}", "server.prot: unknown key; did you mean server.port?")]
#[case("adapters: {required: {cluster: [a]}}", "adapters: not a key of this program: name the adapters in entities[]")]
#[case("database: {password: a, password_file: b}", "database.password: give either it or")]
#[case("changes: {bookmark_interval: 31s}", "changes.bookmark_interval: must be a duration from 100ms to 30s")]
#[case("health: {shutdown_timeout: 3m}", "health.shutdown_timeout: must be a duration from 1s to 120s")]
#[case("logging: {level: loud}", "logging.level: must be one of error, warn, info, debug")]
#[case("server: {max_body: 0}", "server.max_body: must be a whole number from 1 to 16777216")]
#[case("database: {pool: {max_connections: 0}}", "database.pool.max_connections: must be a whole number of 1 or more")]
#[case("changes: {max_events: 0}", "changes.max_events: must be a whole number of 1 or more")]
#[case("database: {dialect: postgres, host: db.example.com}", "database.ssl.mode: whether the connection is encrypted")]
#[case("pull_secret: {readers: [a]}", "pull_secret.readers: not a key of this program: give the identity")]
#[case("entities: [{kind: A, plural: as, plurals: b}]", "entities[0].plurals: unknown key; did you mean plural?")]
fn faults_name_the_key(#[case] file: &str, #[case] fault: &str) {
    let faults = loaded(file, &Variables::new()).unwrap_err().join("\n");
    assert!(faults.starts_with(fault), "{faults}");
}

/// Settings of HyperFleet's own server that have no effect here are noted, and the safe side is taken.
#[rstest]
#[case("server: {host: 0.0.0.0}", "server.host: no effect here without authentication: only loopback is served")]
#[case("server: {hostname: a}", "server.hostname: no effect here: links are relative to the server")]
#[case(
    "server: {jwt: {configs: [{issuer_url: a, audience: b}]}}",
    "server.jwt.configs: no effect here without server.jwt.enabled"
)]
#[case(
    "server: {jwt: {enabled: true, configs: [{issuer_url: a, audience: b}]}}",
    "authorization.grants: is empty, so that every call is denied"
)]
#[case(
    "server: {tenant: {system_header: a}}",
    "server.tenant.system_header: no effect here without server.tenant.enabled"
)]
#[case("server: {tenant: {dimensions: [{header: a, key: b}]}}", "server.tenant.dimensions: no effect here")]
#[case(
    "server: {tenant: {enabled: true, dimensions: [{header: a, key: b}]}}",
    "server.tenant: no effect here of its headers"
)]
#[case("server: {tls: {cert_file: a, key_file: b}}", "server.tls: no effect here of cert_file and key_file")]
#[case("logging: {masking: {enabled: true, fields: [a]}}", "logging.masking: no effect here: no credential is logged")]
#[case(
    "{server: {jwt: {enabled: true, configs: [{issuer_url: a, audience: b}, {issuer_url: a, audience: c}]}}, \
     authorization: {grants: [{name: x, issuer: a, subject: jane, kinds: [Cluster], verbs: [get]}]}}",
    "server.jwt.configs[1]: no effect here: server.jwt.configs[0] is for the same issuer_url"
)]
#[case("logging: {otel: {enabled: true}}", "logging.otel: no effect here: tracing.endpoint switches traces on")]
fn differences_are_noted(#[case] file: &str, #[case] note: &str) {
    let Notes(notes) = loaded(file, &Variables::new()).unwrap().notes;
    assert!(notes.len() == 1 && notes[0].starts_with(note), "{notes:?}");
}

#[test]
fn the_shapes_of_hyperfleets_files_are_accepted() {
    let chart = loaded(include_str!("../../tests/upstream/chart.yaml"), &Variables::new()).unwrap();
    let Notes(notes) = &chart.notes;
    let keys: Vec<&str> = notes.iter().filter_map(|note| note.split(": no effect here").next()).collect();
    let expected = [
        "server.hostname",
        "database.debug",
        "database.pool.max_idle_connections",
        "database.pool.request_timeout",
        "database.pool.conn_retry_attempts",
        "database.pool.conn_retry_interval",
        "logging.output",
        "logging.masking",
        "logging.otel",
        "metrics.tls",
        "metrics.label_metrics_inclusion_duration",
        "health.tls",
        "server.host",
        "entities[0].search_disallowed_fields",
    ];
    assert_eq!(keys, expected);
    assert_eq!((chart.host(), chart.database.host.as_str()), ("localhost", "hyperfleet-api-postgresql"));
    assert_eq!(chart.registry().unwrap().descriptors().len(), 5);
    let development = loaded(include_str!("../../tests/upstream/development.yaml"), &Variables::new()).unwrap();
    assert_eq!((development.host(), development.notes.0.len()), ("0.0.0.0", 3), "{:?}", development.notes);
}

#[rstest]
#[case("[{kind: a, plural: as}]", "entities[0].kind: 'a' must be 1 to 20 letters")]
#[case("[{kind: A, plural: resources}]", "entities[0].plural: 'resources' is reserved")]
#[case("[{kind: A, plural: statuses}]", "entities[0].plural: 'statuses' is reserved")]
#[case("[{kind: A, plural: as}, {kind: A, plural: bs}]", "entities[1].kind: 'A' is defined twice")]
#[case("[{kind: A, plural: as}, {kind: B, plural: as}]", "entities[1].plural: 'as' is defined twice")]
#[case("[{kind: A, plural: as, parent_kind: Planet}]", "entities[0].parent_kind: 'Planet' is not a configured kind")]
#[case("[{kind: A, plural: as, parent_kind: A}]", "entities[0].parent_kind: 'A' makes the kind its own ancestor")]
#[case("[{kind: A, plural: as, name_max_len: 101}]", "entities[0].name_max_len: '101' must be at most 100")]
#[case("[{kind: A, plural: as, name_min_len: 9, name_max_len: 8}]", "entities[0].name_min_len: '9' must not be more")]
#[case(
    "[{kind: A, plural: as, required_adapters: [x, x]}]",
    "entities[0].required_adapters[1]: 'x' names an adapter twice"
)]
#[case(
    "[{kind: A, plural: as, required_adapters: [a-b, a--b]}]",
    "entities[0].required_adapters[1]: 'a--b' has the same condition type"
)]
#[case("[{kind: A, plural: as, required_adapters: [' ']}]", "entities[0].required_adapters[0]: ' ' is an empty name")]
#[case("[{kind: A, plural: as, on_parent_delete: cascade}]", "entities[0].on_parent_delete: 'cascade' has no effect")]
#[case(
    "[{kind: A, plural: as, references: [{ref_type: r, target_kind: B}]}]",
    "entities[0].references[0].target_kind: 'B' is"
)]
#[case(
    "[{kind: A, plural: as, references: [{ref_type: '', target_kind: A}]}]",
    "entities[0].references[0].ref_type: '' must"
)]
#[case("[{kind: A, plural: as, require_spec_schema: true}]", "entities[0].require_spec_schema: 'true' has no effect")]
fn descriptors_that_contradict_are_refused(#[case] entities: &str, #[case] fault: &str) {
    let settings = loaded(&format!("entities: {entities}"), &Variables::new()).unwrap();
    let faults = settings.registry().unwrap_err().join("\n");
    assert!(faults.starts_with(fault), "{faults}");
}

#[test]
fn all_faults_are_listed_at_once() {
    let variables = Variables::from([("HYPERFLEET_SERVER_PROT", "80"), ("HYPERFLEET_DATABASE_PORT", "x")]);
    let faults = loaded(
        "{server: {tsl: {}}, database: {password: a, password_file: b}, entities: [{kind: A, plurals: b}]}",
        &variables,
    );
    let faults = faults.unwrap_err();
    let origins: Vec<&str> = faults.iter().filter_map(|fault| fault.split(':').next()).collect();
    assert_eq!(
        origins,
        [
            "server.tsl",
            "HYPERFLEET_DATABASE_PORT",
            "HYPERFLEET_SERVER_PROT",
            "entities[0].plurals",
            "database.password"
        ],
        "{faults:?}"
    );
    assert!(faults[2].ends_with("did you mean HYPERFLEET_SERVER_PORT?"));
}

#[test]
fn the_example_of_the_guide_is_right() {
    let guide = include_str!("../../../../docs/guides/api.md");
    let example = guide.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let settings = loaded(example, &Variables::new()).unwrap();
    let registry = settings.registry().unwrap();
    let mappings = &registry.kind("Cluster").unwrap().conditions;
    assert!(!crate::mapping::Mapper::compile(mappings).unwrap().is_empty());
}

#[test]
fn the_example_for_kubernetes_is_right() {
    let manifest = include_str!("../../../../deploy/api.yaml");
    let documents: Vec<Value> = serde_saphyr::from_multiple(manifest).unwrap();
    let of_kind = |kind: &str| documents.iter().find(|document| document["kind"] == kind).unwrap();
    let config = of_kind("ConfigMap")["data"]["config.yaml"].as_str().unwrap();
    let settings = loaded(config, &Variables::new()).unwrap();
    assert!(settings.server.jwt.enabled);
    check_shipped_grants(&settings.grants(&settings.registry().unwrap()).unwrap());
    let arguments = &of_kind("Deployment")["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(arguments, &serde_json::json!(["api", "--config", "/etc/hyperfleet/config/config.yaml"]));
}

/// The least that each component needs, and nothing for every other account of the cluster.
fn check_shipped_grants(grants: &Grants) {
    let of = |account: &str| {
        let subject = format!("system:serviceaccount:{account}");
        let claims = [("sub".to_owned(), subject.clone())];
        let permissions = grants.of(&Identity::with_claims("https://kubernetes.default.svc", &subject, claims));
        let one = permissions.by_kind().into_iter().map(|of_kind| {
            let flags = [of_kind.reads_pull_secrets, of_kind.chooses_destination, of_kind.force_deletes];
            format!("{} {} [{}] {flags:?}", of_kind.kind, of_kind.verbs.join(" "), of_kind.reports_as.join(" "))
        });
        one.collect::<Vec<_>>()
    };
    assert_eq!(of("hyperfleet-system:sentinel"), ["Cluster get list watch [] [false, false, false]"]);
    assert_eq!(of("hyperfleet-system:pullsecret-adapter"), ["Cluster get list [pullsecret] [true, false, false]"]);
    assert_eq!(of("hyperfleet-operators:jane").len(), 5);
    for stranger in
        ["clusters-acme:default", "hyperfleet-system:default", "x:hyperfleet-operators:y", "hyperfleet-operators:"]
    {
        assert_eq!(of(stranger), Vec::<String>::new(), "{stranger}");
    }
}

#[test]
fn the_key_beside_the_database_is_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("api.db").to_string_lossy().into_owned();
    let variables = Variables::from([("HYPERFLEET_DATABASE_PATH", path.as_str())]);
    let settings = loaded("", &variables).unwrap();
    assert!(settings.keyring().unwrap().is_some());
    let key = std::fs::read(folder.path().join("api.db.key")).unwrap();
    assert!(settings.keyring().unwrap().is_some());
    assert_eq!(std::fs::read(folder.path().join("api.db.key")).unwrap(), key);
}
