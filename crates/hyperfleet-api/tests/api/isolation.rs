//! Isolation of tenants: what belongs to another tenant does not exist.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::rig::stream::{Stream, short};
use crate::rig::tokens::{Issuer, granted};
use crate::rig::{Answer, DONE, FINALIZED, Kind, Rig, cluster, file, merged, path_of, report, unique};
use crate::tenancy::SETTINGS;

rules! {
    shared: ;
    own: every_route_answers_as_if_another_tenants_resource_were_missing lists_searches_and_counts_stop_at_the_tenant
        a_stream_delivers_only_changes_of_its_tenant busy_neighbours_do_not_put_off_bookmarks children_belong_to_the_parents_tenant
        ids_and_tenancy_are_not_for_tenants_to_choose references_stop_at_the_tenant
        a_grant_reaches_one_tenant_or_all;
}

const ACME: (&str, &str) = ("x-hyperfleet-org", "acme");
const BETA: (&str, &str) = ("x-hyperfleet-org", "beta");
const SYSTEM: (&str, &str) = ("x-hyperfleet-system", "true");

/// Resources of `acme`, of each kind.
struct Fleet {
    rig: Rig,
    /// The id of one resource, or tombstone, by the parameter that names it in a path.
    ids: BTreeMap<&'static str, String>,
    _folder: tempfile::TempDir,
}

impl Fleet {
    async fn new(kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = file(folder.path(), "key", [7; 32]);
        let keys = format!("pull_secret: {{ keys: [{{ id: one, file: '{}' }}] }}\n", key.display());
        let rig = Rig::start(kind, &(keys + SETTINGS)).await;
        let create = async |path: String, body: Value| {
            rig.send(&format!("POST {path}"), &[ACME], body.to_string()).await.is(201).body()
        };
        let named = |kind: &str| json!({ "kind": kind, "name": unique("acme"), "spec": { "word": "of-acme" } });
        let wif = create("/wifconfigs".to_owned(), named("WifConfig")).await;
        let mut body = merged(named("Cluster"), json!({ "labels": { "team": "red" } }));
        body["references"] = json!({ "wif_config": [{ "id": wif["id"] }] });
        body["spec"]["pullSecret"] = json!({ "data": { "auths": { "quay.io": { "auth": "dTpwYXNzd29yZA==" } } } });
        let cluster = create("/clusters".to_owned(), body).await;
        let pool = create(format!("{}/nodepools", path_of(&cluster)), named("NodePool")).await;
        let channel = create("/channels".to_owned(), named("Channel")).await;
        let version = create(format!("{}/versions", path_of(&channel)), named("Version")).await;
        rig.send(&format!("PUT {}/statuses", path_of(&cluster)), &[ACME], report("dns", 1, DONE).to_string())
            .await
            .is(201);
        let removed = path_of(&create("/clusters".to_owned(), named("Cluster")).await);
        rig.send(&format!("DELETE {removed}"), &[ACME], "").await.is(202);
        let reason = json!({ "reason": "lost" }).to_string();
        rig.send(&format!("POST {removed}/force-delete"), &[ACME], reason).await.is(204);
        let tombstones = rig.send("GET /tombstones/clusters", &[ACME], "").await.is(200).body();
        let id = |resource: &Value| resource["id"].as_str().unwrap().to_owned();
        let ids = BTreeMap::from([
            ("cluster_id", id(&cluster)),
            ("nodepool_id", id(&pool)),
            ("channel_id", id(&channel)),
            ("version_id", id(&version)),
            ("wifconfig_id", id(&wif)),
            ("resource_id", id(&cluster)),
            ("tombstone_id", id(&tombstones["items"][0])),
        ]);
        Self { rig, ids, _folder: folder }
    }

    /// Everything that `acme` reads of its own.
    async fn everything(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for path in ["/resources?size=100", "/tombstones/clusters"] {
            all.push(self.rig.send(&format!("GET {path}"), &[ACME], "").await.is(200).body()["items"].take());
        }
        all
    }
}

/// A path whose parameters have these ids; those that are not known get a random one.
fn filled(path: &str, ids: &BTreeMap<&str, String>) -> String {
    let segment = |segment: &str| match segment.strip_prefix('{') {
        Some(name) => ids.get(name.trim_end_matches('}')).cloned().unwrap_or_else(|| uuid::Uuid::now_v7().to_string()),
        None => segment.to_owned(),
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// An answer without what differs from request to request, and without the ids of the path.
fn comparable(answer: &Answer) -> (u16, String, BTreeMap<String, String>) {
    let mut text = answer.text();
    let path = answer.line.split_once(' ').unwrap().1;
    for id in path.split(['/', '?']).filter(|segment| segment.len() == 36) {
        text = text.replace(id, "ID");
    }
    if let Ok(Value::Object(mut body)) = serde_json::from_str(&text) {
        body.retain(|name, _| name != "trace_id" && name != "timestamp");
        text = Value::Object(body).to_string();
    }
    let differs = |name: &str| ["x-request-id", "date", "content-length"].contains(&name);
    let headers = answer.headers.iter().filter(|(name, _)| !differs(name.as_str()));
    let headers = headers.map(|(name, value)| (name.to_string(), format!("{value:?}"))).collect();
    (answer.status, text, headers)
}

/// Bodies and headers for a method of a path: valid ones, and some that are refused in another way.
fn requests(method: &str, path: &str) -> Vec<(Value, Option<(&'static str, &'static str)>)> {
    match method {
        "post" if path.ends_with("/swept") => vec![(json!({ "copies": [] }), None), (json!({}), None)],
        "post" if path.ends_with("/force-delete") => vec![(json!({ "reason": "x" }), None), (json!({}), None)],
        "post" | "put" if path.ends_with("/statuses") => {
            let late = merged(report("dns", 1, DONE), json!({ "observed_time": "2999-01-01T00:00:00Z" }));
            let all = [report("dns", 1, DONE), report("dns", 9, DONE), report("dns", 2, FINALIZED), json!({}), late];
            all.map(|body| (body, None)).to_vec()
        }
        "post" => ["NodePool", "Version", "Cluster"]
            .map(|kind| (merged(cluster("new"), json!({ "kind": kind })), None))
            .to_vec(),
        "patch" => vec![
            (json!({ "labels": { "a": "b" } }), None),
            (json!({ "labels": { "a": "b" } }), Some(("if-match", "\"7\""))),
            (json!({ "labels": { "a": "b" } }), Some(("if-match", "7"))),
            (json!({ "labels": { "a b": "c" } }), None),
            (json!({ "spec": { "pullSecret": { "data": { "redacted": true } } } }), None),
            (json!({ "spec": { "pullSecret": { "data": { "auths": {} } } } }), None),
            (json!({ "references": { "wif_config": [] } }), None),
            (json!({}), None),
        ],
        _ => vec![(Value::Null, None)],
    }
}

/// The paths are those of the served document, which lists every route; a new route is covered without a change here.
async fn every_route_answers_as_if_another_tenants_resource_were_missing(kind: Kind) {
    let fleet = Fleet::new(kind).await;
    let before = fleet.everything().await;
    let document = fleet.rig.get("/openapi").await.is(200).body();
    let mut lines: Vec<(String, String)> = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let methods = item.as_object().unwrap().keys().filter(|name| *name != "parameters");
        lines.extend(methods.map(|method| (method.clone(), path.clone())));
        if item.get("get").is_some() && path.contains("_id}") {
            for query in ["include=pullSecret", "watch=true", "fields=id", "search=name='x'", "resource_version=1"] {
                lines.push(("get".to_owned(), format!("{path}?{query}")));
            }
        }
    }
    for page in
        ["clusters/{cluster_id}", "nodepools/{nodepool_id}", "channels/{channel_id}", "wifconfigs/{wifconfig_id}"]
    {
        lines.push(("get".to_owned(), format!("/ui/{page}")));
    }
    let mut asked = 0;
    for (method, path) in lines.iter().filter(|(_, path)| path.contains('{')) {
        for (body, header) in requests(method, path) {
            let ask = async |ids: &BTreeMap<&str, String>| {
                let filled = filled(path, ids);
                let url = format!("http://{}{filled}", fleet.rig.address);
                let mut request = fleet.rig.client.request(method.to_uppercase().parse().unwrap(), url);
                for (name, value) in [BETA].into_iter().chain(header) {
                    request = request.header(name, value);
                }
                let request = if body.is_null() { request } else { request.body(body.to_string()) };
                Answer::of(&format!("{} {filled}", method.to_uppercase()), request.send().await.unwrap()).await
            };
            let (theirs, missing) = (ask(&fleet.ids).await, ask(&BTreeMap::new()).await);
            assert!([400, 404, 422].contains(&theirs.status), "{theirs}");
            assert_eq!(comparable(&theirs), comparable(&missing), "{theirs}\n{missing}");
            asked += 1;
        }
    }
    assert!(asked > 150, "{asked}");
    assert_eq!(fleet.everything().await, before);
}

async fn lists_searches_and_counts_stop_at_the_tenant(kind: Kind) {
    let fleet = Fleet::new(kind).await;
    let own = fleet.rig.send("POST /clusters", &[BETA], cluster("own").to_string()).await.is(201).body();
    let cluster_id = &fleet.ids["cluster_id"];
    let wif = &fleet.ids["wifconfig_id"];
    for (query, expected) in [
        ("/clusters".to_owned(), 1),
        ("/resources".to_owned(), 1),
        ("/resources?kind=WifConfig".to_owned(), 0),
        ("/tombstones/clusters".to_owned(), 0),
        ("/nodepools".to_owned(), 0),
        ("/clusters?size=1&page=2".to_owned(), 1),
        ("/clusters?order=name desc".to_owned(), 1),
        ("/clusters?search=name != 'x' or name = 'x'".to_owned(), 1),
        ("/clusters?search=not name = 'x'".to_owned(), 1),
        ("/clusters?search=(name = 'own') or (labels.team = 'red')".to_owned(), 1),
        ("/clusters?search=labels.team = 'red'".to_owned(), 0),
        ("/clusters?search=spec.word like 'of%25'".to_owned(), 0),
        ("/clusters?search=status.conditions.Reconciled = 'False'".to_owned(), 1),
        (format!("/clusters?search=id = '{cluster_id}' or id in ('{cluster_id}')"), 0),
        ("/clusters?search=name = 'x' or 1 = 1".to_owned(), -1),
        (format!("/clusters?ref_type=wif_config&ref_target_id={wif}"), 0),
    ] {
        let answer =
            fleet.rig.send(&format!("GET {}", query.replace(' ', "%20").replace('\'', "%27")), &[BETA], "").await;
        if expected < 0 {
            answer.problem("400 VAL-005");
            continue;
        }
        let list = answer.is(200).body();
        assert_eq!(list["total"], expected, "{query}");
        let ids = list["items"].as_array().unwrap().iter().all(|item| item["id"] == own["id"]);
        assert!(ids, "{query} {list}");
    }
    let everything = [SYSTEM];
    assert_eq!(fleet.rig.send("GET /clusters", &everything, "").await.is(200).body()["total"], 2);
    assert_eq!(fleet.rig.send("GET /tombstones/clusters", &everything, "").await.is(200).body()["total"], 1);
    for page in ["/", "/?kind=Cluster", "/?search=labels.team%20%3D%20%27red%27"] {
        let url = format!("http://{}{page}", fleet.rig.address);
        let page = fleet.rig.client.get(url).header(BETA.0, BETA.1).send().await.unwrap();
        assert_eq!(page.status(), 200);
        let text = page.text().await.unwrap();
        assert!(!text.contains("acme") && !text.contains("2 in all"), "{text}");
    }
}

async fn a_stream_delivers_only_changes_of_its_tenant(kind: Kind) {
    let rig = Rig::start(kind, SETTINGS).await;
    let send = async |tenant: (&str, &str), line: &str, body: Value| rig.send(line, &[tenant], body.to_string()).await;
    let one = path_of(
        &send(ACME, "POST /channels", merged(cluster("one"), json!({ "kind": "Channel" }))).await.is(201).body(),
    );
    let mut beta = Stream::open_as(&rig, &[BETA], "/channels", &[]).await;
    let mut acme = Stream::open_as(&rig, &[ACME], "/channels", &[]).await;
    let mut all = Stream::open_as(&rig, &[SYSTEM], "/channels", &[]).await;
    assert_eq!(beta.until_bookmark().await, Vec::<String>::new());
    assert_eq!(acme.until_bookmark().await, ["ADDED one@1"]);
    assert_eq!(all.until_bookmark().await, ["ADDED one@1"]);
    let begin = beta.version.clone();
    send(ACME, &format!("PATCH {one}"), json!({ "spec": { "n": 1 } })).await.is(200);
    send(ACME, &format!("DELETE {one}"), json!({})).await.is(202);
    send(BETA, "POST /channels", merged(cluster("two"), json!({ "kind": "Channel" }))).await.is(201);
    for _again in 0..2 {
        let event = beta.next().await.unwrap();
        assert_eq!(short(&event), "ADDED two@1", "{event}");
        beta = Stream::open_as(&rig, &[BETA], "/channels", &[("resource_version", &begin)]).await;
    }
    for expected in ["MODIFIED one@2", "DELETED one@3"] {
        assert_eq!(acme.next_short().await, expected);
        assert_eq!(all.next_short().await, expected);
    }
    assert_eq!(all.next_short().await, "ADDED two@1");
}

/// Without lines a client takes the stream for dead.
async fn busy_neighbours_do_not_put_off_bookmarks(kind: Kind) {
    let rig = Rig::start(kind, &format!("changes: {{ bookmark_interval: 300ms }}\n{SETTINGS}")).await;
    let mut beta = Stream::open_as(&rig, &[BETA], "/channels", &[]).await;
    assert_eq!(beta.until_bookmark().await, Vec::<String>::new());
    let noise = async {
        loop {
            let body = merged(cluster(&unique("noise")), json!({ "kind": "Channel" })).to_string();
            rig.send("POST /channels", &[ACME], body).await.is(201);
        }
    };
    tokio::select! {
        () = noise => {}
        events = beta.until_bookmark() => assert_eq!(events, Vec::<String>::new()),
    }
}

async fn children_belong_to_the_parents_tenant(kind: Kind) {
    let rig = Rig::start(kind, SETTINGS).await;
    let headers = [ACME, ("x-hyperfleet-project", "p")];
    let parent = rig.send("POST /clusters", &headers, cluster("one").to_string()).await.is(201).body();
    let line = format!("POST {}/nodepools", path_of(&parent));
    let pool = json!({ "kind": "NodePool", "name": "pool", "spec": {} }).to_string();
    // The same organisation, but not the same tenant.
    for other in [vec![ACME], vec![ACME, ("x-hyperfleet-project", "q")], vec![BETA, ("x-hyperfleet-project", "p")]] {
        rig.send(&line, &other, pool.clone()).await.problem("404 NTF-001");
    }
    let child = rig.send(&line, &headers, pool).await.is(201).body();
    assert_eq!(child["tenancy"], json!({ "org": "acme", "project": "p" }));
}

async fn ids_and_tenancy_are_not_for_tenants_to_choose(kind: Kind) {
    let rig = Rig::start(kind, SETTINGS).await;
    let create =
        async |more: Value| rig.send("POST /clusters", &[BETA], merged(cluster(&unique("c")), more).to_string()).await;
    let theirs = rig.send("POST /clusters", &[ACME], cluster("one").to_string()).await.is(201).body();
    let detail = "no grant of the caller allows all_tenants on Cluster, which choosing an id needs: leave out id";
    for id in [theirs["id"].clone(), json!("cls-123"), json!("")] {
        create(json!({ "id": id })).await.refuses("403 AUZ-001", detail);
    }
    let tenancy = json!({ "org": "acme" });
    let spec = json!({ "tenancy": tenancy, "org": "acme" });
    let own = create(json!({ "tenancy": tenancy, "spec": spec, "labels": { "org": "acme", "tenancy": "acme" } })).await;
    let own = own.is(201).body();
    assert_eq!(own["tenancy"], json!({ "org": "beta" }));
    let line = format!("PATCH {}", path_of(&own));
    rig.send(&line, &[BETA], json!({ "tenancy": tenancy }).to_string()).await.problem("400 VAL-006");
    let patched = rig.send(&line, &[BETA], json!({ "spec": spec, "labels": { "org": "acme" } }).to_string()).await;
    assert_eq!(patched.is(200).body()["tenancy"], json!({ "org": "beta" }));
    // A header that the client adds to the proxy's one.
    for twice in [[ACME, BETA], [BETA, ACME], [BETA, BETA]] {
        rig.send("GET /clusters", &twice, "").await.problem("403 AUZ-001");
    }
}

async fn references_stop_at_the_tenant(kind: Kind) {
    let fleet = Fleet::new(kind).await;
    let referring = |id: &str| merged(cluster(&unique("c")), json!({ "references": { "wif_config": [{ "id": id }] } }));
    let (theirs, missing) = (fleet.ids["wifconfig_id"].clone(), uuid::Uuid::now_v7().to_string());
    let own = fleet.rig.send("POST /clusters", &[BETA], cluster("own").to_string()).await.is(201).body();
    let patch = format!("PATCH {}", path_of(&own));
    for line in ["POST /clusters", &patch] {
        let mut answers = Vec::new();
        for id in [&theirs, &missing] {
            let mut body = referring(id);
            if line.starts_with("PATCH") {
                body = json!({ "references": body["references"] });
            }
            let refused = fleet.rig.send(line, &[BETA], body.to_string()).await;
            assert!(refused.status == 400 || refused.status == 404, "{refused}");
            answers.push(refused.body()["detail"].as_str().unwrap().replace(id.as_str(), "ID"));
        }
        assert_eq!(answers[0], answers[1]);
    }
}

async fn a_grant_reaches_one_tenant_or_all(kind: Kind) {
    let issuer = Issuer::start("k").await;
    let grants = [
        issuer.grant("gateway", "kinds: ['*'], verbs: ['*'], reports_as: ['*'], force_deletes: true"),
        issuer.grant("sentinel", "kinds: [Cluster], verbs: [get, list, watch], all_tenants: true"),
        issuer.grant("operator", "kinds: ['*'], verbs: ['*'], all_tenants: true"),
    ];
    let settings = granted(&[issuer.settings(", identity_claim: sub")], &grants);
    let tenants = SETTINGS.trim_start().strip_prefix("server:\n").unwrap();
    let rig = Rig::start(kind, &(settings.clone() + tenants)).await;
    let ask = async |subject: &str, tenant: Option<(&str, &str)>, line: &str, body: Value| {
        let token = issuer.bearer(json!({ "sub": subject }));
        let headers: Vec<_> = [("authorization", &*token)].into_iter().chain(tenant).collect();
        rig.send(line, &headers, body.to_string()).await
    };
    let theirs = ask("gateway", Some(ACME), "POST /clusters", cluster("one")).await.is(201).body();
    let path = path_of(&theirs);
    for line in
        ["GET /clusters".to_owned(), format!("GET {path}"), format!("PATCH {path}"), format!("PUT {path}/statuses")]
    {
        let refused = ask("gateway", None, &line, json!({})).await;
        let detail =
            "the header X-HyperFleet-Org is required: it names the tenant; only a grant with all_tenants needs none";
        refused.refuses("403 AUZ-001", detail);
        ask("gateway", Some(SYSTEM), &line, json!({})).await.problem("403 AUZ-001");
    }
    ask("gateway", Some(BETA), &format!("GET {path}"), json!({})).await.problem("404 NTF-001");
    assert_eq!(ask("sentinel", None, "GET /clusters", json!({})).await.names(), ["one"]);
    // The headers of an identity that reaches all tenants choose the tenant of what it creates, not what it reads.
    assert_eq!(ask("sentinel", Some(BETA), "GET /clusters", json!({})).await.names(), ["one"]);
    ask("sentinel", None, "GET /wifconfigs", json!({})).await.problem("403 AUZ-001");
    let chosen = merged(cluster("two"), json!({ "id": "cls-2" }));
    let created = ask("operator", Some(BETA), "POST /clusters", chosen).await.is(201).body();
    assert_eq!((&created["id"], &created["tenancy"]), (&json!("cls-2"), &json!({ "org": "beta" })));
    assert_eq!(ask("gateway", Some(BETA), "GET /clusters", json!({})).await.names(), ["two"]);
    let shared = ask("operator", None, "POST /clusters", cluster("three")).await.is(201).body();
    assert_eq!(shared["tenancy"], json!({}));
    assert_eq!(ask("operator", None, "GET /clusters", json!({})).await.is(200).body()["total"], 3);
    let pool = json!({ "kind": "NodePool", "name": "pool", "spec": {} });
    let pool = ask("operator", Some(BETA), &format!("POST {path}/nodepools"), pool).await.is(201).body();
    assert_eq!(pool["tenancy"], json!({ "org": "acme" }), "the parent's");
    let strangers = tenants.replace("'127.0.0.1', '::1'", "'10.9.8.0/24'");
    let rig = Rig::start(kind, &(settings + &strangers)).await;
    for (subject, headers, status) in
        [("operator", vec![], 200), ("operator", vec![BETA], 403), ("gateway", vec![BETA], 403)]
    {
        let token = issuer.bearer(json!({ "sub": subject }));
        let headers: Vec<_> = [("authorization", &*token)].into_iter().chain(headers).collect();
        rig.send("GET /clusters", &headers, "").await.is(status);
    }
}
