//! Every name that this project writes to the world, declared once.

use crate::{ClusterId, Generation};

/// A name and its meaning, for the generated reference page.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// The name as it is written.
    pub name: &'static str,
    /// Meaning of its presence or value.
    pub meaning: &'static str,
}

/// A list of names under one heading of the reference page.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Heading.
    pub title: &'static str,
    /// Names in the order of the page.
    pub names: &'static [Name],
}

/// Declares constants together with the list of them that the reference page shows.
macro_rules! names {
    ($(#[$list_doc:meta])* $list:ident: $($(#[doc = $meaning:literal])+ $constant:ident = $name:literal;)+) => {
        $($(#[doc = $meaning])+ pub const $constant: &str = $name;)+
        $(#[$list_doc])*
        pub const $list: &[$crate::names::Name] =
            &[$($crate::names::Name { name: $name, meaning: concat!($($meaning),+).trim_ascii() },)+];
    };
}

pub mod access;
pub mod client;
pub mod condition;
pub mod message;
pub mod trace;
pub mod variable;

/// Every group, in the order of the reference page.
pub const GROUPS: &[Group] = &[
    Group { title: "Labels of a secret", names: LABELS },
    Group { title: "Annotations of a secret in Google Secret Manager", names: ANNOTATIONS },
    Group { title: "Annotations of the Kubernetes Secret", names: KUBERNETES_SECRET_ANNOTATIONS },
    Group { title: "Labels of the objects that an adapter creates for a run", names: RUN_LABELS },
    Group { title: "Annotations of an adapter's Job", names: RUN_ANNOTATIONS },
    Group { title: "Annotation of the Lease `{lease}-position` beside a Sentinel's own", names: SENTINEL_ANNOTATIONS },
    Group { title: "Annotations of a Secret that clusters refer to", names: REFERENCED_ANNOTATIONS },
    Group { title: "Objects of a rotation, in the namespace of Jobs", names: ROTATION_OBJECTS },
    Group { title: "Metadata of an account at a registry", names: REGISTRY_METADATA },
    Group { title: "Description of an account at a registry without metadata", names: REGISTRY_DESCRIPTIONS },
    Group {
        title: "Annotation of a service account whose Pods pull without a pull secret",
        names: SERVICE_ACCOUNT_ANNOTATIONS,
    },
    Group {
        title: "Permissions of callers of the credentials service, in roles of Kubernetes",
        names: access::PERMISSIONS,
    },
    Group { title: "Environment variables of a Pull Secret Job that the adapter sets", names: variable::JOB_VARIABLES },
    Group { title: "Condition types that an adapter reports", names: condition::REPORTED },
    Group { title: "Condition types that the API concludes", names: condition::CONCLUDED },
    Group { title: "Condition types of the global pull secret", names: condition::GLOBAL },
    Group { title: "Objects of the global pull secret", names: GLOBAL_OBJECTS },
    Group { title: "Labels and annotations of the global pull secret", names: GLOBAL_LABELS },
    Group { title: "Exchanges and queues of RabbitMQ", names: message::RABBITMQ },
    Group { title: "Topics and subscriptions of Google Pub/Sub", names: message::PUBSUB },
    Group { title: "Attributes of a message: headers of RabbitMQ, attributes of Pub/Sub", names: message::ATTRIBUTES },
    Group { title: "Services in traces", names: trace::SERVICES },
    Group { title: "Spans in traces", names: trace::SPANS },
    Group { title: "Attributes of spans", names: trace::ATTRIBUTES },
    Group { title: "Programs, as field managers and in `User-Agent`", names: client::PROGRAMS },
];

names! {
    /// The metadata of an account at a registry.
    REGISTRY_METADATA:
    /// Our id of the credential that the account was made for: a UUID of version 7. An account without it, or with another one, is
    /// not taken over.
    METADATA_CREDENTIAL = "hyperfleet.io/credential";
}

names! {
    /// The end of the description of an account at a registry without metadata, in brackets.
    REGISTRY_DESCRIPTIONS:
    /// Our id of the credential that the account was made for: `[hyperfleet credential 01932b5c-…]`.
    DESCRIPTION_CREDENTIAL = "hyperfleet credential";
}

names! {
    /// The annotation of a service account whose Pods pull without a pull secret.
    SERVICE_ACCOUNT_ANNOTATIONS:
    /// The robot whose password the node gets for the service account's token, with its organization: `ORGANIZATION+ROBOT`.
    ANNOTATION_ROBOT = "hyperfleet.io/registry-robot";
}

/// Suffix of the name of the Lease that keeps a Sentinel's position.
pub const POSITION_SUFFIX: &str = "-position";

names! {
    /// The annotation of a Sentinel's position.
    SENTINEL_ANNOTATIONS:
    /// Version of the API's change stream up to which every change is published, and those behind it that are.
    ANNOTATION_POSITION = "hyperfleet.io/position";
}

names! {
    /// The objects of a rotation.
    ROTATION_OBJECTS:
    /// Beginning of the names of the `ConfigMaps` with state (`…NAME`) and plan (`…NAME.plan`), and of the Lease of the process that
    /// works on it.
    ROTATION_PREFIX = "pull-secret-rotation-";
    /// Label on both `ConfigMaps`: name of the rotation.
    LABEL_ROTATION = "hyperfleet.io/rotation";
}

names! {
    /// The labels of every stored secret.
    LABELS:
    /// `hyperfleet` on every secret that this project manages; others are not changed.
    LABEL_MANAGED_BY = "managed-by";
    /// `pullsecret`: the adapter that the secret belongs to.
    LABEL_ADAPTER = "adapter";
    /// Id of the cluster that the secret belongs to; another id means another owner.
    LABEL_CLUSTER_ID = "cluster-id";
    /// Name of the cluster, for people; written if `CLUSTER_NAME` is set.
    LABEL_CLUSTER_NAME = "cluster-name";
    /// `pull-secret`.
    LABEL_RESOURCE_TYPE = "resource-type";
    /// `v1`: the version of these labels.
    LABEL_SCHEMA = "hyperfleet-version";
}

names! {
    /// The annotations of a secret in Google Secret Manager.
    ANNOTATIONS:
    /// Newest generation that has claimed this secret; an older one changes nothing.
    ANNOTATION_GENERATION = "hyperfleet-generation";
    /// Creation time of the cluster that the content belongs to; a cluster with the same id and another one changes nothing.
    ANNOTATION_INCARNATION = "hyperfleet-incarnation";
    /// Number of the version that holds the current pull secret; the next run starts its search here.
    ANNOTATION_VERSION = "hyperfleet-version";
    /// Number that the next version will get; present only while a run adds one.
    ANNOTATION_ANNOUNCED = "hyperfleet-announced";
    /// HMAC-SHA256 of the announced version's content under a key from the current one's; present only while a run adds one.
    /// A later run tells by it a version that a killed run has added from one that was added by hand.
    ANNOTATION_ANNOUNCED_DIGEST = "hyperfleet-announced-digest";
    /// HMAC-SHA256 of the current pull secret's canonical form; written if `DIGEST_KEY_FILE` is set.
    ANNOTATION_DIGEST = "hyperfleet-digest";
    /// Numbers of the versions that this project added and has not destroyed, ascending, separated by commas.
    ANNOTATION_ADDED = "hyperfleet-added";
}

names! {
    /// The annotations of the Kubernetes Secret that HyperShift reads.
    KUBERNETES_SECRET_ANNOTATIONS:
    /// Path of the pull secret in Google Secret Manager; always the one that ends in `latest`.
    ANNOTATION_STORE_PATH = "hyperfleet.io/gcp-secret-path";
    /// Number of the version that the content was read from.
    ANNOTATION_STORE_VERSION = "hyperfleet.io/gcp-secret-version";
    /// `pullsecret-adapter`.
    ANNOTATION_CREATED_BY = "hyperfleet.io/created-by";
    /// Creation time of the Secret; kept through every change.
    ANNOTATION_CREATED_AT = "hyperfleet.io/created-at";
    /// Newest generation that has written this Secret; an older one changes nothing.
    ANNOTATION_KUBERNETES_SECRET_GENERATION = "hyperfleet.io/generation";
    /// Creation time of the cluster that the Secret belongs to; a cluster with the same id and another one changes nothing.
    ANNOTATION_KUBERNETES_SECRET_INCARNATION = "hyperfleet.io/incarnation";
    /// HMAC-SHA256 of the pull secret's canonical form; written if `DIGEST_KEY_FILE` is set.
    ANNOTATION_KUBERNETES_SECRET_DIGEST = "hyperfleet.io/digest";
}

names! {
    /// The labels of the objects that an adapter creates for a run: the Job, its Pods and its input Secret.
    RUN_LABELS:
    /// `{adapter}-adapter`.
    LABEL_APP = "app";
    /// Type of the Job, such as `pull-secret`.
    LABEL_JOB_TYPE = "job-type";
    /// Name of the adapter, such as `pullsecret`.
    LABEL_RUN_ADAPTER = "hyperfleet.io/adapter";
    /// Id of the resource.
    LABEL_RUN_RESOURCE = "hyperfleet.io/resource-id";
    /// Generation that the run is for.
    LABEL_RUN_GENERATION = "hyperfleet.io/generation";
    /// `apply`, `delete` for the run that removes what other runs have created, or `clean-up` for one that deletes a single
    /// copy of the pull secret.
    LABEL_RUN_PURPOSE = "hyperfleet.io/purpose";
}

names! {
    /// The annotations of an adapter's Job.
    RUN_ANNOTATIONS:
    /// `resourceVersion` of the referenced Kubernetes Secret (`spec.pullSecret.secretRef`) that the run reads.
    ANNOTATION_SOURCE = "hyperfleet.io/source";
    /// Id of the event that triggered the run.
    ANNOTATION_EVENT = "hyperfleet.io/event-id";
    /// Trace that the run belongs to, in the W3C's form.
    ANNOTATION_TRACE = "hyperfleet.io/traceparent";
    /// Google Cloud project, address of OpenBao or Vault, or region of AWS, whose quota the run counts against.
    ANNOTATION_QUOTA = "hyperfleet.io/quota";
    /// The same of the mirror.
    ANNOTATION_QUOTA_MIRROR = "hyperfleet.io/quota-mirror";
    /// Creation time of the resource that the run is for; tells it apart from an earlier resource with the same id.
    ANNOTATION_RESOURCE_CREATED = "hyperfleet.io/resource-created";
    /// Copy of the pull secret that a clean-up deletes, as JSON.
    ANNOTATION_COPY = "hyperfleet.io/copy";
    /// Number of the attempt at the generation, from 1.
    ANNOTATION_ATTEMPT = "hyperfleet.io/attempt";
    /// Reason for the run.
    ANNOTATION_BECAUSE = "hyperfleet.io/because";
}

names! {
    /// The annotations of a Secret that clusters refer to.
    REFERENCED_ANNOTATIONS:
    /// Consent of a Secret that `spec.pullSecret.secretRef` names: ids of the clusters that may use its content, separated by
    /// commas, or `*` for all of them. Without it no cluster may.
    ANNOTATION_CONSENT = "hyperfleet.io/allowed-clusters";
}

/// The value of [`LABEL_RUN_PURPOSE`] of a run that creates or repairs.
pub const PURPOSE_APPLY: &str = "apply";
/// The value of [`LABEL_RUN_PURPOSE`] of a run that removes.
pub const PURPOSE_DELETE: &str = "delete";
/// The value of [`LABEL_RUN_PURPOSE`] of a run that deletes a single copy of the pull secret.
pub const PURPOSE_CLEAN_UP: &str = "clean-up";

names! {
    /// The objects of the global pull secret, in the hosted cluster's `kube-system`.
    GLOBAL_OBJECTS:
    /// Secret that the hosted cluster's admin creates.
    ADDITIONAL_PULL_SECRET = "additional-pull-secret";
    /// Secret with the merged content.
    GLOBAL_PULL_SECRET = "global-pull-secret";
    /// ServiceAccount, Role, RoleBinding, DaemonSet and container of the node syncer; the value of its Pods' label `name`.
    GLOBAL_SYNCER = "global-pull-secret-syncer";
    /// ConfigMap with the controller's conditions.
    GLOBAL_STATUS = "global-pull-secret-status";
    /// ConfigMap in which the syncer confirms the applied revision, under the name of each node.
    GLOBAL_NODES = "global-pull-secret-nodes";
}

names! {
    /// Labels and annotations of the global pull secret's objects.
    GLOBAL_LABELS:
    /// Label: `global-pull-secret` on every object that the controller manages; others are not changed.
    LABEL_KUBERNETES_MANAGED_BY = "app.kubernetes.io/managed-by";
    /// Label: `true` on further additional Secrets, which `--labelled-additional` enables.
    LABEL_ADDITIONAL = "hypershift.openshift.io/additional-pull-secret";
    /// Annotation on an additional Secret: its priority, a whole number (default 0). The highest wins, then the first name.
    ANNOTATION_PRIORITY = "hypershift.openshift.io/additional-pull-secret-priority";
    /// Annotation on the merged Secret and on the syncer's Pods: revision of the content; increases with every change.
    ANNOTATION_REVISION = "hypershift.openshift.io/global-pull-secret-revision";
    /// Annotation on the merged Secret: time of the last change of its content.
    ANNOTATION_CHANGED_AT = "hypershift.openshift.io/global-pull-secret-changed-at";
    /// Annotation on the merged Secret: the source Secret of each key, as JSON.
    ANNOTATION_SOURCES = "hypershift.openshift.io/global-pull-secret-sources";
    /// Annotation on the merged Secret: the keys that its last change added and removed, as JSON.
    ANNOTATION_CHANGE = "hypershift.openshift.io/global-pull-secret-change";
    /// Annotation on the merged Secret: time at which the nodes began to revert to the original.
    ANNOTATION_REVERTING = "hypershift.openshift.io/global-pull-secret-reverting-since";
    /// Annotation on the syncer's objects: digest of the applied object; another one means that it is to be applied again.
    ANNOTATION_APPLIED = "hypershift.openshift.io/global-pull-secret-applied";
    /// Annotation on the status: time at which it was written.
    ANNOTATION_WRITTEN_AT = "hypershift.openshift.io/global-pull-secret-written-at";
}

/// The namespace of these objects in the hosted cluster.
pub const GLOBAL_NAMESPACE: &str = "kube-system";
/// The value of [`LABEL_KUBERNETES_MANAGED_BY`].
pub const GLOBAL_MANAGER: &str = "global-pull-secret";
/// The name of the original pull secret in the hosted control plane's namespace, unless a setting says otherwise.
pub const ORIGINAL_PULL_SECRET: &str = "pull-secret";
/// The namespace of the hosted cluster in which HyperShift keeps a copy of the original pull secret, by its usual name.
pub const ORIGINAL_COPY_NAMESPACE: &str = "openshift-config";

/// The value of [`ANNOTATION_CREATED_BY`].
pub const CREATED_BY: &str = "pullsecret-adapter";
/// The value of [`SECRET_STORE`](variable::SECRET_STORE) for Google Secret Manager.
pub const STORE_GOOGLE: &str = "google";
/// The value of [`SECRET_STORE`](variable::SECRET_STORE) for OpenBao and Vault.
pub const STORE_VAULT: &str = "vault";
/// The value of [`SECRET_STORE`](variable::SECRET_STORE) for AWS Secrets Manager.
pub const STORE_AWS: &str = "aws";
/// The value of [`SECRET_STORE`](variable::SECRET_STORE) for Azure Key Vault.
pub const STORE_AZURE: &str = "azure";
/// The value of [`LABEL_MANAGED_BY`].
pub const MANAGED_BY: &str = "hyperfleet";
/// The value of [`LABEL_ADAPTER`].
pub const ADAPTER: &str = "pullsecret";
/// The labels that select the secrets of all clusters.
pub const STORED_SECRETS: [(&str, &str); 2] = [(LABEL_MANAGED_BY, MANAGED_BY), (LABEL_ADAPTER, ADAPTER)];
/// The value of [`LABEL_RESOURCE_TYPE`].
pub const RESOURCE_TYPE: &str = "pull-secret";
/// The value of [`LABEL_SCHEMA`].
pub const SCHEMA: &str = "v1";

/// Returns the name of a cluster's secret in the store, unless `SECRET_NAME` sets another.
pub fn secret_name(cluster: &ClusterId) -> String {
    format!("hyperfleet-{cluster}-pull-secret")
}

/// Returns the name of the Kubernetes Secret with a cluster's pull secret, unless `K8S_SECRET_NAME` sets another.
pub fn kubernetes_secret_name(cluster: &ClusterId) -> String {
    format!("{cluster}-pull-secret")
}

/// Returns the name of an adapter's Job for a resource at a generation: `{adapter}-{id}-gen{generation}`. A name longer
/// than Kubernetes accepts is cut and ends with a hash.
pub fn run_name(adapter: &str, resource: &str, generation: Generation) -> String {
    shortened(&format!("{adapter}-{resource}-gen{generation}"))
}

/// Returns the name of an adapter's Job that deletes a single copy of a pull secret: the name of the generation's Job, and a
/// hash of the copy.
pub fn clean_up_name(adapter: &str, resource: &str, generation: Generation, copy: &str) -> String {
    shortened(&format!("{adapter}-{resource}-gen{generation}-{:016x}", hash(copy)))
}

/// Returns the name of the Secret that an adapter's Job reads: `cluster-{id}-{adapter}-data`, shortened likewise.
pub fn input_name(adapter: &str, resource: &str) -> String {
    shortened(&format!("cluster-{resource}-{adapter}-data"))
}

/// Returns the name of the Role and `RoleBinding` by which an adapter grants an account access to a Secret.
pub fn access_name(account: &str, secret: &str) -> String {
    format!("{account}:{secret}")
}

/// Returns the name of the `ConfigMap` with an adapter's record of the last check of the secret stores.
pub fn store_check_name(adapter: &str) -> String {
    format!("{adapter}-store-check")
}

/// Shortens a name to 63 characters: names of Jobs become labels of their Pods.
fn shortened(name: &str) -> String {
    const LONGEST: usize = 63;
    const HASH: usize = 16;
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    let beginning = name.get(..name.floor_char_boundary(LONGEST - HASH - 1)).unwrap_or_default();
    format!("{}-{:016x}", beginning.trim_end_matches(['-', '.']), hash(name))
}

/// FNV-1a: stable over every version of this program, unlike the hashers of the standard library.
fn hash(text: &str) -> u64 {
    let bytes = text.bytes();
    bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runs_have_the_specified_form_and_length() {
        assert_eq!(run_name("pullsecret", "cls-123", Generation::FIRST), "pullsecret-cls-123-gen1");
        assert_eq!(input_name("pullsecret", "cls-123"), "cluster-cls-123-pullsecret-data");
        let long = "a".repeat(63);
        let names = [
            run_name("pullsecret", &long, Generation::FIRST),
            run_name("pullsecret", &long, Generation::from(2)),
            input_name("pullsecret", &long),
            run_name("pullsecret", &format!("{}b", "a".repeat(62)), Generation::FIRST),
        ];
        assert!(names.iter().all(|name| name.len() <= 63 && crate::id::is_dns_label(name)), "{names:?}");
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
    }
}
