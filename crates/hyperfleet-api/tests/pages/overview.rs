//! What the overview says.

use hyperfleet_api::page::{self, Asked};
use hyperfleet_api::problem::Code;
use serde_json::{Value, json};

use crate::document::Node;
use crate::fleet::{Fleet, available};

fn summary(page: &Node) -> Vec<String> {
    page.class("summary")[0].all("li").into_iter().map(Node::text).collect()
}

#[tokio::test]
async fn an_empty_fleet_is_welcomed_with_a_line_that_makes_a_cluster() {
    let fleet = Fleet::new().await;
    let served = fleet.serve().await;
    let client = reqwest::Client::new();
    let answer = client.get(&served.base).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "text/html; charset=utf-8");
    assert_eq!(answer.headers()["content-security-policy"], page::CONTENT_SECURITY_POLICY);
    let page = Node::parse(&answer.text().await.unwrap());
    page.check_accessibility();
    assert_eq!(summary(&page), ["0 in all", "0 ✗ not reconciled", "0 ✓ reconciled", "0 ⌫ being deleted"]);

    let line = page.all("pre")[0].raw_text();
    let url = line.split_whitespace().find(|word| word.starts_with("http")).unwrap();
    let body = line.split("-d '").nth(1).unwrap().strip_suffix('\'').unwrap();
    assert!(url.starts_with(&served.base), "{url}");
    let made = client.post(url).header("content-type", "application/json").body(body.to_owned()).send().await.unwrap();
    assert_eq!(made.status(), 201);
    let made: Value = serde_json::from_str(&made.text().await.unwrap()).unwrap();
    let page = fleet.overview(&Asked::default()).await;
    assert_eq!(page.row_names(), [made["name"].as_str().unwrap()]);
}

#[tokio::test]
async fn a_host_that_a_shell_would_obey_is_not_repeated() {
    let fleet = Fleet::new().await;
    for host in ["x;rm -rf ~", "`id`", "$(id)", "a'b", "a b", ""] {
        let line = fleet.overview(&Asked { host: Some(host), ..Asked::default() }).await.all("pre")[0].raw_text();
        assert!(line.contains("http://localhost:8000/api/"), "{line}");
    }
}

#[tokio::test]
async fn a_row_says_what_holds_a_cluster_up() {
    let fleet = Fleet::new().await;
    fleet.well("calm", 7200).await;
    fleet.ill("troubled", 600).await;
    fleet.leaving("leaving", 300).await;
    let page = fleet.overview(&Asked::default()).await;
    page.check_accessibility();
    assert_eq!(page.row_names(), ["leaving", "troubled", "calm"], "newest first");
    assert_eq!(summary(&page), ["3 in all", "2 ✗ not reconciled", "1 ✓ reconciled", "1 ⌫ being deleted"]);

    let calm = page.row("calm");
    assert_eq!(calm["Reconciled"], "✓ True 1 h ago ReconciledAll");
    assert_eq!((calm["dns"].as_str(), calm["Deleting"].as_str(), calm["Age"].as_str()), ("✓ True", "· no", "2 h ago"));
    let troubled = page.row("troubled");
    assert_eq!(troubled["Reconciled"], "✗ False 10 min ago ReconciledMissingAdapters");
    assert_eq!(troubled["Gen."], "2");
    assert_eq!(troubled["validation"], "↺ stale 1 of 2, was True");
    assert_eq!(troubled["dns"], "✗ False ZoneNotFound");
    assert_eq!(troubled["hypershift"], "– never");
    let leaving = page.row("leaving");
    assert_eq!(leaving["Deleting"], "⌫ yes 4 min ago");
    assert_eq!(leaving["dns"], "↺ stale 1 of 2, was True");
}

#[tokio::test]
async fn deletion_asks_each_adapter_whether_it_has_finished() {
    let fleet = Fleet::new().await;
    let id = fleet.leaving("leaving", 300).await;
    let mut report = available("dns", 2, "True", "Gone", "the zone is gone");
    report["conditions"].as_array_mut().unwrap().push(json!({ "type": "Finalized", "status": "True" }));
    fleet.tell(&id, report, 100).await;
    fleet.tell(&id, available("hypershift", 2, "True", "Waiting", "the nodes go first"), 100).await;
    let row = fleet.overview(&Asked::default()).await.row("leaving");
    assert_eq!(row["dns"], "✓ Finalized");
    assert_eq!(row["hypershift"], "✗ not finalized Waiting");
}

#[tokio::test]
async fn every_count_leads_to_what_it_counts() {
    let fleet = Fleet::new().await;
    fleet.well("calm", 7200).await;
    fleet.ill("troubled", 600).await;
    fleet.leaving("leaving", 300).await;
    let served = fleet.serve().await;
    for kind in ["Cluster", "NodePool", "WifConfig"] {
        let page = fleet.overview(&Asked { kind: Some(kind), ..Asked::default() }).await;
        for link in page.class("summary")[0].all("a") {
            let count: usize = link.all("b")[0].text().parse().unwrap();
            let url = format!("{}{}", served.base, link.attr("href").unwrap());
            let there = Node::parse(&reqwest::get(&url).await.unwrap().text().await.unwrap());
            assert!(there.class("bad").iter().all(|bad| bad.attr("role") != Some("alert")), "{url} is a bad search");
            assert_eq!(there.row_names().len(), count, "{url}");
            let current: Vec<_> = there.class("summary")[0].all("a");
            let current = current.iter().filter(|link| link.attr("aria-current").is_some());
            assert_eq!(current.map(|link| link.text()).collect::<Vec<_>>(), [link.text()]);
        }
    }
}

#[tokio::test]
async fn a_search_that_cannot_be_read_is_pointed_at() {
    let fleet = Fleet::new().await;
    fleet.well("calm", 7200).await;
    let written = "name = 'calm' and colour = 'red'";
    let page = fleet.overview(&Asked { search: Some(written), ..Asked::default() }).await;
    page.check_accessibility();
    let fault = page.id("fault");
    assert_eq!(fault.attr("role"), Some("alert"));
    assert!(fault.text().contains("column 19"), "{}", fault.text());
    assert_eq!(fault.all("pre")[0].raw_text(), format!("{written}\n{}▲", " ".repeat(18)));
    assert_eq!(page.id("search").attr("value"), Some(written), "the search stays to be corrected");
    assert_eq!(page.id("search").attr("aria-describedby"), Some("fault"));
    assert_eq!(page.all("table").len(), 0);

    let page = fleet.overview(&Asked { search: Some("name = 'other'"), ..Asked::default() }).await;
    assert!(page.id("main").text().contains("None of the clusters match."));
}

#[tokio::test]
async fn large_fleets_come_in_pages_of_bounded_size() {
    let fleet = Fleet::new().await;
    for index in 0..205_i64 {
        fleet.cluster(&format!("cluster-{index}-with-quite-a-long-name-as-people-do"), 10_000 - index).await;
    }
    let mut names = Vec::new();
    for (number, expected, ways) in [
        ("1", "1 to 100 of 205", vec!["Older →"]),
        ("2", "101 to 200 of 205", vec!["← Newer", "Older →"]),
        ("3", "201 to 205 of 205", vec!["← Newer"]),
    ] {
        let text = fleet.overview_text(&Asked { page: Some(number), ..Asked::default() }).await;
        assert!(text.len() < 200_000, "page {number} has {} bytes", text.len());
        let page = Node::parse(&text);
        assert_eq!(page.all("caption")[0].text(), format!("{expected}, newest first"));
        assert_eq!(page.class("pages")[0].all("a").into_iter().map(Node::text).collect::<Vec<_>>(), ways);
        names.extend(page.row_names());
    }
    let expected = (0..205).rev().map(|index| format!("cluster-{index}-with-quite-a-long-name-as-people-do"));
    assert_eq!(names, expected.collect::<Vec<_>>());
    let beyond = fleet.overview(&Asked { page: Some("4"), ..Asked::default() }).await;
    assert!(beyond.id("main").text().contains("There are no clusters on page 4."));
    for odd in ["0", "-1", "x", "99999999999999999999"] {
        let page = fleet.overview(&Asked { page: Some(odd), ..Asked::default() }).await;
        assert_eq!(page.all("caption")[0].text(), "1 to 100 of 205, newest first", "{odd}");
    }
}

#[tokio::test]
async fn other_kinds_have_pages_with_what_matters_for_them() {
    let fleet = Fleet::new().await;
    let id = fleet.cluster("calm", 7200).await;
    fleet.make("NodePool", Some(&id), json!({ "name": "workers", "spec": {} }), 60).await;
    fleet.make("WifConfig", None, json!({ "name": "wif", "spec": {} }), 60).await;
    let page = fleet.overview(&Asked { kind: Some("NodePool"), ..Asked::default() }).await;
    page.check_accessibility();
    assert_eq!(page.row("workers")["Cluster"], format!("Cluster {id}"));
    let kinds: Vec<_> = page.all("nav")[0].all("a").into_iter().map(Node::text).collect();
    assert_eq!(kinds, ["Clusters", "Nodepools", "Channels", "Wifconfigs", "Versions", "API"]);
    let page = fleet.overview(&Asked { kind: Some("WifConfig"), ..Asked::default() }).await;
    assert_eq!(summary(&page), ["1 in all", "0 ⌫ being deleted"]);
    assert!(!page.row("wif").contains_key("Reconciled"), "nothing is concluded about it");

    let unknown = page::overview(&fleet.service, &Asked { kind: Some("Nope"), ..Asked::default() }, fleet.now).await;
    assert!(matches!(unknown, Err(rejection) if rejection.problem.code == Code::NotFound));
}

#[tokio::test]
async fn every_endpoint_that_is_listed_is_served() {
    let fleet = Fleet::new().await;
    let served = fleet.serve().await;
    let client = reqwest::Client::new();
    let page = client.get(format!("{}/api/hyperfleet/v1/openapi.html", served.base)).send().await.unwrap();
    let page = Node::parse(&page.text().await.unwrap());
    page.check_accessibility();
    let listed = page.row_names();
    assert!(listed.len() > 50, "{listed:?}");
    for endpoint in listed {
        let (method, path) = endpoint.split_once(' ').unwrap();
        let path = path.replace("{plural}", "clusters").replace("{id}", "none").replace("{owner}", "none");
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let answer = client.request(method, format!("{}{path}", served.base)).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        let is_unknown = status == 404 && text.contains("HYPERFLEET-NTF-000");
        assert!(status != 405 && !is_unknown && status.as_u16() < 500, "{endpoint}: {status}");
    }
}
