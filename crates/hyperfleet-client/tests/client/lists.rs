//! Lists: one page, all pages, and what happens to them meanwhile.

use hyperfleet_client::{ListQuery, Status};
use rstest::rstest;
use serde_json::{Value, json};

use crate::server::{Reply, Server, budget};

fn page(page: u32, total: u64, ids: impl IntoIterator<Item = u32>) -> Reply {
    let items: Vec<Value> = ids.into_iter().map(|id| json!({"id": format!("c{id:03}")})).collect();
    Reply::new(200, json!({"page": page, "size": items.len(), "total": total, "items": items}))
}

async fn all(replies: impl IntoIterator<Item = Reply>) -> (usize, Vec<String>) {
    let server = Server::start(replies).await;
    let (client, budget) = (server.client(), budget());
    // With an order of one's own, pages are counted by position.
    let query = ListQuery { order: Some("id asc".to_owned()), ..ListQuery::default() };
    let all = client.within(&budget).list_all("clusters", query).collect().await.unwrap();
    let mut ids: Vec<_> = all.into_iter().map(|cluster| cluster.id).collect();
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "each once");
    (count, server.lines())
}

#[tokio::test]
async fn one_page_is_asked_for_as_wanted() {
    let server = Server::start([page(2, 30, 20..30)]).await;
    let query = ListQuery {
        search: Some("labels.region = 'eu'".into()),
        order: Some("name desc".into()),
        page: Some(2),
        size: Some(20),
        fields: vec!["id".into(), "name".into()],
    };
    let list = server.client().within(&budget()).list("clusters", &query).await.unwrap();
    assert_eq!((list.page, list.size, list.total, list.items.len()), (2, 10, Some(30), 10));
    let line = "GET /clusters?search=labels.region+%3D+%27eu%27&order=name+desc&page=2&size=20&fields=id%2Cname";
    assert_eq!(server.lines(), [line]);
}

#[tokio::test]
async fn all_pages_are_read_in_a_stable_order() {
    let (count, lines) = all([page(1, 250, 0..100), page(2, 250, 100..200), page(3, 250, 200..250)]).await;
    assert_eq!(count, 250);
    assert_eq!(lines[2], "GET /clusters?order=id+asc&page=3&size=100");
    assert_eq!(lines.len(), 3);
}

#[tokio::test]
async fn an_empty_list_is_one_question() {
    assert_eq!(all([page(1, 0, [])]).await.1.len(), 1);
}

#[tokio::test]
async fn what_is_created_meanwhile_is_found_and_nothing_comes_twice() {
    // 0 is new and stands first, so the last of page 1 is the first of page 2.
    let replies = [page(1, 150, 1..101), page(2, 151, 100..151), page(1, 151, 0..100), page(2, 151, 100..151)];
    let (count, lines) = all(replies).await;
    assert_eq!((count, lines.len()), (151, 4));
}

#[tokio::test]
async fn what_is_deleted_meanwhile_hides_nothing() {
    // 0 is gone, so 100 slipped to the page that is read already.
    let replies = [page(1, 150, 0..100), page(2, 149, 101..150), page(1, 149, 1..101), page(2, 149, 101..150)];
    let (count, lines) = all(replies).await;
    assert_eq!((count, lines.len()), (150, 4));
}

#[tokio::test]
async fn statuses_and_history_are_lists_too() {
    let condition = json!({"type": "Available", "status": "True", "last_transition_time": "2026-01-01T00:00:00Z"});
    let item = |adapter: &str| json!({"adapter": adapter, "observed_generation": 1, "conditions": [condition]});
    let change =
        json!({"adapter": "dns", "type": "Available", "from": "False", "to": "True", "time": "2026-01-01T00:00:00Z"});
    let first = json!({"adapter": "dns", "type": "Available", "from": null, "to": "False"});
    let server = Server::start([
        Reply::new(200, json!({"page": 1, "size": 2, "total": 2, "items": [item("dns"), item("validation")]})),
        Reply::new(200, json!({"page": 1, "size": 2, "total": 2, "items": [change, first]})),
    ])
    .await;
    let (client, budget) = (server.client(), budget());
    let statuses = client.within(&budget).statuses("clusters", "a").await.unwrap();
    assert_eq!(statuses[1].condition("Available").unwrap().status, Status::True);
    let history = client.within(&budget).history("clusters", "a").await.unwrap();
    assert_eq!((history[0].from, history[1].from), (Some(Status::False), None));
    let expect = ["GET /clusters/a/statuses?page=1&size=100", "GET /clusters/a/statuses/history?size=100"];
    assert_eq!(server.lines(), expect);
}

/// One item that is not of the contract's form hides itself only.
#[rstest]
#[case::a_number_as_id(json!({"id": 7}))]
#[case::no_id(json!({"name": "x"}))]
#[case::a_text_as_generation(json!({"id": "bad", "generation": "two"}))]
#[case::no_time(json!({"id": "bad", "created_time": "yesterday"}))]
#[case::conditions_that_are_no_list(json!({"id": "bad", "status": {"conditions": {"type": "Reconciled"}}}))]
#[case::labels_that_are_a_text(json!({"id": "bad", "labels": "a=b"}))]
#[case::no_object(json!("bad"))]
#[case::null(Value::Null)]
#[tokio::test]
async fn an_item_that_cannot_be_read_is_left_out(#[case] bad: Value) {
    for position in 0..3 {
        let mut items = vec![json!({"id": "a"}), json!({"id": "b"})];
        items.insert(position, bad.clone());
        let body = json!({"page": 1, "size": 3, "total": 3, "items": items});
        let (count, lines) = all([Reply::new(200, body)]).await;
        assert_eq!((count, lines.len()), (2, 1), "at {position}: {lines:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_no_list_is_an_error() {
    for body in [json!({"items": "none"}), json!([]), json!({"page": 1})] {
        let server = Server::start([Reply::new(200, body)]).await;
        let result = server.client().within(&budget()).list("clusters", &ListQuery::default()).await;
        assert!(result.is_err(), "{result:?}");
    }
}

async fn all_by_id(search: Option<&str>, replies: impl IntoIterator<Item = Reply>) -> (usize, Vec<String>) {
    let server = Server::start(replies).await;
    let (client, budget) = (server.client(), budget());
    let query = ListQuery { search: search.map(str::to_owned), ..ListQuery::default() };
    let all = client.within(&budget).list_all("clusters", query).collect().await.unwrap();
    (all.len(), server.lines())
}

/// A page by position costs the more the later it comes.
#[tokio::test]
async fn resources_are_read_from_the_last_id() {
    let replies = || [page(1, 250, 0..100), page(1, 150, 100..200), page(1, 50, 200..250)];
    let (count, lines) = all_by_id(None, replies()).await;
    assert_eq!(count, 250);
    let expect = [
        "GET /clusters?order=id+asc&page=1&size=100",
        "GET /clusters?search=id+%3E+%27c099%27&order=id+asc&size=100",
        "GET /clusters?search=id+%3E+%27c199%27&order=id+asc&size=100",
    ];
    assert_eq!(lines, expect);
    let (count, lines) = all_by_id(Some("labels.a = 'b' or name = 'c'"), replies()).await;
    assert_eq!(count, 250);
    let second = "GET /clusters?search=%28labels.a+%3D+%27b%27+or+name+%3D+%27c%27%29+and+id+%3E+%27c099%27&order=id+asc&size=100";
    assert_eq!(lines[1], second);
}

/// A total may be an estimate: the list ends where no full page comes.
#[tokio::test]
async fn a_list_by_ids_ends_with_a_page_that_is_not_full() {
    for total in [100, 90, 1_000] {
        let (count, lines) = all_by_id(None, [page(1, total, 0..100), page(1, 0, [])]).await;
        assert_eq!((count, lines.len()), (100, 2), "{total}");
    }
    assert_eq!(all_by_id(None, [page(1, 30, 0..30)]).await.1.len(), 1);
}

#[tokio::test]
async fn an_api_that_cannot_search_for_ids_is_read_by_position() {
    let refused = Reply::problem(400, "VAL-007");
    let (count, lines) = all_by_id(None, [page(1, 150, 0..100), refused, page(2, 150, 100..150)]).await;
    assert_eq!((count, lines[2].as_str()), (150, "GET /clusters?order=id+asc&page=2&size=100"));
    // It ignores the search.
    let replies = [page(1, 150, 0..100), page(1, 150, 0..100), page(2, 150, 100..150)];
    let (count, lines) = all_by_id(None, replies).await;
    assert_eq!(count, 150, "{lines:?}");
}
