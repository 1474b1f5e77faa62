//! The requests of each operation, as Harbor expects them, and what is read from the answers.

use std::collections::BTreeSet;

use axum::http::Response;
use registry_account::{
    Disables, HarborRegistry, HarborSettings, IdentitySecret, ListedAccounts, Operation, Registry as _, Usage,
};
use rstest::rstest;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use crate::rig::{
    CREDENTIAL, DESCRIPTION, HARBOR_LOGIN, PASSWORD, TOKEN, USER, call, credential, harbor, harbor_settings, name,
    new_account, time,
};
use testkit::fake::{Fake, Received, json as document, page};

/// A query of the client; Harbor's name of the robot has no plus sign in it.
const QUERY: &str = "robots?q=Level%3Dproject%2CProjectID%3D7";

/// The description of [`robot`].
pub(super) fn description() -> String {
    format!("{DESCRIPTION} [hyperfleet credential {CREDENTIAL}]")
}

/// A robot as Harbor shows it.
pub(crate) fn robot() -> Value {
    json!({
        "id": 3, "name": HARBOR_LOGIN, "description": description(), "level": "project", "duration": -1, "expires_at": -1,
        "disable": false, "editable": true, "creation_time": "2026-11-22T10:40:14.000Z",
        "permissions": [{"kind": "project", "namespace": "fleet", "access": [
            {"resource": "repository", "action": "pull", "effect": "allow"},
        ]}],
    })
}

/// The answer to a creation.
pub(super) fn created() -> Value {
    json!({
        "id": 3, "name": HARBOR_LOGIN, "secret": PASSWORD, "creation_time": "2026-11-22T10:40:14.000Z", "expires_at": -1,
    })
}

/// Answers as Harbor does to an operation on a robot that exists.
pub(super) fn good(request: &Received) -> Response<String> {
    let target = request.target.as_str();
    match request.method.as_str() {
        "POST" => document(201, &created()),
        "PATCH" => document(200, &json!({"secret": PASSWORD})),
        "GET" if target.contains("/auditlog-exts") => document(200, &json!([])),
        "GET" if target.contains("/projects/") => document(200, &json!({"project_id": 7, "name": "fleet"})),
        "GET" if target.contains("/robots?") => document(200, &json!([robot()])),
        "GET" => document(200, &robot()),
        _ => page(200, ""),
    }
}

fn pull() -> Value {
    json!([{"kind": "project", "namespace": "fleet", "access": [{"resource": "repository", "action": "pull"}]}])
}

fn listed() -> (&'static str, String, Value) {
    ("GET", format!("{QUERY}%2Cname%3D%7Ehf-one&sort=id&page=1&page_size=100"), Value::Null)
}

/// The number of the project is asked for before, once.
#[rstest]
#[case(Operation::Create, vec![
    ("POST", "robots".to_owned(), json!({
        "name": "hf-one", "description": description(), "level": "project", "duration": -1, "disable": false, "permissions": pull(),
    })),
    ("GET", "robots/3".to_owned(), Value::Null),
])]
#[case(Operation::Find, vec![listed()])]
#[case(Operation::Permit, vec![listed()])]
#[case(Operation::Usage, vec![(
    "GET",
    "projects/fleet/auditlog-exts?q=operation%3Dpull%2Cusername%3D%7Ehf-one&sort=-op_time&page=1&page_size=100".to_owned(),
    Value::Null,
)])]
#[case(Operation::Disable, vec![listed(), ("PUT", "robots/3".to_owned(), json!({
    "id": 3, "name": HARBOR_LOGIN, "description": description(), "level": "project", "duration": -1, "disable": true,
    "permissions": pull(),
}))])]
#[case(Operation::Delete, vec![listed(), ("DELETE", "robots/3".to_owned(), Value::Null)])]
#[case(Operation::List, vec![("GET", format!("{QUERY}&sort=id&page=1&page_size=100"), Value::Null)])]
#[tokio::test]
async fn an_operation_is_these_requests(#[case] operation: Operation, #[case] expected: Vec<(&str, String, Value)>) {
    let fake = Fake::start(good).await;
    let registry = harbor(fake.address);
    registry.list(None).await.unwrap();
    let [project, _list] = <[Received; 2]>::try_from(fake.received()).unwrap();
    assert_eq!((project.method.as_str(), project.target.as_str()), ("GET", "/api/v2.0/projects/fleet"));
    assert_eq!(project.headers["x-is-resource-name"], "true");
    call(&registry, operation).await.unwrap();
    let received = fake.received();
    let sent: Vec<_> = received[2..]
        .iter()
        .map(|one| (one.method.as_str(), one.target.replace("/api/v2.0/", ""), one.body.clone()))
        .collect();
    assert_eq!(sent, expected);
    for request in received {
        // The user and the password of the rig.
        assert_eq!(request.headers["authorization"], "Basic c2VydmljZTp0MGtlbi1tNHJrZXItb2YtYW4tYXBwbGljYXRpb24=");
        assert!(request.headers["user-agent"].to_str().unwrap().starts_with("pull-secret/"));
        assert_eq!(request.headers.contains_key("content-type"), !request.body.is_null());
    }
    assert_eq!((USER, TOKEN), ("service", "t0ken-m4rker-of-an-application"));
}

#[tokio::test]
async fn a_robot_is_read_as_an_account() {
    let fake = Fake::start(good).await;
    let created = harbor(fake.address).create(&new_account()).await.unwrap();
    assert_eq!(created.account.login, HARBOR_LOGIN);
    assert_eq!(created.account.credential, Some(credential()));
    assert_eq!(created.account.description, DESCRIPTION);
    assert_eq!(created.account.created, Some(time("2026-11-22T10:40:14Z")));
    assert_eq!((created.account.expires, created.account.disabled), (None, false));
    assert_eq!(created.login().password.expose_secret(), PASSWORD);
}

#[tokio::test]
async fn an_end_and_a_disabled_robot_are_shown() {
    let mut robot = robot();
    (robot["expires_at"], robot["disable"]) = (json!(1_800_000_000), json!(true));
    let fake =
        Fake::start(
            move |request| {
                if request.target.contains("/robots?") { document(200, &json!([robot])) } else { good(request) }
            },
        )
        .await;
    let found = harbor(fake.address).find(&name()).await.unwrap().unwrap();
    assert_eq!((found.expires, found.disabled), (Some(time("2027-01-15T08:00:00Z")), true));
}

/// The list has robots of people, too. Another page follows only a full one.
#[rstest]
#[case::one_page(3, "3", None)]
#[case::full_and_last(100, "100", None)]
#[case::more(100, "101", Some("2"))]
#[case::of_an_unknown_length(100, "", Some("2"))]
#[tokio::test]
async fn a_list_leaves_out_what_cannot_be_ours(
    #[case] length: usize,
    #[case] total: &'static str,
    #[case] next: Option<&str>,
) {
    let mut robots =
        vec![robot(), json!({"id": 4, "name": "robot$fleet+Person's"}), json!({"id": 5, "name": "robot$bare"})];
    robots.resize(length, json!({"id": 6, "name": "robot$bare"}));
    let fake = Fake::start(move |request| {
        if !request.target.contains("/robots?") {
            return good(request);
        }
        let mut response = document(200, &json!(robots));
        response.headers_mut().insert("x-total-count", total.parse().unwrap());
        response
    })
    .await;
    let ListedAccounts { accounts, next: found } = harbor(fake.address).list(None).await.unwrap();
    assert_eq!(found.as_deref(), next);
    let [account] = accounts.as_slice() else { panic!("{accounts:?}") };
    assert_eq!((&account.name, account.credential), (&name(), Some(credential())));
    assert_eq!(account.created, Some(time("2026-11-22T10:40:14Z")));
}

fn entry(minute: u32, username: &str, operation: &str) -> Value {
    json!({
        "username": username, "resource": "fleet/release:4.20", "resource_type": "artifact", "operation": operation,
        "op_time": format!("2026-11-22T10:{minute:02}:00.000Z"),
    })
}

/// Answers with pages of the log, of which the last one is not full.
fn logs(pages: Vec<Vec<Value>>) -> impl Fn(&Received) -> Response<String> + Clone + Send + Sync + 'static {
    move |request| {
        let number =
            request.target.split_once("&page=").unwrap().1.split('&').next().unwrap().parse::<usize>().unwrap();
        let mut response = document(200, &json!(pages[number - 1]));
        let total = (pages.len() - 1) * 100 + pages.last().unwrap().len();
        response.headers_mut().insert("x-total-count", total.into());
        response
    }
}

/// A name that is a part of others finds their entries, too.
#[tokio::test]
async fn usage_is_read_page_by_page_until_there_is_a_pull() {
    let other = format!("{HARBOR_LOGIN}-more");
    let own = vec![entry(8, HARBOR_LOGIN, "pull"), entry(7, &other, "pull"), entry(6, HARBOR_LOGIN, "delete")];
    let pages = vec![vec![entry(9, &other, "pull"); 100], [own, vec![entry(5, &other, "pull"); 97]].concat(), vec![]];
    let fake = Fake::start(logs(pages)).await;
    let usage = harbor(fake.address).usage(&name(), time("2026-11-22T10:02:00.0005Z")).await.unwrap();
    let expected = Usage {
        pulls: 1,
        first_pull: Some(time("2026-11-22T10:08:00Z")),
        last_pull: Some(time("2026-11-22T10:08:00Z")),
        repositories: BTreeSet::from(["fleet/release".to_owned()]),
        complete: true,
        requests: 2,
        ..Usage::none()
    };
    assert_eq!(usage, expected);
}

#[rstest]
#[case::until_the_time(vec![vec![entry(9, "robot$fleet+x", "pull"); 100], vec![entry(1, HARBOR_LOGIN, "pull"); 100], vec![]], 0, 2, true)]
#[case::at_the_time(vec![vec![entry(2, HARBOR_LOGIN, "pull")]], 1, 1, true)]
#[case::more_of_them(vec![vec![entry(9, HARBOR_LOGIN, "pull"); 100], vec![entry(8, HARBOR_LOGIN, "pull")]], 100, 1, false)]
#[case::a_limit(vec![vec![entry(9, "robot$fleet+x", "pull"); 100]; 12], 0, 10, false)]
#[tokio::test]
async fn a_log_is_read_to_an_end(
    #[case] pages: Vec<Vec<Value>>,
    #[case] pulls: u64,
    #[case] requests: u32,
    #[case] is_complete: bool,
) {
    let fake = Fake::start(logs(pages)).await;
    let usage = harbor(fake.address).usage(&name(), time("2026-11-22T10:02:00.0005Z")).await.unwrap();
    assert_eq!((usage.pulls, usage.requests, usage.complete), (pulls, requests, is_complete));
    assert_eq!(fake.received().len(), usize::try_from(requests).unwrap());
}

/// A rotated password is used at once.
#[tokio::test]
async fn a_password_file_is_read_at_each_request() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    let fake = Fake::start(good).await;
    let settings = HarborSettings { password: IdentitySecret::File(file.clone()), ..harbor_settings(fake.address) };
    let registry = HarborRegistry::connect(settings).unwrap();
    let since = time("2026-11-22T10:00:00Z");
    for content in ["first\n", "second"] {
        daemon::file::replace(&file, content.as_bytes()).unwrap();
        registry.usage(&name(), since).await.unwrap();
    }
    let sent: Vec<_> = fake.received().into_iter().map(|request| request.headers["authorization"].clone()).collect();
    assert_eq!(sent, ["Basic c2VydmljZTpmaXJzdA==", "Basic c2VydmljZTpzZWNvbmQ="]);
}

#[test]
fn the_host_of_images_is_that_of_the_address() {
    let address = "https://harbor.example.com:8443/".parse().unwrap();
    let settings = HarborSettings { address, ..harbor_settings(([127, 0, 0, 1], 1).into()) };
    let named = HarborSettings { host: Some("images.example.com".to_owned()), ..settings.clone() };
    let registry = HarborRegistry::connect(settings).unwrap();
    assert_eq!((registry.host(), registry.login(&name()).as_str()), ("harbor.example.com:8443", HARBOR_LOGIN));
    assert_eq!(HarborRegistry::connect(named).unwrap().host(), "images.example.com");
    let capabilities = registry.capabilities();
    // 255 with `fleet+`; 1024 with the id.
    assert_eq!((capabilities.max_name_bytes, capabilities.max_description), (249, 963));
    assert!(capabilities.expires && capabilities.disables == Disables::Reversibly);
}
