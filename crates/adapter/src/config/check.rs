//! Checks a configuration as a whole.

use daemon::settings::missing;
use fleet_model::id::{is_dns_label, is_dns_subdomain};
use hyperfleet_client::BaseUrl;
use message_broker::Subscription;
use precondition::Precondition;

use super::account::Account;
use super::broker::{Broker, BrokerKind};
use super::builtin;
use super::secret_store;
use super::shape::{Config, Destination, ServiceAccount, Spec};
use super::stores::{self, Stores};
use super::table::TABLE;
use crate::binding::{Binding, FieldPath, ValueSource};

/// Values parsed from texts of the configuration.
pub(super) struct Parsed {
    pub(super) base_url: BaseUrl,
    pub(super) subscription: Subscription,
    pub(super) preconditions: Vec<Precondition>,
    pub(super) image: String,
    pub(super) account: Option<Account>,
    pub(super) stores: Stores,
}

const API_VERSION: &str = "hyperfleet.redhat.com/v1alpha1";

pub(super) fn parse(config: &Config) -> Result<Parsed, Vec<String>> {
    let mut faults = rules(config);
    faults.extend(config.tracing.faults());
    let spec = &config.spec;
    // A missing address is a fault of reading already.
    let base_url = spec
        .hyperfleet_api
        .url
        .as_deref()
        .map(|url| url.parse::<BaseUrl>().map_err(|error| faults.push(format!("spec.hyperfleetAPI.url: {error}"))));
    let named = spec.broker.subscription.clone().unwrap_or_else(|| format!("{}-adapter-sub", spec.adapter_type));
    let subscription = Subscription::new(&spec.broker.topic, &named)
        .map_err(|error| format!("spec.broker.topic and spec.broker.subscription: {error}"));
    let image = spec.job_template.image.as_deref().map(str::trim).filter(|image| !image.is_empty());
    let image = image.map(str::to_owned).ok_or_else(|| missing(&TABLE, "spec.jobTemplate.image"));
    let account = spec.kubernetes.service_account.as_deref().and_then(|text| {
        let account = Account::parse(text);
        if account.is_none() {
            faults.push("spec.kubernetes.serviceAccount: must be NAMESPACE/NAME".to_owned());
        }
        account
    });
    let mut preconditions = Vec::new();
    for (index, given) in spec.criteria.preconditions.iter().flatten().enumerate() {
        match Precondition::parse(&given.expression) {
            Ok(precondition) => preconditions.push(precondition),
            Err(error) => faults.push(format!("spec.criteria.preconditions[{index}].expression: {error}")),
        }
    }
    let stores = stores::checked(spec);
    faults.extend(stores.as_ref().err().into_iter().flatten().cloned());
    faults.extend(subscription.as_ref().err().cloned());
    faults.extend(image.as_ref().err().cloned());
    match (base_url, subscription, image, stores) {
        (Some(Ok(base_url)), Ok(subscription), Ok(image), Ok(stores)) if faults.is_empty() => {
            Ok(Parsed { base_url, subscription, preconditions, image, account, stores })
        }
        _ => Err(faults),
    }
}

/// Checks that the author of a resource cannot choose the service account of its Jobs, and thereby another tenant's rights.
fn is_safe(service_account: Option<&ServiceAccount>) -> bool {
    match service_account {
        None => true,
        Some(ServiceAccount::Name(name)) => !name.contains("{name}"),
        Some(ServiceAccount::Field(ValueSource { from, value })) => is_beyond_the_author(from, value.as_deref()),
    }
}

/// Returns true for a value that the author of a resource cannot set.
fn is_beyond_the_author(from: &[FieldPath], text: Option<&str>) -> bool {
    from.iter().all(FieldPath::is_beyond_the_author) && text.is_none_or(|text| !text.contains("{name}"))
}

/// Checks that every pattern names something.
fn has_patterns(rule: &Destination) -> bool {
    let all = || rule.projects.iter().chain(&rule.folders).chain(&rule.namespaces);
    all().next().is_some() && all().all(|pattern| !pattern.trim().is_empty())
}

fn rules(config: &Config) -> Vec<String> {
    let Spec { adapter_type, resource_type, broker, job_template, input, limits, retry, .. } = &config.spec;
    let checks = [
        (config.api_version == API_VERSION, "apiVersion: must be hyperfleet.redhat.com/v1alpha1"),
        (config.kind == "AdapterConfig", "kind: must be AdapterConfig"),
        (is_dns_subdomain(&config.metadata.name), "metadata.name: must be a DNS-1123 subdomain"),
        (is_dns_label(&config.metadata.namespace), "metadata.namespace: must be a DNS-1123 label"),
        (
            is_dns_label(adapter_type) && adapter_type.len() <= 20,
            "spec.adapterType: must be a DNS-1123 label of at most 20 characters",
        ),
        (
            !resource_type.is_empty() && resource_type.chars().all(|char| char.is_ascii_alphanumeric() || char == '-'),
            "spec.resourceType: must be a plural of the API's paths, such as clusters",
        ),
        (
            broker.kind != Some(BrokerKind::GooglePubSub) || !is_of_rabbitmq(broker),
            "spec.broker.url, exchange, exchangeType and queue: have no effect with spec.broker.type googlepubsub",
        ),
        (
            broker.kind != Some(BrokerKind::RabbitMq) || (broker.project_id.is_none() && !broker.create_if_missing),
            "spec.broker.projectId and spec.broker.createIfMissing: have no effect with spec.broker.type rabbitmq",
        ),
        (
            is_safe(job_template.service_account_name.as_ref()),
            "spec.jobTemplate.serviceAccountName: must come from metadata.id, metadata.tenancy or status, as everything else \
             is set by the resource's author",
        ),
        (
            config.spec.destinations.iter().flatten().all(has_patterns),
            "spec.destinations: each rule needs `projects`, `folders` or `namespaces`, and no pattern may be empty",
        ),
        (
            limits.writes_per_minute == 0 || limits.writes_per_minute >= limits.writes_per_run,
            "spec.limits.writesPerMinute: must be 0, or enough for one run (spec.limits.writesPerRun)",
        ),
        (
            retry.permanent_after >= retry.transient_after,
            "spec.retry.permanentAfter: must not be shorter than transientAfter",
        ),
        (
            input.as_ref().is_none_or(|input| input.mount_path.starts_with('/')),
            "spec.input.mountPath: must be an absolute path",
        ),
        (
            limits
                .project_variable
                .as_ref()
                .is_none_or(|name| job_template.env.iter().flatten().any(|binding| binding.name == *name)),
            "spec.limits.projectVariable: must be one of spec.jobTemplate.env",
        ),
    ];
    let failed = checks.into_iter().filter(|(right, _)| !right).map(|(_, fault)| fault.to_owned());
    let bindings = job_template.env.as_deref().unwrap_or_default();
    let faults = bindings.iter().enumerate().filter_map(|(index, binding)| {
        let of_pull_secrets = || place_fault(binding).filter(|_| *adapter_type == builtin::PULL_SECRET);
        let fault = of_pull_secrets().or_else(|| binding_fault(binding, bindings.get(..index).unwrap_or_default()))?;
        Some(format!("spec.jobTemplate.env[{index}]: {fault}"))
    });
    failed.chain(faults).collect()
}

/// True if a setting is given that only RabbitMQ has.
fn is_of_rabbitmq(broker: &Broker) -> bool {
    let Broker { url, exchange, exchange_type, queue, .. } = broker;
    url.is_some() || exchange.is_some() || exchange_type.is_some() || queue.is_some()
}

/// Returns the fault of a variable that says where pull secrets go, or as whom, if it has one: the author of a resource chooses
/// neither.
fn place_fault(binding: &Binding) -> Option<String> {
    let Binding { name, from, value, .. } = binding;
    if let Some(setting) = secret_store::setting_of(name) {
        return Some(format!("name: the variable follows from {setting}: set that instead"));
    }
    let is_of_author = !is_beyond_the_author(from, value.as_deref());
    let fault =
        "must come from metadata.id, metadata.tenancy or status, as everything else is set by the resource's author";
    (secret_store::is_of_identity(name) && is_of_author).then(|| fault.to_owned())
}

/// Returns the fault of a variable, if it has one; `before` are those before it in the list.
fn binding_fault(binding: &Binding, before: &[Binding]) -> Option<String> {
    let is_variable = |name: &str| {
        !name.is_empty() && name.chars().all(|char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_')
    };
    let fault = if !is_variable(&binding.name) {
        "name: must be A-Z, 0-9 and _"
    } else if before.iter().any(|before| before.name == binding.name) {
        "name: is given twice"
    } else if binding.from.is_empty() && binding.value.is_none() {
        "give `from` or `value`"
    } else if binding.from.iter().any(FieldPath::is_pull_secret_data) {
        "from: a pull secret is never a variable; the Job reads it from the file of spec.input"
    } else {
        return None;
    };
    Some(fault.to_owned())
}
