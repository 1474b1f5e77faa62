//! The requests of each operation, as Quay expects them, and what is read from the answers.

use std::collections::BTreeSet;

use axum::http::Response;
use registry_account::{IdentitySecret, Operation, QuayRegistry, QuaySettings, Registry as _, Usage};
use rstest::rstest;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use crate::rig::{
    CREDENTIAL, DESCRIPTION, LOGIN, PASSWORD, TOKEN, attempt, credential, name, new_account, quay, settings, time,
};
use testkit::fake::{Fake, Received, json as document, page};

/// A robot as Quay shows it.
pub(crate) fn robot() -> Value {
    json!({
        "name": LOGIN,
        "created": "Sun, 22 Nov 2026 10:40:14 -0000",
        "last_accessed": null,
        "description": DESCRIPTION,
        "token": PASSWORD,
        "unstructured_metadata": {"hyperfleet.io/credential": CREDENTIAL},
    })
}

/// Quay's two forms of refusals.
pub(super) fn problem(message: &str) -> Response<String> {
    let body = json!({
        "detail": message, "error_message": message, "error_type": "invalid_request", "title": "invalid_request",
        "type": "http://localhost/api/v1/error/invalid_request", "status": 400,
    });
    document(400, &body)
}

pub(super) fn short(message: &str) -> Response<String> {
    document(400, &json!({"message": message}))
}

pub(super) fn no_robot() -> Response<String> {
    short("Could not find robot with specified username")
}

/// Answers as Quay does to an operation on a robot that exists.
pub(super) fn good(request: &Received) -> Response<String> {
    let target = request.target.as_str();
    match request.method.as_str() {
        "PUT" if target.contains("/robots/") => document(201, &robot()),
        "DELETE" => Response::builder().status(204).body(String::new()).unwrap(),
        "POST" if target.ends_with("/federation") => document(200, &request.body),
        "GET" if target.contains("/logs") => document(200, &json!({"logs": []})),
        "GET" if target.contains("/prototypes") => document(200, &json!({"prototypes": []})),
        "GET" if target.contains("/robots?") => document(200, &json!({"robots": [robot()]})),
        _ => document(200, &robot()),
    }
}

#[rstest]
#[case(Operation::Create, "PUT", "/robots/hf-one", json!({
    "description": DESCRIPTION,
    "unstructured_metadata": {"hyperfleet.io/credential": CREDENTIAL},
}))]
#[case(Operation::Find, "GET", "/robots/hf-one", Value::Null)]
#[case(Operation::Permit, "PUT", "/team/pullers/members/fleet%2Bhf-one", Value::Null)]
#[case(Operation::Usage, "GET", "/logs?performer=fleet%2Bhf-one&starttime=11/22/2026", Value::Null)]
#[case(Operation::Disable, "POST", "/robots/hf-one/regenerate", Value::Null)]
#[case(Operation::Delete, "DELETE", "/robots/hf-one", Value::Null)]
#[case(Operation::List, "GET", "/robots?token=false", Value::Null)]
#[case(Operation::Federate, "POST", "/robots/hf-one/federation", json!([
    {"issuer": "https://issuer.example", "subject": "system:serviceaccount:kube-system:puller"},
]))]
#[tokio::test]
async fn an_operation_is_one_request(
    #[case] operation: Operation,
    #[case] method: &str,
    #[case] path: &str,
    #[case] body: Value,
) {
    let fake = Fake::start(good).await;
    attempt(&quay(fake.address), operation).await.unwrap();
    let [request] = <[Received; 1]>::try_from(fake.received()).unwrap();
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        (method, format!("/api/v1/organization/fleet{path}").as_str())
    );
    assert_eq!(request.body, body);
    assert_eq!(request.headers["authorization"], format!("Bearer {TOKEN}"));
    assert!(request.headers["user-agent"].to_str().unwrap().starts_with("pull-secret/"));
    assert_eq!(request.headers.contains_key("content-type"), !body.is_null());
}

#[rstest]
#[case::nothing(json!([]), true)]
#[case::another_team(json!([{"delegate": {"name": "others", "kind": "team"}, "role": "read", "activating_user": null}]), true)]
#[case::a_user(json!([{"delegate": {"name": "pullers", "kind": "user"}, "role": "read", "activating_user": null}]), true)]
#[case::another_role(json!([{"delegate": {"name": "pullers", "kind": "team"}, "role": "write", "activating_user": null}]), true)]
#[case::one_creator(
    json!([{"delegate": {"name": "pullers", "kind": "team"}, "role": "read", "activating_user": {"name": "u"}}]),
    true
)]
#[case::there(json!([{"delegate": {"name": "pullers", "kind": "team"}, "role": "read", "activating_user": null}]), false)]
#[tokio::test]
async fn a_team_gets_its_default_permission_once(#[case] prototypes: Value, #[case] is_created: bool) {
    let fake = Fake::start(move |request| match request.method.as_str() {
        "GET" => document(200, &json!({"prototypes": prototypes})),
        _ => document(200, &json!({"id": "p"})),
    })
    .await;
    quay(fake.address).prepare().await.unwrap();
    let base = "/api/v1/organization/fleet";
    let mut expected = vec![
        ("PUT", format!("{base}/team/pullers"), json!({"role": "member"})),
        ("GET", format!("{base}/prototypes"), Value::Null),
    ];
    if is_created {
        let body = json!({"delegate": {"name": "pullers", "kind": "team"}, "role": "read"});
        expected.push(("POST", format!("{base}/prototypes"), body));
    }
    let received = fake.received();
    let received: Vec<_> =
        received.iter().map(|one| (one.method.as_str(), one.target.clone(), one.body.clone())).collect();
    assert_eq!(received, expected);
}

#[tokio::test]
async fn a_robot_is_read_as_an_account() {
    let fake = Fake::start(good).await;
    let created = quay(fake.address).create(&new_account()).await.unwrap();
    assert_eq!(created.account.login, LOGIN);
    assert_eq!(created.account.credential, Some(credential()));
    assert_eq!(created.account.created, Some(time("2026-11-22T10:40:14Z")));
    assert_eq!(created.account.last_access, None);
    assert_eq!(created.login().password.expose_secret(), PASSWORD);
}

/// Quay's list has robots of people, too, and no metadata.
#[tokio::test]
async fn a_list_leaves_out_what_cannot_be_ours() {
    let robots = json!({"robots": [
        {"name": "fleet+hf-one", "created": "Sun, 22 Nov 2026 10:40:14 -0000", "teams": [], "repositories": []},
        {"name": format!("fleet+{}", "a".repeat(50)), "created": null},
        {"name": "other+hf-two", "created": null},
        {"name": "fleet-hf-two", "created": null},
    ]});
    let fake = Fake::answering(document(200, &robots)).await;
    let listed = quay(fake.address).list(None).await.unwrap();
    assert_eq!(listed.next, None);
    let [account] = listed.accounts.as_slice() else { panic!("{listed:?}") };
    assert_eq!((&account.name, account.created), (&name(), Some(time("2026-11-22T10:40:14Z"))));
}

fn entry(kind: &str, minute: u32, agent: &str) -> Value {
    let agent_key = if kind == "pull_repo" { "user-agent" } else { "useragent" };
    json!({
        "kind": kind,
        "ip": format!("10.0.0.{minute}"),
        "datetime": format!("Sun, 22 Nov 2026 10:{minute:02}:00 -0000"),
        "performer": {"kind": "user", "name": LOGIN, "is_robot": true},
        "metadata": {"namespace": "fleet", "repo": "release", "tag": "4.20", agent_key: agent},
    })
}

#[tokio::test]
async fn usage_is_read_page_by_page_until_the_time_asked_for() {
    let pages = [
        json!({"logs": [entry("login_failure", 9, "cri-o/1.33"), entry("pull_repo", 8, "pull-secret-probe/0.1.0")],
            "next_page": "a+/="}),
        json!({"logs": [entry("login_failure", 7, "cri-o/1.33"), entry("login_failure", 6, "pull-secret-probe/0.1.0"),
            entry("login_success", 5, "cri-o/1.33")], "next_page": "b"}),
        json!({"logs": [entry("pull_repo", 2, "skopeo"), entry("pull_repo", 1, "skopeo")], "next_page": "c"}),
    ];
    let fake = Fake::start(move |request| {
        let page = request.target.split_once("next_page=").map(|(_, page)| page.to_owned());
        match page.as_deref() {
            None => document(200, &pages[0]),
            Some("a%2B%2F%3D") => document(200, &pages[1]),
            Some("b") => document(200, &pages[2]),
            Some(_) => page_error(),
        }
    })
    .await;
    let usage = quay(fake.address).usage(&name(), time("2026-11-22T10:02:00.5Z")).await.unwrap();
    let expected = Usage {
        pulls: 1,
        first_pull: Some(time("2026-11-22T10:02:00Z")),
        last_pull: Some(time("2026-11-22T10:02:00Z")),
        repositories: BTreeSet::from(["fleet/release".to_owned()]),
        failed_logins: 2,
        last_failed_login: Some(time("2026-11-22T10:09:00Z")),
        failed_login_sources: BTreeSet::from(["10.0.0.7", "10.0.0.9"].map(|source| source.parse().unwrap())),
        complete: true,
        requests: 3,
    };
    assert_eq!(usage, expected);
}

fn page_error() -> Response<String> {
    page(500, "no such page")
}

#[tokio::test]
async fn a_log_without_an_end_is_read_to_a_limit() {
    let page = json!({"logs": [entry("login_failure", 9, "cri-o")], "next_page": "again"});
    let fake = Fake::answering(document(200, &page)).await;
    let usage = quay(fake.address).usage(&name(), time("2026-11-22T10:00:00Z")).await.unwrap();
    let Usage { complete, failed_logins, requests, .. } = usage;
    assert_eq!((complete, failed_logins, requests, fake.received().len()), (false, 50, 50, 50));
}

/// The account of a busy cluster has a log of thousands of pulls.
#[tokio::test]
async fn a_log_is_read_until_it_has_a_pull() {
    let pages = [
        json!({"logs": [entry("login_failure", 9, "cri-o")], "next_page": "next"}),
        json!({"logs": [entry("pull_repo", 8, "cri-o"), entry("pull_repo", 7, "cri-o")], "next_page": "last"}),
    ];
    let answer = move |second: bool| document(200, &pages[usize::from(second)]);
    let fake = Fake::start(move |request| answer(request.target.contains("next_page=next"))).await;
    let usage = quay(fake.address).usage(&name(), time("2026-11-22T10:00:00Z")).await.unwrap();
    let Usage { complete, pulls, requests, last_pull, .. } = usage;
    assert_eq!((complete, pulls, requests, fake.received().len()), (false, 2, 2, 2));
    assert_eq!(last_pull, Some(time("2026-11-22T10:08:00Z")));
}

/// A rotated token is used at once.
#[tokio::test]
async fn a_token_file_is_read_at_each_request() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let fake = Fake::start(good).await;
    let settings = QuaySettings { token: IdentitySecret::File(file.clone()), ..settings(fake.address) };
    let registry = QuayRegistry::connect(settings).unwrap();
    for content in ["first\n", "second"] {
        daemon::file::replace(&file, content.as_bytes()).unwrap();
        registry.find(&name()).await.unwrap();
    }
    let sent: Vec<_> = fake.received().into_iter().map(|request| request.headers["authorization"].clone()).collect();
    assert_eq!(sent, ["Bearer first", "Bearer second"]);
}

#[rstest]
#[case("https://quay.io", None, "quay.io")]
#[case("https://quay.example.com:8443/", None, "quay.example.com:8443")]
#[case("https://api.quay.io", Some("quay.io"), "quay.io")]
fn the_host_of_images_is_that_of_the_address(
    #[case] address: &str,
    #[case] host: Option<&str>,
    #[case] expected: &str,
) {
    let settings = QuaySettings {
        address: address.parse().unwrap(),
        host: host.map(str::to_owned),
        ..settings(([127, 0, 0, 1], 1).into())
    };
    let registry = QuayRegistry::connect(settings).unwrap();
    assert_eq!((registry.host(), registry.login(&name()).as_str()), (expected, LOGIN));
}
