//! Authentication: tokens of several issuers, and keys that change.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use crate::rig::tokens::{AUDIENCE, Issuer, Key, authenticated};
use crate::rig::{Answer, Kind, Rig, cluster, file, unique, until};

rules! {
    shared: without_authentication_every_caller_is_accepted names_of_other_machines_are_refused;
    own: two_issuers tokens_that_are_refused times_of_tokens audiences identities
        an_identity_header_of_a_stranger_is_ignored an_issuer_without_audience_is_not_trusted forgeries keys_that_rotate
        an_issuer_that_is_down keys_from_a_file public_paths other_headers settings_that_are_refused
        authentication_is_part_of_the_requests_time;
}

const INVALID: &str = "invalid JWT token";

async fn with(rig: &Rig, authorization: &str) -> Answer {
    rig.send("GET /clusters", &[("authorization", authorization)], "").await
}

async fn create_as(rig: &Rig, authorization: &str) -> Answer {
    rig.send("POST /clusters", &[("authorization", authorization)], cluster(&unique("c")).to_string()).await
}

async fn without_authentication_every_caller_is_accepted(rig: &Rig) {
    for authorization in ["", "Bearer x", "Basic eDp5", "nonsense"] {
        with(rig, authorization).await.is(200);
        let created = create_as(rig, authorization).await.is(201).body();
        assert_eq!(created["created_by"], "system@hyperfleet.local");
    }
}

/// A web page can have a name that resolves to loopback, and then reads and writes without crossing an origin.
async fn names_of_other_machines_are_refused(rig: &Rig) {
    for host in
        ["evil.example.com", "evil.example.com:8000", "10.0.0.1", "localhost.evil.example.com", "127.0.0.1.nip.io"]
    {
        rig.send("GET /clusters", &[("host", host)], "").await.problem("403 AUZ-001");
        let origin = format!("http://{host}");
        let headers = [("host", host), ("origin", origin.as_str())];
        rig.send("POST /clusters", &headers, cluster(&unique("c")).to_string()).await.problem("403 AUZ-001");
    }
    for host in ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "127.9.9.9", "[::1]:8000"] {
        rig.send("GET /clusters", &[("host", host)], "").await.is(200);
    }
}

async fn two_issuers(kind: Kind) {
    let (one, two) = (Issuer::start("key-1").await, Issuer::start("key-1").await);
    let yaml = authenticated(&[one.settings(""), two.settings(", identity_claim: sub")]);
    let rig = Rig::start(kind, &yaml).await;
    let created = create_as(&rig, &one.bearer(json!({}))).await.is(201).body();
    assert_eq!(created["created_by"], "jane@example.com");
    let created = create_as(&rig, &two.bearer(json!({ "sub": "system:serviceaccount:a:b" }))).await.is(201).body();
    assert_eq!(created["created_by"], "system:serviceaccount:a:b");
    // A key is valid only for its own issuer.
    let crossed = format!("Bearer {}", one.key.sign(&two.claims(json!({ "sub": "x" }))));
    with(&rig, &crossed).await.refuses("401 AUT-002", INVALID);
    let line = format!("PATCH /clusters/{}", created["id"].as_str().unwrap());
    let patched = rig.send(&line, &[("authorization", &one.bearer(json!({})))], r#"{"spec":{}}"#).await.is(200).body();
    assert_eq!((&patched["updated_by"], &patched["created_by"]), (&json!("jane@example.com"), &created["created_by"]));
}

async fn tokens_that_are_refused(kind: Kind) {
    let issuer = Issuer::start("key-1").await;
    let rig = Rig::start(kind, &authenticated(&[issuer.settings("")])).await;
    let missing = "missing authorization header";
    for line in [
        "GET /clusters",
        "POST /clusters",
        "DELETE /clusters/x",
        "GET /clusters?watch=true",
        "PUT /clusters/x/statuses",
    ] {
        let answer = rig.send(line, &[], "{}").await.refuses("401 AUT-001", missing);
        assert!(answer.header("www-authenticate").starts_with("Bearer"));
    }
    for scheme in ["Basic eDp5", "Token x", "Bearer", "x", "Bearerx y", ","] {
        with(&rig, scheme).await.refuses("401 AUT-002", "authorization header does not use Bearer scheme");
    }
    let good = issuer.bearer(json!({}));
    for token in
        ["Bearer x", "Bearer a.b.c", "Bearer ..", "Bearer \u{e9}", &good[..good.len() - 9], &format!("{good}x")]
    {
        let answer = with(&rig, token).await;
        assert_eq!(answer.status, 401, "{answer}");
        assert!(!answer.text().contains(&good[20..40]));
    }
    for claims in [
        json!({ "iss": "https://other" }),
        json!({ "iss": format!("{}/", issuer.url) }),
        json!({ "iss": null }),
        json!({ "exp": null }),
    ] {
        with(&rig, &issuer.bearer(claims)).await.refuses("401 AUT-002", INVALID);
    }
    with(&rig, &good).await.is(200);
    with(&rig, &good.replace("Bearer", "bearer")).await.is(200);
}

async fn times_of_tokens(kind: Kind) {
    let issuer = Issuer::start("key-1").await;
    let rig = Rig::start(kind, &authenticated(&[issuer.settings("")])).await;
    let now = jiff::Timestamp::now().as_second();
    with(&rig, &issuer.bearer(json!({ "exp": now - 40 }))).await.refuses("401 AUT-003", "JWT token has expired");
    with(&rig, &issuer.bearer(json!({ "exp": 0 }))).await.refuses("401 AUT-003", "JWT token has expired");
    with(&rig, &issuer.bearer(json!({ "exp": now - 10 }))).await.is(200);
    with(&rig, &issuer.bearer(json!({ "nbf": now + 20 }))).await.is(200);
    with(&rig, &issuer.bearer(json!({ "nbf": now + 60 }))).await.refuses("401 AUT-002", INVALID);
    for text in [json!((now + 60).to_string()), json!((now - 60).to_string()), json!("x"), json!([now]), json!(null)] {
        with(&rig, &issuer.bearer(json!({ "nbf": text }))).await.refuses("401 AUT-002", INVALID);
    }
    // The response does not reveal that a token of an unknown issuer has expired.
    let forged = Key::generate("key-1").sign(&issuer.claims(json!({ "exp": now - 40 })));
    with(&rig, &format!("Bearer {forged}")).await.refuses("401 AUT-002", INVALID);
}

async fn audiences(kind: Kind) {
    let issuer = Issuer::start("key-1").await;
    let rig = Rig::start(kind, &authenticated(&[issuer.settings("")])).await;
    for (audience, status) in [
        (json!("hyperfleet-api"), 200),
        (json!(["x", "hyperfleet-api"]), 200),
        (json!("other"), 401),
        (json!([]), 401),
        (Value::Null, 401),
    ] {
        with(&rig, &issuer.bearer(json!({ "aud": audience }))).await.is(status);
    }
    let mut without = issuer.claims(json!({}));
    without.as_object_mut().unwrap().remove("aud");
    with(&rig, &format!("Bearer {}", issuer.key.sign(&without))).await.refuses("401 AUT-002", INVALID);
}

async fn identities(kind: Kind) {
    let issuer = Issuer::start("key-1").await;
    let more = ", identity_claim_pattern: \"[a-z]+@example[.]com\", identity_header: X-HyperFleet-Identity";
    let rig = Rig::start(kind, &behind_a_proxy(&authenticated(&[issuer.settings(more)]))).await;
    for (email, status) in [
        (json!("joe@example.com"), 201),
        (json!("joe@example.com.evil.org"), 401),
        (json!("x joe@example.com"), 401),
        (json!("joe@example.com\nx"), 401),
        (json!(""), 401),
        (json!(5), 401),
        (Value::Null, 401),
    ] {
        let token = issuer.bearer(json!({ "email": email }));
        let answer = create_as(&rig, &token).await;
        assert_eq!(answer.status, status, "{email} {answer}");
        if status == 401 {
            answer.problem("401 AUT-001");
        }
    }
    for verified in [json!(false), json!("true"), json!(1), Value::Null] {
        let token = issuer.bearer(json!({ "email": "joe@example.com", "email_verified": verified }));
        create_as(&rig, &token).await.problem("401 AUT-001");
    }
    // A token without the claim gets nothing, not even a read.
    let token = issuer.bearer(json!({ "email": null }));
    with(&rig, &token).await.problem("401 AUT-001");
    let as_header = async |identity: &str| {
        let headers = [("authorization", token.as_str()), ("x-hyperfleet-identity", identity)];
        rig.send("POST /clusters", &headers, cluster(&unique("c")).to_string()).await
    };
    assert_eq!(
        as_header("from the gateway").await.is(201).body()["created_by"],
        "from the gateway",
        "header before claim"
    );
    as_header(&"x".repeat(256)).await.is(201);
    as_header(&"x".repeat(257)).await.problem("401 AUT-001");
    as_header("a\tb").await.problem("401 AUT-001");
}

/// The settings with this machine as a trusted proxy.
fn behind_a_proxy(yaml: &str) -> String {
    yaml.replacen("server:\n", "server:\n  proxies: ['127.0.0.1', '::1']\n", 1)
}

/// Without it, a holder of any token would be whom it likes.
async fn an_identity_header_of_a_stranger_is_ignored(kind: Kind) {
    let issuer = Issuer::start("key-1").await;
    let yaml = authenticated(&[issuer.settings(", identity_header: X-HyperFleet-Identity")]);
    let rig = Rig::start(kind, &yaml.replacen("server:\n", "server:\n  proxies: ['10.9.8.0/24']\n", 1)).await;
    let headers = [("authorization", &*issuer.bearer(json!({}))), ("x-hyperfleet-identity", "root")];
    let created = rig.send("POST /clusters", &headers, cluster(&unique("c")).to_string()).await.is(201).body();
    assert_eq!(created["created_by"], "jane@example.com");
    // Without any proxy everyone is a stranger.
    let rig = Rig::start(kind, &yaml).await;
    let created = rig.send("POST /clusters", &headers, cluster(&unique("c")).to_string()).await.is(201).body();
    assert_eq!(created["created_by"], "jane@example.com");
}

async fn an_issuer_without_audience_is_not_trusted(kind: Kind) {
    let issuer = Issuer::start("key-1").await;
    for audience in ["", ", audience: ''"] {
        let settings = issuer.settings(audience).replace(&format!(", audience: {AUDIENCE}"), "");
        assert!(!settings.contains(AUDIENCE), "{settings}");
        let rig = Rig::start(kind, &authenticated(&[settings])).await;
        for claims in [json!({}), json!({ "aud": "" }), json!({ "aud": null })] {
            with(&rig, &issuer.bearer(claims)).await.refuses("401 AUT-002", INVALID);
        }
    }
}

async fn forgeries(kind: Kind) {
    let issuer = Issuer::start("key-1").await;
    let rig = Rig::start(kind, &authenticated(&[issuer.settings("")])).await;
    let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = issuer.claims(json!({}));
    for alg in ["none", "None", "HS256", "RS512", "ES256", ""] {
        for signature in ["", "AAAA"] {
            let token = format!(
                "{}.{}.{signature}",
                encode(json!({ "alg": alg, "typ": "JWT", "kid": "key-1" })),
                encode(claims.clone())
            );
            with(&rig, &format!("Bearer {token}")).await.refuses("401 AUT-002", INVALID);
        }
    }
    // The public key as a shared secret.
    let header = Header { kid: Some("key-1".to_owned()), ..Header::new(Algorithm::HS256) };
    for secret in [issuer.key.public_der(), issuer.key.jwk()["n"].as_str().unwrap().as_bytes().to_vec()] {
        let token = jsonwebtoken::encode(&header, &claims, &EncodingKey::from_secret(&secret)).unwrap();
        with(&rig, &format!("Bearer {token}")).await.refuses("401 AUT-002", INVALID);
    }
    // Changed claims under a valid signature; a key inside the token.
    let good = issuer.key.sign(&claims);
    let mut parts: Vec<&str> = good.split('.').collect();
    let other = encode(issuer.claims(json!({ "email": "root@example.com" })));
    parts[1] = &other;
    with(&rig, &format!("Bearer {}", parts.join("."))).await.refuses("401 AUT-002", INVALID);
    let forger = Key::generate("key-1");
    with(&rig, &format!("Bearer {}", forger.sign(&claims))).await.refuses("401 AUT-002", INVALID);
}

async fn keys_that_rotate(kind: Kind) {
    let issuer = Issuer::start("key-1").await;
    let rig = Rig::start(kind, &authenticated(&[issuer.settings("")])).await;
    assert_eq!(issuer.fetched(), 0, "no issuer is needed to start");
    for _ in 0..3 {
        with(&rig, &issuer.bearer(json!({}))).await.is(200);
    }
    assert_eq!(issuer.fetched(), 1, "keys are kept");
    let next = Key::generate("key-2");
    issuer.publish(&[&issuer.key, &next]);
    let token = format!("Bearer {}", next.sign(&issuer.claims(json!({}))));
    // Unknown key ids trigger a fetch only after a minimum interval; known keys stay valid meanwhile.
    let answer = with(&rig, &token).await;
    assert!([200, 401].contains(&answer.status), "{answer}");
    let unknown = format!("Bearer {}", Key::generate("key-3").sign(&issuer.claims(json!({}))));
    for _ in 0..20 {
        with(&rig, &unknown).await.is(401);
    }
    assert!(issuer.fetched() <= 3, "{} times", issuer.fetched());
    with(&rig, &issuer.bearer(json!({}))).await.is(200);
}

async fn an_issuer_that_is_down(kind: Kind) {
    let issuer = Issuer::start("key-1").await;
    issuer.set_down(true);
    let rig = Rig::start(kind, &authenticated(&[issuer.settings("")])).await;
    let token = issuer.bearer(json!({}));
    with(&rig, &token).await.problem("503 SVC-001");
    issuer.set_down(false);
    // The next attempt to get the keys may come after the request's time.
    until("the keys", async || with(&rig, &token).await.status != 503).await;
    with(&rig, &token).await.is(200);
    issuer.set_down(true);
    with(&rig, &token).await.is(200);
}

async fn keys_from_a_file(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let key = Key::generate("k");
    let path = file(folder.path(), "keys.json", json!({ "keys": [key.jwk()] }).to_string());
    let path = path.display();
    let yaml = format!("  - {{ issuer_url: \"https://issuer\", jwk_cert_file: \"{path}\", audience: {AUDIENCE} }}\n");
    let rig = Rig::start(kind, &authenticated(&[yaml])).await;
    let exp = jiff::Timestamp::now().as_second() + 60;
    let claims =
        json!({ "iss": "https://issuer", "aud": AUDIENCE, "exp": exp, "email": "a@b", "email_verified": true });
    let token = key.sign(&claims);
    with(&rig, &format!("Bearer {token}")).await.is(200);
    let stranger = Key::generate("other").sign(&claims);
    with(&rig, &format!("Bearer {stranger}")).await.is(401);
}

async fn public_paths(kind: Kind) {
    let issuer = Issuer::start("key-1").await;
    let rig = Rig::start(kind, &authenticated(&[issuer.settings("")])).await;
    for path in ["/api/hyperfleet", "/api/hyperfleet/v1/openapi", "/api/hyperfleet/v1/openapi.html"] {
        rig.get(path).await.is(200);
    }
    rig.get("/nonsense").await.problem("404 NTF-000");
    // The HTML page shows resources, so it needs authentication too.
    let answer = rig.client.get(format!("http://{}/", rig.address)).send().await.unwrap();
    assert_eq!(answer.status(), 401);
}

async fn other_headers(kind: Kind) {
    let issuer = Issuer::start("key-1").await;
    let rig = Rig::start(kind, &authenticated(&[issuer.settings(", header: X-Token")])).await;
    let token = issuer.bearer(json!({}));
    with(&rig, &token).await.refuses("401 AUT-001", "missing authorization header");
    rig.send("GET /clusters", &[("x-token", &token)], "").await.is(200);
}

async fn settings_that_are_refused(kind: Kind) {
    for (config, place) in [
        ("", "server.jwt.configs"),
        (
            "  - { issuer_url: a, audience: b, jwk_cert_url: 'http://example.com/keys' }\n",
            "server.jwt.configs[0].jwk_cert_url",
        ),
        (
            "  - { issuer_url: a, audience: b, jwk_cert_url: 'ftp://localhost/keys' }\n",
            "server.jwt.configs[0].jwk_cert_url",
        ),
        ("  - { issuer_url: a, audience: b }\n", "server.jwt.configs[0].jwk_cert_url"),
        ("  - { issuer_url: a, audience: b, jwk_cert_file: /nonexistent }\n", "server.jwt.configs[0].jwk_cert_file"),
        ("  - { issuer_url: a, audience: b, jwk_cert_url: 'https://x', jwk_cert_file: /x }\n", "server.jwt.configs[0]"),
        (
            "  - { issuer_url: a, audience: b, jwk_cert_url: 'https://x', header: 'a b' }\n",
            "server.jwt.configs[0].header",
        ),
        (
            "  - { issuer_url: a, audience: b, jwk_cert_url: 'https://x', identity_claim_pattern: '(' }\n",
            "identity_claim_pattern",
        ),
        ("  - { issuer_url: a, audience: b, jwk_cert_url: 'https://x', nonsense: 1 }\n", "nonsense"),
    ] {
        let fault = crate::rig::refusal(kind, &authenticated(&[config.to_owned()])).await;
        assert!(fault.contains(place), "{fault}");
    }
}

/// Waiting for an issuer must not take longer than the whole request may.
async fn authentication_is_part_of_the_requests_time(kind: Kind) {
    // Connections are made and never answered.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let issuer = Issuer::start("k").await;
    let settings = issuer.settings("").replace(&issuer.url, &url);
    let rig = Rig::start(kind, &(authenticated(&[settings]) + "  timeouts: { write: 300ms }\n")).await;
    let token = issuer.bearer(json!({ "iss": url }));
    for line in ["GET /clusters", "POST /clusters"] {
        let answer = rig.send(line, &[("authorization", &token)], cluster("one").to_string()).await;
        answer.problem("504 SVC-002");
    }
}
