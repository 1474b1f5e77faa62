//! Digests of pull secrets: equal ones tell of equal content, so they are for callers that may read it.

use serde_json::{Value, json};

use crate::rig::stream::Stream;
use crate::rig::tokens::{Issuer, granted};
use crate::rig::{Answer, DONE, Kind, Rig, cluster, file, merged, path_of, report, unique};

rules! {
    shared: ;
    own: digests_are_for_readers_of_pull_secrets a_caller_that_does_not_see_the_digest_keeps_the_content;
}

const STORED: &str = "hmac-sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

struct Fleet {
    rig: Rig,
    issuer: Issuer,
    /// The path of a cluster with a pull secret, about which the adapter has reported.
    path: String,
    digest: String,
    _folder: tempfile::TempDir,
}

impl Fleet {
    async fn new(kind: Kind) -> Self {
        let (folder, issuer) = (tempfile::tempdir().unwrap(), Issuer::start("k").await);
        let all = "kinds: ['*'], verbs: ['*'], reports_as: ['*'], sweeps: true, force_deletes: true, chooses_destination: true";
        let grants = [issuer.grant("reader", &format!("{all}, reads_pull_secrets: true")), issuer.grant("writer", all)];
        let key = file(folder.path(), "key", [7; 32]);
        let keys = format!("pull_secret:\n  keys: [{{ id: one, file: '{}' }}]\n", key.display());
        let rig = Rig::start(kind, &(keys + &granted(&[issuer.settings(", identity_claim: sub")], &grants))).await;
        let mut fleet = Self { rig, issuer, path: String::new(), digest: String::new(), _folder: folder };
        let created = fleet.as_of("reader", "POST /clusters", with_secret()).await.is(201).body();
        fleet.path = path_of(&created);
        fleet.digest = created["spec"]["pullSecret"]["data"]["digest"].as_str().unwrap().to_owned();
        let data = json!({ "digest": STORED, "message": format!("stored {STORED}"), "copies": [{ "digest": STORED }] });
        let report = merged(report("pullsecret", 1, DONE), json!({ "data": data }));
        fleet.as_of("reader", &format!("PUT {}/statuses", fleet.path), report).await.is(201);
        fleet
    }

    fn token(&self, subject: &str) -> String {
        self.issuer.bearer(json!({ "sub": subject }))
    }

    async fn as_of(&self, subject: &str, line: &str, body: Value) -> Answer {
        self.rig.send(line, &[("authorization", &self.token(subject))], body.to_string()).await
    }

    fn shows(&self, text: &str) -> bool {
        [&*self.digest, STORED].iter().any(|digest| text.contains(digest.strip_prefix("hmac-sha256:").unwrap()))
    }
}

fn with_secret() -> Value {
    let mut body = cluster(&unique("c"));
    body["spec"]["pullSecret"] = json!({ "data": { "auths": { "quay.io": { "auth": "dTpwYXNzd29yZA==" } } } });
    body
}

async fn digests_are_for_readers_of_pull_secrets(kind: Kind) {
    let fleet = Fleet::new(kind).await;
    let path = &fleet.path;
    let lines = [
        format!("GET {path}"),
        format!("GET {path}?fields=spec"),
        format!("GET {path}/statuses"),
        "GET /clusters".to_owned(),
        "GET /resources".to_owned(),
        "GET /clusters?search=name!='x'".to_owned(),
        format!("PATCH {path}"),
        format!("POST {path}/statuses"),
    ];
    for line in &lines {
        let body = if line.starts_with("PATCH") {
            json!({ "labels": { "n": unique("n") } })
        } else {
            merged(report("other", 1, DONE), json!({ "data": { "digest": STORED } }))
        };
        let (reader, writer) =
            (fleet.as_of("reader", line, body.clone()).await, fleet.as_of("writer", line, body).await);
        assert!(reader.status < 300 && fleet.shows(&reader.text()), "{reader}");
        assert!(writer.status < 300 && !fleet.shows(&writer.text()), "{writer}");
        drop(writer.body());
    }
    let read = fleet.as_of("writer", &format!("GET {path}"), json!({})).await.body();
    assert_eq!(read["spec"]["pullSecret"]["data"], json!({ "redacted": true, "digest": null }));
    assert_eq!(read["status"]["adapters"]["pullsecret"]["data"]["message"], "stored hmac-sha256:hidden");
    for (subject, sees) in [("reader", true), ("writer", false)] {
        let token = fleet.token(subject);
        let mut stream = Stream::open_as(&fleet.rig, &[("authorization", &token)], "/clusters", &[]).await;
        assert_eq!(fleet.shows(&stream.next().await.unwrap().to_string()), sees);
        let page = fleet.rig.client.get(format!("http://{}/ui{path}", fleet.rig.address));
        let page = page.header("authorization", &token).send().await.unwrap();
        assert_eq!(page.status(), 200);
        assert_eq!(fleet.shows(&page.text().await.unwrap()), sees);
        // No search finds what is hidden, nor finds it out letter by letter.
        for search in [
            format!("spec.pullSecret.data.digest = '{}'", fleet.digest),
            "name = 'x' or not spec.pullSecret.data.digest like 'hmac-sha256:0%'".to_owned(),
        ] {
            for list in ["/clusters", "/resources"] {
                let query = form_urlencoded::Serializer::new(String::new()).append_pair("search", &search).finish();
                let answer = fleet.as_of(subject, &format!("GET {list}?{query}"), json!({})).await;
                answer.problem("400 VAL-005");
            }
        }
    }
}

async fn a_caller_that_does_not_see_the_digest_keeps_the_content(kind: Kind) {
    let fleet = Fleet::new(kind).await;
    let line = format!("GET {}", fleet.path);
    let mut spec = fleet.as_of("writer", &line, json!({})).await.body()["spec"].take();
    spec["note"] = json!("changed");
    fleet.as_of("writer", &format!("PATCH {}", fleet.path), json!({ "spec": spec })).await.is(200);
    let read = fleet.as_of("reader", &format!("{line}?include=pullSecret"), json!({})).await.is(200).body();
    assert_eq!((&read["spec"]["note"], &read["generation"]), (&json!("changed"), &json!(2)));
    assert!(read["spec"]["pullSecret"]["data"]["auths"]["quay.io"].is_object());
    let read = fleet.as_of("reader", &line, json!({})).await.body();
    assert_eq!(read["spec"]["pullSecret"]["data"]["digest"], json!(fleet.digest));
}
