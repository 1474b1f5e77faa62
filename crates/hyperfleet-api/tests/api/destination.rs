//! The destination of a pull secret: who may choose it for content that the request does not give.

use serde_json::{Value, json};

use crate::rig::tokens::{Issuer, granted};
use crate::rig::{Answer, Kind, Rig, file, path_of};

rules! {
    shared: ;
    own: a_writer_cannot_divert_a_pull_secret stored_content_can_be_moved_by_a_permitted_caller
        references_need_the_permission guessed_content_is_not_recognised;
}

const READER: &str = "kinds: [Cluster], verbs: [get], reads_pull_secrets: true";
const WRITER: &str = "kinds: [Cluster], verbs: ['*']";
const MOVER: &str = "kinds: [Cluster], verbs: ['*'], chooses_destination: true";
const OWNER: &str = "kinds: [Cluster], verbs: ['*'], reads_pull_secrets: true";

struct Fleet {
    rig: Rig,
    issuer: Issuer,
    _folder: tempfile::TempDir,
}

impl Fleet {
    async fn new(kind: Kind) -> Self {
        let (folder, issuer) = (tempfile::tempdir().unwrap(), Issuer::start("k").await);
        let grants = [("reader", READER), ("writer", WRITER), ("mover", MOVER), ("owner", OWNER)];
        let grants: Vec<String> = grants.iter().map(|(subject, members)| issuer.grant(subject, members)).collect();
        let key = file(folder.path(), "key", [7; 32]);
        let keys = format!("pull_secret:\n  keys: [{{ id: one, file: '{}' }}]\n", key.display());
        let rig = Rig::start(kind, &(keys + &granted(&[issuer.settings(", identity_claim: sub")], &grants))).await;
        Self { rig, issuer, _folder: folder }
    }

    async fn as_of(&self, subject: &str, line: &str, body: Value) -> Answer {
        let token = self.issuer.bearer(json!({ "sub": subject }));
        self.rig.send(line, &[("authorization", &token)], body.to_string()).await
    }

    async fn patch(&self, subject: &str, path: &str, spec: &Value) -> Answer {
        self.as_of(subject, &format!("PATCH {path}"), json!({ "spec": spec })).await
    }

    async fn content(&self, path: &str) -> Value {
        let read = self.as_of("reader", &format!("GET {path}?include=pullSecret"), json!({})).await.is(200).body();
        read["spec"]["pullSecret"]["data"].clone()
    }
}

fn document(password: &str) -> Value {
    use base64::Engine as _;
    let auth = base64::engine::general_purpose::STANDARD.encode(format!("user:{password}"));
    json!({ "auths": { "quay.io": { "auth": auth } } })
}

/// A cluster of a fleet, with everything from which the destination follows.
fn body(name: &str, data: &Value) -> Value {
    json!({ "kind": "Cluster", "name": name, "spec": {
        "provider": "gcp", "region": "europe-west3", "gcp": { "projectId": "tenant-project", "network": "n" },
        "pullSecret": { "data": data, "secretName": "one-pull-secret" },
    } })
}

/// Steps of the attack in the review: read the redacted spec, change where it goes, send the placeholder back.
async fn a_writer_cannot_divert_a_pull_secret(kind: Kind) {
    let fleet = Fleet::new(kind).await;
    let created = fleet.as_of("owner", "POST /clusters", body("one", &document("secret"))).await.is(201).body();
    let path = path_of(&created);
    let read = fleet.as_of("writer", &format!("GET {path}"), json!({})).await.is(200).body()["spec"].clone();
    for (pointer, value) in [
        ("/gcp/projectId", json!("attacker-project")),
        ("/gcp", json!({ "projectId": "attacker-project" })),
        ("/gcp", json!(null)),
        ("/region", json!("us-east1")),
        ("/provider", json!("aws")),
        ("/pullSecret/secretName", json!("attackers-name")),
        ("/pullSecret", json!({ "data": { "redacted": true }, "k8sSecretName": "x", "secretName": "one-pull-secret" })),
        ("/pullSecret", json!({ "data": { "redacted": true }, "replicationPolicy": "us-east1" })),
    ] {
        let mut spec = read.clone();
        *spec.pointer_mut(pointer).unwrap() = value;
        let refused = fleet.patch("writer", &path, &spec).await.problem("403 AUZ-001");
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains("chooses_destination") && !detail.contains("attacker"), "{detail}");
    }
    // Whatever says nothing about the destination may change, and own content may go anywhere.
    let mut spec = read.clone();
    spec["gcp"]["network"] = json!("m");
    assert_eq!(fleet.patch("writer", &path, &spec).await.is(200).body()["generation"], 2);
    assert_eq!(fleet.content(&path).await, document("secret"));
    spec["gcp"]["projectId"] = json!("attacker-project");
    spec["pullSecret"]["data"] = document("own");
    fleet.patch("writer", &path, &spec).await.is(200);
    assert_eq!(fleet.content(&path).await, document("own"));
    // In two steps the content is gone before the destination changes.
    spec["pullSecret"] = json!(null);
    fleet.patch("writer", &path, &spec).await.is(200);
    spec["pullSecret"] = read["pullSecret"].clone();
    fleet.patch("writer", &path, &spec).await.problem("400 VAL-000");
}

async fn stored_content_can_be_moved_by_a_permitted_caller(kind: Kind) {
    let fleet = Fleet::new(kind).await;
    let created = fleet.as_of("owner", "POST /clusters", body("one", &document("secret"))).await.is(201).body();
    let path = path_of(&created);
    let mut spec = created["spec"].clone();
    // The mover may not read the content, and so does not see its digest.
    spec["pullSecret"]["data"]["digest"] = json!(null);
    for project in ["second-project", "third-project"] {
        spec["gcp"]["projectId"] = json!(project);
        let moved = fleet.patch("mover", &path, &spec).await.is(200).body();
        assert_eq!(moved["spec"], spec);
        assert_eq!(fleet.content(&path).await, document("secret"), "sealed anew for {project}");
    }
    // Giving the content again needs no permission.
    spec["gcp"]["projectId"] = json!("fourth-project");
    spec["pullSecret"]["data"] = document("secret");
    fleet.patch("writer", &path, &spec).await.is(200);
    assert_eq!(fleet.content(&path).await, document("secret"));
}

/// The content behind a reference is never the caller's own.
async fn references_need_the_permission(kind: Kind) {
    let fleet = Fleet::new(kind).await;
    let reference = json!({ "secretRef": { "namespace": "tenants", "name": "victims", "key": "k" } });
    let mut of_victim = body("one", &Value::Null);
    of_victim["spec"]["pullSecret"] = reference.clone();
    fleet.as_of("writer", "POST /clusters", of_victim.clone()).await.problem("403 AUZ-001");
    let created = fleet.as_of("mover", "POST /clusters", of_victim).await.is(201).body();
    let path = path_of(&created);
    let mut spec = created["spec"].clone();
    fleet.patch("writer", &path, &spec).await.is(200);
    spec["gcp"]["projectId"] = json!("attacker-project");
    fleet.patch("writer", &path, &spec).await.problem("403 AUZ-001");
    // Not by removing it first, and not behind content of one's own.
    spec["pullSecret"] = json!({ "data": document("own") });
    fleet.patch("writer", &path, &spec).await.is(200);
    spec["pullSecret"] = json!({ "data": document("own"), "secretRef": reference["secretRef"] });
    fleet.patch("writer", &path, &spec).await.problem("403 AUZ-001");
    spec["pullSecret"] = reference;
    fleet.patch("writer", &path, &spec).await.problem("403 AUZ-001");
    fleet.patch("mover", &path, &spec).await.is(200);
}

/// A caller that may not read a pull secret learns nothing from the generation when it sends a guess.
async fn guessed_content_is_not_recognised(kind: Kind) {
    let fleet = Fleet::new(kind).await;
    let created = fleet.as_of("owner", "POST /clusters", body("one", &document("secret"))).await.is(201).body();
    let path = path_of(&created);
    let mut spec = created["spec"].clone();
    for (guess, generation) in [("wrong", 2), ("secret", 3), ("secret", 4)] {
        spec["pullSecret"]["data"] = document(guess);
        assert_eq!(fleet.patch("writer", &path, &spec).await.is(200).body()["generation"], generation);
    }
    // Who may read it sees no change in the same content.
    assert_eq!(fleet.patch("owner", &path, &spec).await.is(200).body()["generation"], 4);
}
