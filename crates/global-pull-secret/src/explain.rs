//! `global-pull-secret explain`: which key wins for an image, and why; from what the controller has written.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use docker_config::lookup::Image;
use docker_config::shown_key;
use fleet_model::names;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubernetes::Cluster;
use serde::Serialize;

use crate::cli::{self, ExplainArguments, Output};
use crate::facts::SecretSeen;
use crate::record::{ORIGINAL, Record};
use crate::status::{self, Condition};

/// What is known of the hosted cluster; holds no credential.
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
    /// Whose entry was taken for each registry, and why.
    pub registries: Vec<String>,
    /// How things are.
    pub conditions: Vec<Condition>,
}

/// A key of the merged Secret and where it is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Key {
    /// As written.
    pub key: String,
    /// The Secret.
    pub from: String,
}

/// Prints what is known.
pub fn explain(arguments: &ExplainArguments) -> anyhow::Result<ExitCode> {
    let image = match &arguments.image {
        // What was given is not repeated: it may be anything.
        Some(text) => Some(Image::parse(text).context("IMAGE is no name of an image, such as quay.io/team/app:1")?),
        None => None,
    };
    let (secret, status) = cli::runtime()?.block_on(async {
        let kubeconfig = arguments.hosted_kubeconfig.clone();
        let settings = kubernetes::Settings {
            kubeconfig,
            program: names::GLOBAL_MANAGER,
            ..kubernetes::Settings::default()
        };
        let cluster = Cluster::connect(&settings).await?;
        let status: Option<ConfigMap> = cluster.find(names::GLOBAL_NAMESPACE, names::GLOBAL_STATUS).await?;
        let secret: Option<Secret> = cluster.find(names::GLOBAL_NAMESPACE, names::GLOBAL_PULL_SECRET).await?;
        anyhow::Ok((secret.map(SecretSeen::from), status))
    })?;
    let Some(secret) = secret else {
        let words = status.as_ref().map(|status| conditions_text(&status::conditions_of(status)));
        cli::print(format!("there is no {}\n{}", names::GLOBAL_PULL_SECRET, words.unwrap_or_default()))?;
        return Ok(ExitCode::FAILURE);
    };
    let explanation = Explanation::of(&Record::of(&secret), status.as_ref(), image.as_ref());
    match arguments.output {
        Output::Text => cli::print(explanation.text())?,
        Output::Json => cli::print(serde_json::to_string_pretty(&explanation)? + "\n")?,
    }
    Ok(ExitCode::SUCCESS)
}

impl Explanation {
    /// What a record and a status say, for one image or for all registries.
    pub fn of(record: &Record, status: Option<&ConfigMap>, image: Option<&Image>) -> Self {
        let sources = record.sources.clone().unwrap_or_default();
        let known = |key: &str| {
            let from = sources.get(key).map_or("?", |from| if from == ORIGINAL { "the original" } else { from });
            Key { key: shown_key(key), from: from.to_owned() }
        };
        let keys = || sources.keys().map(String::as_str);
        let data = status.and_then(|status| status.data.as_ref());
        let registries =
            data.and_then(|data| data.get(status::key::REGISTRIES)).map(String::as_str).unwrap_or_default();
        Self {
            image: image.map(|image| image.name().to_owned()),
            kubelet: image.map(|image| image.kubelet_keys(keys()).into_iter().map(known).collect()).unwrap_or_default(),
            containers_image: image.and_then(|image| image.containers_image_key(keys())).map(known),
            registries: registries.lines().map(str::to_owned).collect(),
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
        text + &conditions_text(&self.conditions)
    }
}

fn conditions_text(conditions: &[Condition]) -> String {
    conditions.iter().map(|condition| condition.line() + "\n").collect()
}
