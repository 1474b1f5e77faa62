//! Bodies and clients that are too large, too deep, too slow or too many.

use std::fmt::Write as _;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::rig::raw::{exchange, head};
use crate::rig::{BASE, Kind, Rig, cluster, merged, path_of, unique};

rules! {
    shared: large_bodies deep_bodies bodies_that_are_not_text duplicate_members broken_http nul_characters;
    own: slow_bodies slow_heads idle_connections a_body_that_ends_early;
}

async fn large_bodies(rig: &Rig) {
    let of = |size: usize| {
        let body = merged(cluster(&unique("large")), json!({ "spec": { "text": "" } })).to_string();
        body.replace("\"\"", &format!("\"{}\"", "x".repeat(size - body.len())))
    };
    rig.send("POST /clusters", &[], of(1024 * 1024)).await.is(201);
    let created = path_of(&rig.cluster(json!({})).await);
    for line in [
        "POST /clusters",
        &format!("PATCH {created}"),
        &format!("PUT {created}/statuses"),
        &format!("POST {created}/force-delete"),
    ] {
        rig.send(line, &[], of(1024 * 1024 + 1)).await.problem("413 LMT-002");
        rig.send(line, &[], of(3 * 1024 * 1024)).await.problem("413 LMT-002");
    }
    // The same chunked, without a length.
    let pieces = futures_util::stream::iter((0..200).map(|_| Ok::<_, std::io::Error>(vec![b' '; 10_000])));
    rig.send("POST /clusters", &[], reqwest::Body::wrap_stream(pieces)).await.problem("413 LMT-002");
    let headers = format!("X-Long: {}\r\n", "x".repeat(2_000_000));
    let answer = exchange(rig.address, &head(&format!("GET {BASE}/clusters"), headers.as_bytes())).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    let long = format!("GET {BASE}/clusters?search={}", "x".repeat(200_000));
    let answer = exchange(rig.address, &head(&long, b"")).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
}

async fn deep_bodies(rig: &Rig) {
    for depth in [100, 1_000, 100_000, 500_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            if open.len() * depth + depth > 1_000_000 {
                continue;
            }
            let middle = if open == "[" { "" } else { "1" };
            let name = unique("deep");
            let deep = format!("{}{middle}{}", open.repeat(depth), close.repeat(depth));
            let body = format!("{{\"kind\":\"Cluster\",\"name\":\"{name}\",\"spec\":{{\"d\":{deep}}}}}");
            let answer = rig.send("POST /clusters", &[], body).await;
            if depth > 1_000 {
                answer.problem("400 VAL-006");
            } else if answer.status == 201 {
                rig.get(&path_of(&answer.body())).await.is(200);
            } else {
                assert_eq!(answer.status, 400, "{answer}");
            }
        }
    }
    rig.get("/clusters?size=1").await.is(200);
}

async fn bodies_that_are_not_text(rig: &Rig) {
    let mut bad = merged(cluster(&unique("utf")), json!({ "spec": { "x": "MARK" } })).to_string().into_bytes();
    let at = bad.windows(4).position(|window| window == b"MARK").unwrap();
    for bytes in [[0xff, 0xfe, 0x41, 0x41], [0xc0, 0x80, 0x41, 0x41], [0xed, 0xa0, 0x80, 0x41], [b'\n', 1, 2, 3]] {
        bad[at..at + 4].copy_from_slice(&bytes);
        rig.send("POST /clusters", &[], bad.clone()).await.problem("400 VAL-006");
    }
    for text in ["\\ud800", "\\udc00\\ud800", "\\u12", "\\x41"] {
        let body = format!("{{\"kind\":\"Cluster\",\"name\":\"{}\",\"spec\":{{\"x\":\"{text}\"}}}}", unique("esc"));
        rig.send("POST /clusters", &[], body).await.problem("400 VAL-006");
    }
    let odd = json!({ "emoji": "🦀", "rtl": "\u{202e}x", "bom": "\u{feff}", "line": "\u{2028}", "del": "\u{7f}", "esc": "\u{1b}[0m" });
    assert_eq!(rig.cluster(json!({ "spec": odd })).await["spec"], odd, "any other text is kept");
}

async fn nul_characters(rig: &Rig) {
    for spec in [json!({ "a": "x\0y" }), json!({ "a\0": 1 }), json!({ "a": [{ "b": ["\0"] }] })] {
        rig.ask("POST /clusters", merged(cluster(&unique("nul")), json!({ "spec": spec }))).await.is(400);
    }
    let path = path_of(&rig.cluster(json!({})).await);
    let body = crate::rig::report("dns", 1, crate::rig::DONE);
    for more in
        [json!({ "adapter": "a\0" }), json!({ "data": { "a": "\0" } }), json!({ "metadata": { "job_name": "\0" } })]
    {
        rig.report(&path, merged(body.clone(), more)).await.is(400);
    }
    rig.report(&path, crate::rig::report("dns", 1, "Available=True Applied=True Health=True A\0=True")).await.is(400);
}

async fn duplicate_members(rig: &Rig) {
    // Either refused, or the last one counts everywhere.
    let name = unique("dup");
    let body = format!("{{\"kind\":\"Cluster\",\"name\":\"x\",\"name\":\"{name}\",\"spec\":{{\"a\":1,\"a\":2}}}}");
    let answer = rig.send("POST /clusters", &[], body).await;
    if answer.status == 201 {
        let created = answer.body();
        assert_eq!((&created["name"], &created["spec"]), (&json!(name), &json!({ "a": 2 })));
        assert_eq!(rig.get(&path_of(&created)).await.is(200).body(), created);
    } else {
        answer.problem("400 VAL-006");
    }
}

async fn broken_http(rig: &Rig) {
    for bytes in [
        &b"nonsense\r\n\r\n"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET  / HTTP/1.1\r\n\r\n",
        b"\0\0\0\0",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET /\0 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    ] {
        // The longest wait is for the rest of a head, which `slow_heads` covers.
        let mut stream = TcpStream::connect(rig.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        let _reset = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer).to_string();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
        assert!(!answer.to_lowercase().contains("hyper "), "{answer}");
    }
    rig.get("/clusters?size=1").await.is(200);
}

const IMPATIENT: &str = "server: { timeouts: { read: 300ms } }";

async fn slow_bodies(kind: Kind) {
    // The head must have come in this time, too.
    let rig = Rig::start(kind, "server: { timeouts: { read: 3s } }").await;
    let slow = head(&format!("POST {BASE}/clusters"), b"Content-Length: 100\r\nContent-Type: application/json\r\n");
    let answer = exchange(rig.address, &[&slow[..], b"{\"kind\":"].concat()).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("application/problem+json") && answer.contains("HYPERFLEET-SVC-002"), "{answer}");
}

async fn slow_heads(kind: Kind) {
    let rig = Rig::start(kind, IMPATIENT).await;
    let answer = exchange(rig.address, b"GET /api/hyperfleet HTTP/1.1\r\nHost: localhost\r\nX-Never: ends").await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
}

async fn a_body_that_ends_early(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    for _ in 0..20 {
        let mut stream = TcpStream::connect(rig.address).await.unwrap();
        let mut bytes = head(&format!("POST {BASE}/clusters"), b"Content-Length: 100\r\n");
        bytes.extend_from_slice(b"{\"kind\":");
        stream.write_all(&bytes).await.unwrap();
    }
    assert_eq!(rig.get("/clusters").await.is(200).body()["total"], 0);
}

async fn idle_connections(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let mut idle = Vec::new();
    for n in 0..1000 {
        let mut stream = TcpStream::connect(rig.address).await.unwrap();
        let mut begun = String::new();
        if n % 2 == 0 {
            write!(begun, "GET {BASE}/clusters HTTP/1.1\r\nHost: localhost\r\n").unwrap();
        }
        stream.write_all(begun.as_bytes()).await.unwrap();
        idle.push(stream);
    }
    for _ in 0..10 {
        rig.cluster(json!({})).await;
    }
    assert_eq!(rig.get("/clusters").await.is(200).body()["total"], 10);
    let ready = rig.client.get(format!("http://{}/readyz", rig.health)).send().await.unwrap();
    assert_eq!(ready.status(), 200);
}
