//! The server's own view of what happened, and the calls that it counts.

use emulators::quay::{Pull, Settings};
use serde_json::json;
use testkit::quay::Server;

#[tokio::test]
async fn robots_and_calls_are_seen() {
    let server = Server::plain().await;
    let password = server.robot("a1").await;
    server.call("PUT", "team/pullers/members/hyperfleet+a1", json!(null)).await.expect(200);
    server.permit("a1", "release", "read").await;
    server.request_token("a1", &password, "release").await.expect(200);
    server.request_token("a1", &password, "release").await.expect(200);

    let [robot] = server.quay.robots().try_into().unwrap();
    assert_eq!((robot.name.as_str(), &robot.password, robot.description.as_str()), ("a1", &password, "d"));
    assert_eq!((robot.teams, robot.repositories), (["pullers".to_owned()].into(), ["release".to_owned()].into()));
    assert!(robot.last_accessed.unwrap() >= robot.created);
    let counts = server.quay.counts();
    let expected =
        [("changeUserPermissions", 1), ("createOrgRobot", 1), ("issueToken", 2), ("updateOrganizationTeamMember", 1)];
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), expected);
    let targets: Vec<_> = server.quay.calls().into_iter().map(|call| call.target).collect();
    assert!(targets.iter().all(|target| target == "hyperfleet+a1"), "{targets:?}");
}

/// Neither the settings nor what the server shows of its state or its calls has a credential in it.
#[tokio::test]
async fn nothing_prints_a_credential() {
    let settings = Settings::default();
    let server = Server::start(settings.clone()).await;
    let password = server.robot("a1").await;
    let bearer = server.request_token("a1", &password, "release").await.expect(200)["token"].clone();
    let printed = format!("{settings:?} {:?} {:?} {:?}", server.quay, server.quay.robots(), server.quay.calls());
    for credential in [&settings.tokens[0].secret, &password, bearer.as_str().unwrap()] {
        assert!(!printed.contains(credential), "{printed}");
    }
}

/// The robots that are there when a repository is made have the roles that the rules of that moment give.
#[tokio::test]
async fn rules_are_for_repositories_that_come_later() {
    let server = Server::plain().await;
    let password = server.robot("a1").await;
    server.call("PUT", "team/pullers/members/hyperfleet+a1", json!(null)).await.expect(200);
    server.quay.add_repository("before");
    let rule = json!({"delegate": {"name": "pullers", "kind": "team"}, "role": "read"});
    server.call("POST", "prototypes", rule).await.expect(200);
    server.quay.add_repository("after");
    for (repository, actions) in [("before", json!([])), ("after", json!(["pull"]))] {
        let token = server.request_token("a1", &password, repository).await.expect(200);
        let claims = testkit::quay::part_of_token(token["token"].as_str().unwrap(), 1).unwrap();
        assert_eq!(claims["access"][0]["actions"], actions, "{repository}");
    }
}

/// A registry's report of pulls is in the usage log as if Quay had served them; its other events are not.
#[tokio::test]
async fn a_registry_reports_its_pulls() {
    let server = Server::plain().await;
    server.robot("a1").await;
    let event = |action: &str, kind: &str, repository: &str| {
        json!({
            "action": action,
            "target": {"mediaType": kind, "repository": repository, "tag": "v1", "digest": "sha256:1"},
            "request": {"addr": "192.0.2.7:4711", "useragent": "cri-o/1.34"}, "actor": {"name": "hyperfleet+a1"},
        })
    };
    let manifest = "application/vnd.oci.image.manifest.v1+json";
    let report = json!({"events": [
        event("push", manifest, "hyperfleet/release"),
        event("pull", "application/octet-stream", "hyperfleet/release"),
        event("pull", manifest, "other/release"),
        event("pull", manifest, "hyperfleet/release"),
    ]});
    let path = server.quay.events_url().replace(&server.quay.url(), "");
    let header = testkit::quay::bearer(server.quay.token());
    server.raw("POST", &path, &report.to_string(), "").await.unwrap().expect(401);
    server.raw("POST", &path, &report.to_string(), &header).await.unwrap().expect(200);
    let pull = Pull {
        robot: "hyperfleet+a1".to_owned(),
        repository: "release".to_owned(),
        reference: "v1".to_owned(),
        address: "192.0.2.7".to_owned(),
        agent: "cri-o/1.34".to_owned(),
    };
    assert_eq!(server.quay.pulls(), [pull]);
    let log = server.call("GET", "logs?performer=hyperfleet%2Ba1", json!(null)).await.expect(200);
    assert_eq!((&log["logs"][0]["ip"], log["logs"].as_array().unwrap().len()), (&json!("192.0.2.7"), 1));
}

/// Of a robot that is gone, its pulls stay in the log without it; asking for them by its name makes Quay fail, and counting
/// them counts everything.
#[tokio::test]
async fn the_log_forgets_a_deleted_robot() {
    let server = Server::plain().await;
    server.robot("a1").await;
    let pull = Pull {
        robot: "hyperfleet+a1".to_owned(),
        repository: "release".to_owned(),
        reference: "sha256:1".to_owned(),
        address: "192.0.2.7".to_owned(),
        agent: "cri-o/1.34".to_owned(),
    };
    server.quay.record_pull(&pull);
    server.call("DELETE", "robots/a1", json!(null)).await.expect(204);
    assert_eq!(server.quay.pulls(), [pull]);
    server.call("GET", "logs?performer=hyperfleet%2Ba1", json!(null)).await.expect(500);
    let all = server.call("GET", "logs", json!(null)).await.expect(200);
    assert_eq!((&all["logs"][1]["kind"], all["logs"][1].get("performer")), (&json!("pull_repo"), None));
    let counted = server.call("GET", "aggregatelogs?performer=hyperfleet%2Ba1", json!(null)).await.expect(200);
    assert_eq!(counted["aggregated"].as_array().unwrap().len(), 3);
    // The new robot of that name has a log of its own.
    server.robot("a1").await;
    let own = server.call("GET", "logs?performer=hyperfleet%2Ba1", json!(null)).await.expect(200);
    assert_eq!(own["logs"], json!([]));
}

/// As in Quay's code, which looks into an older table then.
#[tokio::test]
async fn behind_the_last_entry_of_the_log_is_an_empty_page() {
    let server = Server::plain().await;
    let none = server.call("GET", "logs", json!(null)).await.expect(200);
    assert_eq!((&none["logs"], none.get("next_page")), (&json!([]), None));
    server.robot("a1").await;
    let first = server.call("GET", "logs", json!(null)).await.expect(200);
    let next = format!("logs?next_page={}", first["next_page"].as_str().unwrap());
    let last = server.call("GET", &next, json!(null)).await.expect(200);
    assert_eq!((&last["logs"], last.get("next_page")), (&json!([]), None));
}
