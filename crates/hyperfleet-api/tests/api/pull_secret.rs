//! Pull secrets: accepted inline, stored encrypted, returned only to a configured reader.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::rig::log::logged;
use crate::rig::stream::Stream;
use crate::rig::tokens::{Issuer, granted};
use crate::rig::{DONE, Kind, Rig, cluster, file, merged, path_of, report, unique};

rules! {
    shared: ;
    own: is_redacted_everywhere redacted_placeholders_keep_the_stored_secret malformed_ones_are_refused_without_a_value
        misplaced_ones_are_refused_without_a_value
        only_a_reader_reads_it readers_by_identity the_reader_token_adds_reading_and_nothing_else a_reference_is_returned_unchanged needs_a_key;
}

/// The values that must appear nowhere, in clear or in base64.
const PASSWORD: &str = "Zq7SesameOpenUp";

fn document() -> Value {
    let auth = STANDARD.encode(format!("user:{PASSWORD}"));
    json!({ "auths": { "quay.io": { "auth": auth, "email": "someone@example.com" } } })
}

#[expect(clippy::needless_pass_by_value, reason = "a literal at each call")]
fn with_secret(data: Value) -> Value {
    json!({ "spec": { "region": "eu", "pullSecret": { "data": data } } })
}

/// Settings with a key, and with a token for readers; the same for both databases.
fn settings(folder: &std::path::Path, more: &str) -> String {
    let key = file(folder, "key", [7; 32]);
    let token = file(folder, "token", "reader-token\n");
    format!(
        "pull_secret:\n  keys: [{{ id: one, file: '{}' }}]\n  reader_token_file: '{}'\n{more}",
        key.display(),
        token.display()
    )
}

#[track_caller]
fn assert_absent(what: &str, text: &[u8]) {
    let auth = STANDARD.encode(format!("user:{PASSWORD}"));
    let whole = STANDARD.encode(document().to_string());
    for secret in [PASSWORD, &auth, &whole[..40], &auth[..auth.len() - 4]] {
        let found = text.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{what} shows the secret");
    }
}

async fn reading(rig: &Rig, path: &str, authorization: &str) -> crate::rig::Answer {
    rig.send(&format!("GET {path}?include=pullSecret"), &[("authorization", authorization)], "").await
}

async fn is_redacted_everywhere(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::start(kind, &settings(folder.path(), "")).await;
    let mut stream = Stream::open(&rig, "/clusters", &[]).await;
    assert!(stream.until_bookmark().await.is_empty());
    let forms = [json!(document().to_string()), json!(STANDARD.encode(document().to_string())), document()];
    let mut placeholders = Vec::new();
    for data in forms {
        let created = rig.ask("POST /clusters", merged(cluster(&unique("c")), with_secret(data.clone()))).await.is(201);
        assert_absent("POST", &created.bytes);
        let created = created.body();
        let placeholder = created["spec"]["pullSecret"]["data"].clone();
        assert_eq!(placeholder["redacted"], true);
        assert!(placeholder["digest"].as_str().unwrap().starts_with("hmac-sha256:"), "{placeholder}");
        placeholders.push(placeholder);
        let path = path_of(&created);
        rig.report(&path, report("dns", 1, DONE)).await.is(201);
        for path in [
            path.clone(),
            format!("{path}/statuses"),
            format!("{path}/statuses/history"),
            "/clusters".to_owned(),
            "/resources".to_owned(),
            "/clusters?include=pullSecret".to_owned(),
            format!("{path}?fields=spec.pullSecret.data"),
            format!("{path}?fields=spec"),
        ] {
            assert_absent(&path, &rig.get(&path).await.bytes);
        }
        let patched = rig.ask(&format!("PATCH {path}"), json!({ "labels": { "a": "b" } })).await;
        assert_absent("PATCH", &patched.bytes);
        assert_eq!(
            reading(&rig, &path, "Bearer reader-token").await.is(200).body()["spec"]["pullSecret"]["data"],
            data
        );
        let deleted = rig.ask(&format!("DELETE {path}"), None).await;
        assert_absent("DELETE", &deleted.bytes);
    }
    assert!(
        placeholders.iter().all(|placeholder| *placeholder == placeholders[0]),
        "the same document has the same digest: {placeholders:?}"
    );
    for _ in 0..12 {
        let event = stream.next().await.unwrap();
        assert_absent("watch", event.to_string().as_bytes());
    }
    assert_absent("the log", logged().as_bytes());
    assert_absent("the database", &rig.database.bytes().await);
    assert_absent(
        "metrics",
        &rig.client.get(format!("http://{}/metrics", rig.metrics)).send().await.unwrap().bytes().await.unwrap(),
    );
    let page = rig.client.get(format!("http://{}/", rig.address)).send().await.unwrap();
    assert_absent("the page", &page.bytes().await.unwrap());
    for search in
        [format!("spec.pullSecret.data like '%{PASSWORD}%'"), format!("spec.pullSecret.data = '{}'", document())]
    {
        rig.list("/clusters", &[("search", &search)]).await.problem("400 VAL-005");
    }
}

async fn redacted_placeholders_keep_the_stored_secret(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::start(kind, &settings(folder.path(), "")).await;
    let created = rig.cluster(with_secret(document())).await;
    let (path, line) = (path_of(&created), format!("PATCH {}", path_of(&created)));
    let stored =
        async || reading(&rig, &path, "Bearer reader-token").await.is(200).body()["spec"]["pullSecret"]["data"].clone();
    // Read, modify, write.
    let mut spec = created["spec"].clone();
    assert_eq!(rig.ask(&line, json!({ "spec": spec })).await.is(200).body(), created, "nothing has changed");
    spec["region"] = json!("us");
    let patched = rig.ask(&line, json!({ "spec": spec })).await.is(200).body();
    assert_eq!((&patched["generation"], &patched["spec"]), (&json!(2), &spec));
    assert_eq!(stored().await, document());
    // The same secret in clear is no change.
    let same = json!({ "region": "us", "pullSecret": { "data": document() } });
    assert_eq!(rig.ask(&line, json!({ "spec": same })).await.is(200).body()["generation"], 2);
    // Another secret is a change.
    let other = json!({ "auths": { "example.com": { "auth": STANDARD.encode("u:p") } } });
    let patched = rig.ask(&line, json!({ "spec": { "pullSecret": { "data": other } } })).await.is(200).body();
    assert_eq!(patched["generation"], 3);
    assert_ne!(patched["spec"]["pullSecret"]["data"]["digest"], created["spec"]["pullSecret"]["data"]["digest"]);
    assert_eq!(stored().await, other);
    // A patch without it removes it, and then a placeholder has nothing to keep.
    rig.ask(&line, json!({ "spec": { "region": "eu" } })).await.is(200);
    assert_eq!(stored().await, Value::Null);
    let placeholder = created["spec"]["pullSecret"]["data"].clone();
    for line in [line, "POST /clusters".to_owned()] {
        let body = with_secret(placeholder.clone());
        let body = if line.starts_with("POST") { merged(cluster(&unique("c")), body) } else { body };
        rig.ask(&line, body).await.problem("400 VAL-000");
    }
}

async fn malformed_ones_are_refused_without_a_value(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::start(kind, &settings(folder.path(), "")).await;
    let created = rig.cluster(json!({})).await;
    for data in [
        json!(format!("{{\"auths\": {{\"quay.io\": {{\"auth\": \"{PASSWORD}\"}}}}}}")),
        json!(format!("{{\"auths\": {{\"quay.io\": \"{PASSWORD}\"}}}}")),
        json!(format!("{{\"auths\": {{}}, {PASSWORD}")),
        json!(STANDARD.encode(format!("{{{PASSWORD}"))),
        json!(PASSWORD),
        json!([PASSWORD]),
        json!({ "auths": PASSWORD }),
        json!({ "auths": { "quay.io": { "auth": 5 } } }),
        json!({ PASSWORD: {} }),
        json!(5),
        json!(true),
        json!(""),
    ] {
        let post = rig.ask("POST /clusters", merged(cluster(&unique("c")), with_secret(data.clone()))).await;
        let patch = rig.ask(&format!("PATCH {}", path_of(&created)), with_secret(data.clone())).await;
        for answer in [post, patch] {
            let problem = answer.problem("400 VAL-000");
            assert_eq!(problem["errors"][0]["field"], "spec.pullSecret.data", "{problem}");
            assert_absent("the problem", &answer.bytes);
        }
    }
    let placed = json!(format!("{{\n  \"auths\": {{\n    \"quay.io\": {PASSWORD}\n  }}\n}}"));
    let answer = rig.ask("POST /clusters", merged(cluster(&unique("c")), with_secret(placed))).await;
    assert!(answer.text().contains("line 3"), "{answer}");
    assert_absent("the problem", &answer.bytes);
    assert_absent("the log", logged().as_bytes());
}

/// The commonest mistake: the document in another member.
async fn misplaced_ones_are_refused_without_a_value(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::start(kind, &settings(folder.path(), "")).await;
    let path = path_of(&rig.cluster(json!({})).await);
    let (text, encoded) = (document().to_string(), STANDARD.encode(document().to_string()));
    for (spec, field) in [
        (json!({ "pullSecret": document() }), "spec.pullSecret"),
        (json!({ "pullSecret": text }), "spec.pullSecret"),
        (json!({ "pullSecret": encoded }), "spec.pullSecret"),
        (json!({ "pullSecret": [document()] }), "spec.pullSecret"),
        (json!({ "pullSecret": { "Data": document() } }), "spec.pullSecret"),
        (json!({ "pullSecret": { "value": text } }), "spec.pullSecret"),
        (json!({ "pullSecret": { ".dockerconfigjson": encoded } }), "spec.pullSecret"),
        (json!({ "pullSecret": { PASSWORD: {} } }), "spec.pullSecret"),
        (json!({ "pullSecret": { "secretName": encoded } }), "spec.pullSecret.secretName"),
        (json!({ "pull_secret": { "data": document() } }), "spec.pull_secret.data"),
        (json!({ "gcp": { "pullSecret": { "data": encoded } } }), "spec.gcp.pullSecret.data"),
        (json!({ "gcp": { "notes": ["x", text] } }), "spec.gcp.notes.1"),
    ] {
        let post = rig.ask("POST /clusters", merged(cluster(&unique("c")), json!({ "spec": spec.clone() }))).await;
        let patch = rig.ask(&format!("PATCH {path}"), json!({ "spec": spec.clone() })).await;
        for answer in [post, patch] {
            assert_eq!(answer.problem("400 VAL-000")["errors"][0]["field"], field, "{spec}");
            assert_absent("the problem", &answer.bytes);
        }
    }
    assert_absent("the log", logged().as_bytes());
    assert_absent("the database", &rig.database.bytes().await);
}

async fn only_a_reader_reads_it(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::start(kind, &settings(folder.path(), "")).await;
    let path = path_of(&rig.cluster(with_secret(document())).await);
    // A loopback connection alone gives no permission.
    for authorization in ["", "Bearer x", "Bearer reader-toke", "Bearer reader-tokenx", "Bearer ", "reader-token"] {
        let answer = reading(&rig, &path, authorization).await;
        answer.problem("403 AUZ-001");
    }
    let answer = reading(&rig, &path, "Bearer reader-token").await.is(200);
    assert_eq!(answer.body()["spec"]["pullSecret"]["data"], document());
    assert!(answer.header("cache-control").contains("no-store"), "{:?}", answer.headers);
    // It must be requested.
    let plain = rig.send(&format!("GET {path}"), &[("authorization", "Bearer reader-token")], "").await;
    assert_absent("a plain GET", &plain.bytes);
    for bad in ["pullsecret", "x", "pullSecret,x", "*"] {
        rig.list(&path, &[("include", bad)]).await.is(400).at("include", "enum");
    }
    let without = path_of(&rig.cluster(json!({})).await);
    reading(&rig, &without, "Bearer reader-token").await.is(200);
}

async fn readers_by_identity(kind: Kind) {
    let (folder, issuer) = (tempfile::tempdir().unwrap(), Issuer::start("k").await);
    let key = file(folder.path(), "key", [7; 32]);
    let reads =
        issuer.grant("adapter@example.com", "name: adapter, kinds: [Cluster], verbs: [get], reads_pull_secrets: true");
    let writes = issuer.grant("jane@example.com", "kinds: [Cluster], verbs: ['*']");
    let yaml = format!("pull_secret:\n  keys: [{{ id: one, file: '{}' }}]\n", key.display());
    let rig = Rig::start(kind, &(yaml + &granted(&[issuer.settings("")], &[reads, writes]))).await;
    let (reader, other) = (issuer.bearer(json!({ "email": "adapter@example.com" })), issuer.bearer(json!({})));
    let body = merged(cluster("one"), with_secret(document())).to_string();
    let created = rig.send("POST /clusters", &[("authorization", &other)], body).await.is(201).body();
    let path = path_of(&created);
    reading(&rig, &path, &other).await.problem("403 AUZ-001");
    reading(&rig, &path, "").await.is(401);
    assert_eq!(reading(&rig, &path, &reader).await.is(200).body()["spec"]["pullSecret"]["data"], document());
    // A token that is not of an issuer is refused.
    reading(&rig, &path, "Bearer reader-token").await.is(401);
}

async fn the_reader_token_adds_reading_and_nothing_else(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::start(kind, &settings(folder.path(), "")).await;
    let path = path_of(&rig.cluster(with_secret(document())).await);
    let token = ("authorization", "Bearer reader-token");
    for path in ["/clusters?include=pullSecret", "/clusters?watch=false&include=pullSecret", "/resources"] {
        assert_absent(path, &rig.send(&format!("GET {path}"), &[token], "").await.bytes);
    }
    let origin = ("origin", "http://evil.example.com");
    rig.send(&format!("DELETE {path}"), &[token, origin], "").await.problem("403 AUZ-001");
}

async fn a_reference_is_returned_unchanged(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let secret = json!({ "secretRef": { "namespace": "n", "name": "s", "key": ".dockerconfigjson" } });
    let created = rig.cluster(json!({ "spec": { "pullSecret": secret } })).await;
    assert_eq!(created["spec"]["pullSecret"], secret);
}

async fn needs_a_key(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let answer = rig.ask("POST /clusters", merged(cluster("one"), with_secret(document()))).await;
    if kind == Kind::Sqlite {
        // The embedded database has a key of its own, in a file that only its user may read.
        answer.is(201);
    } else {
        answer.problem("400 VAL-000");
        assert!(answer.text().contains("pull_secret.keys"), "{answer}");
    }
}
