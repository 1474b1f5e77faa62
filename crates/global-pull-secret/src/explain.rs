//! `global-pull-secret explain`: which key wins for an image, and why; from what the controller has written.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use docker_config::lookup::Image;
use fleet_model::{CamelCase, ReportedCondition, names};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kubernetes::Cluster;
use serde::{Serialize, Serializer};

use crate::arguments::{CommandResult, ExplainArguments, Output};
use crate::decide::nodes::behind_reason;
use crate::facts::{ObservedPod, ObservedSecret};
use crate::keys::UNKNOWN_SOURCE;
use crate::record::{Key, Record};
use crate::status;

/// The state of the hosted cluster; holds no credential.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The image in full, where one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The keys whose credentials kubelet tries, in that order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kubelet: Vec<Key>,
    /// The key whose credential containers/image (CRI-O) uses where kubelet has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containers_image: Option<Key>,
    /// For each registry the Secret whose entry was taken, with the rule.
    pub registries: Vec<String>,
    /// The nodes that have the merged Secret; `None` without a syncer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeStates>,
    /// The conditions.
    #[serde(serialize_with = "camel_case")]
    pub conditions: Vec<ReportedCondition>,
}

/// The nodes that have the current revision of the merged Secret, and those that do not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStates {
    /// The revision.
    pub revision: String,
    /// Those that have it.
    pub in_sync: Vec<String>,
    /// The others, each with its reason.
    pub behind: BTreeMap<String, String>,
    /// Number of nodes without a Pod of the syncer.
    pub without_pod: usize,
}

/// The syncer as it was observed.
#[derive(Clone, Debug)]
pub struct Syncers {
    /// Its DaemonSet.
    pub daemon_set: DaemonSet,
    /// Its Pods.
    pub pods: Vec<ObservedPod>,
    /// The revisions that nodes have confirmed.
    pub confirmations: Option<ConfigMap>,
}

/// Explains the state of the hosted cluster.
pub async fn explain(arguments: &ExplainArguments) -> anyhow::Result<CommandResult> {
    let image = match &arguments.image {
        // The argument is not repeated: it may be a credential.
        Some(text) => Some(Image::parse(text).context("IMAGE is no name of an image, such as quay.io/team/app:1")?),
        None => None,
    };
    let kubeconfig = arguments.hosted_kubeconfig.clone();
    let settings =
        kubernetes::Settings { kubeconfig, program: names::GLOBAL_MANAGER, ..kubernetes::Settings::default() };
    let cluster = Cluster::connect(&settings).await?;
    let status: Option<ConfigMap> = cluster.find(names::GLOBAL_NAMESPACE, names::GLOBAL_STATUS).await?;
    let secret: Option<Secret> = cluster.find(names::GLOBAL_NAMESPACE, names::GLOBAL_PULL_SECRET).await?;
    let syncers = Syncers::observe(&cluster).await?;
    let Some(secret) = secret.map(ObservedSecret::from) else {
        let summary = status.as_ref().map(|status| conditions_text(&status::conditions_of(status)));
        let text = format!("there is no {}\n{}", names::GLOBAL_PULL_SECRET, summary.unwrap_or_default());
        return Ok(CommandResult { text, code: ExitCode::FAILURE });
    };
    let record = Record::of(&secret);
    let nodes = syncers.map(|syncers| NodeStates::of(&record, &syncers));
    let explanation = Explanation { nodes, ..Explanation::of(&record, status.as_ref(), image.as_ref()) };
    let text = match arguments.output {
        Output::Text => explanation.text(),
        Output::Json => serde_json::to_string_pretty(&explanation)? + "\n",
    };
    Ok(CommandResult { text, code: ExitCode::SUCCESS })
}

impl Syncers {
    /// Reads them; `None` without a DaemonSet.
    async fn observe(cluster: &Cluster) -> anyhow::Result<Option<Self>> {
        let daemon_set: Option<DaemonSet> = cluster.find(names::GLOBAL_NAMESPACE, names::GLOBAL_SYNCER).await?;
        let label = format!("name={}", names::GLOBAL_SYNCER);
        let pods: Vec<Pod> = cluster.list(names::GLOBAL_NAMESPACE, &label).await?;
        let pods = pods.into_iter().map(ObservedPod::from).collect();
        let confirmations = cluster.find(names::GLOBAL_NAMESPACE, names::GLOBAL_NODES).await?;
        Ok(daemon_set.map(|daemon_set| Self { daemon_set, pods, confirmations }))
    }
}

impl Explanation {
    /// The explanation of a record and a status, for one image or for all registries.
    pub fn of(record: &Record, status: Option<&ConfigMap>, image: Option<&Image>) -> Self {
        let sources = record.sources.clone().unwrap_or_default();
        let known = |key: &str| Key::of(key, sources.get(key).map_or(UNKNOWN_SOURCE, String::as_str));
        let keys = || sources.keys().map(String::as_str);
        let data = status.and_then(|status| status.data.as_ref());
        let registries =
            data.and_then(|data| data.get(status::key::REGISTRIES)).map(String::as_str).unwrap_or_default();
        Self {
            image: image.map(|image| image.name().to_owned()),
            kubelet: image.map(|image| image.kubelet_keys(keys()).into_iter().map(known).collect()).unwrap_or_default(),
            containers_image: image.and_then(|image| image.containers_image_key(keys())).map(known),
            registries: registries.lines().map(str::to_owned).collect(),
            nodes: None,
            conditions: status.map(status::conditions_of).unwrap_or_default(),
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail, here and below.
        if let Some(image) = &self.image {
            let _infallible = writeln!(text, "{image}");
            if self.kubelet.is_empty() {
                text.push_str("  kubelet: no key matches\n");
            }
            for (Key { key, from }, number) in self.kubelet.iter().zip(1..) {
                let _infallible = writeln!(text, "  kubelet tries {number}.: {key}, from {from}");
            }
            let other = self.containers_image.as_ref();
            let other = other.map_or("no key matches".to_owned(), |Key { key, from }| format!("{key}, from {from}"));
            let _infallible = writeln!(text, "  containers/image uses: {other}\n");
        }
        for registry in &self.registries {
            let _infallible = writeln!(text, "{registry}");
        }
        if !self.registries.is_empty() {
            text.push('\n');
        }
        if let Some(nodes) = &self.nodes {
            text.push_str(&nodes.text());
        }
        text + &conditions_text(&self.conditions)
    }
}

impl NodeStates {
    /// The nodes by their confirmations.
    pub fn of(record: &Record, syncers: &Syncers) -> Self {
        let Syncers { daemon_set, pods, confirmations } = syncers;
        let mut nodes = Self { revision: record.revision.clone(), ..Self::default() };
        let there: Vec<&ObservedPod> = pods.iter().filter(|pod| !pod.is_terminating).collect();
        for pod in &there {
            let node = pod.node.clone().unwrap_or_else(|| pod.name.clone());
            match behind_reason(pod, &record.revision, confirmations.as_ref()) {
                None => nodes.in_sync.push(node),
                Some(why) => drop(nodes.behind.insert(node, why)),
            }
        }
        nodes.in_sync.sort();
        let desired = daemon_set.status.as_ref().map_or(0, |status| status.desired_number_scheduled);
        nodes.without_pod = usize::try_from(desired).unwrap_or_default().saturating_sub(there.len());
        nodes
    }

    fn text(&self) -> String {
        let Self { revision, in_sync, behind, without_pod } = self;
        let names = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let mut without: Vec<String> = behind.iter().map(|(node, why)| format!("{node} ({why})")).collect();
        if *without_pod > 0 {
            without.push(format!("{without_pod} without a Pod"));
        }
        format!("nodes with revision {revision}: {}\nnodes without it: {}\n\n", names(in_sync), names(&without))
    }
}

fn camel_case<S: Serializer>(conditions: &[ReportedCondition], serializer: S) -> Result<S::Ok, S::Error> {
    CamelCase(conditions).serialize(serializer)
}

fn conditions_text(conditions: &[ReportedCondition]) -> String {
    conditions.iter().map(|condition| status::line(condition) + "\n").collect()
}
