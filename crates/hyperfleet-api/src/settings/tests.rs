//! What settings are taken, what is refused, and whether the examples of the documents are right.

use rstest::rstest;
use serde_json::Value;

use super::*;

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
    assert!(matches!(settings.source(&Variables::new()), Ok(Source::Sqlite { .. })));
}

#[test]
fn a_database_url_takes_postgresql() {
    let variables = Variables::from([("DATABASE_URL", "postgresql://user:hunter2@host/name")]);
    let settings = loaded("", &variables).unwrap();
    let source = settings.source(&variables).unwrap();
    assert!(matches!(source, Source::PostgresUrl(_)));
    assert!(!format!("{source:?} {settings:?}").contains("hunter2"));
}

#[rstest]
#[case("server: {host: 0.0.0.0}", "server.host: without authentication only loopback is served")]
#[case("server: {jwt: {enabled: true}, insecure: true}", "server.insecure: has no effect")]
#[case("server: {jwt: {configs: [{issuer_url: a}]}}", "server.jwt.configs: has no effect")]
#[case("server: {tls: {enabled: true}}", "server.tls: enabled, cert_file and key_file belong together")]
#[case("server: {tenant: {enabled: true}}", "server.tenant.enabled: names no dimension")]
#[case("server: {prot: 1}", "server.prot: unknown field `prot`")]
#[case("server: {hostname: a}", "server.hostname: is not a key here")]
#[case("adapters: {required: {cluster: [a]}}", "adapters: is not a key here: name the adapters in entities[]")]
#[case("database: {password: a, password_file: b}", "database.password: give either it or")]
#[case("changes: {bookmark_interval: 31s}", "changes.bookmark_interval: must be 100ms to 30s")]
#[case("health: {shutdown_timeout: 3m}", "health.shutdown_timeout: must be 1s to 120s")]
#[case("logging: {level: loud}", "logging.level: must be one of")]
#[case("server: {tenant: {system_header: a}}", "server.tenant.system_header: has no effect")]
#[case("pull_secret: {readers: [a]}", "pull_secret.readers: has no effect")]
#[case("entities: [{kind: A, plural: as, plurals: b}]", "entities[0].plurals: unknown field")]
fn what_is_wrong_is_named(#[case] file: &str, #[case] fault: &str) {
    let faults = loaded(file, &Variables::new()).unwrap_err().join("\n");
    assert!(faults.starts_with(fault), "{faults}");
}

#[rstest]
#[case("[{kind: a, plural: as}]", "entities[0].kind: must be 1 to 20 letters")]
#[case("[{kind: A, plural: resources}]", "entities[0].plural: `resources` is reserved")]
#[case("[{kind: A, plural: statuses}]", "entities[0].plural: is reserved")]
#[case("[{kind: A, plural: as}, {kind: A, plural: bs}]", "entities[1].kind: is there twice")]
#[case("[{kind: A, plural: as}, {kind: B, plural: as}]", "entities[1].plural: is there twice")]
#[case("[{kind: A, plural: as, parent_kind: B}]", "entities[0].parent_kind: there is no entity of that kind")]
#[case("[{kind: A, plural: as, parent_kind: A}]", "entities[0].parent_kind: goes in a circle")]
#[case("[{kind: A, plural: as, name_max_len: 101}]", "entities[0].name_max_len: must be at most 100")]
#[case("[{kind: A, plural: as, required_adapters: [x, x]}]", "entities[0].required_adapters: names an adapter twice")]
#[case("[{kind: A, plural: as, required_adapters: [a-b, a--b]}]", "entities[0].required_adapters: names two adapters")]
#[case("[{kind: A, plural: as, on_parent_delete: cascade}]", "entities[0].on_parent_delete: has no effect")]
#[case("[{kind: A, plural: as, references: [{ref_type: r, target_kind: B}]}]", "entities[0].references: there is no")]
#[case("[{kind: A, plural: as, require_spec_schema: true}]", "entities[0].require_spec_schema: has no effect")]
fn descriptors_that_contradict_are_refused(#[case] entities: &str, #[case] fault: &str) {
    let settings = loaded(&format!("entities: {entities}"), &Variables::new()).unwrap();
    let faults = settings.registry().unwrap_err().join("\n");
    assert!(faults.starts_with(fault), "{faults}");
}

#[test]
fn the_example_of_the_guide_is_right() {
    let guide = include_str!("../../../../docs/api.md");
    let example = guide.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let settings = loaded(example, &Variables::new()).unwrap();
    let registry = settings.registry().unwrap();
    let mappings = &registry.kind("Cluster").unwrap().conditions;
    assert!(!crate::mapping::Mapper::compile(mappings).unwrap().is_empty());
}

#[test]
fn the_example_for_kubernetes_is_right() {
    let manifest = include_str!("../../../../deploy/hyperfleet-api.yaml");
    let documents = manifest.split("\n---\n").map(|text| serde_saphyr::from_str::<Value>(text).unwrap());
    let documents: Vec<Value> = documents.collect();
    let config = documents[0]["data"]["config.yaml"].as_str().unwrap();
    assert!(loaded(config, &Variables::new()).unwrap().server.jwt.enabled);
    let arguments = &documents[1]["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(arguments, &serde_json::json!(["api", "--config", "/etc/hyperfleet/config/config.yaml"]));
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
