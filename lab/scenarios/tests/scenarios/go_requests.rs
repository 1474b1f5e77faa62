//! The requests of HyperFleet's own Sentinel and adapters, in their order and with their quirks: times in whole seconds, empty
//! reasons and messages, pages of 20.

use std::net::SocketAddr;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use testkit::http::exchange;
use testkit::hyperfleet::HyperFleetApi;

const BASE: &str = "/api/hyperfleet/v1/clusters";
/// The adapters that clusters need by default.
const REQUIRED: [&str; 4] = ["validation", "dns", "pullsecret", "hypershift"];
const SENTINEL: &str = "user-agent: hyperfleet-sentinel/0.2.0 (clusters)\r\naccept: application/json\r\n";
const ADAPTER: &str = "user-agent: hyperfleet-adapter/0.3.0\r\ncontent-type: application/json\r\n";

/// Clients of one API.
struct Clients {
    api: HyperFleetApi,
    address: SocketAddr,
    /// Time of the next report: a second after the one before.
    clock: Timestamp,
}

impl Clients {
    async fn start() -> Self {
        let api = HyperFleetApi::start().await;
        let address = api.address.parse().unwrap();
        Self { api, address, clock: Timestamp::now() - SignedDuration::from_mins(20) }
    }

    async fn get(&self, path: &str, headers: &str) -> (u16, Value) {
        let reply = exchange(self.address, "GET", &format!("{BASE}{path}"), "", headers).await.unwrap();
        (reply.status, reply.body)
    }

    /// Reads the fleet as the Sentinel's poll does.
    async fn poll(&self, search: &str) -> Vec<Value> {
        let (mut all, mut page) = (Vec::new(), 1);
        loop {
            let (status, list) = self.get(&format!("?page={page}&size=20{search}"), SENTINEL).await;
            assert_eq!(status, 200, "{list}");
            let items = list["items"].as_array().unwrap().clone();
            assert_eq!((&list["page"], &list["size"]), (&json!(page), &json!(items.len())));
            let is_over = items.is_empty();
            all.extend(items);
            if is_over || all.len() as u64 >= list["total"].as_u64().unwrap() {
                return all;
            }
            page += 1;
        }
    }

    /// Reports as an adapter does on an event: it reads the cluster and all statuses, then writes its own.
    async fn reconcile(&mut self, id: &str, adapter: &str, conditions: Value, expect: u16) {
        let (status, cluster) = self.get(&format!("/{id}"), ADAPTER).await;
        assert_eq!((status, &cluster["kind"]), (200, &json!("Cluster")));
        let (status, statuses) = self.get(&format!("/{id}/statuses"), ADAPTER).await;
        assert!(status == 200 && statuses["items"].is_array(), "{statuses}");
        self.clock += SignedDuration::from_secs(1);
        let body = json!({
            "adapter": adapter, "observed_generation": cluster["generation"],
            "observed_time": self.clock.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "conditions": conditions, "data": {"namespace": "clusters-a"},
        });
        let path = format!("{BASE}/{id}/statuses");
        let reply = exchange(self.address, "PUT", &path, &body.to_string(), ADAPTER).await.unwrap();
        assert_eq!(reply.status, expect, "{adapter}: {}", reply.body);
    }
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "Reason", "message": "In words"})
}

fn conditions(applied: &str, available: &str) -> Value {
    json!([condition("Applied", applied), condition("Available", available), condition("Health", "True")])
}

fn reconciled(cluster: &Value) -> Value {
    let conditions = cluster["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|condition| condition["type"] == "Reconciled").unwrap();
    for member in ["observed_generation", "last_updated_time", "last_transition_time", "reason", "message"] {
        assert!(!found[member].is_null(), "{member}: {found}");
    }
    found["status"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_s_life_in_the_requests_of_the_go_services() {
    let mut clients = Clients::start().await;
    // The Sentinel's check at its start.
    let (status, none) = clients.get("?search=labels.non_existing_label%3D%27value%27&size=1", SENTINEL).await;
    assert_eq!((status, &none["total"], &none["items"]), (200, &json!(0), &json!([])));
    for number in 0..45 {
        let body = json!({"kind": "Cluster", "name": format!("cluster-{number}"), "spec": {},
            "labels": {"region": if number % 2 == 0 { "eu" } else { "us" }}});
        exchange(clients.address, "POST", BASE, &body.to_string(), ADAPTER).await.unwrap().expect(201);
    }
    let fleet = clients.poll("").await;
    let mut ids: Vec<&str> = fleet.iter().map(|cluster| cluster["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 45);
    assert_eq!(clients.poll("&search=labels.region%3D%27eu%27+and+labels.region%3D%27eu%27").await.len(), 23);
    assert!(fleet.iter().all(|cluster| reconciled(cluster) == "False" && cluster["generation"] == 1));
    assert!(fleet.iter().all(|cluster| cluster["href"].as_str().unwrap().starts_with(BASE)));

    let id = fleet[0]["id"].as_str().unwrap().to_owned();
    // Skipped, as its preconditions are not met; running; done.
    for adapter in REQUIRED {
        clients.reconcile(&id, adapter, conditions("False", "False"), 201).await;
        clients.reconcile(&id, adapter, conditions("True", "Unknown"), 204).await;
        clients.reconcile(&id, adapter, conditions("True", "True"), 201).await;
    }
    let (_, cluster) = clients.get(&format!("/{id}"), ADAPTER).await;
    assert_eq!(reconciled(&cluster), "True");
    let (_, statuses) = clients.get(&format!("/{id}/statuses"), ADAPTER).await;
    let items = statuses["items"].as_array().unwrap();
    assert!(items.len() == 4 && items.iter().all(|item| item["data"]["namespace"] == "clusters-a"), "{statuses}");

    // A deletion: it stays in the Sentinel's list until every adapter is finished.
    let deleted = exchange(clients.address, "DELETE", &format!("{BASE}/{id}"), "", ADAPTER).await.unwrap().expect(202);
    assert_eq!((&deleted["generation"], deleted["deleted_time"].is_string()), (&json!(2), true));
    let listed = clients.poll("").await;
    assert!(listed.iter().any(|cluster| cluster["id"] == json!(id) && reconciled(cluster) == "False"));
    for adapter in REQUIRED {
        let finalized = |status: &str| {
            let mut all = conditions("False", "False");
            // Templates leave reason and message empty.
            all.as_array_mut()
                .unwrap()
                .push(json!({"type": "Finalized", "status": status, "reason": "", "message": ""}));
            all
        };
        clients.reconcile(&id, adapter, finalized("False"), 201).await;
        clients.reconcile(&id, adapter, finalized("True"), 201).await;
    }
    let (status, problem) = clients.get(&format!("/{id}"), ADAPTER).await;
    // By this code an adapter knows that the cluster is gone, and not that its address is wrong.
    assert_eq!((status, &problem["code"]), (404, &json!("HYPERFLEET-NTF-001")));
    assert_eq!(clients.poll("").await.len(), 44);
    drop(clients.api);
}
