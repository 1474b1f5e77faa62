//! The Harbor emulator: its rules for robots, for queries and for tokens, and its scripted faults.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a missing value fails the test")]

use std::time::Duration;

use emulators::harbor::{Harbor, Settings};
use rstest::rstest;
use serde_json::{Value, json};
use testkit::http::{Reply, exchange};
use testkit::quay::{basic, part_of_token};

struct Server {
    harbor: Harbor,
}

// === impl Server ===

impl Server {
    async fn start(settings: Settings) -> Self {
        Self { harbor: Harbor::start(settings).await.unwrap() }
    }

    async fn plain() -> Self {
        Self::start(Settings::default()).await
    }

    async fn raw(&self, call: &str, body: &Value, headers: &str) -> Option<Reply> {
        let (method, path) = call.split_once(' ').unwrap();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers = format!("content-type: application/json\r\n{headers}");
        exchange(self.harbor.address(), method, path, &body, &headers).await
    }

    /// A call of the API by its user.
    async fn call(&self, call: &str, body: Value) -> Reply {
        let header = basic(self.harbor.username(), self.harbor.password());
        self.raw(&call.replacen(' ', " /api/v2.0/", 1), &body, &header).await.unwrap()
    }

    /// Makes a robot; returns its password.
    async fn robot(&self, name: &str) -> String {
        let made = self.call("POST robots", robot(name)).await.expect(201);
        made["secret"].as_str().unwrap().to_owned()
    }

    async fn token(&self, user: &str, password: &str, scope: &str) -> Reply {
        let call = format!("GET /service/token?service=harbor-registry{scope}");
        self.raw(&call, &Value::Null, &basic(user, password)).await.unwrap()
    }
}

fn robot(name: &str) -> Value {
    json!({
        "name": name, "description": "d", "level": "project", "duration": -1, "disable": false, "secret": "Given0000",
        "permissions": [{"kind": "project", "namespace": "hyperfleet", "access": [{"resource": "repository", "action": "pull"}]}],
    })
}

fn with(member: &str, value: Value) -> Value {
    let mut robot = robot("a1");
    robot[member] = value;
    robot
}

/// A password that is sent is ignored, and the made one is shown once.
#[tokio::test]
async fn a_robot_is_made_with_a_password_of_the_servers() {
    let server = Server::plain().await;
    let made = server.call("POST robots", robot("a1")).await.expect(201);
    let secret = made["secret"].as_str().unwrap();
    assert!(secret != "Given0000" && secret.len() == 32, "{made}");
    assert_eq!((&made["name"], &made["expires_at"]), (&json!("robot$hyperfleet+a1"), &json!(-1)));
    let read = server.call("GET robots/1", Value::Null).await.expect(200);
    assert_eq!((&read["secret"], &read["description"], &read["disable"]), (&Value::Null, &json!("d"), &json!(false)));
    assert_eq!(server.harbor.robots()[0].secret, secret);
    assert!(!format!("{:?} {:?}", server.harbor, server.harbor.robots()).contains(secret));
}

#[rstest]
#[case::taken(robot("there"), 409)]
#[case::upper_case(robot("A1"), 400)]
#[case::plus(robot("a+b"), 400)]
#[case::no_duration(with("duration", json!(0)), 400)]
#[case::level(with("level", json!("cluster")), 400)]
#[case::no_permission(with("permissions", json!([])), 400)]
#[case::no_access(with("permissions", json!([{"kind": "project", "namespace": "hyperfleet", "access": []}])), 400)]
#[case::another_project(
    with("permissions", json!([{"kind": "project", "namespace": "other", "access": [{"resource": "repository", "action": "pull"}]}])),
    403
)]
#[case::long(with("description", json!("é".repeat(1025))), 500)]
#[case::longest(with("description", json!("é".repeat(1024))), 201)]
#[case::no_document(json!("text"), 400)]
#[tokio::test]
async fn a_robot_is_made_by_rules(#[case] body: Value, #[case] status: u16) {
    let server = Server::plain().await;
    server.robot("there").await;
    assert_eq!(server.call("POST robots", body).await.status, status);
}

/// Harbor unescapes the query twice.
#[rstest]
#[case::no_query("", 200, &[])]
#[case::of_the_system("?q=Level%3Dsystem", 200, &[])]
#[case::no_project("?q=Level%3Dproject", 400, &[])]
#[case::another_project("?q=Level%3Dproject%2CProjectID%3D8", 403, &[])]
#[case::all("?q=Level%3Dproject%2CProjectID%3D7", 200, &["b2", "a1", "a12"])]
#[case::sorted("?q=Level%3Dproject%2CProjectID%3D7&sort=name", 200, &["a1", "a12", "b2"])]
#[case::a_part("?q=Level%3Dproject%2CProjectID%3D7%2Cname%3D~a1", 200, &["a1", "a12"])]
#[case::whole("?q=Level%3Dproject%2CProjectID%3D7%2Cname%3Dhyperfleet%252Ba1", 200, &["a1"])]
#[case::a_plus_sign("?q=Level%3Dproject%2CProjectID%3D7%2Cname%3Dhyperfleet%2Ba1", 200, &[])]
#[case::page("?q=Level%3Dproject%2CProjectID%3D7&page=2&page_size=2", 200, &["a12"])]
#[case::too_large("?q=Level%3Dproject%2CProjectID%3D7&page_size=101", 422, &[])]
#[case::no_value("?q=Level", 400, &[])]
#[tokio::test]
async fn robots_are_listed_by_a_query(#[case] query: &str, #[case] status: u16, #[case] expected: &[&str]) {
    let server = Server::plain().await;
    for name in ["b2", "a1", "a12"] {
        server.robot(name).await;
    }
    let query = if query.contains("sort") || query.is_empty() { query.to_owned() } else { format!("{query}&sort=id") };
    let reply = server.call(&format!("GET robots{query}"), Value::Null).await;
    assert_eq!(reply.status, status, "{:?}", reply.body);
    let robots = reply.body.as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = robots.iter().map(|robot| robot["name"].as_str().unwrap()).collect();
    assert_eq!(names, expected.iter().map(|name| format!("robot$hyperfleet+{name}")).collect::<Vec<_>>());
}

#[rstest]
#[case::made(json!({}), 200, true)]
#[case::given(json!({"secret": "An0therSecret"}), 200, false)]
#[case::weak(json!({"secret": "weakweakweak"}), 400, false)]
#[case::short(json!({"secret": "Aa0"}), 400, false)]
#[tokio::test]
async fn a_robot_gets_another_password(#[case] body: Value, #[case] status: u16, #[case] is_shown: bool) {
    let server = Server::plain().await;
    let before = server.robot("a1").await;
    let reply = server.call("PATCH robots/1", body).await;
    let after = server.harbor.robots()[0].secret.clone();
    assert_eq!((reply.status, before != after), (status, status == 200));
    assert_eq!(reply.body["secret"] == json!(after), is_shown, "{:?}", reply.body);
}

/// A change is a whole document; name and level stay.
#[tokio::test]
async fn a_robot_is_changed_and_deleted() {
    let server = Server::plain().await;
    let secret = server.robot("a1").await;
    let mut changed = server.call("GET robots/1", Value::Null).await.expect(200);
    (changed["disable"], changed["description"]) = (json!(true), json!("e"));
    server.call("PUT robots/1", changed.clone()).await.expect(200);
    let [robot] = server.harbor.robots().try_into().unwrap();
    assert!(robot.disabled && robot.description == "e" && robot.secret == secret && robot.pulls);
    changed["name"] = json!("a1");
    assert_eq!(server.call("PUT robots/1", changed).await.status, 400);
    server.call("DELETE robots/1", Value::Null).await.expect(200);
    for call in ["GET robots/1", "DELETE robots/1", "PATCH robots/1"] {
        let body = if call.starts_with("PATCH") { json!({}) } else { Value::Null };
        assert_eq!(server.call(call, body).await.status, 404, "{call}");
    }
}

/// The token service knows no wrong password; the registry itself does.
#[rstest]
#[case::good("", true, true)]
#[case::wrong("WRONG", false, false)]
#[tokio::test]
async fn a_token_is_issued_for_what_is_permitted(#[case] given: &str, #[case] is_known: bool, #[case] may: bool) {
    let server = Server::plain().await;
    let secret = server.robot("a1").await;
    let (user, password) = ("robot$hyperfleet+a1", if given.is_empty() { secret.as_str() } else { given });
    let scope = "&scope=repository:hyperfleet/release:pull,push&scope=repository:other/release:pull";
    let token = server.token(user, password, scope).await.expect(200);
    let claims = part_of_token(token["token"].as_str().unwrap(), 1).unwrap();
    let actions = if may { json!(["pull"]) } else { json!([]) };
    assert_eq!((&claims["access"][0]["actions"], &claims["access"][1]["actions"]), (&actions, &json!([])));
    let status = if is_known { 200 } else { 401 };
    assert_eq!(server.token(user, password, "").await.status, status);
    let login = server.raw("GET /v2/", &Value::Null, &basic(user, password)).await.unwrap();
    assert_eq!(login.status, status);
    let bearer = format!("authorization: Bearer {}\r\n", token["token"].as_str().unwrap());
    for (method, pulls) in [("HEAD", 0), ("GET", usize::from(may))] {
        let call = format!("{method} /v2/hyperfleet/release/manifests/latest");
        let reply = server.raw(&call, &Value::Null, &bearer).await.unwrap();
        assert_eq!((reply.status, server.harbor.pulls().len()), (if may { 200 } else { 401 }, pulls), "{call}");
    }
    server.harbor.advance_clock(Duration::from_mins(30));
    let late = server.raw("GET /v2/hyperfleet/release/tags/list", &Value::Null, &bearer).await.unwrap();
    assert_eq!(late.status, 401);
}

#[tokio::test]
async fn robots_and_strangers_may_not_call_the_api() {
    let server = Server::plain().await;
    let secret = server.robot("a1").await;
    let call = "GET /api/v2.0/robots/1";
    for (user, password, status) in [("robot$hyperfleet+a1", secret.as_str(), 403), ("stranger", "x", 401)] {
        assert_eq!(server.raw(call, &Value::Null, &basic(user, password)).await.unwrap().status, status);
    }
    assert_eq!(server.raw(call, &Value::Null, "").await.unwrap().status, 401);
}

/// An expired robot is as good as none.
#[tokio::test]
async fn a_robot_expires() {
    let server = Server::plain().await;
    let made = server.call("POST robots", with("duration", json!(1))).await.expect(201);
    let secret = made["secret"].as_str().unwrap();
    let login =
        async || server.raw("GET /v2/", &Value::Null, &basic("robot$hyperfleet+a1", secret)).await.unwrap().status;
    assert_eq!(login().await, 200);
    server.harbor.advance_clock(Duration::from_hours(24));
    assert_eq!(login().await, 401);
}

#[rstest]
#[case::refused("CreateRobot:throttled(retry-after=2s)", Some(429), 0)]
#[case::lost("CreateRobot:commit-then-cut", None, 1)]
#[case::late("CreateRobot:commit-then-timeout", Some(504), 1)]
#[case::of_the_second("CreateRobot:cut@2", Some(201), 1)]
#[case::garbage("*:garbage", Some(200), 0)]
#[tokio::test]
async fn faults_happen_as_they_are_scripted(#[case] fault: &str, #[case] status: Option<u16>, #[case] robots: usize) {
    let server = Server::start(Settings { faults: vec![fault.parse().unwrap()], ..Settings::default() }).await;
    let header = basic(server.harbor.username(), server.harbor.password());
    let reply = server.raw("POST /api/v2.0/robots", &robot("a1"), &header).await;
    assert_eq!((reply.map(|reply| reply.status), server.harbor.robots().len()), (status, robots));
    assert_eq!(server.harbor.counts()["CreateRobot"], 1);
}
