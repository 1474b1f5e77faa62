//! Environment variables that the adapter sets and the Pull Secret Job reads.

names! {
    /// The environment variables of a Pull Secret Job that the adapter sets.
    JOB_VARIABLES:
    /// Id of the cluster that the pull secret belongs to.
    CLUSTER_ID = "CLUSTER_ID";
    /// Name of the cluster, written as a label.
    CLUSTER_NAME = "CLUSTER_NAME";
    /// Generation of the cluster that the pull secret is from.
    GENERATION = "GENERATION";
    /// Creation time of the cluster; another one is another cluster with the same id.
    INCARNATION = "INCARNATION";
    /// Kind of the secret store; Google Secret Manager if it is not set.
    SECRET_STORE = "SECRET_STORE";
    /// Kind of the mirror, a second secret store with the same content; none if it is not set.
    SECRET_STORE_MIRROR = "SECRET_STORE_MIRROR";
    /// Google Cloud project that the secret is stored in.
    GCP_PROJECT_ID = "GCP_PROJECT_ID";
    /// Location of a regional secret.
    GCP_LOCATION = "GCP_LOCATION";
    /// Address of OpenBao or Vault.
    VAULT_ADDR = "VAULT_ADDR";
    /// Namespace at OpenBao or Vault.
    VAULT_NAMESPACE = "VAULT_NAMESPACE";
    /// Mount of the KV engine at OpenBao or Vault.
    VAULT_MOUNT = "VAULT_MOUNT";
    /// Folder of the secret in that mount.
    VAULT_FOLDER = "VAULT_FOLDER";
    /// Region of AWS Secrets Manager.
    AWS_REGION = "AWS_REGION";
    /// The part of the secrets' names at AWS before the last '/'.
    AWS_FOLDER = "AWS_FOLDER";
    /// Address of the vault in Azure Key Vault.
    AZURE_KEY_VAULT_URL = "AZURE_KEY_VAULT_URL";
    /// Name of the secret in the store.
    SECRET_NAME = "SECRET_NAME";
    /// Replication policy of a new secret.
    REPLICATION_POLICY = "REPLICATION_POLICY";
    /// Replication policy of a new secret in the mirror.
    REPLICATION_POLICY_MIRROR = "REPLICATION_POLICY_MIRROR";
    /// Namespace of the Kubernetes Secret that HyperShift reads.
    MANAGEMENT_NAMESPACE = "MANAGEMENT_NAMESPACE";
    /// Name of the Kubernetes Secret that HyperShift reads.
    K8S_SECRET_NAME = "K8S_SECRET_NAME";
    /// File that holds the pull secret.
    PULL_SECRET_FILE = "PULL_SECRET_FILE";
    /// Trace that the run belongs to, in the W3C's form.
    TRACEPARENT = "TRACEPARENT";
}
