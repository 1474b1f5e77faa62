//! The adapter as a part of this process: the one place here that knows how it is configured.

use std::collections::BTreeMap;

use adapter::Adapter;
use anyhow::Context as _;
use daemon::faults::Faults;
use kubernetes::Cluster;
use message_broker::{Broker, Name};
use serde_json::json;

use crate::cli;
use crate::daemons;
use crate::folder::{Folder, Port, Ports};
use crate::store::StorePlace;

/// The namespace of Jobs and of what they read.
pub(crate) use adapter::config::JOB_NAMESPACE as NAMESPACE;
/// The Jobs' service account.
pub(crate) const SERVICE_ACCOUNT: &str = "pullsecret-adapter-job";

/// The adapter's surroundings, for its configuration.
pub(crate) struct Wiring<'a> {
    pub(crate) folder: &'a Folder,
    pub(crate) ports: &'a Ports,
    pub(crate) api: &'a str,
    pub(crate) image: &'a str,
    /// Additional environment variables of Jobs.
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) topic: &'a Name,
    /// The place of pull secrets.
    pub(crate) store: &'a StorePlace,
    /// The place of the mirror.
    pub(crate) mirror: Option<&'a StorePlace>,
    /// The namespaces whose Secrets a cluster's `secretRef` may name.
    pub(crate) secret_namespaces: Vec<&'static str>,
}

/// The adapter, with its addresses taken.
pub(crate) async fn prepare(wiring: &Wiring<'_>, broker: Broker, cluster: Cluster) -> anyhow::Result<Adapter> {
    let Wiring { folder, ports, api, image, environment, topic, store, mirror, secret_namespaces } = wiring;
    let variables: Vec<_> = environment.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    // The lists of an emulated store never lag.
    let (store_check, limits) = if store.has_quota() {
        (json!({}), json!({}))
    } else {
        (json!({ "interval": "5s", "settle": "0s", "readsPerMinute": 600 }), json!({ "writesPerMinute": 0 }))
    };
    let configuration = json!({
        "apiVersion": "hyperfleet.redhat.com/v1alpha1",
        "kind": "AdapterConfig",
        "metadata": { "name": "pullsecret-adapter", "namespace": NAMESPACE },
        "spec": {
            "adapterType": fleet_model::names::ADAPTER,
            "hyperfleetAPI": { "url": api, "tokenPath": folder.token("adapter-token")? },
            "broker": { "topic": topic.as_str() },
            "secretStore": StorePlace::adapter_settings(store, *mirror),
            "storeCheck": store_check,
            "limits": limits,
            "input": { "secretNamespaces": secret_namespaces },
            "destinations": [{ "projects": ["*"], "folders": ["*"], "namespaces": ["*"] }],
            "jobTemplate": { "image": image, "serviceAccountName": SERVICE_ACCOUNT, "env": variables },
        },
        "health": daemons::address(ports, Port::AdapterHealth),
        "metrics": daemons::address(ports, Port::AdapterMetrics),
    });
    let flags = BTreeMap::from([("config", daemons::write(folder, "adapter.yaml", &configuration)?)]);
    let config = adapter::Checked::load(flags, &BTreeMap::<&str, &str>::new());
    let parts = adapter::Parts {
        broker,
        cluster,
        leadership: None,
        stores: Some(StorePlace::views([*store].into_iter().chain(*mirror).cloned().collect())),
    };
    let config = config.map_err(Faults::of_configuration)?;
    let adapter = Box::pin(Adapter::prepare(config, parts, cli::build().0)).await;
    adapter.context("the adapter cannot start")
}
