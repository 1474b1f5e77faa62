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
