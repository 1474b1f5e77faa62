//! `pull-secret context`, and what commands take from a context.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Output;

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::routing::get;
use rstest::rstest;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::hyperfleet::HyperFleetApi;
use testkit::program;

/// An address at which nothing listens.
const AWAY: &str = "http://127.0.0.1:9";

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("new/pull-secret/contexts.yaml")
    }

    async fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = program::pull_secret(arguments);
        command.env("XDG_CONFIG_HOME", self.0.path().join("new")).envs(variables.iter().copied());
        command.output().await.unwrap()
    }

    async fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--output", "json"]].concat(), &[]).await;
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    async fn set(&self, name: &str, api: &str) {
        self.json(&["context", "set", name, "--api", api]).await;
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[tokio::test]
async fn contexts_are_set_used_listed_and_deleted() {
    let home = Home::new();
    assert_eq!(home.json(&["context", "list"]).await, json!([]));
    home.set("production", "https://hyperfleet.example.com").await;
    let set = ["context", "set", "staging", "--api", AWAY, "--token-file", "token", "--project", "p-1"];
    assert_eq!(home.json(&set).await, json!({"name": "staging", "changed": true}));
    assert_eq!(home.json(&set).await["changed"], false);
    assert_eq!(home.json(&["context", "use", "staging"]).await["changed"], true);
    let shown = home.json(&["context", "show"]).await;
    assert_eq!((&shown["name"], &shown["values"]["api"]), (&json!("staging"), &json!(AWAY)));
    assert!(shown["values"]["tokenFile"].as_str().unwrap().starts_with('/'), "{shown}");
    home.json(&["context", "set", "staging", "--project", ""]).await;
    assert!(home.json(&["context", "show"]).await["values"].get("project").is_none());
    let listed = home.json(&["context", "list"]).await;
    assert_eq!(
        (&listed[0]["name"], &listed[0]["current"], &listed[1]["current"]),
        (&json!("production"), &json!(false), &json!(true))
    );
    assert_eq!(std::fs::metadata(home.file()).unwrap().permissions().mode() & 0o777, 0o600);
    home.json(&["context", "delete", "staging"]).await;
    let none = home.run(&["context", "show"], &[]).await;
    assert!(none.status.code() == Some(2) && errors(&none).contains("no context is in use"), "{none:?}");
    let unknown = home.run(&["context", "use", "staging"], &[]).await;
    assert!(errors(&unknown).contains("there are: production"), "{unknown:?}");
}

#[tokio::test]
async fn the_records_of_rotations_are_where_the_context_has_them() {
    let home = Home::new();
    home.json(&["context", "set", "staging", "--kubeconfig", "/of-staging/kubeconfig"]).await;
    for command in [&["rotate", "status"][..], &["rotate", "pause", "r"], &["rotate", "abort", "r"]] {
        let none = errors(&home.run(command, &[]).await);
        assert!(none.contains("give --kubeconfig, or set KUBECONFIG"), "{none}");
        let of_context = errors(&home.run(&[command, &["--context", "staging"]].concat(), &[]).await);
        assert!(of_context.contains("/of-staging/kubeconfig"), "{of_context}");
    }
}

/// The API's address of the flag, the variable, the context.
#[rstest]
#[case::flag(Some(true), Some(false), &["--context", "away"], true)]
#[case::flag_away(Some(false), Some(true), &["--context", "here"], false)]
#[case::variable(None, Some(true), &["--context", "away"], true)]
#[case::variable_away(None, Some(false), &["--context", "here"], false)]
#[case::context(None, None, &["--context", "here"], true)]
#[case::context_away(None, None, &["--context", "away"], false)]
#[case::current(None, None, &[], true)]
#[tokio::test(flavor = "multi_thread")]
async fn flags_come_before_variables_and_variables_before_the_context(
    #[case] flag: Option<bool>,
    #[case] variable: Option<bool>,
    #[case] context: &[&str],
    #[case] is_reached: bool,
) {
    let (home, api) = (Home::new(), HyperFleetApi::start().await);
    let here = format!("http://{}", api.address);
    let place = |is_here: bool| if is_here { here.as_str() } else { AWAY };
    home.set("here", &here).await;
    home.set("away", AWAY).await;
    home.json(&["context", "use", "here"]).await;
    let flags = flag.map(|is_here| ["--api", place(is_here)]);
    let mut arguments = [&["status", "--output", "json"], context].concat();
    arguments.extend(flags.into_iter().flatten());
    let variables: Vec<_> = variable.map(|is_here| ("HYPERFLEET_API_BASE_URL", place(is_here))).into_iter().collect();
    let output = home.run(&arguments, &variables).await;
    assert_eq!(output.status.code(), Some(if is_reached { 0 } else { 75 }), "{output:?}");
    let says = errors(&output).contains("HYPERFLEET_API_BASE_URL takes precedence over api of the context");
    assert_eq!(says, flag.is_none() && variable.is_some(), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_variable_names_the_context_and_a_flag_another_one() {
    let (home, api) = (Home::new(), HyperFleetApi::start().await);
    home.set("here", &format!("http://{}", api.address)).await;
    home.set("away", AWAY).await;
    let run = async |arguments: &[&str], context| {
        home.run(arguments, &[("PULL_SECRET_CONTEXT", context)]).await.status.code()
    };
    assert_eq!(run(&["status"], "here").await, Some(0));
    assert_eq!(run(&["status"], "away").await, Some(75));
    assert_eq!(run(&["status", "--context", "here"], "away").await, Some(0));
    for arguments in [
        vec!["status"],
        vec!["explain", "cluster", "cls-1"],
        vec!["doctor"],
        vec!["retry", "cls-1"],
        vec!["sweep"],
        vec!["prune"],
        vec!["events", "tail"],
        vec!["events", "dead-letters", "list", "s"],
    ] {
        let unknown = home.run(&[&arguments[..], &["--context", "elsewhere"]].concat(), &[]).await;
        assert_eq!(unknown.status.code(), Some(2), "{arguments:?}: {unknown:?}");
        assert!(errors(&unknown).contains("--context: there is no context elsewhere; there are: away, here"));
    }
}

#[tokio::test]
async fn other_values_of_the_context_reach_the_commands() {
    let home = Home::new();
    let place = home.0.path().join("kubeconfig").display().to_string();
    home.json(&[
        "context",
        "set",
        "a",
        "--api",
        AWAY,
        "--kubeconfig",
        &place,
        "--kubernetes-context",
        "mgmt",
        "--project",
        "p-1",
        "--broker-type",
        "kafka",
        "--broker-topic",
        "t",
    ])
    .await;
    home.json(&["context", "use", "a"]).await;
    let kubernetes = home.run(&["retry", "cls-1"], &[]).await;
    assert!(errors(&kubernetes).contains("kubeconfig"), "{kubernetes:?}");
    let broker = home.run(&["events", "tail"], &[]).await;
    assert!(errors(&broker).contains("--broker-type: must be one of rabbitmq, googlepubsub"), "{broker:?}");
    let variable = home.run(&["events", "tail"], &[("BROKER_TYPE", "nats")]).await;
    assert!(errors(&variable).contains("BROKER_TYPE: must be one of"), "{variable:?}");
    let emulator = [("SECRET_MANAGER_EMULATOR_HOST", "127.0.0.1:9")];
    let project = home.run(&["prune"], &emulator).await;
    assert!(!errors(&project).contains("--project: missing"), "{project:?}");
    home.json(&["context", "set", "a", "--project", ""]).await;
    let project = home.run(&["prune"], &emulator).await;
    assert!(errors(&project).contains("--project: missing"), "{project:?}");
}

/// A token goes to no other API than its own, and nothing is compared with the secrets of another fleet.
#[tokio::test(flavor = "multi_thread")]
async fn a_context_gives_nothing_to_the_api_of_another_fleet() {
    let (home, api) = (Home::new(), HyperFleetApi::start().await);
    let other = format!("http://{}", api.address);
    let set = ["context", "set", "a", "--api", AWAY, "--project", "p-1", "--token-file", "/of-a/token"];
    home.json(&set).await;
    home.json(&["context", "use", "a"]).await;
    let own = home.run(&["status", "--api", &format!("{AWAY}/")], &[]).await;
    assert!(errors(&own).contains("cannot read the token file"), "{own:?}");
    for (flags, variables) in [
        (vec!["--api", other.as_str()], vec![]),
        (vec![], vec![("HYPERFLEET_API_BASE_URL", other.as_str())]),
        (vec!["--context", "a", "--api", other.as_str()], vec![]),
    ] {
        let status = home.run(&[&["status"], &flags[..]].concat(), &variables).await;
        assert_eq!(status.status.code(), Some(0), "{status:?}");
        assert!(errors(&status).contains("the context a is of another API"), "{status:?}");
        for command in ["sweep", "prune"] {
            let refused = home.run(&[&[command], &flags[..]].concat(), &variables).await;
            assert!(errors(&refused).contains("--project: missing"), "{refused:?}");
        }
    }
}

#[tokio::test]
async fn a_context_gives_no_topic_to_the_broker_of_a_file() {
    let home = Home::new();
    home.json(&["context", "set", "a", "--broker-type", "kafka", "--broker-topic", "of-a"]).await;
    home.json(&["context", "use", "a"]).await;
    let file = home.0.path().join("staging.yaml");
    daemon::file::replace(&file, b"broker: {type: nats}\n").unwrap();
    let file = file.to_str().unwrap();
    for (flags, variables) in [(vec!["--config", file], vec![]), (vec![], vec![("HYPERFLEET_CONFIG", file)])] {
        let refused = errors(&home.run(&[&["events", "tail"], &flags[..]].concat(), &variables).await);
        assert!(!refused.contains("--broker-type") && refused.contains("must be one of"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_at_the_same_time_lose_nothing() {
    let home = Home::new();
    let names: Vec<String> = (0..12).map(|number| format!("fleet-{number:02}")).collect();
    let mut children = Vec::new();
    for name in &names {
        let mut command = program::pull_secret(&["context", "set", name, "--api", AWAY]);
        children.push(command.env("XDG_CONFIG_HOME", home.0.path().join("new")).spawn().unwrap());
    }
    for mut child in children {
        assert!(child.wait().await.unwrap().success());
    }
    let listed = home.json(&["context", "list"]).await;
    let listed: Vec<&str> =
        listed.as_array().unwrap().iter().map(|context| context["name"].as_str().unwrap()).collect();
    assert_eq!(listed, names);
}

#[rstest]
#[case::api("--api", "https://user:Hunter2Marker@host")]
#[case::broker("--broker-topic", "amqp://user:Hunter2Marker@host")]
#[tokio::test]
async fn a_credential_is_neither_kept_nor_printed(#[case] flag: &str, #[case] value: &str) {
    let home = Home::new();
    home.set("a", AWAY).await;
    let before = std::fs::read(home.file()).unwrap();
    let refused = home.run(&["context", "set", "a", flag, value], &[]).await;
    assert_eq!(refused.status.code(), Some(2));
    assert!(!format!("{refused:?}").contains("Hunter2Marker"), "{refused:?}");
    assert_eq!(std::fs::read(home.file()).unwrap(), before);
}

#[tokio::test]
async fn a_damaged_file_is_named_with_the_place() {
    let home = Home::new();
    home.set("a", AWAY).await;
    daemon::file::replace(&home.file(), b"contexts:\n  a:\n    apy: x\n").unwrap();
    for arguments in [vec!["status"], vec!["context", "list"], vec!["context", "set", "b", "--api", AWAY]] {
        let refused = home.run(&arguments, &[]).await;
        let errors = errors(&refused);
        assert_eq!(refused.status.code(), Some(2), "{errors}");
        assert!(errors.contains("contexts.yaml: contexts.a.apy: unknown key; did you mean api?"), "{errors}");
    }
}

/// An API whose clusters `cls-1` and `cls-2` have the same name, as tenants may give them.
async fn ambiguous() -> String {
    let answer = |status: StatusCode, body: Value| (status, [("content-type", "application/json")], body.to_string());
    let list = async move |uri: Uri| {
        let is_named = uri.query().is_some_and(|query| query.contains("production"));
        let cluster =
            |id: &str| json!({"id": id, "kind": "Cluster", "name": "production", "generation": 1, "spec": {}});
        let items: Vec<Value> = if is_named { ["cls-1", "cls-2"].map(cluster).to_vec() } else { Vec::new() };
        let count = items.len();
        answer(StatusCode::OK, json!({"kind": "ClusterList", "page": 1, "size": count, "total": count, "items": items}))
    };
    let router = Router::new()
        .route("/api/hyperfleet/v1/clusters", get(list))
        .fallback(async move || answer(StatusCode::NOT_FOUND, json!({"status": 404, "title": "Not Found"})));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

#[rstest]
#[case::explain(&["explain", "cluster", "production"])]
#[case::sweep(&["sweep", "--project", "p-1", "--cluster", "production"])]
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_two_clusters_have_is_refused_with_their_ids(#[case] arguments: &[&str]) {
    let (home, api) = (Home::new(), ambiguous().await);
    let output = home.run(&[arguments, &["--api", &api]].concat(), &[]).await;
    let errors = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("several clusters have this name, give an id: ") && errors.contains("cls-2"), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_explained_by_its_name_too_and_an_id_comes_first() {
    let (home, api) = (Home::new(), HyperFleetApi::start().await);
    let mut new = testkit::hyperfleet::cluster("cls-1");
    new.name = "production".to_owned();
    api.create_cluster(&new).await;
    let mut other = testkit::hyperfleet::cluster("cls-2");
    other.name = "cls-1".to_owned();
    api.create_cluster(&other).await;
    let address = format!("http://{}", api.address);
    for (given, expected) in [("cls-1", "cls-1"), ("production", "cls-1"), ("cls-2", "cls-2")] {
        let output = home.run(&["explain", "cluster", given, "--api", &address], &[]).await;
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().next().is_some_and(|line| line.contains(expected)), "{given}: {text}");
    }
}
