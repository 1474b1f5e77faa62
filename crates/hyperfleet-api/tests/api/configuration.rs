//! Invalid settings are refused at start, with their path and without their value.

use crate::rig::{Kind, Rig, refusal};

rules! {
    shared: ;
    own: are_refused no_entities_no_routes secrets_are_not_repeated without_authentication_only_loopback_is_served;
}

const REFUSED: &[(&str, &str)] = &[
    ("nonsense: 1", "nonsense"),
    ("server: { nonsense: 1 }", "server.nonsense"),
    ("server: { jwt: { nonsense: 1 } }", "server.jwt.nonsense"),
    ("adapters: { required: { cluster: [a] } }", "adapters"),
    ("server: { max_body: x }", "server.max_body"),
    ("database: { port: 70000 }", "database.port"),
    ("server: { timeouts: { read: soon } }", "server.timeouts.read"),
    ("server: [", "YAML"),
    ("- a", "mapping"),
    ("server: { insecure: true }", "server.insecure"),
    ("server: { host: 0.0.0.0, insecure: true }", "server.insecure"),
    ("server: { proxies: [gateway.example.com] }", "server.proxies[0]"),
    (
        "server: { jwt: { enabled: true, configs: [{ issuer_url: a, jwk_cert_url: 'https://a' }] } }\n\
         pull_secret: { reader_token_file: /nonexistent }",
        "pull_secret.reader_token_file",
    ),
    (
        "server: { jwt: { enabled: true, configs: [{ issuer_url: a, jwk_cert_url: 'https://a', audience: b }] } }\n\
         authorization: { grants: [{ issuer: a, subject: b, kinds: [Cluster], verbs: [fly] }] }",
        "authorization.grants[0].verbs",
    ),
    ("authorization: { grants: [{ issuer: a, subject: b, kinds: [Cluster], verbs: [get] }] }", "authorization.grants"),
    ("authorization: { grants: [{ issuer: a, nonsense: b }] }", "authorization.grants"),
    ("server: { jwt: { enabled: true } }", "server.jwt.configs"),
    ("server: { tenant: { enabled: true } }", "server.tenant"),
    ("server: { tenant: { enabled: true, dimensions: [{ header: 'a b', key: b }] } }", "server.tenant.dimensions"),
    ("server: { tls: { enabled: true } }", "server.tls"),
    ("server: { tls: { enabled: true, cert_file: /nonexistent, key_file: /nonexistent } }", "server.tls"),
    ("server: { max_body: 0 }", "server.max_body"),
    ("changes: { max_events: 0 }", "changes.max_events"),
    ("changes: { bookmark_interval: 31s }", "changes.bookmark_interval"),
    ("health: { shutdown_timeout: 121s }", "health.shutdown_timeout"),
    ("health: { shutdown_timeout: 0s }", "health.shutdown_timeout"),
    ("pull_secret: { readers: [a] }", "pull_secret.readers"),
    ("pull_secret: { keys: [{ id: a, file: /nonexistent }] }", "pull_secret.keys[0].file"),
    ("pull_secret: { reader_token_file: /nonexistent }", "pull_secret.reader_token_file"),
    ("logging: { level: loud }", "logging.level"),
    ("logging: { format: prose }", "logging.format"),
    ("entities: [{ kind: Thing }]", "plural"),
    ("entities: [{ kind: thing, plural: things }]", "entities[0].kind"),
    ("entities: [{ kind: ThingsWithVeryLongNames, plural: things }]", "entities[0].kind"),
    ("entities: [{ kind: Thing, plural: resources }]", "entities[0].plural"),
    ("entities: [{ kind: Thing, plural: Things }]", "entities[0].plural"),
    ("entities: [{ kind: Thing, plural: statuses }]", "entities[0].plural"),
    ("entities: [{ kind: Thing, plural: things, nonsense: 1 }]", "nonsense"),
    ("entities: [{ kind: A, plural: a }, { kind: A, plural: b }]", "entities[1].kind"),
    ("entities: [{ kind: A, plural: a }, { kind: B, plural: a }]", "entities[1].plural"),
    (
        "entities: [{ kind: A, plural: a, parent_kind: Planet }]",
        "entities[0].parent_kind: 'Planet' is not a configured kind",
    ),
    ("server: { openapi_schema_path: /nonexistent }", "server.openapi_schema_path: '/nonexistent'"),
    ("entities: [{ kind: A, plural: a, parent_kind: A }]", "entities[0].parent_kind"),
    ("entities: [{ kind: A, plural: a, parent_kind: B }, { kind: B, plural: b, parent_kind: A }]", "parent_kind"),
    ("entities: [{ kind: A, plural: a, on_parent_delete: explode }]", "on_parent_delete"),
    ("entities: [{ kind: A, plural: a, on_parent_delete: cascade }]", "entities[0].on_parent_delete"),
    ("entities: [{ kind: A, plural: a, required_adapters: [x, x] }]", "entities[0].required_adapters"),
    ("entities: [{ kind: A, plural: a, required_adapters: [''] }]", "entities[0].required_adapters"),
    ("entities: [{ kind: A, plural: a, required_adapters: [a-b, a--b] }]", "entities[0].required_adapters"),
    (
        "entities: [{ kind: A, plural: a, references: [{ ref_type: x, target_kind: B }] }]",
        "entities[0].references[0].target_kind: 'B'",
    ),
    (
        "entities: [{ kind: A, plural: a, references: [{ ref_type: x, target_kind: A, min: 2, max: 1 }] }]",
        "entities[0].references[0].min",
    ),
    ("entities: [{ kind: A, plural: a, name_min_len: 5, name_max_len: 4 }]", "entities[0].name_min_len"),
    ("entities: [{ kind: A, plural: a, name_max_len: 101 }]", "entities[0].name_max_len"),
    ("entities: [{ kind: A, plural: a, require_spec_schema: true }]", "entities[0].require_spec_schema"),
];

async fn are_refused(kind: Kind) {
    let mut wrong = Vec::new();
    for (yaml, place) in REFUSED {
        let refused = tokio::spawn(refusal(kind, yaml)).await;
        match refused {
            Ok(fault) if fault.contains(place) => {}
            Ok(fault) => wrong.push(format!("{yaml}\n  is refused without {place}: {fault}")),
            Err(_started) => wrong.push(format!("{yaml}\n  starts, though {place} should be refused")),
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

async fn no_entities_no_routes(kind: Kind) {
    let rig = Rig::start(kind, "entities: []").await;
    for path in ["/clusters", "/nodepools", "/channels"] {
        rig.get(path).await.problem("404 NTF-000");
    }
}

async fn secrets_are_not_repeated(kind: Kind) {
    for yaml in [
        "database: { password: [sesame-open-up] }",
        "database: { password: sesame-open-up, password_file: /x }",
        "database: { port: sesame-open-up }",
        "sesame: { - open-up sesame-open-up",
        "database: { pool: sesame-open-up }",
    ] {
        let fault = refusal(kind, yaml).await;
        assert!(!fault.contains("sesame-open-up"), "{fault}");
    }
}

async fn without_authentication_only_loopback_is_served(kind: Kind) {
    for host in ["0.0.0.0", "'::'", "example.com", "192.0.2.1"] {
        let rig = Rig::start(kind, &format!("server: {{ host: {host} }}")).await;
        assert!(rig.address.ip().is_loopback(), "{host}: {}", rig.address);
        let note = "server.host: no effect here without authentication: only loopback is served";
        assert!(crate::rig::log::logged().contains(note));
    }
    for host in ["localhost", "127.0.0.1", "127.0.0.9"] {
        Rig::start(kind, &format!("server: {{ host: {host} }}")).await;
    }
}
