//! Injected SQL, markup and log lines stay text.

use serde_json::{Value, json};

use crate::rig::log::logged;
use crate::rig::raw::{exchange, head};
use crate::rig::{BASE, DONE, Rig, merged, path_of, report, unique};

rules! {
    shared: texts_are_returned_unchanged log_lines headers html_pages;
    own: ;
}

const HOSTILE: &[&str] = &[
    "'; DROP TABLE resources; --",
    "\"; DROP TABLE resources; --",
    "x') or (1=1",
    "$1",
    "?1",
    ":a",
    "{}",
    "%s%n",
    "\\",
    "\\'",
    "''",
    "<script>alert(1)</script>",
    "${jndi:ldap://x}",
    "../../etc/passwd",
    "\u{1b}[31mred",
    "a\r\nSet-Cookie: x=1",
    "🦀\u{202e}",
];

async fn texts_are_returned_unchanged(rig: &Rig) {
    for text in HOSTILE {
        let spec = json!({ "value": text, *text: "key" });
        let created = rig.cluster(json!({ "spec": spec })).await;
        let path = path_of(&created);
        assert_eq!(rig.get(&path).await.is(200).body()["spec"], spec);
        let conditions = json!([
            { "type": "Available", "status": "False", "reason": text, "message": text },
            { "type": "Applied", "status": "True" }, { "type": "Health", "status": "True" },
            { "type": text, "status": "True" },
        ]);
        let body = merged(report("dns", 1, ""), json!({ "conditions": conditions, "data": spec }));
        let stored = rig.report(&path, body).await.is(201).body();
        assert_eq!((&stored["data"], &stored["conditions"][3]["type"]), (&spec, &json!(text)));
        let read = rig.get(&path).await.is(200).body();
        let dns = read["status"]["conditions"].as_array().unwrap().last().unwrap().clone();
        assert_eq!((&dns["reason"], &dns["message"]), (&json!(text), &json!(text)));
        let history = rig.get(&format!("{path}/statuses/history")).await.is(200).body();
        assert!(history["items"].as_array().unwrap().iter().any(|item| item["message"] == *text));
        // As a search it finds only the resource that has it.
        if !text.contains(['\'', '"', '\\', '\r', '\u{1b}']) {
            let search = format!("spec.value = '{text}' and name = '{}'", created["name"].as_str().unwrap());
            assert_eq!(rig.list("/clusters", &[("search", &search)]).await.is(200).body()["total"], 1, "{search}");
        }
    }
}

async fn log_lines(rig: &Rig) {
    let mark = unique("inject");
    let path = path_of(&rig.cluster(json!({})).await);
    let fake = format!("{mark}\r\n{{\"level\":\"fake\",\"message\":\"{mark}\"}}\u{1b}[2J");
    rig.list("/clusters", &[("search", &fake)]).await.is(400);
    rig.list("/clusters", &[("order", &fake)]).await.is(400);
    rig.list("/clusters", &[("fields", &fake)]).await.is(400);
    rig.get(&format!("/clusters/{mark}%0d%0a%7b%22level%22%3a%22fake%22%7d%1b")).await.is(404);
    rig.report(&path, report(&fake, 1, DONE)).await.is(201);
    rig.ask("POST /clusters", json!({ "kind": fake, "name": fake, "spec": {} })).await.is(400);
    rig.ask(&format!("PATCH {path}"), json!({ fake.clone(): 1 })).await.is(400);
    let raw = format!("traceparent: {mark}\u{9}\u{1b}[31m{{\"level\":\"fake\"}}\r\nUser-Agent: {mark}\r\n");
    exchange(rig.address, &head(&format!("GET {BASE}/clusters/{mark}"), raw.as_bytes())).await;
    let logged = logged();
    let received = logged.lines().filter(|line| line.contains(&mark)).count();
    assert!(received > 0, "the path at least is logged");
    for line in logged.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_ne!(line["level"], "fake", "{line}");
    }
    assert!(!logged.contains('\u{1b}'));
}

async fn headers(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    for more in [
        &b"Authorization: Bearer \xff\xfe\r\n"[..],
        b"If-Match: \xff\r\n",
        b"Accept-Encoding: gzip, \xff\r\n",
        b"X-Request-ID: '; DROP\r\n",
        b"traceparent: \xf0\x9f\xa6\x80\r\n",
        b"Content-Type: text/html; \x80\r\n",
        b"Cookie: a=b\r\nCookie: c\r\n",
        b"Expect: nonsense\r\n",
        b"X-HTTP-Method-Override: DELETE\r\n",
        b"Accept: */*;q=9\r\n",
    ] {
        let answer = exchange(rig.address, &head(&format!("GET {BASE}{path}"), more)).await;
        assert!(answer.starts_with("HTTP/1.1 2") || answer.starts_with("HTTP/1.1 4"), "{answer}");
        let lower = answer.to_lowercase();
        for inside in ["sqlx", "panicked", "sqlite", "postgres"] {
            assert!(!lower.contains(inside), "{answer}");
        }
    }
    rig.get(&path).await.is(200);
}

async fn html_pages(rig: &Rig) {
    let text = format!("<script>alert('{}')</script>", unique("x"));
    let created = rig.cluster(json!({ "spec": { "html": text } })).await;
    let path = path_of(&created);
    let conditions = json!([
        { "type": "Available", "status": "False", "reason": text, "message": text },
        { "type": "Applied", "status": "True" }, { "type": "Health", "status": "True" },
    ]);
    rig.report(&path, merged(report("dns", 1, ""), json!({ "conditions": conditions }))).await.is(201);
    for page in ["/".to_owned(), format!("/ui/clusters/{}", created["id"].as_str().unwrap())] {
        let response = rig.client.get(format!("http://{}{page}", rig.address)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.contains("default-src 'none'"), "{policy}");
        assert!(!response.text().await.unwrap().contains(&text));
    }
}
