//! The search language over HTTP: results, refusals, and the isolation of lists.

use serde_json::{Value, json};

use crate::rig::{Kind, Rig, merged, path_of, report, unique};

rules! {
    shared: invalid_searches lengths the_sentinels_start_up_check;
    own: finds finds_every_column stays_inside_its_list numbers_and_texts_of_specs times;
}

async fn found(rig: &Rig, path: &str, search: &str) -> String {
    let answer = rig.list(path, &[("search", search), ("order", "name"), ("size", "100")]).await;
    assert_eq!(answer.status, 200, "{search}: {answer}");
    answer.names().join(" ")
}

async fn fill(rig: &Rig) {
    for (name, more) in [
        ("aaa", json!({ "labels": { "env": "prod", "cost-center": "x1" }, "spec": { "region": "eu", "nodes": 3 } })),
        (
            "bbb",
            json!({ "labels": { "env": "test", "example.com/team": "blue" }, "spec": { "region": "us", "nodes": 5 } }),
        ),
        ("ccc", json!({ "spec": { "region": "e%u", "big": true, "platform": { "gcp": { "project_id": "p" } } } })),
    ] {
        rig.create("/clusters", merged(json!({ "kind": "Cluster", "name": name, "id": format!("id-{name}") }), more))
            .await;
    }
    rig.ask("PATCH /clusters/id-bbb", json!({ "labels": { "env": "test", "example.com/team": "red" } })).await.is(200);
    for adapter in ["validation", "dns", "pullsecret", "hypershift"] {
        rig.report("/clusters/id-ccc", report(adapter, 1, crate::rig::DONE)).await.is(201);
    }
    rig.ask("DELETE /clusters/id-aaa", None).await.is(202);
}

/// The result of each search; `-` is a search that is refused.
const FOUND: &[(&str, &str)] = &[
    ("name = 'aaa'", "aaa"),
    ("name == 'aaa'", "aaa"),
    ("name = \"aaa\"", "aaa"),
    ("name = `aaa`", "aaa"),
    ("NAME = 'aaa'", "-"),
    ("name != 'aaa'", "bbb ccc"),
    ("name <> 'aaa'", "bbb ccc"),
    ("name > 'aaa' and name <= 'bbb'", "bbb"),
    ("name in ['aaa', 'ccc', 'zzz']", "aaa ccc"),
    ("name not in ['aaa', 'ccc']", "bbb"),
    ("name like 'a%'", "aaa"),
    ("name ilike 'A%'", "aaa"),
    ("name like 'A%'", ""),
    ("name like '_b_'", "bbb"),
    ("name between 'aaa' and 'bbb'", "aaa bbb"),
    ("not name = 'aaa'", "bbb ccc"),
    ("not (name = 'aaa')", "bbb ccc"),
    ("name = 'aaa' or name = 'bbb' and generation = 1", "aaa"),
    ("(name = 'aaa' or name = 'bbb') and generation = 2", "aaa bbb"),
    ("name = 'aaa' OR NAME = 'x'", "-"),
    ("name = 'aaa' OR name = 'bbb'", "aaa bbb"),
    ("generation = 2", "aaa bbb"),
    ("generation > 1", "aaa bbb"),
    ("generation >= 1 and generation < 2", "ccc"),
    ("generation in [1, 7]", "ccc"),
    ("deleted_time is null", "bbb ccc"),
    ("deleted_time is not null", "aaa"),
    ("deleted_by = 'system@hyperfleet.local'", "aaa"),
    ("id = 'id-ccc'", "ccc"),
    ("kind = 'Cluster'", "aaa bbb ccc"),
    ("owner_id is null", "aaa bbb ccc"),
    ("created_by = 'system@hyperfleet.local'", "aaa bbb ccc"),
    ("labels.env = 'prod'", "aaa"),
    ("labels.env in ['prod', 'test']", "aaa bbb"),
    ("labels.env != 'prod'", "bbb"),
    ("labels.env like 'p%'", "aaa"),
    ("labels.cost-center = 'x1'", "aaa"),
    ("labels.example.com/team = 'red'", "bbb"),
    ("labels.example.com/team = 'blue'", ""),
    ("spec.region = 'eu'", "aaa"),
    ("spec.platform.gcp.project_id = 'p'", "ccc"),
    ("spec.nodes = 3", "aaa"),
    ("spec.nodes > 3", "bbb"),
    ("status.conditions.Reconciled = 'True'", "ccc"),
    ("status.conditions.Reconciled = 'False'", "aaa bbb"),
    ("status.conditions.DnsSuccessful = 'True'", "ccc"),
    ("status.conditions.Nonsense = 'True'", ""),
    ("status.conditions.Reconciled.observed_generation = 2", "aaa bbb"),
    ("status.conditions.Reconciled.observed_generation < 2", "ccc"),
    ("status.conditions.Reconciled.last_updated_time > '2020-01-01T00:00:00Z'", "aaa bbb ccc"),
    ("status.conditions.Reconciled.last_transition_time < '2020-01-01T00:00:00Z'", ""),
    ("status.conditions.Nonsense is null", "aaa bbb ccc"),
    ("status.conditions.DnsSuccessful is null", "aaa bbb"),
    ("status.conditions.DnsSuccessful.observed_generation is null", "aaa bbb"),
    ("status.conditions.Reconciled is null or labels.env is null", "ccc"),
    ("'aaa' = name", "aaa"),
    ("'bbb' <= name and 'ccc' > name", "bbb"),
    ("2 = generation and not 'aaa' = name", "bbb"),
    ("'True' = status.conditions.Reconciled", "ccc"),
    ("1 < status.conditions.Reconciled.observed_generation", "aaa bbb"),
    ("'prod' = labels.env or 'test' != labels.env", "aaa"),
    ("2020-01-01 < created_time", "aaa bbb ccc"),
    ("'2020-01-01T00:00:00Z' < status.conditions.Reconciled.last_updated_time", "aaa bbb ccc"),
    ("3 = spec.nodes", "aaa"),
    ("3 < spec.nodes", "bbb"),
    ("'3' = spec.nodes", "aaa"),
    ("spec.nodes = '3'", "aaa"),
    ("spec.nodes != '3'", "bbb"),
    ("spec.nodes in ['3', '4']", "aaa"),
    ("spec.nodes = '3.0'", ""),
    ("", "aaa bbb ccc"),
    ("  ", "aaa bbb ccc"),
];

async fn finds(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    fill(&rig).await;
    for (search, names) in FOUND {
        if *names == "-" {
            rig.list("/clusters", &[("search", search)]).await.problem("400 VAL-005");
        } else {
            assert_eq!(found(&rig, "/clusters", search).await, *names, "{search}");
        }
    }
}

async fn finds_every_column(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    fill(&rig).await;
    for (search, names) in [
        ("href = '/api/hyperfleet/v1/clusters/id-ccc'", "ccc"),
        ("href like '%/id-aaa'", "aaa"),
        ("updated_by != 'x' and name = 'aaa'", "aaa"),
    ] {
        assert_eq!(found(&rig, "/clusters", search).await, names, "{search}");
    }
}

async fn stays_inside_its_list(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    fill(&rig).await;
    let parent =
        rig.create("/clusters", json!({ "kind": "Cluster", "name": "parent", "spec": {}, "id": "parent" })).await;
    rig.create(&format!("{}/nodepools", path_of(&parent)), json!({ "kind": "NodePool", "name": "pool", "spec": {} }))
        .await;
    // No search makes a list show another kind, or children of another parent.
    assert_eq!(found(&rig, "/nodepools", "name = 'pool' or kind = 'Cluster'").await, "pool");
    assert_eq!(found(&rig, "/clusters/id-bbb/nodepools", "name = 'pool' or name != ''").await, "");
    for search in [
        "x') or (1=1",
        "name = 'x') or (kind = 'Cluster'",
        "name = 'x' or 1=1",
        "name = ''' or 1=1 --",
        "name = 'x'; SELECT 1",
        "name = 'x' -- ",
        "name = 'x' /* */",
        "name = 'x' UNION SELECT * FROM resources",
    ] {
        rig.list("/clusters", &[("search", search)]).await.problem("400 VAL-005");
    }
    // Quotes and wildcards in texts are literal.
    for search in [
        "name = ''",
        "name = \"x' or '1'='1\"",
        r"name = 'x\' or 1=1 --'",
        "name = `x') or (1=1`",
        "labels.env = '%'",
        "name = '$1'",
        "name = '?'",
        "name = '{}'",
        "name = '\\\\'",
    ] {
        assert_eq!(found(&rig, "/clusters", search).await, "", "{search}");
    }
    assert_eq!(found(&rig, "/clusters", r"spec.region like 'e\%u'").await, "ccc");
    assert_eq!(rig.get("/clusters").await.is(200).body()["total"], 4, "nothing was lost");
}

async fn numbers_and_texts_of_specs(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let values: &[(&str, Value)] = &[
        ("aa", json!(3)),
        ("bb", json!("3")),
        ("cc", json!("abc")),
        ("dd", json!([3])),
        ("ee", json!({ "x": 3 })),
        ("ff", json!(null)),
        ("gg", json!(2.5)),
        ("hh", json!(true)),
        ("ii", json!("1e400")),
        ("jj", json!("")),
    ];
    for (name, value) in values {
        rig.create("/channels", json!({ "kind": "Channel", "name": name, "spec": { "v": value } })).await;
    }
    // A comparison with a number must not fail on values of other types.
    for (search, names) in [
        ("spec.v = 2.5", "gg"),
        ("spec.v = 'abc'", "cc"),
        ("spec.v = ''", "jj"),
        ("spec.v.x = 3", "ee"),
        ("spec.w = 1", ""),
        ("spec.v = '3'", "aa bb"),
        ("spec.v = '2.5'", "gg"),
        ("spec.v = 'true'", "hh"),
        ("spec.v = true", "hh"),
        ("'true' = spec.v", "hh"),
        ("spec.v = 'false'", ""),
        ("spec.v = '1e400'", "ii"),
        ("spec.v = 'null'", ""),
        ("spec.v != '3'", "cc gg hh ii jj"),
        ("spec.v like '%.%'", "gg"),
        ("spec.v between '2' and '3'", "aa bb gg"),
        ("spec.v in ['true', '3']", "aa bb hh"),
    ] {
        assert_eq!(found(&rig, "/channels", search).await, names, "{search}");
    }
    for search in
        ["spec.v > 2", "spec.v < 1k", "spec.v >= -1", "spec.v between 1 and 5", "spec.v in [1, 2, 3]", "spec.v != 3"]
    {
        rig.list("/channels", &[("search", search)]).await.is(200);
    }
    assert!(found(&rig, "/channels", "spec.v = 3").await.contains("aa"));
}

async fn times(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let created = rig.create("/channels", json!({ "kind": "Channel", "name": "one", "spec": {} })).await;
    let exact = created["created_time"].as_str().unwrap();
    for (search, names) in [
        (format!("created_time = '{exact}'"), "one"),
        (format!("created_time >= '{exact}'"), "one"),
        (format!("created_time > '{exact}'"), ""),
        ("created_time > '2020-01-01'".into(), "one"),
        ("created_time > 2020-01-01".into(), "one"),
        ("created_time > 2020-01-01T00:00:00Z".into(), "one"),
        ("created_time between '2020-01-01' and '2021-01-01'".into(), ""),
        ("updated_time < '2020-01-01T00:00:00+02:00'".into(), ""),
    ] {
        assert_eq!(found(&rig, "/channels", &search).await, names, "{search}");
    }
}

const REFUSED: &[&str] = &[
    "name",
    "name =",
    "= 'x'",
    "'x' =",
    "'x' = 'x'",
    "3 = 3",
    "'x' like name",
    "['x'] = name",
    "'abc' = generation",
    "labels.env is not null",
    "not labels.env is null",
    "status.conditions.Reconciled is not null",
    "not 'True' = status.conditions.Reconciled",
    "'x' = status.conditions.Reconciled",
    "spec.projectId = 'x'",
    "spec.platform.gcp.projectID = 'x'",
    "spec.pullSecret.data is null",
    "spec.release-image = 'x'",
    "spec.a/b = 'x'",
    "na-me = 'x'",
    "status.conditions.Recon-ciled = 'True'",
    "generation = 2147483648",
    "generation in [1, 3000000000]",
    "status.conditions.Reconciled.observed_generation < 3000000000",
    "status.conditions.Reconciled.observed_generation < 1.5",
    "status.conditions.Reconciled.last_updated_time > '2026-01-01'",
    "status.conditions.Reconciled.last_transition_time > 2026-01-01",
    "'2026-01-01' < status.conditions.Reconciled.last_updated_time",
    "name = x",
    "name = 'x",
    "name = x'",
    "''",
    "'x'",
    "and",
    "name = 'x' and",
    "(name = 'x'",
    "name = 'x')",
    "name in []",
    "name ** 'x'",
    "name ~= 'x'",
    "generation + 1 = 2",
    "nonsense = 'x'",
    "generation=1.5",
    "generation = 'x'",
    "generation = 99999999999999999999",
    "generation like '1'",
    "created_time > 'x'",
    "created_time > '2026-02-30'",
    "created_time = '99999-01-01'",
    "created_time = 5",
    "created_time like '2026%'",
    "deleted_time = ''",
    "name = 5",
    "name is 5",
    "labels. = 'x'",
    "labels = 'x'",
    "spec = 'x'",
    "spec. = 'x'",
    "status.conditions.reconciled = 'True'",
    "status.conditions.Reconciled = 'true'",
    "status.conditions.Reconciled = 'x'",
    "status.conditions.Reconciled.nonsense = 1",
    "status.conditions.Reconciled.observed_generation = 'x'",
    "status.conditions.Reconciled like 'T%'",
    "not status.conditions.Reconciled = 'True'",
    "sealed = 'x'",
    "state is null",
    "name = 'a\0b'",
    "\0",
    "name = '\u{1b}[31m' x",
    "len(name) > 1",
    "name = name",
    "1 = 1",
    "true",
    "select 1",
    "labels.a\0b = 'x'",
    "name\r\nx = 'y'",
    "status.phase = 'x'",
    "🦀 = 'x'",
];

async fn invalid_searches(rig: &Rig) {
    for search in REFUSED {
        let answer = rig.list("/clusters", &[("search", search)]).await;
        assert_eq!(answer.status, 400, "{search:?}: {answer}");
        answer.problem("400 VAL-005");
        assert!(!answer.text().contains(['\u{1b}', '\0']), "{answer}");
    }
    let unknown = rig.list("/clusters", &[("search", "nonsense = 'x'")]).await.problem("400 VAL-005");
    assert!(unknown["detail"].as_str().unwrap().contains("invalid field in search or order query"), "{unknown}");
    // Bytes that are not text.
    rig.get("/clusters?search=%ff%fe").await.problem("400 VAL-005");
    let deep = format!("{}name = 'x'{}", "(".repeat(2000), ")".repeat(2000));
    rig.list("/clusters", &[("search", &deep)]).await.problem("400 VAL-005");
    let nots = format!("{} name = 'x'", "not ".repeat(1000));
    assert!([200, 400].contains(&rig.list("/clusters", &[("search", &nots)]).await.status));
    let ors = vec!["name = 'x'"; 300].join(" or ");
    assert!([200, 400].contains(&rig.list("/clusters", &[("search", &ors)]).await.status));
}

async fn lengths(rig: &Rig) {
    let of = |length: usize| format!("name = '{}'", "x".repeat(length - "name = ''".len()));
    rig.list("/clusters", &[("search", &of(4096))]).await.is(200);
    rig.list("/clusters", &[("search", &of(4097))]).await.problem("400 VAL-005");
    rig.list("/clusters", &[("search", &of(20_000))]).await.problem("400 VAL-005");
    let wide = format!("name = '{}'", "ä".repeat(4096 - 9));
    rig.list("/clusters", &[("search", &wide)]).await.is(200);
}

async fn the_sentinels_start_up_check(rig: &Rig) {
    let answer = rig.list("/clusters", &[("search", "labels.non_existing_label='value'"), ("size", "1")]).await;
    assert_eq!(answer.is(200).body()["total"], 0);
    let name = unique("sentinel");
    rig.create(
        "/channels",
        json!({ "kind": "Channel", "name": name, "spec": {}, "labels": { "k": name, "k2": "v2" } }),
    )
    .await;
    let search = format!("labels.k='{name}' and labels.k2='v2'");
    assert_eq!(rig.list("/channels", &[("page", "1"), ("size", "20"), ("search", &search)]).await.names(), [name]);
}
