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
    KUBERNETES_SECRET_ANNOTATIONS:
    /// Where the pull secret rests in Google Secret Manager; always the path that ends in `latest`.
    ANNOTATION_STORE_PATH = "hyperfleet.io/gcp-secret-path";
    /// The number of the version that the content was read from.
    ANNOTATION_STORE_VERSION = "hyperfleet.io/gcp-secret-version";
    /// `pullsecret-adapter`.
    ANNOTATION_CREATED_BY = "hyperfleet.io/created-by";
    /// When the Secret was created; stays through every change.
    ANNOTATION_CREATED_AT = "hyperfleet.io/created-at";
    /// The newest generation that has written this Secret; an older one changes nothing.
    ANNOTATION_KUBERNETES_SECRET_GENERATION = "hyperfleet.io/generation";
    /// HMAC-SHA256 of the pull secret's canonical form; written where `DIGEST_KEY_FILE` is given.
    ANNOTATION_KUBERNETES_SECRET_DIGEST = "hyperfleet.io/digest";
}

names! {
    /// The labels of what an adapter makes for a run: its Job, the Job's pods and its input.
    RUN_LABELS:
    /// `{adapter}-adapter`.
    LABEL_APP = "app";
    /// What the Job is about, such as `pull-secret`.
    LABEL_JOB_TYPE = "job-type";
    /// The adapter, such as `pullsecret`.
    LABEL_RUN_ADAPTER = "hyperfleet.io/adapter";
    /// The resource's id.
    LABEL_RUN_RESOURCE = "hyperfleet.io/resource-id";
    /// The generation that the run is for.
    LABEL_RUN_GENERATION = "hyperfleet.io/generation";
    /// `apply`, or `delete` for the run that removes what the others have made.
    LABEL_RUN_PURPOSE = "hyperfleet.io/purpose";
}

names! {
    /// The annotations of an adapter's Job.
    RUN_ANNOTATIONS:
    /// Which edition of a pull secret in a Kubernetes Secret (`spec.pullSecret.secretRef`) the run was given.
    ANNOTATION_SOURCE = "hyperfleet.io/source";
    /// The event that the run was made upon.
    ANNOTATION_EVENT = "hyperfleet.io/event-id";
    /// The trace that the run belongs to, in the W3C's form.
    ANNOTATION_TRACE = "hyperfleet.io/traceparent";
    /// The project whose quota the run is counted against.
    ANNOTATION_PROJECT = "hyperfleet.io/gcp-project";
    /// When the resource that the run is for was created: another one may have had its id before.
    ANNOTATION_RESOURCE_CREATED = "hyperfleet.io/resource-created";
    /// Which attempt at its generation the run is, from 1.
    ANNOTATION_ATTEMPT = "hyperfleet.io/attempt";
    /// Why the run was made.
    ANNOTATION_BECAUSE = "hyperfleet.io/because";
}

/// The value of [`LABEL_RUN_PURPOSE`] of a run that makes or repairs.
pub const PURPOSE_APPLY: &str = "apply";
/// The value of [`LABEL_RUN_PURPOSE`] of a run that removes.
pub const PURPOSE_DELETE: &str = "delete";

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

/// The name of the Kubernetes Secret with a cluster's pull secret, unless `K8S_SECRET_NAME` says
/// otherwise.
pub fn kubernetes_secret_name(cluster: &ClusterId) -> String {
    format!("{cluster}-pull-secret")
}

/// The name of the Job of an adapter for a resource at a generation: `{adapter}-{id}-gen{generation}`, or where that is
/// longer than Kubernetes takes, its beginning and a hash.
pub fn run_name(adapter: &str, resource: &str, generation: i64) -> String {
    guarded(&format!("{adapter}-{resource}-gen{generation}"))
}

/// The name of the Secret that an adapter's Job reads: `cluster-{id}-{adapter}-data`, guarded alike.
pub fn input_name(adapter: &str, resource: &str) -> String {
    guarded(&format!("cluster-{resource}-{adapter}-data"))
}

/// Names of Jobs become labels of their pods, so they have at most 63 characters.
fn guarded(name: &str) -> String {
    const LONGEST: usize = 63;
    const HASH: usize = 16;
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    // FNV-1a: stable over every edition of this program, which no hasher of the standard library is.
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let beginning = name.get(..name.floor_char_boundary(LONGEST - HASH - 1)).unwrap_or_default();
    format!("{}-{hash:016x}", beginning.trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runs_are_the_specifications_and_fit() {
        assert_eq!(run_name("pullsecret", "cls-123", 1), "pullsecret-cls-123-gen1");
        assert_eq!(input_name("pullsecret", "cls-123"), "cluster-cls-123-pullsecret-data");
        let long = "a".repeat(63);
        let names = [
            run_name("pullsecret", &long, 1),
            run_name("pullsecret", &long, 2),
            input_name("pullsecret", &long),
            run_name("pullsecret", &format!("{}b", "a".repeat(62)), 1),
        ];
        assert!(names.iter().all(|name| name.len() <= 63 && crate::id::is_dns_label(name)), "{names:?}");
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
    }
}
