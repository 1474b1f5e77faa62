//! The content of the overview.

use hyperfleet_api::page::{self, OverviewRequest};
use hyperfleet_api::problem::Code;
use hyperfleet_api::tenancy::Reach;
use serde_json::{Value, json};
use testkit::api::http_client;

use crate::document::Node;
use crate::fleet::{Fleet, available};

fn summary(page: &Node) -> Vec<String> {
    page.class("summary")[0].all("li").into_iter().map(Node::text).collect()
}

#[tokio::test]
async fn an_empty_fleet_shows_a_command_that_creates_a_cluster() {
    let fleet = Fleet::new().await;
    let served = fleet.serve().await;
    let client = http_client();
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
    let page = fleet.overview(&OverviewRequest::default()).await;
    assert_eq!(page.row_names(), [made["name"].as_str().unwrap()]);
}

#[tokio::test]
async fn a_host_header_with_shell_syntax_is_not_repeated() {
    let fleet = Fleet::new().await;
    for host in ["x;rm -rf ~", "`id`", "$(id)", "a'b", "a b", ""] {
        let line = fleet.overview(&OverviewRequest { host: Some(host), ..OverviewRequest::default() }).await.all("pre")
            [0]
        .raw_text();
        assert!(line.contains("http://localhost:8000/api/"), "{line}");
    }
}

#[tokio::test]
async fn a_row_shows_why_a_cluster_is_not_reconciled() {
    let fleet = Fleet::new().await;
    fleet.reconciled("calm", 7200).await;
    fleet.failing("troubled", 600).await;
    fleet.deleting("deleting", 300).await;
    let page = fleet.overview(&OverviewRequest::default()).await;
    page.check_accessibility();
    assert_eq!(page.row_names(), ["deleting", "troubled", "calm"], "newest first");
    assert_eq!(summary(&page), ["3 in all", "2 ✗ not reconciled", "1 ✓ reconciled", "1 ⌫ being deleted"]);

    let calm = page.row("calm");
    assert_eq!(calm["Reconciled"], "✓ True 1 h ago ReconciledAll");
    assert_eq!((calm["dns"].as_str(), calm["Deleting"].as_str(), calm["Age"].as_str()), ("✓ True", "· no", "2 h ago"));
    let troubled = page.row("troubled");
    assert_eq!(troubled["Reconciled"], "✗ False 10 min ago ReconciledMissingAdapters");
    assert_eq!(troubled["Gen."], "2");
    assert_eq!(troubled["validation"], "↺ stale 1 of 2, was True");
    assert_eq!(troubled["dns"], "✗ False ZoneNotFound");
    assert_eq!(troubled["hypershift"], "– no report");
    let leaving = page.row("deleting");
    assert_eq!(leaving["Deleting"], "⌫ yes 4 min ago");
    assert_eq!(leaving["dns"], "↺ stale 1 of 2, was True");
}

#[tokio::test]
async fn a_deletion_shows_which_adapters_have_finalized() {
    let fleet = Fleet::new().await;
    let id = fleet.deleting("deleting", 300).await;
    let mut report = available("dns", 2, "True", "Deleted", "the zone is deleted");
    report["conditions"].as_array_mut().unwrap().push(json!({ "type": "Finalized", "status": "True" }));
    fleet.report(&id, report, 100).await;
    fleet.report(&id, available("hypershift", 2, "True", "Waiting", "the nodes are deleted first"), 100).await;
    let row = fleet.overview(&OverviewRequest::default()).await.row("deleting");
    assert_eq!(row["dns"], "✓ Finalized");
    assert_eq!(row["hypershift"], "✗ not finalized Waiting");
}

#[tokio::test]
async fn every_count_links_to_the_resources_that_it_counts() {
    let fleet = Fleet::new().await;
    fleet.reconciled("calm", 7200).await;
    fleet.failing("troubled", 600).await;
    fleet.deleting("deleting", 300).await;
    let served = fleet.serve().await;
    for kind in ["Cluster", "NodePool", "WifConfig"] {
        let page = fleet.overview(&OverviewRequest { kind: Some(kind), ..OverviewRequest::default() }).await;
        for link in page.class("summary")[0].all("a") {
            let count: usize = link.all("b")[0].text().parse().unwrap();
            let url = format!("{}{}", served.base, link.attr("href").unwrap());
            let linked = Node::parse(&reqwest::get(&url).await.unwrap().text().await.unwrap());
            assert!(
                linked.class("bad").iter().all(|bad| bad.attr("role") != Some("alert")),
                "{url} is an invalid search"
            );
            assert_eq!(linked.row_names().len(), count, "{url}");
            let current: Vec<_> = linked.class("summary")[0].all("a");
            let current = current.iter().filter(|link| link.attr("aria-current").is_some());
            assert_eq!(current.map(|link| link.text()).collect::<Vec<_>>(), [link.text()]);
        }
    }
}

#[tokio::test]
async fn an_invalid_search_is_marked_at_its_column() {
    let fleet = Fleet::new().await;
    fleet.reconciled("calm", 7200).await;
    let search = "name = 'calm' and colour = 'red'";
    let page = fleet.overview(&OverviewRequest { search: Some(search), ..OverviewRequest::default() }).await;
    page.check_accessibility();
    let fault = page.id("fault");
    assert_eq!(fault.attr("role"), Some("alert"));
    assert!(fault.text().contains("column 19"), "{}", fault.text());
    assert_eq!(fault.all("pre")[0].raw_text(), format!("{search}\n{}▲", " ".repeat(18)));
    assert_eq!(page.id("search").attr("value"), Some(search), "the search stays in the form");
    assert_eq!(page.id("search").attr("aria-describedby"), Some("fault"));
    assert_eq!(page.all("table").len(), 0);

    let page = fleet.overview(&OverviewRequest { search: Some("name = 'other'"), ..OverviewRequest::default() }).await;
    assert!(page.id("main").text().contains("None of the clusters match."));
}

/// The rows of the causes: the adapter, the count, the reason, since when, the message, the examples.
fn causes(page: &Node) -> Vec<String> {
    let Some(table) = page.all("table").into_iter().find(|table| table.text().contains("Blocked by")) else {
        return Vec::new();
    };
    table.all("tbody")[0].all("tr").into_iter().map(Node::text).collect()
}

#[tokio::test]
async fn causes_are_named_once_for_each_cluster_and_most_clusters_first() {
    let fleet = Fleet::new().await;
    assert!(causes(&fleet.overview(&OverviewRequest::default()).await).is_empty());
    fleet.reconciled("calm", 7200).await;
    assert!(causes(&fleet.overview(&OverviewRequest::default()).await).is_empty());
    for (name, age) in [("checkout-us", 600), ("checkout-eu", 900)] {
        let id = fleet.failing(name, age).await;
        fleet.report(&id, available("validation", 2, "True", "Valid", "the spec is valid"), age - 70).await;
        fleet
            .report(&id, available("pullsecret", 2, "False", "PreconditionsNotMet", "waiting for dns"), age - 70)
            .await;
    }
    let silent = fleet.cluster("silent", 300).await;
    let outdated = fleet.cluster("outdated", 200).await;
    fleet.report(&outdated, available("validation", 1, "True", "Valid", "the spec is valid"), 190).await;
    fleet.relabel(&outdated, 180).await;
    let page = fleet.overview(&OverviewRequest::default()).await;
    page.check_accessibility();
    assert_eq!(
        causes(&page),
        [
            "dns2ZoneNotFound14 min agothe zone eu.example.com does not exist: create it or correct spec.dns.zone\
             checkout-us, checkout-eu",
            "validation1no report5 min ago–silent",
            "validation1no report on this generationon an older one: Valid3 min ago–outdated",
        ],
        "the adapter that waits for dns is no cause of its own"
    );

    // Each count leads to the clusters that it counts, also within a search, but for that of an older generation.
    let served = fleet.serve().await;
    for (search, expected) in
        [("", vec![vec!["checkout-us", "checkout-eu"], vec!["silent"], vec![]]), ("eu", vec![vec!["checkout-eu"]])]
    {
        let page = fleet.overview(&OverviewRequest { search: Some(search), ..OverviewRequest::default() }).await;
        let table = page.all("table").into_iter().find(|table| table.text().contains("Blocked by")).unwrap();
        let rows = table.all("tbody")[0].all("tr");
        assert_eq!(rows.len(), expected.len(), "{search}");
        for (row, names) in rows.into_iter().zip(expected) {
            let count = &row.all("td")[0];
            if names.is_empty() {
                assert!(count.all("a").is_empty(), "a link to others");
                continue;
            }
            let url = format!("{}{}", served.base, count.all("a")[0].attr("href").unwrap());
            let linked = Node::parse(&reqwest::get(&url).await.unwrap().text().await.unwrap());
            assert_eq!(linked.row_names(), names, "{url}");
        }
    }
    let second_page = OverviewRequest { page: Some("2"), ..OverviewRequest::default() };
    assert!(causes(&fleet.overview(&second_page).await).is_empty());
    assert!(fleet.page(&silent).await.id("main").text().contains("Not reconciled"));
}

#[tokio::test]
async fn plain_words_find_names_and_ids() {
    let fleet = Fleet::new().await;
    let id = fleet.reconciled("payments-eu", 7200).await;
    fleet.reconciled("payments-us", 7100).await;
    for (search, expected) in [
        ("payments", vec!["payments-us", "payments-eu"]),
        ("EU pay", vec!["payments-eu"]),
        (id.as_str(), vec!["payments-eu"]),
        ("nothing", vec![]),
    ] {
        let page = fleet.overview(&OverviewRequest { search: Some(search), ..OverviewRequest::default() }).await;
        page.check_accessibility();
        assert_eq!(page.row_names(), expected, "{search}");
        assert_eq!(page.id("search").attr("value"), Some(search), "the words stay in the form");
    }
    let page = fleet.overview(&OverviewRequest { search: Some("name like x"), ..OverviewRequest::default() }).await;
    assert_eq!(page.id("fault").attr("role"), Some("alert"), "words of the search language are not names");
}

/// A reload would take what a reader is typing, so it is off unless asked for.
#[tokio::test]
async fn pages_reload_only_if_asked() {
    let fleet = Fleet::new().await;
    let id = fleet.failing("troubled", 600).await;
    let served = fleet.serve().await;
    let get = async |path: &str| {
        let answer = reqwest::get(format!("{}{path}", served.base)).await.unwrap();
        Node::parse(&answer.text().await.unwrap())
    };
    let reloads = |page: &Node| page.all("meta").iter().any(|meta| meta.attr("http-equiv") == Some("refresh"));
    for path in ["/?kind=Cluster&search=troubled".to_owned(), format!("/ui/clusters/{id}")] {
        let page = get(&path).await;
        assert!(!reloads(&page), "{path}");
        let on = page.all("footer")[0].all("a")[0].attr("href").unwrap().to_owned();
        let page = get(&on).await;
        page.check_accessibility();
        assert!(reloads(&page) && page.id("main").text().contains("troubled"), "{on}");
        assert_eq!(page.all("footer")[0].all("a")[0].attr("href"), Some(path.as_str()), "the way back");
    }
}

#[tokio::test]
async fn large_fleets_are_paged_with_bounded_size() {
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
        let text = fleet.overview_text(&OverviewRequest { page: Some(number), ..OverviewRequest::default() }).await;
        assert!(text.len() < 200_000, "page {number} has {} bytes", text.len());
        let page = Node::parse(&text);
        assert_eq!(page.id("list").all("caption")[0].text(), format!("{expected}, newest first"));
        assert_eq!(page.class("pages")[0].all("a").into_iter().map(Node::text).collect::<Vec<_>>(), ways);
        names.extend(page.row_names());
    }
    let expected = (0..205).rev().map(|index| format!("cluster-{index}-with-quite-a-long-name-as-people-do"));
    assert_eq!(names, expected.collect::<Vec<_>>());
    let past_the_end = fleet.overview(&OverviewRequest { page: Some("4"), ..OverviewRequest::default() }).await;
    assert!(past_the_end.id("main").text().contains("There are no clusters on page 4."));
    for invalid in ["0", "-1", "x", "99999999999999999999"] {
        let page = fleet.overview(&OverviewRequest { page: Some(invalid), ..OverviewRequest::default() }).await;
        assert_eq!(page.id("list").all("caption")[0].text(), "1 to 100 of 205, newest first", "{invalid}");
    }
}

#[tokio::test]
async fn other_kinds_have_overviews_with_the_columns_that_apply() {
    let fleet = Fleet::new().await;
    let id = fleet.cluster("calm", 7200).await;
    fleet.create("NodePool", Some(&id), json!({ "name": "workers", "spec": {} }), 60).await;
    fleet.create("WifConfig", None, json!({ "name": "wif", "spec": {} }), 60).await;
    let page = fleet.overview(&OverviewRequest { kind: Some("NodePool"), ..OverviewRequest::default() }).await;
    page.check_accessibility();
    assert_eq!(page.row("workers")["Cluster"], format!("Cluster {id}"));
    let kinds: Vec<_> = page.all("nav")[0].all("a").into_iter().map(Node::text).collect();
    assert_eq!(kinds, ["Clusters", "Nodepools", "Channels", "Wifconfigs", "Versions", "API"]);
    let page = fleet.overview(&OverviewRequest { kind: Some("WifConfig"), ..OverviewRequest::default() }).await;
    assert_eq!(summary(&page), ["1 in all", "0 ⌫ being deleted"]);
    assert!(!page.row("wif").contains_key("Reconciled"), "a kind without adapters has no such column");

    let unknown = page::overview(
        &fleet.service,
        &OverviewRequest { kind: Some("Nope"), ..OverviewRequest::default() },
        &Reach::Unlimited,
        fleet.now,
    )
    .await;
    assert!(matches!(unknown, Err(rejection) if rejection.problem.code == Code::NotFound));
}

#[tokio::test]
async fn every_endpoint_that_is_listed_is_served() {
    let fleet = Fleet::new().await;
    let served = fleet.serve().await;
    let client = http_client();
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
