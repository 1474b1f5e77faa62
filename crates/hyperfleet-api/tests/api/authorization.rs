//! Grants: what an identity may do, and the refusal of everything else.

use serde_json::{Value, json};

use crate::rig::log::logged;
use crate::rig::tokens::{Issuer, granted};
use crate::rig::{Answer, DONE, Kind, Rig, cluster, file, merged, path_of, report, unique};

rules! {
    shared: ;
    own: nothing_is_allowed_without_a_grant a_sentinel_reads_and_an_adapter_reports adapters_are_bound_to_their_reporters
        an_identity_of_another_issuer_has_no_grant kinds_are_kept_apart paths_without_a_kind_need_every_kind
        denied_calls_and_read_secrets_are_audited;
}

/// A server with an identity that may do everything, and with these grants.
struct Fleet {
    rig: Rig,
    issuer: Issuer,
    /// The path of a cluster with a pull secret.
    path: String,
    _folder: tempfile::TempDir,
}

impl Fleet {
    async fn new(kind: Kind, grants: &[(&str, &str)]) -> Self {
        let (folder, issuer) = (tempfile::tempdir().unwrap(), Issuer::start("k").await);
        let everything =
            "kinds: ['*'], verbs: ['*'], reports_as: ['*'], force_deletes: true, chooses_destination: true";
        let root = [("root", everything)];
        let grants = root.iter().chain(grants).map(|(subject, members)| issuer.grant(subject, members));
        let key = file(folder.path(), "key", [7; 32]);
        let keys = format!("pull_secret:\n  keys: [{{ id: one, file: '{}' }}]\n", key.display());
        let issuers = [issuer.settings(", identity_claim: sub")];
        let rig = Rig::start(kind, &(keys + &granted(&issuers, &grants.collect::<Vec<_>>()))).await;
        let mut fleet = Self { rig, issuer, path: String::new(), _folder: folder };
        let mut body = cluster("one");
        body["spec"]["pullSecret"] = json!({ "data": { "auths": { "quay.io": { "auth": "dTpwYXNzd29yZA==" } } } });
        fleet.path = path_of(&fleet.as_of("root", "POST /clusters", body).await.is(201).body());
        fleet
    }

    async fn as_of(&self, subject: &str, line: &str, body: Value) -> Answer {
        let token = self.issuer.bearer(json!({ "sub": subject }));
        self.rig.send(line, &[("authorization", &token)], body.to_string()).await
    }

    /// Every kind of request about clusters, with the permission that it needs.
    fn requests(&self) -> Vec<(String, Value, &'static str)> {
        let path = &self.path;
        let page = format!("/ui{path}");
        assert!(page.starts_with("/ui/clusters/"));
        vec![
            ("GET /clusters".to_owned(), json!({}), "list on Cluster"),
            ("GET /clusters?search=name='one'".to_owned(), json!({}), "list on Cluster"),
            ("GET /resources?kind=Cluster".to_owned(), json!({}), "list on Cluster"),
            ("GET /resources".to_owned(), json!({}), "list on every kind"),
            ("GET /clusters?watch=true".to_owned(), json!({}), "watch on Cluster"),
            (format!("GET {path}"), json!({}), "get on Cluster"),
            ("GET /clusters/unknown".to_owned(), json!({}), "get on Cluster"),
            (format!("GET {path}?include=pullSecret"), json!({}), "get on Cluster"),
            (format!("GET {path}/statuses"), json!({}), "get on Cluster"),
            (format!("GET {path}/statuses/history"), json!({}), "get on Cluster"),
            (format!("GET {path}/nodepools"), json!({}), "list on NodePool"),
            ("POST /clusters".to_owned(), cluster("two"), "create on Cluster"),
            ("POST /resources".to_owned(), cluster("two"), "create on Cluster"),
            (format!("PATCH {path}"), json!({ "labels": { "a": "b" } }), "update on Cluster"),
            (format!("PUT {path}/statuses"), report("placement", 1, DONE), "reports_as on Cluster"),
            (format!("POST {path}/statuses"), report("placement", 1, DONE), "reports_as on Cluster"),
            (format!("DELETE {path}"), json!({}), "delete on Cluster"),
            (format!("POST {path}/force-delete"), json!({ "reason": "x" }), "force_deletes on Cluster"),
        ]
    }
}

async fn nothing_is_allowed_without_a_grant(kind: Kind) {
    let fleet = Fleet::new(kind, &[]).await;
    for (line, body, missing) in fleet.requests() {
        let answer = fleet.as_of("mallory", &line, body).await;
        answer.refuses("403 AUZ-001", &format!("no grant of the caller allows {missing}"));
    }
    let token = fleet.issuer.bearer(json!({ "sub": "mallory" }));
    for page in ["/".to_owned(), format!("/ui{}", fleet.path)] {
        let request = fleet.rig.client.get(format!("http://{}{page}", fleet.rig.address));
        assert_eq!(request.header("authorization", &token).send().await.unwrap().status(), 403, "{page}");
    }
    // Nothing has happened meanwhile.
    let untouched = fleet.as_of("root", &format!("GET {}", fleet.path), json!({})).await.is(200).body();
    assert_eq!((&untouched["generation"], &untouched["deleted_time"]), (&json!(1), &Value::Null));
    assert_eq!(untouched["status"]["adapters"], json!({}));
}

async fn a_sentinel_reads_and_an_adapter_reports(kind: Kind) {
    let sentinel = ("sentinel", "kinds: [Cluster], verbs: [get, list, watch]");
    let adapter = ("adapter", "kinds: [Cluster], verbs: [get], reports_as: [pullsecret], reads_pull_secrets: true");
    let fleet = Fleet::new(kind, &[sentinel, adapter]).await;
    let path = fleet.path.clone();
    for (line, body, missing) in fleet.requests() {
        // A stream that is allowed does not end.
        let reads = line.starts_with("GET") && missing.ends_with("on Cluster");
        if missing.starts_with("watch") {
            continue;
        }
        let answer = fleet.as_of("sentinel", &line, body.clone()).await;
        if line.contains("include=pullSecret") {
            answer.refuses("403 AUZ-001", "no grant of the caller allows reads_pull_secrets on Cluster");
        } else if reads && !line.contains("unknown") {
            answer.is(200);
        } else if !line.contains("unknown") {
            answer.refuses("403 AUZ-001", &format!("no grant of the caller allows {missing}"));
        }
        if missing.starts_with("list") || !line.starts_with("GET") {
            let placement = "no grant of the caller allows reports_as placement on Cluster";
            let answer = fleet.as_of("adapter", &line, body).await.problem("403 AUZ-001");
            assert!(!line.contains("statuses") || answer["detail"] == placement, "{line} {answer}");
        }
    }
    fleet.as_of("adapter", &format!("PUT {path}/statuses"), report("pullsecret", 1, DONE)).await.is(201);
    let read = fleet.as_of("adapter", &format!("GET {path}?include=pullSecret"), json!({})).await.is(200).body();
    assert!(read["spec"]["pullSecret"]["data"]["auths"]["quay.io"].is_object());
}

/// Placement reports choose the namespace that a pull secret goes to.
async fn adapters_are_bound_to_their_reporters(kind: Kind) {
    let one = ("one", "kinds: [Cluster], reports_as: [dns, validation]");
    let fleet = Fleet::new(kind, &[one]).await;
    let line = format!("PUT {}/statuses", fleet.path);
    for adapter in ["dns", "validation"] {
        fleet.as_of("one", &line, report(adapter, 1, DONE)).await.is(201);
    }
    for adapter in ["placement", "DNS", "dns ", " dns", "dns\u{0}x", "dn", "*", "dns.validation"] {
        let answer = fleet.as_of("one", &line, report(adapter, 1, DONE)).await;
        assert!([400, 403].contains(&answer.status), "{adapter:?} {answer}");
    }
    let twice = line.replace("PUT", "POST");
    fleet.as_of("one", &twice, report("placement", 1, DONE)).await.problem("403 AUZ-001");
    // Two members of one name: the last one counts, for the permission and for the store.
    let body = report("dns", 1, DONE).to_string().replacen('{', r#"{"adapter": "dns", "adapter": "placement", "#, 1);
    let token = fleet.issuer.bearer(json!({ "sub": "one" }));
    fleet.rig.send(&line, &[("authorization", &token)], body).await;
    let found = fleet.as_of("root", &format!("GET {}", fleet.path), json!({})).await.is(200).body();
    let reported: Vec<&String> = found["status"]["adapters"].as_object().unwrap().keys().collect();
    assert_eq!(reported, ["dns", "validation"]);
}

async fn an_identity_of_another_issuer_has_no_grant(kind: Kind) {
    let (one, two) = (Issuer::start("k").await, Issuer::start("k").await);
    let issuers = [one.settings(", identity_claim: sub"), two.settings(", identity_claim: sub")];
    let grants = [one.grant("jane", "kinds: ['*'], verbs: [list]"), two.grant("joe", "kinds: ['*'], verbs: [list]")];
    let rig = Rig::start(kind, &granted(&issuers, &grants)).await;
    for (issuer, subject, status) in [(&one, "jane", 200), (&two, "jane", 403), (&one, "joe", 403), (&two, "joe", 200)]
    {
        let token = issuer.bearer(json!({ "sub": subject }));
        rig.send("GET /clusters", &[("authorization", &token)], "").await.is(status);
    }
}

async fn kinds_are_kept_apart(kind: Kind) {
    let fleet = Fleet::new(kind, &[("pools", "kinds: [NodePool], verbs: ['*'], reports_as: ['*']")]).await;
    let below = format!("{}/nodepools", fleet.path);
    let body = json!({ "kind": "NodePool", "name": "workers", "spec": {} });
    let created = fleet.as_of("pools", &format!("POST {below}"), body).await.is(201).body();
    fleet.as_of("pools", &format!("GET {below}"), json!({})).await.is(200);
    fleet.as_of("pools", &format!("GET {}", path_of(&created)), json!({})).await.is(200);
    // Its id as one of another kind, and another kind's id as its own.
    let id = created["id"].as_str().unwrap();
    fleet.as_of("pools", &format!("GET /clusters/{id}"), json!({})).await.problem("403 AUZ-001");
    let cluster_id = fleet.path.trim_start_matches("/clusters/");
    for line in [format!("GET /nodepools/{cluster_id}"), format!("DELETE /nodepools/{cluster_id}")] {
        fleet.as_of("pools", &line, json!({})).await.is(404);
    }
    let body = json!({ "kind": "Cluster", "name": "two", "spec": {} });
    fleet.as_of("pools", &format!("POST {below}"), body).await.is(400);
}

async fn paths_without_a_kind_need_every_kind(kind: Kind) {
    let fleet =
        Fleet::new(kind, &[("clusters", "kinds: [Cluster], verbs: ['*'], reports_as: ['*'], force_deletes: true")])
            .await;
    let id = fleet.path.trim_start_matches("/clusters/");
    let path = format!("/resources/{id}");
    for (line, body) in [
        (format!("GET {path}"), json!({})),
        (format!("GET {path}/statuses"), json!({})),
        (format!("PATCH {path}"), json!({ "labels": { "a": "b" } })),
        (format!("PUT {path}/statuses"), report("dns", 1, DONE)),
        (format!("DELETE {path}"), json!({})),
        (format!("POST {path}/force-delete"), json!({ "reason": "x" })),
    ] {
        fleet.as_of("clusters", &line, body.clone()).await.problem("403 AUZ-001");
        let allowed = fleet.as_of("root", &line, body).await;
        assert!(allowed.status < 300, "{line} {allowed}");
    }
    fleet.as_of("clusters", "POST /resources", cluster(&unique("c"))).await.is(201);
    let channel = json!({ "kind": "Channel", "name": "stable", "spec": {} });
    fleet.as_of("clusters", "POST /resources", channel).await.problem("403 AUZ-001");
}

async fn denied_calls_and_read_secrets_are_audited(kind: Kind) {
    let adapter = ("auditor-adapter", "name: adapters, kinds: [Cluster], verbs: [get], reads_pull_secrets: true");
    let fleet = Fleet::new(kind, &[adapter]).await;
    let line = format!("GET {}?include=pullSecret", fleet.path);
    let stranger = unique("stranger");
    let read = fleet.as_of("auditor-adapter", &line, json!({})).await.is(200);
    let denied = fleet.as_of(&stranger, &line, json!({})).await;
    let id = fleet.path.trim_start_matches("/clusters/");
    let incarnation = read.body()["created_time"].as_str().unwrap().to_owned();
    let log = logged();
    let record = |request: &str| {
        let of_request = |line: &&str| line.contains(request) && line.contains("remote");
        log.lines().find(of_request).unwrap_or_else(|| panic!("no record of {request}")).to_owned()
    };
    let common = [id, "Cluster", "127.0.0.1", &incarnation, "generation", &fleet.issuer.url];
    let of_read = record(read.header("x-request-id"));
    for part in common.iter().chain(&["read-pull-secret", "auditor-adapter", "adapters"]) {
        assert!(of_read.contains(part), "{part} is missing in {of_read}");
    }
    let of_denied = record(denied.header("x-request-id"));
    for part in common.iter().chain(&["deny", &*stranger, "get on Cluster"]) {
        assert!(of_denied.contains(part), "{part} is missing in {of_denied}");
    }
    let written = cluster(&unique("c"));
    let written = merged(
        written,
        json!({ "spec": { "pullSecret": { "data": "{\"auths\":{\"quay.io\":{\"auth\":\"dTpwYXNzd29yZA==\"}}}" } } }),
    );
    let created = fleet.as_of("root", "POST /clusters", written).await.is(201);
    let log = logged();
    let of_write = log.lines().find(|line| line.contains(created.header("x-request-id")) && line.contains("remote"));
    for part in ["write-pull-secret", "root", created.body()["id"].as_str().unwrap()] {
        assert!(of_write.unwrap().contains(part), "{part} is missing in {of_write:?}");
    }
    let token = fleet.issuer.bearer(json!({ "sub": "auditor-adapter" }));
    assert!(!log.contains("dTpwYXNzd29yZA") && !log.contains(&token[20..60]));
}
