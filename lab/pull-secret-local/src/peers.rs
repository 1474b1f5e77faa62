//! The other adapters and the fleet's users, simulated: what they create, report and publish.

use std::time::Duration;

use daemon::retry::Budget;
use hyperfleet_client::{Calls, Generation, NewCondition, NewReport, NewResource, Resource, Status};
use jiff::Timestamp;
use message_broker::Event;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::fleet::Clients;
use crate::peer_state::{PeerState, namespace};

/// Maximum time of all calls together; a simulation takes far less.
const TIMEOUT: Duration = Duration::from_hours(24);

/// The clients, and the time for their calls.
pub(crate) struct Peers<'a> {
    pub(crate) clients: &'a Clients,
    budget: Budget,
}

impl<'a> Peers<'a> {
    pub(crate) fn new(clients: &'a Clients) -> Self {
        Self { clients, budget: Budget::new(TIMEOUT, CancellationToken::new()) }
    }

    pub(crate) fn calls(&self) -> Calls<'_> {
        self.clients.client.within(&self.budget)
    }

    /// Creates a cluster.
    pub(crate) async fn create(&self, id: &str, name: &str, spec: &Value) -> anyhow::Result<Resource> {
        let new = NewResource {
            id: Some(id.to_owned()),
            kind: "Cluster".to_owned(),
            name: name.to_owned(),
            spec: members(spec),
            ..NewResource::default()
        };
        Ok(self.calls().create("clusters", &new).await?)
    }

    /// Reports about a cluster as an adapter.
    pub(crate) async fn report(
        &self,
        adapter: &str,
        id: &str,
        generation: Generation,
        state: PeerState,
    ) -> anyhow::Result<()> {
        let condition = |kind: &str, status: Status, reason: &str, message: Option<&str>| NewCondition {
            kind: kind.to_owned(),
            status,
            reason: Some(reason.to_owned()),
            message: message.map(str::to_owned),
            last_transition_time: None,
        };
        let available = match state {
            PeerState::Done | PeerState::Finalized => condition("Available", Status::True, "Done", None),
            PeerState::Blocked { reason, message } => condition("Available", Status::False, reason, Some(message)),
        };
        let mut conditions = vec![
            condition("Applied", Status::True, "ResourcesExist", None),
            available,
            condition("Health", Status::True, "NoErrors", None),
        ];
        if matches!(state, PeerState::Finalized) {
            conditions.push(condition("Finalized", Status::True, "CleanupConfirmed", None));
        }
        let data = if adapter == "placement" { json!({ "namespace": namespace(id) }) } else { json!({}) };
        let report = NewReport {
            adapter: adapter.to_owned(),
            observed_generation: generation,
            conditions,
            data: members(&data),
            observed_time: None,
            metadata: None,
        };
        self.calls().report("clusters", id, &report).await?;
        Ok(())
    }

    /// Publishes an event for a cluster, as the Sentinel does.
    pub(crate) async fn publish(&self, id: &str, generation: Generation) -> anyhow::Result<()> {
        let data = json!({ "id": id, "kind": "Cluster", "generation": generation, "reason": "resync" });
        let kind = "com.redhat.hyperfleet.cluster.reconcile";
        let mut event = Event::new(sentinel::event::SOURCE, kind, Timestamp::now(), data);
        event.subject = Some(id.to_owned());
        self.clients.broker.publish(&self.clients.topic, &event, &self.budget).await?;
        Ok(())
    }
}

/// The members of an object.
pub(crate) fn members(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}
