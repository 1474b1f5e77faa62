//! The HTTP API: refusals, the life of a cluster's credentials, rotations, limits, and what is logged.

use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use credentials::http::Limits;
use credentials::ledger::Statement;
use credentials::state::State;
use registry_account::CredentialId;
use rstest::rstest;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use testkit::http::exchange;

use crate::http_rig::{CLUSTER, DELETING, ELSEWHERE, Served};
use crate::rig::Rig;

const SECRETS: &str = "/v1/clusters/cls-abc123def456/pull-secrets";
const ROTATIONS: &str = "/v1/clusters/cls-abc123def456/rotations";
const AMS: &str = "/api/accounts_mgmt/v1/pull_secrets";

fn id(value: &Value) -> CredentialId {
    value.as_str().unwrap().parse().unwrap()
}

/// The entry of the registry in an answer, decoded.
fn login(answer: &Value) -> Option<String> {
    let auth = answer.pointer("/pull_secret/auths/memory.invalid/auth")?.as_str()?;
    Some(String::from_utf8(STANDARD.decode(auth).unwrap()).unwrap())
}

#[rstest]
#[case::no_token("", "GET", SECRETS, "", 401, "AUT-001")]
#[case::unknown_token("other", "GET", SECRETS, "", 401, "AUT-001")]
#[case::kubernetes_away("away", "GET", SECRETS, "", 503, "SVC-001")]
#[case::no_grant("none", "GET", SECRETS, "", 403, "AUZ-001")]
#[case::reads_only("viewer", "POST", SECRETS, "", 403, "AUZ-001")]
#[case::makes_only("maker", "GET", SECRETS, "", 403, "AUZ-001")]
#[case::may_not_delete("maker", "DELETE", SECRETS, "", 403, "AUZ-001")]
#[case::may_not_list("viewer", "GET", ROTATIONS, "", 403, "AUZ-001")]
#[case::may_not_rotate("viewer", "POST", ROTATIONS, r#"{"reason":"manual"}"#, 403, "AUZ-001")]
#[case::may_not_revoke("rotator", "POST", ROTATIONS, r#"{"reason":"compromise"}"#, 403, "AUZ-001")]
#[case::may_not_force("rotator", "POST", ROTATIONS, r#"{"reason":"manual","force_immediate":true}"#, 403, "AUZ-001")]
#[case::nothing_there("all", "GET", "/v1/clusters/cls-1", "", 404, "NTF-000")]
#[case::method("all", "PUT", SECRETS, "", 405, "VAL-008")]
#[case::no_cluster_id("all", "GET", "/v1/clusters/A_b/pull-secrets", "", 400, "VAL-001")]
#[case::unknown_cluster("all", "POST", "/v1/clusters/cls-unknown/pull-secrets", "", 404, "NTF-001")]
#[case::unknown_cluster_is_not_rotated(
    "all",
    "POST",
    "/v1/clusters/u/rotations",
    r#"{"reason":"manual"}"#,
    404,
    "NTF-001"
)]
#[case::deleting("all", "POST", "/v1/clusters/01932b5c-9f3e-7c2a-8e1d-0123456789ab/pull-secrets", "", 409, "CNF-003")]
#[case::found_by_no_search("all", "POST", "/v1/clusters/elsewhere/pull-secrets", "", 409, "CNF-003")]
#[case::api_away("all", "POST", "/v1/clusters/away/pull-secrets", "", 503, "SVC-001")]
#[case::no_credentials("all", "GET", SECRETS, "", 404, "NTF-001")]
#[case::nothing_to_rotate("all", "POST", ROTATIONS, r#"{"reason":"manual"}"#, 404, "NTF-001")]
#[case::no_rotation("all", "GET", "/v1/clusters/c/rotations/01932b5c-9f3e-7c2a-8e1d-0123456789ab", "", 404, "NTF-001")]
#[case::no_rotation_id("all", "GET", "/v1/clusters/c/rotations/s3cret", "", 404, "NTF-001")]
#[case::no_json("all", "POST", SECRETS, "{s3cret", 400, "VAL-006")]
#[case::no_object("all", "POST", SECRETS, "\"s3cret\"", 400, "VAL-006")]
#[case::unknown_member("all", "POST", SECRETS, r#"{"s3cret":1}"#, 400, "VAL-006")]
#[case::another_cluster("all", "POST", SECRETS, r#"{"cluster_id":"s3cret"}"#, 400, "VAL-001")]
#[case::unknown_registry("all", "POST", SECRETS, r#"{"registries":["s3cret"]}"#, 400, "VAL-001")]
#[case::registry_twice("all", "POST", SECRETS, r#"{"registries":["memory","memory"]}"#, 400, "VAL-001")]
#[case::bad_registry("all", "POST", SECRETS, r#"{"registries":["S3cret"]}"#, 400, "VAL-001")]
#[case::no_body("all", "POST", ROTATIONS, "", 400, "VAL-006")]
#[case::reason("all", "POST", ROTATIONS, r#"{"reason":"s3cret"}"#, 400, "VAL-001")]
#[case::limit("all", "GET", "/v1/clusters/c/rotations?limit=101", "", 400, "VAL-001")]
#[case::no_limit("all", "GET", "/v1/clusters/c/rotations?limit=0", "", 400, "VAL-001")]
#[case::cursor("all", "GET", "/v1/clusters/c/rotations?cursor=s3cret", "", 400, "VAL-001")]
#[case::since("all", "GET", "/v1/clusters/c/rotations?since=s3cret", "", 400, "VAL-001")]
#[case::status("all", "GET", "/v1/clusters/c/rotations?status=s3cret", "", 400, "VAL-001")]
#[case::escape("all", "GET", "/v1/clusters/c/rotations?status=%zz", "", 400, "VAL-001")]
#[case::no_text("all", "GET", "/v1/clusters/c/rotations?cursor=%ff", "", 400, "VAL-001")]
#[tokio::test]
async fn refusals_name_the_cause(
    #[case] name: &str,
    #[case] method: &str,
    #[case] path: &str,
    #[case] body: &str,
    #[case] status: u16,
    #[case] code: &str,
) {
    let (rig, _cluster, served) = Served::new(Limits::default()).await;
    let reply = match name {
        "" => exchange(served.address, method, path, body, "").await.unwrap(),
        _ => served.send(name, method, path, body).await,
    };
    let (head, answer) = (reply.head.clone(), reply.expect(status));
    assert_eq!(answer["code"], format!("HYPERFLEET-{code}"), "{answer:#}");
    assert_eq!(answer["status"], status);
    assert_eq!(answer["instance"], path.split('?').next().unwrap());
    let trace_id = answer["trace_id"].as_str().unwrap();
    assert!(
        head.contains("content-type: application/problem+json") && head.contains(&format!("x-request-id: {trace_id}"))
    );
    assert_eq!(head.contains("www-authenticate: bearer"), status == 401);
    assert_eq!(head.contains("allow: get, post, delete"), status == 405);
    assert_eq!(answer["errors"].is_array(), code == "VAL-001", "{answer:#}");
    let text = answer["detail"].as_str().unwrap().to_owned() + &answer["errors"].to_string() + &served.text();
    assert!(!text.to_lowercase().contains("s3cret") && !text.contains("t0ken-"), "{text}");
    let is_denied = served.log().iter().any(|line| line["operation"] == "deny" && line["path"].as_str().is_some());
    assert_eq!(is_denied, matches!(status, 401 | 403), "denials are recorded");
    assert!(rig.database.ledger(&[1]).list(&credentials::ledger::Filter::default()).await.unwrap().is_empty());
}

#[rstest]
#[case::web_page("origin: https://example.com\r\n", "{}", 403, "AUZ-001")]
#[case::other_type("content-type: text/plain\r\n", "{}", 415, "VAL-007")]
#[case::no_type("", "{}", 415, "VAL-007")]
#[case::two_tokens("authorization: Bearer t0ken-all\r\n", "", 401, "AUT-001")]
#[case::large("content-type: application/json\r\n", &" ".repeat(70_000), 413, "LMT-002")]
#[case::charset("content-type: application/json; charset=utf-8\r\n", "{", 400, "VAL-006")]
#[tokio::test]
async fn requests_of_another_form_are_refused(
    #[case] headers: &str,
    #[case] body: &str,
    #[case] status: u16,
    #[case] code: &str,
) {
    let (_rig, _cluster, served) = Served::new(Limits::default()).await;
    let headers = format!("authorization: Bearer t0ken-all\r\n{headers}");
    let answer = exchange(served.address, "POST", SECRETS, body, &headers).await.unwrap().expect(status);
    assert_eq!(answer["code"], format!("HYPERFLEET-{code}"), "{answer:#}");
}

#[tokio::test]
async fn credentials_are_made_once_and_shown_when_they_can_be_used() {
    let (rig, cluster, served) = Served::new(Limits::default()).await;
    let body =
        json!({"cluster_id": CLUSTER, "cloud_provider": "gcp", "region": "r", "registries": ["memory"]}).to_string();
    let first = served.send("all", "POST", SECRETS, &body).await.expect(202);
    let again = served.send("all", "POST", SECRETS, "").await.expect(202);
    assert_eq!((&first["state"], &first["credentials"]), (&json!("pending"), &again["credentials"]));
    assert!(first.get("pull_secret").is_none());
    let made = &first["credentials"][0];
    assert_eq!(
        (&made["registry_id"], &made["state"], &made["username"]),
        (&json!("memory"), &json!("Reserved"), &json!(null))
    );
    let (worker, id) = (rig.worker("one"), id(&made["credential_id"]));
    // Made and permitted is not enough.
    rig.until(&worker, &cluster, id, State::Permitted).await;
    assert_eq!(rig.get(id).await.state, State::Permitted);
    assert!(login(&served.send("all", "GET", SECRETS, "").await.expect(202)).is_none());
    rig.until(&worker, &cluster, id, State::Adopted).await;
    let world = rig.world.clusters.login(&cluster, "memory.invalid").unwrap();
    let expected = format!("{}:{}", world.username, world.password.expose_secret());
    for method in ["GET", "POST"] {
        let answer = served.send("all", method, SECRETS, "").await.expect(200);
        assert_eq!((login(&answer), &answer["state"]), (Some(expected.clone()), &json!("ready")));
        assert_eq!(
            (&answer["credentials"][0]["username"], &answer["cluster_id"]),
            (&json!(world.username), &json!(CLUSTER))
        );
    }
    // Without the grant of its own, everything but the passwords.
    for (name, method) in [("viewer", "GET"), ("maker", "POST")] {
        let answer = served.send(name, method, SECRETS, "").await.expect(200);
        assert_eq!((answer.get("pull_secret"), &answer["state"]), (None, &json!("ready")));
        assert!(!answer.to_string().contains("password-"));
    }
    let ams = served.send("all", "POST", AMS, &json!({"external_resource_id": CLUSTER}).to_string()).await.expect(201);
    let entry = &ams["auths"]["memory.invalid"];
    assert_eq!((&entry["email"], ams.as_object().unwrap().len()), (&json!(""), 1));
    assert_eq!(STANDARD.decode(entry["auth"].as_str().unwrap()).unwrap(), expected.as_bytes());
    let events = worker.ledger.events(id).await.unwrap();
    let reserved = events.iter().find(|event| event.action == "Reserve").unwrap();
    assert_eq!(reserved.actor, "system:serviceaccount:test:all");
    let log = served.log();
    let read: Vec<_> = log.iter().filter(|line| line["operation"] == "read-pull-secret").collect();
    assert_eq!(read.len(), 3, "each answer with a password is recorded, and no other");
    for line in read {
        let who =
            (line["subject"].as_str().unwrap(), line["id"].as_str().unwrap(), line["credentials"].as_str().unwrap());
        assert_eq!(who, ("system:serviceaccount:test:all", CLUSTER, id.to_string().as_str()));
    }
    let text = served.text() + &format!("{:?}", served.roles);
    assert!(!text.contains(world.password.expose_secret()) && !text.contains("t0ken-"), "{text}");
    assert_eq!(served.roles.tokens.load(Ordering::Relaxed), 3, "each token is reviewed once");
    let mut metrics = String::new();
    prometheus_client::encoding::text::encode(&mut metrics, &served.registry).unwrap();
    let line = r#"_request_duration_seconds_count{method="GET",route="/v1/clusters/{cluster_id}/pull-secrets",status="200"} 2"#;
    assert!(metrics.contains(line) && !metrics.contains(CLUSTER), "{metrics}");
}

#[tokio::test]
async fn deleted_credentials_go_once_nothing_uses_them_and_can_be_made_anew() {
    let (rig, cluster, served) = Served::new(Limits::default()).await;
    served.send("all", "DELETE", SECRETS, "").await.expect(204);
    let first = served.send("all", "POST", SECRETS, "").await.expect(202);
    let (worker, old) = (rig.worker("one"), id(&first["credentials"][0]["credential_id"]));
    rig.until(&worker, &cluster, old, State::Adopted).await;
    for path in [SECRETS.to_owned(), SECRETS.to_owned(), format!("{AMS}/{CLUSTER}")] {
        assert_eq!(served.send("all", "DELETE", &path, "").await.expect(204), json!(""));
    }
    let orders: Vec<_> = worker.ledger.events(old).await.unwrap();
    let orders: Vec<_> = orders.iter().filter(|event| event.action == "OrderRetirement").collect();
    assert_eq!(orders.len(), 1, "{orders:?}");
    assert_eq!(orders[0].actor, "system:serviceaccount:test:all");
    let answer = served.send("all", "GET", SECRETS, "").await.expect(200);
    assert_eq!((&answer["state"], &answer["credentials"][0]["ordered"]), (&json!("retiring"), &json!("retirement")));
    assert!(answer.get("pull_secret").is_none());
    let anew = served.send("all", "POST", SECRETS, "").await.expect(202);
    let new = id(&anew["credentials"][1]["credential_id"]);
    assert_eq!(anew["credentials"][1]["replaces"], json!(old.to_string()));
    rig.until(&worker, &cluster, new, State::Adopted).await;
    rig.until(&worker, &cluster, old, State::WaitedOut).await;
    served.send("all", "DELETE", SECRETS, "").await.expect(204);
    rig.world.clusters.remove(&cluster);
    rig.until(&worker, &cluster, new, State::WaitedOut).await;
    assert_eq!(served.send("all", "GET", SECRETS, "").await.expect(404)["code"], "HYPERFLEET-NTF-001");
    rig.check(&[]).await;
}

/// A cluster with an adopted credential.
async fn adopted(limits: Limits) -> (Rig, credentials::credential::ClusterRef, Served, CredentialId) {
    let (rig, cluster, served) = Served::new(limits).await;
    let credential = rig.assign(&cluster, None).await;
    let worker = rig.worker("one");
    rig.until(&worker, &cluster, credential.id, State::Adopted).await;
    (rig, cluster, served, credential.id)
}

#[tokio::test]
async fn a_rotation_is_followed_to_its_end() {
    let (rig, cluster, served, old) = adopted(Limits::default()).await;
    let worker = rig.worker("one");
    let reply = served.send("all", "POST", ROTATIONS, r#"{"reason":"scheduled"}"#).await;
    let (head, started) = (reply.head.clone(), reply.expect(201));
    let rotation = started["rotation_id"].as_str().unwrap().to_owned();
    let path = format!("{ROTATIONS}/{rotation}");
    assert!(head.contains(&format!("location: {path}")), "{head}");
    assert_eq!((&started["status"], &started["reason"]), (&json!("pending"), &json!("scheduled")));
    assert_eq!(
        (&started["force_immediate"], &started["created_by"]),
        (&json!(false), &json!("system:serviceaccount:test:all"))
    );
    assert_eq!(started["progress"]["phase"], "creating_credentials");
    assert!(started["estimated_completion"].is_string());
    let replaced = &started["progress"]["credentials"][0];
    assert_eq!(id(&replaced["old_credential_id"]), old);
    let new = id(&replaced["new_credential_id"]);
    let conflict = served.send("all", "POST", ROTATIONS, r#"{"reason":"manual"}"#).await.expect(409);
    assert_eq!(conflict["code"], "HYPERFLEET-CNF-002");
    assert!(conflict["detail"].as_str().unwrap().contains(&rotation), "{conflict:#}");
    let conflict = served.send("all", "POST", SECRETS, "").await.expect(409);
    assert_eq!(conflict["code"], "HYPERFLEET-CNF-001");
    // Until the new one can be used, the old one is handed out.
    let before = login(&served.send("all", "GET", SECRETS, "").await.expect(200)).unwrap();
    rig.until(&worker, &cluster, new, State::Published).await;
    let after = login(&served.send("all", "GET", SECRETS, "").await.expect(200)).unwrap();
    assert_ne!(before, after);
    let read = served.send("viewer", "GET", &path, "").await.expect(200);
    let progress = &read["progress"];
    assert_eq!((&read["status"], &progress["phase"]), (&json!("in_progress"), &json!("dual_credential_period")));
    assert_eq!(
        (&progress["new_credentials_created"], &progress["old_credentials_revoked"]),
        (&json!(true), &json!(false))
    );
    rig.until(&worker, &cluster, new, State::Adopted).await;
    let read = served.send("all", "GET", &path, "").await.expect(200);
    assert_eq!(
        (&read["status"], &read["progress"]["phase"]),
        (&json!("in_progress"), &json!("retiring_old_credentials"))
    );
    served.send("all", "POST", SECRETS, "").await.expect(200);
    rig.until(&worker, &cluster, old, State::WaitedOut).await;
    let read = served.send("all", "GET", &path, "").await.expect(200);
    assert_eq!((&read["status"], &read["progress"]["old_credentials_revoked"]), (&json!("completed"), &json!(true)));
    assert!(read["completed_at"].is_string() && read["estimated_completion"].is_null());
    rig.check(&[&rig.get(new).await]).await;
}

#[tokio::test]
async fn a_compromised_credential_is_revoked_at_once() {
    let (rig, cluster, served, old) = adopted(Limits::default()).await;
    let worker = rig.worker("one");
    *rig.world.may_delete_in_use.lock().unwrap() = true;
    // A rotation on its way does not keep what is known to others alive.
    let scheduled = served.send("all", "POST", ROTATIONS, r#"{"reason":"scheduled"}"#).await.expect(201);
    let between = id(&scheduled["progress"]["credentials"][0]["new_credential_id"]);
    rig.until(&worker, &cluster, between, State::Published).await;
    let forced = served.send("all", "POST", ROTATIONS, r#"{"reason":"compromise"}"#).await.expect(201);
    assert_eq!(forced["force_immediate"], true);
    let new = id(&forced["progress"]["credentials"][0]["new_credential_id"]);
    for revoked in [old, between] {
        let order = rig.get(revoked).await.record.order.unwrap();
        assert!(order.break_glass && order.actor == "system:serviceaccount:test:all", "{order:?}");
    }
    assert_eq!(rig.get(new).await.record.order, None);
    // Nothing that may be known is left.
    let again = served.send("all", "POST", ROTATIONS, r#"{"reason":"compromise"}"#).await.expect(409);
    assert_eq!(again["code"], "HYPERFLEET-CNF-002");
    served.send("all", "POST", SECRETS, "").await.expect(202);
    for _turn in 0..300 {
        if rig.get(old).await.state == State::WaitedOut && rig.get(between).await.state == State::WaitedOut {
            break;
        }
        rig.step(&worker).await;
    }
    rig.until(&worker, &cluster, new, State::Adopted).await;
    let statuses = served.send("all", "GET", ROTATIONS, "").await.expect(200);
    let statuses: Vec<_> =
        statuses["rotations"].as_array().unwrap().iter().map(|each| each["status"].clone()).collect();
    assert_eq!(statuses, ["completed", "cancelled"]);
    rig.check(&[&rig.get(new).await]).await;
}

#[tokio::test]
async fn rotations_are_listed_page_by_page() {
    let (rig, cluster, served, first) = adopted(Limits { rotations_per_hour: 20, ..Limits::default() }).await;
    let (worker, mut last, mut expected) = (rig.worker("one"), first, Vec::new());
    for number in 0..4 {
        let new = if number == 1 {
            // A person's command is one as well.
            let fresh = rig.sources().fresh(&"hf".parse().unwrap()).unwrap();
            let statement = Statement { actor: "ann", reason: "rotation of my own", now: rig.world.registry.now() };
            let new = worker.ledger.replace(last, &fresh, &statement).await.unwrap().id;
            expected.push(new.to_string());
            new
        } else {
            let started = served.send("all", "POST", ROTATIONS, r#"{"reason":"manual"}"#).await.expect(201);
            expected.push(started["rotation_id"].as_str().unwrap().to_owned());
            id(&started["progress"]["credentials"][0]["new_credential_id"])
        };
        rig.until(&worker, &cluster, new, State::Adopted).await;
        if number < 3 {
            rig.until(&worker, &cluster, last, State::WaitedOut).await;
        }
        last = new;
    }
    expected.reverse();
    let ids = |answer: &Value| {
        let ids =
            answer["rotations"].as_array().unwrap().iter().map(|each| each["rotation_id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    let all = served.send("all", "GET", ROTATIONS, "").await.expect(200);
    assert_eq!(ids(&all), expected);
    assert_eq!(all["pagination"], json!({"next_cursor": null, "has_more": false, "total_count": 4}));
    assert_eq!((&all["rotations"][2]["created_by"], &all["rotations"][2]["reason"]), (&json!("ann"), &json!("manual")));
    let (mut paged, mut cursor) = (Vec::new(), String::new());
    for (page, size) in [(0, 3), (1, 1)] {
        let answer = served.send("all", "GET", &format!("{ROTATIONS}?limit=3{cursor}"), "").await.expect(200);
        assert_eq!((ids(&answer).len(), &answer["pagination"]["has_more"]), (size, &json!(page == 0)));
        paged.extend(ids(&answer));
        cursor = format!("&cursor={}", answer["pagination"]["next_cursor"].as_str().unwrap_or_default());
    }
    assert_eq!(paged, expected);
    let since = all["rotations"][1]["created_at"].as_str().unwrap().replace(':', "%3A");
    let later = served.send("all", "GET", &format!("{ROTATIONS}?since={since}"), "").await.expect(200);
    assert_eq!(ids(&later), expected[..2]);
    let open = served.send("all", "GET", &format!("{ROTATIONS}?status=in_progress"), "").await.expect(200);
    assert_eq!(ids(&open), expected[..1]);
    assert!(ids(&served.send("all", "GET", "/v1/clusters/c/rotations", "").await.expect(200)).is_empty());
}

#[tokio::test]
async fn each_caller_has_a_rate() {
    let limits = Limits { per_minute: 3, rotations_per_hour: 1, ..Limits::default() };
    let (_rig, _cluster, served, _old) = adopted(limits).await;
    let reply = served.send("rotator", "POST", ROTATIONS, r#"{"reason":"manual"}"#).await;
    assert!(
        reply.head.contains("x-ratelimit-limit: 3") && reply.head.contains("x-ratelimit-remaining: 2"),
        "{}",
        reply.head
    );
    reply.expect(201);
    let second = served.send("rotator", "POST", ROTATIONS, r#"{"reason":"manual"}"#).await;
    let wait = second.head.split("retry-after: ").nth(1).and_then(|rest| rest.split('\r').next()).unwrap();
    assert!((3_000..=3_600).contains(&wait.parse::<u64>().unwrap()), "{}", second.head);
    assert_eq!(second.expect(429)["code"], "HYPERFLEET-LMT-001");
    for expected in [403, 429] {
        served.send("rotator", "GET", SECRETS, "").await.expect(expected);
    }
    let ams = served.send("rotator", "DELETE", &format!("{AMS}/{CLUSTER}"), "").await.expect(429);
    assert_eq!((&ams["kind"], &ams["code"]), (&json!("Error"), &json!("ACCT-MGMT-429")));
    served.send("viewer", "GET", SECRETS, "").await.expect(200);
}

#[rstest]
#[case::of_a_user("all", "/api/accounts_mgmt/v1/access_token", "", 400, "21", "external_resource_id")]
#[case::without_cluster("all", AMS, "{}", 400, "21", "external_resource_id")]
#[case::no_id("all", AMS, r#"{"external_resource_id":"A B"}"#, 400, "21", "external_resource_id")]
#[case::no_json("all", AMS, "{", 400, "21", "JSON")]
#[case::no_token("other", AMS, "{}", 401, "15", "bearer token")]
#[case::no_content("maker", AMS, r#"{"external_resource_id":"cls-abc123def456"}"#, 403, "11", "content")]
#[case::unknown("all", AMS, r#"{"external_resource_id":"u"}"#, 404, "7", "no cluster u")]
#[case::being_made("all", AMS, r#"{"external_resource_id":"cls-abc123def456"}"#, 503, "9", "being made")]
#[case::named(
    "all",
    "/api/accounts_mgmt/v1/access_token",
    r#"{"external_resource_id":"cls-abc123def456"}"#,
    503,
    "9",
    "being made"
)]
#[case::nothing_there("all", "/api/accounts_mgmt/v1/accounts", "", 404, "7", "nothing is served")]
#[tokio::test]
async fn ams_clients_get_its_errors(
    #[case] name: &str,
    #[case] path: &str,
    #[case] body: &str,
    #[case] status: u16,
    #[case] number: &str,
    #[case] reason: &str,
) {
    let (_rig, _cluster, served) = Served::new(Limits::default()).await;
    let answer = served.send(name, "POST", path, body).await.expect(status);
    assert_eq!((&answer["kind"], &answer["id"]), (&json!("Error"), &json!(number)));
    assert_eq!(answer["href"], format!("/api/accounts_mgmt/v1/errors/{number}"));
    assert!(answer["reason"].as_str().unwrap().contains(reason) && answer["details"].is_array(), "{answer:#}");
}

#[tokio::test]
async fn the_document_is_served_to_all() {
    let (_rig, _cluster, served) = Served::new(Limits::default()).await;
    let document = exchange(served.address, "GET", "/v1/openapi", "", "").await.unwrap().expect(200);
    assert_eq!(document, credentials::http::openapi::document());
    assert!([DELETING, ELSEWHERE].iter().all(|other| !document.to_string().contains(other)));
}
