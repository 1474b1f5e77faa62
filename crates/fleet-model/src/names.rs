//! Every name that this project writes to the world, declared once.

use crate::ClusterId;

/// A name and what it means, for the generated reference pages.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// The name as written.
    pub name: &'static str,
    /// What its presence or value tells.
    pub meaning: &'static str,
}

/// Declares constants together with the list of them that the reference page shows.
macro_rules! names {
    ($(#[$list_doc:meta])* $list:ident: $($(#[doc = $meaning:literal])+ $constant:ident = $name:literal;)+) => {
        $($(#[doc = $meaning])+ pub const $constant: &str = $name;)+
        $(#[$list_doc])*
        pub const $list: &[Name] = &[$(Name { name: $name, meaning: concat!($($meaning),+) },)+];
    };
}

names! {
    /// The labels of every secret that we store, as the specification lists them.
    LABELS:
    /// `hyperfleet` on everything that this project owns; anything else is left alone.
    LABEL_MANAGED_BY = "managed-by";
    /// `pullsecret`: the adapter on whose behalf the secret is kept.
    LABEL_ADAPTER = "adapter";
    /// The id of the cluster that the secret belongs to; another id means another owner.
    LABEL_CLUSTER_ID = "cluster-id";
    /// The cluster's name, for people; written where `CLUSTER_NAME` is given.
    LABEL_CLUSTER_NAME = "cluster-name";
    /// `pull-secret`.
    LABEL_RESOURCE_TYPE = "resource-type";
    /// `v1`: the edition of these labels.
    LABEL_SCHEMA = "hyperfleet-version";
}

names! {
    /// The annotations that the Job keeps on a secret in Google Secret Manager.
    ANNOTATIONS:
    /// The newest generation that has claimed this secret; an older one changes nothing.
    ANNOTATION_GENERATION = "hyperfleet-generation";
    /// The number of the version that holds the current pull secret; where the next run begins to look.
    ANNOTATION_VERSION = "hyperfleet-version";
    /// The number that the next version is about to get; there only while a run is adding one.
    ANNOTATION_ANNOUNCED = "hyperfleet-announced";
    /// HMAC-SHA256 of the current pull secret's canonical form; written where `DIGEST_KEY_FILE` is given.
    ANNOTATION_DIGEST = "hyperfleet-digest";
    /// The numbers of the versions that this project added and has not destroyed, ascending, joined by commas.
    ANNOTATION_ADDED = "hyperfleet-added";
}

names! {
    /// The annotations of the Kubernetes Secret that HyperShift reads.
    HANDED_OVER_ANNOTATIONS:
    /// Where the pull secret rests in Google Secret Manager; always the path that ends in `latest`.
    ANNOTATION_STORE_PATH = "hyperfleet.io/gcp-secret-path";
    /// The number of the version that the content was read from.
    ANNOTATION_STORE_VERSION = "hyperfleet.io/gcp-secret-version";
    /// `pullsecret-adapter`.
    ANNOTATION_CREATED_BY = "hyperfleet.io/created-by";
    /// When the Secret was created; stays through every change.
    ANNOTATION_CREATED_AT = "hyperfleet.io/created-at";
    /// The newest generation that has written this Secret; an older one changes nothing.
    ANNOTATION_HANDED_OVER_GENERATION = "hyperfleet.io/generation";
    /// HMAC-SHA256 of the pull secret's canonical form; written where `DIGEST_KEY_FILE` is given.
    ANNOTATION_HANDED_OVER_DIGEST = "hyperfleet.io/digest";
}

names! {
    /// The objects of the global pull secret, in the hosted cluster's `kube-system`.
    GLOBAL_OBJECTS:
    /// The Secret that the hosted cluster's admin makes.
    ADDITIONAL_PULL_SECRET = "additional-pull-secret";
    /// The Secret with the merged content.
    GLOBAL_PULL_SECRET = "global-pull-secret";
    /// ServiceAccount, Role, RoleBinding, DaemonSet and container of the node syncer; the value of its Pods' label `name`.
    GLOBAL_SYNCER = "global-pull-secret-syncer";
    /// The ConfigMap that says how things are.
    GLOBAL_STATUS = "global-pull-secret-status";
}

names! {
    /// Labels and annotations of the global pull secret's objects.
    GLOBAL_LABELS:
    /// Label: `global-pull-secret` on all that the controller has made; anything else is left alone.
    LABEL_KUBERNETES_MANAGED_BY = "app.kubernetes.io/managed-by";
    /// Label: `true` on further additional Secrets, where the controller looks for them (`--labelled-additional`).
    LABEL_ADDITIONAL = "hypershift.openshift.io/additional-pull-secret";
    /// Annotation on an additional Secret: a whole number; the highest wins, then the name that comes first. 0 without it.
    ANNOTATION_PRIORITY = "hypershift.openshift.io/additional-pull-secret-priority";
    /// Annotation on the merged Secret and on the syncer's Pods: which edition of the content; rises with every change.
    ANNOTATION_REVISION = "hypershift.openshift.io/global-pull-secret-revision";
    /// Annotation on the merged Secret: since when it has this content.
    ANNOTATION_CHANGED_AT = "hypershift.openshift.io/global-pull-secret-changed-at";
    /// Annotation on the merged Secret: which Secret each key is from, as JSON.
    ANNOTATION_SOURCES = "hypershift.openshift.io/global-pull-secret-sources";
    /// Annotation on the merged Secret: since when nodes are being brought back to the original.
    ANNOTATION_REVERTING = "hypershift.openshift.io/global-pull-secret-reverting-since";
    /// Annotation on the status: when it was written.
    ANNOTATION_WRITTEN_AT = "hypershift.openshift.io/global-pull-secret-written-at";
}

/// The namespace of the hosted cluster in which all of it is.
pub const GLOBAL_NAMESPACE: &str = "kube-system";
/// The value of [`LABEL_KUBERNETES_MANAGED_BY`].
pub const GLOBAL_MANAGER: &str = "global-pull-secret";
/// The name of the original pull secret in the hosted control plane's namespace, unless a setting says otherwise.
pub const ORIGINAL_PULL_SECRET: &str = "pull-secret";

/// The value of [`ANNOTATION_CREATED_BY`].
pub const CREATED_BY: &str = "pullsecret-adapter";
/// The value of [`LABEL_MANAGED_BY`].
pub const MANAGED_BY: &str = "hyperfleet";
/// The value of [`LABEL_ADAPTER`].
pub const ADAPTER: &str = "pullsecret";
/// The value of [`LABEL_RESOURCE_TYPE`].
pub const RESOURCE_TYPE: &str = "pull-secret";
/// The value of [`LABEL_SCHEMA`].
pub const SCHEMA: &str = "v1";

/// The name of a cluster's secret in the store, unless `SECRET_NAME` says otherwise.
pub fn secret_name(cluster: &ClusterId) -> String {
    format!("hyperfleet-{cluster}-pull-secret")
}

/// The name of the Kubernetes Secret that a cluster's pull secret is handed over in, unless `K8S_SECRET_NAME` says
/// otherwise.
pub fn handed_over_name(cluster: &ClusterId) -> String {
    format!("{cluster}-pull-secret")
}
