//! Tenancy of resources, from headers that a gateway sets.

use serde_json::json;

use crate::rig::{DONE, Kind, Rig, cluster, path_of, report, unique};

rules! {
    shared: off_by_default;
    own: dimensions names_are_unique_within_a_tenancy system_callers_may_only_report
        headers_of_strangers_are_not_trusted;
}

pub(crate) const SETTINGS: &str = r"
server:
  proxies: ['127.0.0.1', '::1']
  tenant:
    enabled: true
    system_header: X-HyperFleet-System
    dimensions:
      - { header: X-HyperFleet-Org, key: org, required: true }
      - { header: X-HyperFleet-Project, key: project }
";

async fn off_by_default(rig: &Rig) {
    let headers = [("x-hyperfleet-org", "acme"), ("x-hyperfleet-system", "true")];
    let created = rig.send("POST /clusters", &headers, cluster(&unique("c")).to_string()).await.is(201).body();
    assert_eq!(created["tenancy"], json!({}));
}

async fn dimensions(kind: Kind) {
    let rig = Rig::start(kind, SETTINGS).await;
    let create =
        async |headers: &[(&str, &str)]| rig.send("POST /clusters", headers, cluster(&unique("c")).to_string()).await;
    for (headers, tenancy) in [
        (vec![("x-hyperfleet-org", "acme")], json!({ "org": "acme" })),
        (
            vec![("x-hyperfleet-org", "A.b_c-9"), ("x-hyperfleet-project", "p")],
            json!({ "org": "A.b_c-9", "project": "p" }),
        ),
        (vec![("x-hyperfleet-org", "acme"), ("x-hyperfleet-other", "x")], json!({ "org": "acme" })),
    ] {
        let created = create(&headers).await.is(201).body();
        assert_eq!(created["tenancy"], tenancy);
        let read = rig.send(&format!("GET {}", path_of(&created)), &headers, "").await.is(200).body();
        assert_eq!(read["tenancy"], tenancy);
    }
    create(&[("x-hyperfleet-org", &"x".repeat(63))]).await.is(201);
    create(&[]).await.problem("403 AUZ-001");
    create(&[("x-hyperfleet-org", "")]).await.problem("403 AUZ-001");
    create(&[("x-hyperfleet-project", "p")]).await.problem("403 AUZ-001");
    for bad in ["a b", "a/b", "ä", "a'b", "<b>", &"x".repeat(64)] {
        create(&[("x-hyperfleet-org", bad)]).await.is(403);
        create(&[("x-hyperfleet-org", "a"), ("x-hyperfleet-project", bad)]).await.is(403);
    }
}

/// Any caller that reaches the server could otherwise act for any tenant.
async fn headers_of_strangers_are_not_trusted(kind: Kind) {
    let proxies = "  proxies: ['127.0.0.1', '::1']\n";
    for other in ["", "  proxies: ['10.9.8.0/24']\n"] {
        let rig = Rig::start(kind, &SETTINGS.replace(proxies, other)).await;
        let headers = [("x-hyperfleet-org", "acme"), ("x-forwarded-for", "10.9.8.7")];
        for line in [
            "GET /clusters",
            "GET /clusters/x",
            "POST /clusters",
            "PATCH /clusters/x",
            "DELETE /clusters/x",
            "POST /clusters/x/force-delete",
        ] {
            let refused = rig.send(line, &headers, cluster(&unique("c")).to_string()).await.problem("403 AUZ-001");
            assert!(refused["detail"].as_str().unwrap().contains("server.proxies"), "{refused}");
        }
    }
}

async fn names_are_unique_within_a_tenancy(kind: Kind) {
    let rig = Rig::start(kind, SETTINGS).await;
    let create = async |org: &str, project: &str| {
        let headers = [("x-hyperfleet-org", org), ("x-hyperfleet-project", project)];
        rig.send("POST /clusters", &headers, cluster("same").to_string()).await.status
    };
    assert_eq!(create("a", "p").await, 201);
    assert_eq!(create("a", "p").await, 409);
    assert_eq!(create("b", "p").await, 201);
    assert_eq!(create("a", "q").await, 201);
    assert_eq!(create("a", "q").await, 409);
}

async fn system_callers_may_only_report(kind: Kind) {
    let rig = Rig::start(kind, SETTINGS).await;
    let org = ("x-hyperfleet-org", "acme");
    let created = rig.send("POST /clusters", &[org], cluster("one").to_string()).await.is(201).body();
    let path = path_of(&created);
    let system = [org, ("x-hyperfleet-system", "true")];
    for (line, body) in [
        ("POST /clusters".to_owned(), cluster("two")),
        (format!("PATCH {path}"), json!({ "spec": {} })),
        (format!("DELETE {path}"), json!({})),
        (format!("POST {path}/force-delete"), json!({ "reason": "x" })),
    ] {
        let answer = rig.send(&line, &system, body.to_string()).await;
        answer.refuses("403 AUZ-001", "system identities may only write status and conditions");
    }
    let line = format!("PUT {path}/statuses");
    rig.send(&line, &system, report("dns", 1, DONE).to_string()).await.is(201);
    rig.send(&line, &[("x-hyperfleet-system", "true")], report("dns", 1, DONE).to_string()).await.is(201);
    rig.send(&format!("GET {path}"), &system, "").await.is(200);
    rig.send("GET /clusters", &[("x-hyperfleet-system", "true")], "").await.is(200);
    for other in ["false", "1", ""] {
        let headers = [org, ("x-hyperfleet-system", other)];
        rig.send(&format!("PATCH {path}"), &headers, json!({ "spec": {} }).to_string()).await.is(200);
    }
}
