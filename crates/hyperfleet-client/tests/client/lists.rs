//! Lists: one page, all pages, and what happens to them meanwhile.

use hyperfleet_client::{ListQuery, Status};
use serde_json::{Value, json};

use crate::server::{Reply, Server, budget};

fn page(page: u32, total: u64, ids: impl IntoIterator<Item = u32>) -> Reply {
    let items: Vec<Value> = ids.into_iter().map(|id| json!({"id": format!("c{id:03}")})).collect();
    Reply::new(200, json!({"page": page, "size": items.len(), "total": total, "items": items}))
}

async fn all(replies: impl IntoIterator<Item = Reply>) -> (usize, Vec<String>) {
    let server = Server::start(replies).await;
    let (client, budget) = (server.client(), budget());
    let all = client.within(&budget).list_all("clusters", ListQuery::default()).collect().await.unwrap();
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
