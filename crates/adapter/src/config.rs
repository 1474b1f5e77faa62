//! The `AdapterConfig`: read, completed with what is built in for its type, and checked.

mod account;
mod broker;
mod builtin;
mod check;
mod schema;
mod secret_store;
mod shape;
mod stores;
pub mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use daemon::environment::Environment;
use daemon::settings::dump::Dump;
use daemon::settings::{File, Given, Loaded, configuration};
use fleet_model::names;
use hyperfleet_client::{ReportMethod, TokenSettings};
use message_broker::{Consume, Subscription};
use precondition::Precondition;

use crate::binding::{Binding, ValueSource};
use crate::limits::Quota;
use schema::loosen;

pub use account::Account;
pub use broker::{Broker, BrokerKind, ExchangeType};
pub use builtin::JOB_NAMESPACE;
pub use daemon::settings::common::Address;
pub(crate) use secret_store::FOLDER;
pub use secret_store::{SecretStore, StoreKind};
pub use shape::{
    Api, Config, Criteria, Destination, Expression, Input, JobTemplate, Kubernetes, Limits, Metadata, Method, Output,
    Resources, Retry, ServiceAccount, Spec, StoreCheck,
};
pub use stores::{AwsPlace, JobStore, JobStores, VaultPlace};

/// The files that are searched for the configuration if neither flag nor variable names one.
pub const SEARCHED: &[&str] = &["/etc/hyperfleet/adapter.yaml", "/etc/hyperfleet/config.yaml"];

/// The configuration, completed and checked: what an adapter is made of.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The adapter's type, by which the API knows its reports.
    pub adapter: String,
    /// The adapter's name, in Events and in its User-Agent.
    pub name: String,
    /// The resource type that it reconciles, as the API's paths have it.
    pub resource_type: String,
    /// The namespace of its Jobs.
    pub namespace: String,
    /// The settings of the API client.
    pub client: hyperfleet_client::Settings,
    /// The subscription to the Sentinel's events.
    pub subscription: Subscription,
    /// The options of the subscription.
    pub consume: Consume,
    /// The preconditions of a run, besides its dependencies.
    pub preconditions: Vec<Precondition>,
    /// The adapters that must say that a resource is available before a run.
    pub dependencies: Vec<String>,
    /// The variables of its Jobs.
    pub bindings: Vec<Binding>,
    /// The arguments of a run that makes or repairs.
    pub args: Vec<String>,
    /// The arguments of a run that removes; none where nothing need be removed.
    pub delete_args: Option<Vec<String>>,
    /// The image of its Jobs.
    pub image: String,
    /// The Secret that a run reads, if any.
    pub input: Option<Input>,
    /// The Secret that a run leaves behind, watched for drift, if any.
    pub output: Option<OutputSecret>,
    /// The adapter's own service account, if it grants access to that Secret.
    pub account: Option<Account>,
    /// True if the adapter's runs store pull secrets, whose copies are recorded before they are written.
    pub tracks_copies: bool,
    /// The secret stores of the runs.
    pub stores: JobStores,
    /// The mirror of the runs.
    pub mirror: Option<JobStore>,
    /// The variable that names the project whose quota runs are counted against.
    pub project_variable: Option<String>,
    /// The quota.
    pub quota: Quota,
    /// The back-off of failed runs.
    pub retry: Retry,
    /// The configuration that it was made of.
    pub given: Config,
}

/// The Secret that a run leaves behind.
#[derive(Clone, Debug)]
pub struct OutputSecret {
    /// Its namespace.
    pub namespace: ValueSource,
    /// Its name.
    pub name: ValueSource,
}

/// The JSON Schema of the configuration file. What the file need not have, because a flag, a variable or a default gives
/// it, is not required.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Config).to_value();
    loosen(&mut schema, &table::TABLE.all());
    schema
}

// === impl Checked ===

impl Checked {
    /// Reads the configuration from flags, environment and file, completes it, and checks it.
    ///
    /// # Errors
    ///
    /// Every fault, as a line for a message.
    pub fn load(flags: BTreeMap<&'static str, String>, environment: &impl Environment) -> Result<Self, Vec<String>> {
        searched(flags, environment)?.then(|config| config.completed().check())
    }

    /// Reads the configuration as [`Checked::load`] does, and returns the settings with their sources, before they are completed
    /// with what is built in for the adapter's type.
    ///
    /// # Errors
    ///
    /// Every fault, as a line for a message.
    pub fn dump(flags: BTreeMap<&'static str, String>, environment: &impl Environment) -> Result<Dump, Vec<String>> {
        searched(flags, environment)?.dumped(|config| config.completed().check())
    }

    /// Returns the variables of a run at this store and this mirror; `None` is a run without a store. Jobs of other adapters get all.
    pub fn bindings_at(&self, store: Option<StoreKind>, mirror: Option<StoreKind>) -> impl Iterator<Item = &Binding> {
        let is_taken = move |name: &str| {
            StoreKind::takes(store, name) || mirror.is_some_and(|mirror| mirror.takes_as_mirror(name))
        };
        let is_of_run = move |binding: &&Binding| self.adapter != names::ADAPTER || is_taken(&binding.name);
        self.bindings.iter().filter(is_of_run)
    }
}

/// Reads the configuration that flag or variable name, or that is found.
fn searched(
    flags: BTreeMap<&'static str, String>,
    environment: &impl Environment,
) -> Result<Loaded<Config>, Vec<String>> {
    let flag = flags.get("config").map(String::as_str);
    let file = configuration(flag, environment, "HYPERFLEET_ADAPTER_CONFIG", SEARCHED).map_err(|fault| vec![fault])?;
    Ok(loaded(file, flags, environment))
}

/// Reads a configuration; without a file, that of the pull secret adapter.
fn loaded(file: Option<File>, flags: BTreeMap<&'static str, String>, environment: &impl Environment) -> Loaded<Config> {
    let built_in = || File { name: String::new(), text: builtin::FILE.to_owned() };
    let given = Given { file: Some(file.unwrap_or_else(built_in)), flags, ignored: Vec::new() };
    daemon::settings::load(&table::TABLE, environment, &given)
}

// === impl Config ===

impl Config {
    /// Reads the configuration from flags, environment and a file's text, and completes it.
    ///
    /// # Errors
    ///
    /// Every fault, as a line for a message.
    pub fn read(
        text: Option<String>,
        flags: BTreeMap<&'static str, String>,
        environment: &impl Environment,
    ) -> Result<Self, Vec<String>> {
        let file = text.map(|text| File { name: String::new(), text });
        loaded(file, flags, environment).done().map(Self::completed)
    }

    /// Completes the configuration with what is built in for its adapter type.
    fn completed(mut self) -> Self {
        builtin::complete(&mut self);
        self
    }

    /// Checks the configuration as a whole; the error lists every fault.
    pub fn check(self) -> Result<Checked, Vec<String>> {
        let parsed = check::parse(&self)?;
        let Spec { criteria, hyperfleet_api, broker, job_template, limits, retry, .. } = &self.spec;
        let client = hyperfleet_client::Settings {
            attempt_timeout: hyperfleet_api.timeout,
            ca_file: hyperfleet_api.ca_file.clone(),
            plain_http_host: hyperfleet_api.plain_http_host.clone(),
            token: hyperfleet_api
                .token_path
                .clone()
                .map(|path| TokenSettings { path, cache_ttl: Duration::from_secs(30) }),
            user_agent: format!("hyperfleet-adapter/{} ({})", env!("CARGO_PKG_VERSION"), self.metadata.name),
            report_method: match hyperfleet_api.report_method {
                Method::Auto => ReportMethod::Auto,
                Method::Put => ReportMethod::Put,
                Method::Post => ReportMethod::Post,
            },
            ..hyperfleet_client::Settings::new(parsed.base_url)
        };
        let consume = Consume {
            concurrency: limits.concurrency.saturating_mul(2),
            max_attempts: Some(broker.max_attempts),
            backoff: Consume::default().backoff,
            ..Consume::default()
        };
        Ok(Checked {
            adapter: self.spec.adapter_type.clone(),
            name: self.metadata.name.clone(),
            resource_type: self.spec.resource_type.clone(),
            namespace: self.metadata.namespace.clone(),
            client,
            subscription: parsed.subscription,
            consume,
            preconditions: parsed.preconditions,
            dependencies: criteria.dependencies.clone().unwrap_or_default(),
            bindings: job_template.env.clone().unwrap_or_default(),
            args: job_template.args.clone().unwrap_or_default(),
            delete_args: job_template.delete_args.clone().filter(|args| !args.is_empty()),
            image: parsed.image,
            input: self.spec.input.clone(),
            output: self.spec.output.clone().map(|Output { namespace, name }| OutputSecret { namespace, name }),
            account: parsed.account,
            tracks_copies: self.spec.adapter_type == builtin::PULL_SECRET && job_template.delete_args.is_some(),
            stores: parsed.stores.first,
            mirror: parsed.stores.mirror,
            project_variable: limits.project_variable.clone(),
            quota: Quota {
                writes_per_minute: limits.writes_per_minute,
                writes_per_run: limits.writes_per_run,
                runs_at_once: limits.runs_per_project,
            },
            retry: *retry,
            given: self,
        })
    }
}
