//! Lists: pages, their links, and the items on them.

use emulators::key_vault::Settings;
use rstest::rstest;
use serde_json::{Value, json};

use testkit::key_vault::{KeyVaultReply as _, Server, names, version_of};

/// The names on all pages of a list, page by page, by following links as they are.
async fn pages(server: &Server, path: &str) -> Vec<Vec<String>> {
    let mut page = server.get(path).await.expect(200);
    let mut found = vec![names(&page)];
    while let Some(link) = page["nextLink"].as_str() {
        let next = link.strip_prefix(&server.vault.url()).unwrap();
        assert!(next.contains("api-version=2025-07-01&$skiptoken="), "{next}");
        let header = format!("authorization: Bearer {}\r\n", server.token);
        page = server.raw("GET", next, "", &header).await.unwrap().expect(200);
        found.push(names(&page));
    }
    assert_eq!(page["nextLink"], Value::Null);
    found
}

fn sizes(pages: &[Vec<String>]) -> Vec<usize> {
    pages.iter().map(Vec::len).collect()
}

#[tokio::test]
async fn secrets_come_in_pages_of_25_at_most() {
    let server = Server::plain().await;
    assert_eq!(server.get("/secrets").await.expect(200), json!({"value": [], "nextLink": null}));
    for number in 0..26 {
        server.set(&format!("s-{number:02}"), "a").await;
    }
    let found = pages(&server, "/secrets").await;
    assert_eq!(sizes(&found), [25, 1]);
    assert!(found.concat().is_sorted());
    assert_eq!(sizes(&pages(&server, "/secrets?maxresults=13").await), [13, 13]);
    assert_eq!(sizes(&pages(&server, "/secrets?maxresults=10").await), [10, 10, 6]);

    // What is deleted between two pages moves nothing.
    let first = server.get("/secrets?maxresults=2").await.expect(200);
    server.delete("/secrets/s-00").await.expect(200);
    server.delete("/secrets/s-01").await.expect(200);
    let link = first["nextLink"].as_str().unwrap().strip_prefix(&server.vault.url()).unwrap().to_owned();
    assert_eq!(names(&server.get(&link).await.expect(200)), ["s-02", "s-03"]);
    assert_eq!(pages(&server, "/deletedsecrets?maxresults=1").await, [["s-00"], ["s-01"]]);
}

#[tokio::test]
async fn an_item_is_a_secret_by_its_newest_version() {
    let server = Server::with_secret(Settings::default()).await;
    let newest = server.put("s", json!({"value": "b", "contentType": "text", "tags": {"a": "b"}})).await.expect(200);
    let listed = server.get("/secrets").await.expect(200);
    let id = format!("{}/secrets/s", server.vault.url());
    let expected = json!({"id": id, "contentType": "text", "tags": {"a": "b"}, "attributes": newest["attributes"]});
    assert_eq!(listed["value"], json!([expected]), "neither value nor version");
}

#[tokio::test]
async fn versions_come_without_values_and_in_no_order() {
    let server = Server::plain().await;
    let mut versions = Vec::new();
    for number in 0..26 {
        versions.push(version_of(
            &server.put("s", json!({"value": "a", "tags": {"n": number.to_string()}})).await.expect(200),
        ));
    }
    let found = pages(&server, "/secrets/s/versions").await;
    assert_eq!(sizes(&found), [25, 1]);
    versions.sort();
    assert_eq!(found.concat(), versions);
    let page = server.get("/secrets/s/versions").await.expect(200);
    let items = page["value"].as_array().unwrap();
    assert!(items.iter().all(|item| item.get("value").is_none() && item["tags"]["n"].is_string()));
    assert_eq!(server.get("/secrets/none/versions").await.expect(200)["value"], json!([]));
}

#[rstest]
#[case("maxresults=0", "maxresults must be between 1 and 25.")]
#[case("maxresults=26", "maxresults must be between 1 and 25.")]
#[case("maxresults=many", "maxresults must be a whole number.")]
#[case("$skiptoken=%C3%BC", "$skiptoken is not one of this server")]
#[tokio::test]
async fn wrong_pages_are_refused(#[case] query: &str, #[case] text: &str) {
    let server = Server::plain().await;
    for path in ["/secrets", "/deletedsecrets", "/secrets/s/versions"] {
        server.get(&format!("{path}?{query}")).await.refused(400, "BadParameter", text);
    }
}
