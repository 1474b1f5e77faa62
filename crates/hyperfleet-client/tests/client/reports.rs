//! Status reports: in which form, with which time, and what becomes of them.

use hyperfleet_client::{Client, Generation, NewCondition, NewReport, ReportMethod, Reported, Status};
use serde_json::{Map, json};

use crate::server::{Reply, Server, budget};

pub(crate) fn report() -> NewReport {
    let condition = |kind: &str| NewCondition {
        kind: kind.to_owned(),
        status: Status::True,
        reason: None,
        message: None,
        last_transition_time: None,
    };
    NewReport {
        adapter: "dns".to_owned(),
        observed_generation: Generation::FIRST,
        conditions: ["Available", "Applied", "Health"].map(condition).into(),
        data: Map::new(),
        observed_time: None,
        metadata: None,
    }
}

fn stored() -> Reply {
    Reply::new(201, json!({"adapter": "dns", "observed_generation": 1, "conditions": []}))
}

async fn send(client: &Client) -> Reported {
    client.within(&budget()).report("clusters", "a", &report()).await.unwrap()
}

#[tokio::test]
async fn what_became_of_a_report_is_told() {
    let replies = [stored(), Reply::new(200, "in other words"), Reply::status(204), Reply::problem(404, "NTF-001")];
    let server = Server::start(replies).await;
    let client = server.client();
    assert!(matches!(send(&client).await, Reported::Stored(Some(item)) if item.adapter == "dns"));
    assert_eq!(send(&client).await, Reported::Stored(None));
    assert_eq!(send(&client).await, Reported::Discarded);
    assert_eq!(send(&client).await, Reported::Gone);
}

#[tokio::test]
async fn every_report_is_later_than_the_one_before() {
    let server = Server::start([stored(), stored(), stored()]).await;
    let client = server.client();
    for client in [client.clone(), client.clone(), client] {
        send(&client).await;
    }
    let times: Vec<_> =
        server.asked().iter().map(|asked| asked.body["observed_time"].as_str().unwrap().to_owned()).collect();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    assert!(times.iter().all(|time| time.len() == "2026-01-01T00:00:00.000000Z".len()), "{times:?}");
}

#[tokio::test]
async fn an_attempt_that_is_repeated_is_the_same_report() {
    let server = Server::start([Reply::status(503), stored()]).await;
    send(&server.client()).await;
    let asked = server.asked();
    assert_eq!(asked[0].body, asked[1].body);
}

#[tokio::test]
async fn an_api_of_old_is_found_out_and_remembered() {
    let server = Server::start([Reply::status(405), Reply::status(503), stored(), stored()]).await;
    let client = server.client();
    send(&client).await;
    send(&client).await;
    let (put, post) = ("PUT /clusters/a/statuses", "POST /clusters/a/statuses");
    assert_eq!(server.lines(), [put, post, post, post]);
    let asked = server.asked();
    assert_eq!(asked[0].body["observed_generation"], 1);
    assert_eq!(asked[1].body["observedGeneration"], 1);
    assert_eq!(asked[0].body["observed_time"], asked[1].body["lastUpdated"]);
}

#[tokio::test]
async fn an_api_that_was_brought_up_to_date_is_found_out_too() {
    let server = Server::start([Reply::status(405), stored(), Reply::status(405), stored(), stored()]).await;
    let client = server.client();
    for _ in 0..3 {
        send(&client).await;
    }
    let methods: Vec<_> = server.lines().iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(methods, ["PUT", "POST", "POST", "PUT", "PUT"]);
}

#[tokio::test]
async fn a_pinned_method_stays() {
    for (method, line) in
        [(ReportMethod::Put, "PUT /clusters/a/statuses"), (ReportMethod::Post, "POST /clusters/a/statuses")]
    {
        let server = Server::start([Reply::status(405)]).await;
        let mut settings = server.settings();
        settings.report_method = method;
        let client = Client::new(settings).unwrap();
        let error = client.within(&budget()).report("clusters", "a", &report()).await.unwrap_err();
        assert_eq!(error.status(), Some(405));
        assert_eq!(server.lines(), [line]);
    }
}
