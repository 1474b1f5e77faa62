//! The Sentinel's settings: read, checked, and turned into parts.

mod shape;
pub mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use daemon::environment::Environment;
use daemon::settings::{Given, Table, configuration};
use hyperfleet_client::{BaseUrl, TokenSettings, WatchSettings};
use message_broker::Name;
use precondition::Precondition;
use serde::de::DeserializeOwned;

use crate::decide::Policy;
use crate::message_data::Template;
use crate::shard::{self, Shard};

pub use shape::{
    Address, Api, Auth, Broker, BrokerKind, Clients, Decision, EventsClients, EventsSettings, ExchangeType,
    GooglePubSub, LeaderElection, Logging, Method, Naming, Publish, RabbitMq, Settings, Subscription, Topic,
};

/// Where the configuration is looked for when nothing says where it is.
pub const SEARCHED: &str = "/etc/hyperfleet/config.yaml";

/// The settings, checked: what a Sentinel is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is watched, as paths have it.
    pub resource_type: String,
    /// The topic that events go to.
    pub topic: Name,
    /// Which API.
    pub client: hyperfleet_client::Settings,
    /// Which part of the fleet.
    pub shard: Shard,
    /// The search that finds the selected part of the fleet.
    pub search: Option<String>,
    /// The selection, as a metric's label.
    pub selector: String,
    /// How often a resource gets an event.
    pub policy: Policy,
    /// What events say.
    pub template: Template,
    /// When to publish for which adapter; always if empty.
    pub publish_when: BTreeMap<String, Precondition>,
    /// The rest, as it was given.
    pub settings: Settings,
}

/// Reads settings of a table from flags, environment and file.
pub fn read<T: DeserializeOwned>(
    table: &Table,
    flags: BTreeMap<&'static str, String>,
    environment: &impl Environment,
) -> Result<T, Vec<String>> {
    let flag = flags.get("config").map(String::as_str);
    let file = configuration(flag, environment, "HYPERFLEET_CONFIG", &[SEARCHED]).map_err(|fault| vec![fault])?;
    daemon::settings::load(table, environment, &Given { file, flags })
}

// === impl Settings ===

impl Settings {
    /// The settings of flags, environment and file; or everything that is wrong with them.
    pub fn load(flags: BTreeMap<&'static str, String>, environment: &impl Environment) -> Result<Self, Vec<String>> {
        read(&table::TABLE, flags, environment)
    }

    /// What a Sentinel is made of; or everything that is wrong with it.
    pub fn plan(self) -> Result<Plan, Vec<String>> {
        let mut faults = self.faults();
        let mut kept = |result: Result<(), String>| faults.extend(result.err());
        let base_url = self.clients.hyperfleet_api.base_url.as_deref();
        let base_url = required("clients.hyperfleet_api.base_url", base_url).and_then(|url| {
            url.parse::<BaseUrl>().map_err(|error| format!("clients.hyperfleet_api.base_url: {error}"))
        });
        let topic = required("clients.broker.topic", self.clients.broker.topic.as_deref())
            .and_then(|topic| topic.parse::<Name>().map_err(|error| format!("clients.broker.topic: {error}")));
        let resource_type = required("resource_type", self.resource_type.as_deref()).and_then(plural);
        let shard = self.shard.parse::<Shard>().map_err(|error| format!("shard: {error}"));
        let search = shard::search(&self.resource_selector);
        kept(base_url.as_ref().map(drop).map_err(Clone::clone));
        kept(topic.as_ref().map(drop).map_err(Clone::clone));
        kept(resource_type.as_ref().map(drop).map_err(Clone::clone));
        kept(shard.as_ref().map(drop).map_err(Clone::clone));
        kept(search.as_ref().map(drop).map_err(Clone::clone));
        let template = self.message_data.as_ref().map_or_else(|| Ok(Template::default()), Template::parse);
        let template = template.map_err(|more| faults.extend(more));
        let publish_when = self.preconditions().map_err(|more| faults.extend(more));
        let (Ok(base_url), Ok(topic), Ok(resource_type), Ok(shard), Ok(search), Ok(template), Ok(publish_when)) =
            (base_url, topic, resource_type, shard, search, template, publish_when)
        else {
            return Err(faults);
        };
        if !faults.is_empty() {
            return Err(faults);
        }
        let Decision { gap, longest_gap, resync } = self.decision;
        Ok(Plan {
            client: self.client(base_url),
            policy: Policy { gap, longest_gap, resync, is_conditional: !publish_when.is_empty() },
            selector: shard::label(&self.resource_selector),
            resource_type,
            topic,
            shard,
            search,
            template,
            publish_when,
            settings: self,
        })
    }

    /// What holds together in itself but not with the rest.
    fn faults(&self) -> Vec<String> {
        let Self { decision, leader_election, broker, .. } = self;
        let is_of_google = broker.kind == Some(BrokerKind::GooglePubSub);
        let election = leader_election.method;
        let checks = [
            (self.poll_interval >= Duration::from_secs(1), "poll_interval: must be 1s or more"),
            (self.sweep_interval >= Duration::from_secs(10), "sweep_interval: must be 10s or more"),
            (decision.gap >= Duration::from_secs(1), "decision.gap: must be 1s or more"),
            (decision.longest_gap >= decision.gap, "decision.longest_gap: must not be shorter than decision.gap"),
            (
                decision.resync >= Duration::from_mins(1) && decision.resync >= decision.longest_gap,
                "decision.resync: must be 1m or more, and not shorter than decision.longest_gap",
            ),
            ((1..=1_000).contains(&self.publish.concurrency), "publish.concurrency: must be 1 to 1000"),
            (
                (election == Method::Lease) == leader_election.namespace.is_some(),
                "leader_election.namespace: belongs to leader_election.method lease, and only to it",
            ),
            (
                (election == Method::Postgres) == leader_election.database_url.is_some(),
                "leader_election.database_url: belongs to leader_election.method postgres, and only to it",
            ),
            (
                election == Method::Lease || leader_election.identity.is_none(),
                "leader_election.identity: has no effect without leader_election.method lease",
            ),
            (
                election != Method::None || leader_election.name.is_none(),
                "leader_election.name: has no effect without leader_election.method",
            ),
            (
                !is_of_google || broker.rabbitmq.exchange.is_none(),
                "broker.rabbitmq.exchange: has no effect with broker.type googlepubsub",
            ),
            (
                !is_of_google || broker.rabbitmq.routing_key.is_none(),
                "broker.rabbitmq.routing_key: has no effect with broker.type googlepubsub",
            ),
            (
                broker.kind != Some(BrokerKind::RabbitMq) || !broker.googlepubsub.create_topic_if_missing,
                "broker.googlepubsub.create_topic_if_missing: has no effect with broker.type rabbitmq",
            ),
            (self.publish_when.len() <= 64, "publish_when: must be at most 64 adapters"),
        ];
        checks.into_iter().filter(|(right, _)| !right).map(|(_, fault)| fault.to_owned()).collect()
    }

    fn preconditions(&self) -> Result<BTreeMap<String, Precondition>, Vec<String>> {
        let (mut parsed, mut faults) = (BTreeMap::new(), Vec::new());
        for (adapter, expression) in &self.publish_when {
            match Precondition::parse(expression) {
                Ok(precondition) => drop(parsed.insert(adapter.clone(), precondition)),
                Err(error) => faults.push(format!("publish_when.{adapter}: {error}")),
            }
        }
        if faults.is_empty() { Ok(parsed) } else { Err(faults) }
    }

    fn client(&self, base_url: BaseUrl) -> hyperfleet_client::Settings {
        let Api { timeout, ca_file, auth, .. } = &self.clients.hyperfleet_api;
        let agent = format!("hyperfleet-sentinel/{} ({})", env!("CARGO_PKG_VERSION"), self.sentinel.name);
        hyperfleet_client::Settings {
            attempt_timeout: *timeout,
            ca_file: ca_file.clone(),
            token: auth.token_path.clone().map(|path| TokenSettings { path, cache_ttl: auth.token_cache_ttl }),
            user_agent: agent,
            watch: WatchSettings { poll_interval: self.poll_interval, ..WatchSettings::default() },
            ..hyperfleet_client::Settings::new(base_url)
        }
    }
}

fn required<'a>(path: &str, value: Option<&'a str>) -> Result<&'a str, String> {
    let value = value.map(str::trim).filter(|value| !value.is_empty());
    value.ok_or_else(|| format!("{path}: is missing; give it in the file or as {}", table::variable(path)))
}

fn plural(text: &str) -> Result<String, String> {
    let fits = |char: char| char.is_ascii_alphanumeric() || "-_".contains(char);
    if text.chars().all(fits) {
        Ok(text.to_owned())
    } else {
        Err("resource_type: must be what the API's paths have, such as clusters".to_owned())
    }
}
