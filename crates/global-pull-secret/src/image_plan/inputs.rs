//! The inputs of a plan: images, pull secrets, and the controller's policy; from the hosted cluster, or from files.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use fleet_model::names;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubernetes::Cluster;
use secrecy::SecretSlice;

use crate::arguments::PlanArguments;
use crate::decide::deployed_keys;
use crate::facts::{Facts, ObservedSecret};
use crate::images::RunningImages;
use crate::keys::Keys;
use crate::offline::read as read_file;
use crate::policy::ReportedPolicy;
use crate::record::{ORIGINAL, Record};
use crate::run::read_images;
use crate::status;

/// The inputs of a plan.
pub(super) struct Inputs {
    pub(super) images: RunningImages,
    /// The policy that the controller reports.
    pub(super) policy: Option<ReportedPolicy>,
    original: Arc<ObservedSecret>,
    /// The additional Secrets that there are.
    present: Vec<Arc<ObservedSecret>>,
    /// The additional Secrets that there would be.
    proposed: Vec<Arc<ObservedSecret>>,
    /// The merged Secret, which the nodes have.
    deployed: Option<Arc<ObservedSecret>>,
    /// A note on labelled Secrets that are not considered, or cannot be listed.
    labelled: Option<String>,
    is_change: bool,
    is_offline: bool,
}

impl Inputs {
    pub(super) async fn read(arguments: &PlanArguments) -> anyhow::Result<Self> {
        let mut inputs = match &arguments.images {
            Some(list) => Self::of_files(arguments, list)?,
            None => Self::of_cluster(arguments).await?,
        };
        inputs.is_change = arguments.additional.is_some() || arguments.removed;
        let is_named = |secret: &Arc<ObservedSecret>| secret.name() == names::ADDITIONAL_PULL_SECRET;
        inputs.proposed = match &arguments.additional {
            _ if arguments.removed => Vec::new(),
            None => inputs.present.clone(),
            Some(file) => {
                // It keeps the present one's priority.
                let metadata = inputs.present.iter().find(|secret| is_named(secret)).map(|secret| &secret.metadata);
                let proposed = of_file(file, "the additional Secret", metadata)?;
                let others = inputs.present.iter().filter(|secret| !is_named(secret)).cloned();
                std::iter::once(proposed).chain(others).collect()
            }
        };
        Ok(inputs)
    }

    fn of_files(arguments: &PlanArguments, list: &Path) -> anyhow::Result<Self> {
        let original = arguments.original.as_deref().context("--images needs --original")?;
        let images = read_file(list, "the images")?;
        let images = std::str::from_utf8(&images).context("the file of the images is no text: one image a line")?;
        let present = arguments.present.as_deref();
        let present = present.map(|file| of_file(file, "the present additional Secret", None)).transpose()?;
        Ok(Self {
            images: RunningImages::of_list(images),
            policy: None,
            original: of_file(original, "the original", None)?,
            present: present.into_iter().collect(),
            proposed: Vec::new(),
            deployed: None,
            labelled: None,
            is_change: true,
            is_offline: true,
        })
    }

    async fn of_cluster(arguments: &PlanArguments) -> anyhow::Result<Self> {
        let hosted = connect(arguments.hosted_kubeconfig.as_deref()).await?;
        let place = || format!("hosted cluster at {}", hosted.server());
        let find = async |name: &str| -> anyhow::Result<Option<Arc<ObservedSecret>>> {
            let secret = hosted.find::<Secret>(names::GLOBAL_NAMESPACE, name).await.with_context(place)?;
            Ok(secret.map(|secret| Arc::new(secret.into())))
        };
        let deployed = find(names::GLOBAL_PULL_SECRET).await?;
        let mut present = Vec::from_iter(find(names::ADDITIONAL_PULL_SECRET).await?);
        let sources = deployed.as_deref().and_then(|global| Record::of(global).sources).unwrap_or_default();
        // Those with the label, as far as they have contributed a key. Of others it is not known if the controller considers them.
        let mut others: Vec<&String> = sources.values().collect();
        others.sort();
        others.dedup();
        for name in others.into_iter().filter(|name| *name != ORIGINAL && *name != names::ADDITIONAL_PULL_SECRET) {
            present.extend(find(name).await?);
        }
        let status: Option<ConfigMap> =
            hosted.find(names::GLOBAL_NAMESPACE, names::GLOBAL_STATUS).await.with_context(place)?;
        Ok(Self {
            original: original(arguments, &hosted).await?,
            labelled: note_on_labelled(&hosted, &present).await,
            images: read_images(&hosted).await.with_context(place)?,
            policy: status.as_ref().and_then(status::policy_of),
            present,
            proposed: Vec::new(),
            deployed,
            is_change: false,
            is_offline: false,
        })
    }

    /// The keys that the nodes have, if something is deployed and a change of it is planned.
    pub(super) fn deployed_keys(&self) -> Option<Keys> {
        self.deployed.as_deref().filter(|_| self.is_change).and_then(deployed_keys)
    }

    /// The facts before the change: with what is there, or the original alone if nothing is deployed or no change is planned.
    pub(super) fn before(&self) -> Facts {
        let is_present = self.is_change && self.is_offline;
        self.facts(if is_present { self.present.clone() } else { Vec::new() })
    }

    /// The facts after the change.
    pub(super) fn after(&self) -> Facts {
        self.facts(self.proposed.clone())
    }

    fn facts(&self, additional: Vec<Arc<ObservedSecret>>) -> Facts {
        Facts { original: Some(Arc::clone(&self.original)), additional, ..Facts::default() }
    }

    /// Notes on what is not known.
    pub(super) fn notes(&self) -> Vec<String> {
        let RunningImages { unreadable, left_out, .. } = self.images;
        let mut notes = Vec::new();
        if self.policy.is_none() && !self.is_offline {
            let status = names::GLOBAL_STATUS;
            notes.push(format!(
                "there is no {status} with the controller's policy: the policy is as given, or else additional-wins without protected registries"
            ));
        }
        notes.extend(self.labelled.clone());
        if unreadable > 0 {
            notes.push(format!("images left out, as they are no names of images: {unreadable}"));
        }
        if left_out > 0 {
            notes.push(format!("images left out, as there are too many repositories: {left_out}"));
        }
        notes
    }
}

/// A note on the labelled Secrets that are not among these, or that cannot be listed.
async fn note_on_labelled(hosted: &Cluster, considered: &[Arc<ObservedSecret>]) -> Option<String> {
    let label = format!("{}=true", names::LABEL_ADDITIONAL);
    let not_considered = "Secrets with the label of additional ones that contribute no key now are not considered";
    match hosted.list::<Secret>(names::GLOBAL_NAMESPACE, &label).await {
        Ok(labelled) => {
            let names = labelled.into_iter().filter_map(|secret| secret.metadata.name);
            let is_other = |name: &String| {
                name != names::GLOBAL_PULL_SECRET && considered.iter().all(|secret| secret.name() != name)
            };
            let others: Vec<String> = names.filter(is_other).collect();
            (!others.is_empty()).then(|| format!("{not_considered}: {}", others.join(", ")))
        }
        Err(error) => Some(format!("{not_considered}: {error}")),
    }
}

async fn connect(kubeconfig: Option<&Path>) -> anyhow::Result<Cluster> {
    let kubeconfig = kubeconfig.map(Path::to_owned);
    let settings =
        kubernetes::Settings { kubeconfig, program: names::GLOBAL_MANAGER, ..kubernetes::Settings::default() };
    Ok(Cluster::connect(&settings).await?)
}

/// The original pull secret: from a file, from the hosted control plane's namespace, or HyperShift's copy.
async fn original(arguments: &PlanArguments, hosted: &Cluster) -> anyhow::Result<Arc<ObservedSecret>> {
    if let Some(file) = &arguments.original {
        return of_file(file, "the original", None);
    }
    let (cluster, namespace, name) = match &arguments.control_plane_namespace {
        None => (hosted.clone(), names::ORIGINAL_COPY_NAMESPACE, names::ORIGINAL_PULL_SECRET),
        Some(namespace) => {
            let kubeconfig = arguments.kubeconfig.as_deref().or(arguments.hosted_kubeconfig.as_deref());
            (connect(kubeconfig).await?, namespace.as_str(), arguments.original_secret.as_str())
        }
    };
    let place = || format!("cluster at {}", cluster.server());
    let secret: Option<Secret> = cluster.find(namespace, name).await.with_context(place)?;
    let secret = secret.with_context(|| {
        format!(
            "there is no secret {namespace}/{name} with the original pull secret in the cluster at {}: name its file by \
             --original, or its namespace by --control-plane-namespace",
            cluster.server()
        )
    })?;
    Ok(Arc::new(secret.into()))
}

/// A Secret with the content of a file, in place of the one with this metadata.
fn of_file(path: &Path, what: &str, metadata: Option<&ObjectMeta>) -> anyhow::Result<Arc<ObservedSecret>> {
    let bytes = read_file(path, what)?;
    let name = Some(names::ADDITIONAL_PULL_SECRET.to_owned());
    let metadata = metadata.cloned().unwrap_or(ObjectMeta { name, ..ObjectMeta::default() });
    Ok(Arc::new(ObservedSecret {
        // A file stands for a Secret that stays.
        metadata: ObjectMeta { deletion_timestamp: None, ..metadata },
        kind: String::new(),
        content: Some(SecretSlice::from(bytes.to_vec())),
        revision: None,
        is_revert: false,
        has_other_data: false,
        is_immutable: false,
    }))
}
