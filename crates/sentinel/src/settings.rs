//! Reads the Sentinel's settings, and checks them.

mod shape;
pub mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use daemon::environment::Environment;
use daemon::settings::dump::Dump;
use daemon::settings::{Given, Loaded, Table, configuration};
use hyperfleet_client::BaseUrl;
use message_broker::Name;
use precondition::Precondition;
use serde::de::DeserializeOwned;

use crate::decide::Policy;
use crate::message_data::Template;
use crate::shard::{self, Shard};

pub use daemon::settings::common::Address;
pub use shape::{
    Broker, BrokerKind, Clients, Decision, EventsClients, EventsSettings, ExchangeType, GooglePubSub, LeaderElection,
    Method, Naming, Publish, RabbitMq, Settings, Subscription, Topic,
};

/// File that is read where none is named, if it exists.
pub const SEARCHED: &str = "/etc/hyperfleet/config.yaml";

/// The settings, checked: what a Sentinel is made of.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Resources that are watched, by their plural in the API's paths.
    pub resource_type: String,
    /// Topic that events are published to.
    pub topic: Name,
    /// Client of the HyperFleet API.
    pub client: hyperfleet_client::Settings,
    /// Share of the fleet.
    pub shard: Shard,
    /// Search that finds the selected part of the fleet.
    pub search: Option<String>,
    /// The selection, as a metric's label.
    pub selector: String,
    /// Intervals of a resource's events.
    pub policy: Policy,
    /// Members of an event's data.
    pub template: Template,
    /// Preconditions of publishing by adapter; always met if empty.
    pub publish_when: BTreeMap<String, Precondition>,
    /// The settings that it was made of.
    pub settings: Settings,
}

/// Reads settings of a table from flags, environment and file.
///
/// # Errors
///
/// The configuration file cannot be read.
pub fn read<T: DeserializeOwned>(
    table: &Table,
    flags: BTreeMap<&'static str, String>,
    environment: &impl Environment,
) -> Result<Loaded<T>, Vec<String>> {
    let flag = flags.get("config").map(String::as_str);
    let file = configuration(flag, environment, "HYPERFLEET_CONFIG", &[SEARCHED]).map_err(|fault| vec![fault])?;
    Ok(daemon::settings::load(table, environment, &Given { file, flags, ignored: Vec::new() }))
}

// === impl Checked ===

impl Checked {
    /// Reads the settings from flags, environment and file, and checks them.
    ///
    /// # Errors
    ///
    /// Every fault, as a line for a message.
    pub fn load(flags: BTreeMap<&'static str, String>, environment: &impl Environment) -> Result<Self, Vec<String>> {
        read(&table::TABLE, flags, environment)?.then(Settings::check)
    }

    /// Reads the settings as [`Checked::load`] does, and returns them with their sources.
    ///
    /// # Errors
    ///
    /// Every fault, as a line for a message.
    pub fn dump(flags: BTreeMap<&'static str, String>, environment: &impl Environment) -> Result<Dump, Vec<String>> {
        read(&table::TABLE, flags, environment)?.dumped(Settings::check)
    }
}

// === impl Settings ===

impl Settings {
    /// Checks the settings as a whole.
    ///
    /// # Errors
    ///
    /// Every contradiction. A required setting that is missing is a fault of reading already.
    pub fn check(self) -> Result<Checked, Vec<String>> {
        let mut faults = self.faults();
        let api = &self.clients.hyperfleet_api;
        let base_url = api.address(&mut faults);
        let topic = parsed("clients.broker.topic", self.clients.broker.topic.as_deref(), &mut faults);
        let shard = parsed("shard", Some(&self.shard), &mut faults);
        let resource_type = self.resource_type.clone().filter(|text| {
            let is_plural = text.chars().all(|char| char.is_ascii_alphanumeric() || "-_".contains(char));
            if !is_plural {
                faults.push("resource_type: must be a plural of the API's paths, such as clusters".to_owned());
            }
            is_plural
        });
        let search = shard::search(&self.resource_selector).map_err(|fault| faults.push(fault)).ok();
        let template = self.message_data.as_ref().map_or_else(|| Ok(Template::default()), Template::parse);
        let template = template.map_err(|more| faults.extend(more)).ok();
        let publish_when = self.preconditions().map_err(|more| faults.extend(more)).ok();
        let (
            Some(base_url),
            Some(topic),
            Some(shard),
            Some(resource_type),
            Some(search),
            Some(template),
            Some(publish_when),
        ) = (base_url, topic, shard, resource_type, search, template, publish_when)
        else {
            return Err(faults);
        };
        if !faults.is_empty() {
            return Err(faults);
        }
        let Decision { min_interval, max_interval, resync } = self.decision;
        let is_conditional = !publish_when.is_empty();
        Ok(Checked {
            client: self.client(base_url),
            policy: Policy { min_interval, max_interval, resync, is_conditional },
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

    /// Settings that are valid each for itself but contradict each other.
    fn faults(&self) -> Vec<String> {
        let Self { decision, leader_election, broker, .. } = self;
        let is_of_google = broker.kind == Some(BrokerKind::GooglePubSub);
        let election = leader_election.method;
        let checks = [
            (
                decision.max_interval >= decision.min_interval,
                "decision.max_interval: must not be shorter than decision.min_interval",
            ),
            (
                decision.resync >= decision.max_interval,
                "decision.resync: must not be shorter than decision.max_interval",
            ),
            (
                (election == Method::Lease) == leader_election.namespace.is_some(),
                "leader_election.namespace: must be set with leader_election.method lease, and only with it",
            ),
            (
                (election == Method::Postgres) == leader_election.database_url.is_some(),
                "leader_election.database_url: must be set with leader_election.method postgres, and only with it",
            ),
            (
                election == Method::None || leader_election.position_file.is_none(),
                "leader_election.position_file: has no effect with leader_election.method, whose Lease or database keeps the position",
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
        let broken = checks.into_iter().filter(|(right, _)| !right).map(|(_, fault)| fault.to_owned());
        broken.chain(self.tracing.faults()).collect()
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
        let agent = format!("hyperfleet-sentinel/{} ({})", env!("CARGO_PKG_VERSION"), self.sentinel.name);
        self.clients.hyperfleet_api.client(base_url, agent, self.poll_interval)
    }
}

/// Parses the text of a setting; a fault names its key.
fn parsed<T: FromStr<Err: Display>>(path: &str, text: Option<&str>, faults: &mut Vec<String>) -> Option<T> {
    text?.trim().parse().map_err(|error| faults.push(format!("{path}: {error}"))).ok()
}
