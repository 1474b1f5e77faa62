//! Declares the Job's settings: each with its flag, type, default, bounds and sentence.

use std::path::PathBuf;
use std::time::Duration;

use daemon::settings::common::Log;
use daemon::settings::traces::Tracing;
use daemon::settings::{Row, Section as _, Table};
use secrecy::SecretString;

use super::aws::Aws;
use super::azure::Azure;
use super::vault::{StoreKind, Vault};

/// All settings of the Job. Their variables are their names in capitals.
pub const TABLE: Table = Table {
    families: &[
        "GCP_",
        "PULL_SECRET_",
        "SECRET_MANAGER_",
        "MANAGEMENT_",
        "REPLICATION_",
        "RETAIN_",
        "ALWAYS_",
        "DIGEST_",
        "SECRET_STORE",
        "VAULT_",
        "AWS_",
        "AZURE_",
    ],
    ..Table::of(Given::ROWS)
};

/// Settings without effect on a deletion: what is wrong with them must not prevent it.
pub(super) const STORING_ONLY: &[&str] = &[
    "pull_secret_file",
    "pull_secret_data",
    "fake_pull_secret",
    "secret_labels",
    "replication_policy",
    "replication_policy_mirror",
    "retain_versions",
    "always_add_version",
    "digest_key_file",
];

daemon::settings! {
    /// The settings as given, each of its type.
    pub struct Given {
        /// Cluster whose pull secret is stored: a DNS-1123 label
        pub cluster_id: Option<String> =
            Row::at("cluster_id").flag("cluster-id").placeholder("ID").unset("required"),
        /// Name of the cluster, written as a label for the reader
        pub cluster_name: Option<String> = Row::at("cluster_name").flag("cluster-name").placeholder("NAME"),
        /// Secret store
        pub secret_store: StoreKind = Row::at("secret_store").flag("secret-store").default("google"),
        /// Mirror: a second secret store, of another kind, that gets the same pull secret after the first one
        pub secret_store_mirror: Option<StoreKind> =
            Row::at("secret_store_mirror").flag("secret-store-mirror").unset("none: one store"),
        /// Google Cloud project that the secret is stored in
        pub gcp_project_id: Option<String> =
            Row::at("gcp_project_id").flag("gcp-project-id").placeholder("PROJECT").unset("required with SECRET_STORE=google"),
        /// Location of a regional secret
        pub gcp_location: Option<String> = Row::at("gcp_location")
            .flag("gcp-location")
            .placeholder("LOCATION")
            .unset("none: a global secret"),
        /// Name of the secret: 1 to 255 of A-Z, a-z, 0-9, '_' and '-'
        pub secret_name: Option<String> = Row::at("secret_name")
            .flag("secret-name")
            .placeholder("NAME")
            .unset("hyperfleet-{CLUSTER_ID}-pull-secret"),
        /// File that holds the pull secret (Docker config JSON); preferred to PULL_SECRET_DATA
        pub pull_secret_file: Option<PathBuf> =
            Row::at("pull_secret_file").flag("pull-secret-file").placeholder("FILE"),
        /// The pull secret itself (Docker config JSON)
        pub pull_secret_data: Option<SecretString> = Row::at("pull_secret_data").placeholder("JSON"),
        /// Store the specification's fake pull secret; for tests only
        pub fake_pull_secret: bool =
            Row::at("fake_pull_secret").flag("fake-pull-secret").no_variable().default("false"),
        /// Generation of the cluster's specification that the pull secret is from; an older one never replaces a newer one
        pub generation: Option<String> = Row::at("generation")
            .flag("generation")
            .placeholder("NUMBER")
            .unset("none: no ordering of runs"),
        /// Creation time of the cluster, or another text that tells it apart from an earlier cluster with the same id; the
        /// secrets of another one are not changed
        pub incarnation: Option<String> = Row::at("incarnation")
            .flag("incarnation")
            .placeholder("TEXT")
            .unset("none: clusters have only their ids to differ by"),
        /// Further labels of the secret
        pub secret_labels: Option<String> =
            Row::at("secret_labels").flag("secret-labels").placeholder("KEY=VALUE,…"),
        /// Replication of a new secret in SECRET_STORE: automatic[=KMS_KEY], or user-managed:LOCATION[=KMS_KEY],…; with GCP_LOCATION:
        /// regional[=KMS_KEY]
        pub replication_policy: Option<String> = Row::at("replication_policy")
            .flag("replication-policy")
            .placeholder("POLICY")
            .unset("automatic"),
        /// Replication of a new secret in SECRET_STORE_MIRROR, in the same form
        pub replication_policy_mirror: Option<String> = Row::at("replication_policy_mirror")
            .flag("replication-policy-mirror")
            .placeholder("POLICY")
            .unset("automatic"),
        /// Number of versions of this project that are kept, the current one included; older ones are destroyed after
        /// success; 0 keeps all
        pub retain_versions: usize =
            Row::at("retain_versions").flag("retain-versions").placeholder("COUNT").default("3"),
        /// Add a version even if the newest one holds the same pull secret
        pub always_add_version: bool =
            Row::at("always_add_version").flag("always-add-version").default("false"),
        /// File with the key (32 bytes or more) of the digests written to annotations and results
        pub digest_key_file: Option<PathBuf> = Row::at("digest_key_file")
            .flag("digest-key-file")
            .placeholder("FILE")
            .unset("none: no digest"),
        /// Namespace that HyperShift reads the pull secret from; needs CLUSTER_NAME too
        pub management_namespace: Option<String> = Row::at("management_namespace")
            .flag("management-namespace")
            .placeholder("NAMESPACE")
            .unset("none: no Kubernetes Secret is applied"),
        /// Name of the Kubernetes Secret
        pub k8s_secret_name: Option<String> = Row::at("k8s_secret_name")
            .flag("k8s-secret-name")
            .placeholder("NAME")
            .unset("{CLUSTER_ID}-pull-secret"),
        /// Kubeconfig of a management cluster other than the one that the Job runs in
        pub management_kubeconfig: Option<PathBuf> = Row::at("management_kubeconfig")
            .flag("management-kubeconfig")
            .placeholder("FILE")
            .unset("the Pod's service account, else the user's kubeconfig"),
        /// Context of the kubeconfig
        pub management_context: Option<String> = Row::at("management_context")
            .flag("management-context")
            .placeholder("CONTEXT")
            .unset("the kubeconfig's current context"),
        /// Maximum time of a call to Kubernetes
        pub k8s_api_timeout: Duration =
            Row::at("k8s_api_timeout").flag("k8s-api-timeout").default("30s").within("1ms", "24h"),
        /// Take over a Kubernetes Secret of that name that this project does not manage for the cluster, and secrets of an
        /// earlier cluster with the same id
        pub adopt: bool = Row::at("adopt").flag("adopt").no_variable().default("false"),
        /// Print the patch that makes a HostedCluster use the Kubernetes Secret, and do nothing else
        pub print_hosted_cluster_patch: bool = Row::at("print_hosted_cluster_patch")
            .flag("print-hosted-cluster-patch")
            .no_variable()
            .default("false"),
        /// Delete the secret with all its versions; needs no pull secret; one that does not exist is a success
        pub delete: bool = Row::at("delete").flag("delete").no_variable().default("false"),
        /// Delete only the Kubernetes Secret, and keep the stored secret; needs --delete
        pub kubernetes_secret_only: bool = Row::at("kubernetes_secret_only")
            .flag("kubernetes-secret-only")
            .no_variable()
            .default("false"),
        /// Observe, check permissions and conflicts for real, print what would be done, change nothing
        pub dry_run: bool = Row::at("dry_run").flag("dry-run").no_variable().default("false"),
        /// Trace that the run belongs to, in the W3C's form, logged on every line; a malformed one is ignored
        pub traceparent: Option<String> = Row::at("traceparent").placeholder("TRACEPARENT"),
        /// OpenBao or Vault
        pub vault: Vault,
        /// AWS Secrets Manager
        pub aws: Aws,
        /// Azure Key Vault
        pub azure: Azure,
        /// The log
        pub log: Log,
        /// Traces
        pub tracing: Tracing,
        /// Maximum time of a call to Secret Manager, fetching a token included
        pub gcp_api_timeout: Duration =
            Row::at("gcp_api_timeout").flag("gcp-api-timeout").default("30s").within("1ms", "24h"),
        /// Maximum time of the whole run
        pub run_timeout: Duration =
            Row::at("run_timeout").flag("run-timeout").default("300s").within("1ms", "24h"),
        /// File that the result is written to, in the format of HyperFleet's status-reporter
        pub results_path: Option<PathBuf> = Row::at("results_path")
            .flag("results-path")
            .placeholder("FILE")
            .unset("/results/adapter-result.json where that folder exists"),
        /// File that the result is written to as the container's termination message, if it exists
        pub termination_log_path: PathBuf = Row::at("termination_log_path")
            .flag("termination-log-path")
            .placeholder("FILE")
            .default("/dev/termination-log"),
        /// Address of an emulator of Secret Manager: plain HTTP
        pub secret_manager_emulator_host: Option<String> = Row::at("secret_manager_emulator_host")
            .flag("secret-manager-emulator-host")
            .placeholder("HOST:PORT"),
        /// File with the bearer token that the emulator requires
        pub secret_manager_emulator_token_file: Option<PathBuf> = Row::at("secret_manager_emulator_token_file")
            .flag("secret-manager-emulator-token-file")
            .placeholder("FILE"),
        /// Another address of Secret Manager (a private endpoint); https, or http to this machine
        pub gcp_secret_manager_endpoint: Option<String> = Row::at("gcp_secret_manager_endpoint")
            .flag("gcp-secret-manager-endpoint")
            .placeholder("URL")
            .unset("https://secretmanager.googleapis.com, or the location's own"),
    }
}
