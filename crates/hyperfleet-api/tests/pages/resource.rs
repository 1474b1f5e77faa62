//! The content of a resource's page.

use serde_json::json;

use crate::document::Node;
use crate::fleet::{Fleet, available};

#[tokio::test]
async fn failures_and_their_adapters_come_first() {
    let fleet = Fleet::new().await;
    let id = fleet.failing("troubled", 600).await;
    fleet.create("NodePool", Some(&id), json!({ "name": "workers", "spec": {} }), 60).await;
    fleet.report(&id, available("curious", 2, "True", "Observed", "only observed"), 5).await;
    let page = fleet.page(&id).await;
    page.check_accessibility();
    let headings: Vec<_> = page.all("h2").into_iter().map(Node::text).collect();
    assert_eq!(headings, ["Adapters", "Conditions", "Timeline", "Identity", "Nodepools", "Spec"]);

    let state = page.class("note")[0].text();
    assert!(state.starts_with("✗ Not reconciled since 20"), "{state}");
    assert!(state.contains("[dns, hypershift, pullsecret, validation]"), "{state}");
    let dns = page.row("dns");
    assert_eq!((dns["State"].as_str(), dns["Reason"].as_str()), ("✗ False", "ZoneNotFound"));
    assert!(dns["Message"].contains("create it or correct spec.dns.zone"));
    let validation = page.row("validation");
    assert_eq!((validation["State"].as_str(), validation["Gen."].as_str()), ("↺ stale", "1 of 2"));
    assert_eq!(page.row("hypershift")["State"], "– no report");
    assert_eq!(page.row("curious not required")["State"], "✓ True");
    let details: Vec<_> = page.all("details").into_iter().map(Node::text).collect();
    assert!(details.iter().any(|one| one.starts_with("Everything that dns reports") && one.contains("\"dns-1\"")));
    assert!(details.iter().any(|one| one.starts_with("Desired state") && one.contains("\"type\": \"gcp\"")));
    let identity = page.all("dl")[0].text();
    for part in [id.as_str(), "region=us", "ana@example.com", "Cluster"] {
        assert!(identity.contains(part), "{part} is not in {identity}");
    }
    assert!(page.text().contains("workers ✗ not reconciled"));
}

#[tokio::test]
async fn the_timeline_lists_transitions_newest_first() {
    let fleet = Fleet::new().await;
    let id = fleet.failing("troubled", 600).await;
    fleet.report(&id, available("dns", 2, "True", "ZoneReady", "the zone exists"), 10).await;
    let page = fleet.page(&id).await;
    let lines = page.class("timeline")[0].all("li");
    let texts: Vec<_> = lines.iter().map(|line| line.text()).collect();
    let dns = texts.iter().find(|line| line.contains("dns · Available")).unwrap();
    assert!(dns.contains("✗ False → ✓ True ZoneReady generation 2"), "{dns}");
    assert!(dns.ends_with("the zone exists"), "{dns}");
    assert!(texts.last().unwrap().contains("new →"), "{texts:?}");
    for time in page.class("timeline")[0].all("time") {
        assert!(time.attr("datetime").unwrap().parse::<jiff::Timestamp>().is_ok());
        assert!(time.text().ends_with(" UTC"));
    }
}

#[tokio::test]
async fn a_child_and_its_owner_link_to_each_other() {
    let fleet = Fleet::new().await;
    let id = fleet.cluster("calm", 600).await;
    let pool = fleet.create("NodePool", Some(&id), json!({ "name": "workers", "spec": {} }), 60).await;
    let hrefs = |page: &Node| -> Vec<String> {
        page.id("main").all("a").into_iter().map(|link| link.attr("href").unwrap().to_owned()).collect()
    };
    assert!(hrefs(&fleet.page(&pool.id).await).contains(&format!("/ui/clusters/{id}")));
    assert!(hrefs(&fleet.page(&id).await).contains(&format!("/ui/nodepools/{}", pool.id)));
}

#[tokio::test]
async fn a_missing_page_is_a_problem_with_its_status() {
    let fleet = Fleet::new().await;
    let id = fleet.cluster("calm", 600).await;
    let served = fleet.serve().await;
    let cases = [
        (format!("/ui/clusters/{id}"), 200, "text/html; charset=utf-8"),
        (format!("/ui/nodepools/{id}"), 404, "application/problem+json"),
        ("/ui/clusters/none".to_owned(), 404, "application/problem+json"),
        ("/ui/clusters/NOT%20an%20id".to_owned(), 404, "application/problem+json"),
        ("/ui/pets/none".to_owned(), 404, "application/problem+json"),
        ("/?kind=Pet".to_owned(), 404, "application/problem+json"),
    ];
    for (path, status, kind) in cases {
        let answer = reqwest::get(format!("{}{path}", served.base)).await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), answer.headers()["content-type"].to_str().unwrap()),
            (status, kind),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_pull_secret_is_not_shown() {
    let fleet = Fleet::new().await;
    let data = json!({ "auths": { "quay.io": { "auth": "dXNlcjpodW50ZXIyaHVudGVyMg==" } } });
    let body = json!({ "name": "calm", "spec": { "pullSecret": { "data": data } } });
    let id = fleet.create("Cluster", None, body, 60).await.id;
    let text = fleet.page(&id).await.text();
    assert!(text.contains("\"redacted\": true"), "{text}");
    assert!(!text.contains("dXNlcjpodW50ZXIy") && !text.contains("hunter2"), "{text}");
}
