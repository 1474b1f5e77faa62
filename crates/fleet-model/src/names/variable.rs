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
    /// Google Cloud project that the secret is stored in.
    GCP_PROJECT_ID = "GCP_PROJECT_ID";
    /// Location of a regional secret.
    GCP_LOCATION = "GCP_LOCATION";
    /// Name of the secret in the store.
    SECRET_NAME = "SECRET_NAME";
    /// Replication policy of a new secret.
    REPLICATION_POLICY = "REPLICATION_POLICY";
    /// Namespace of the Kubernetes Secret that HyperShift reads.
    MANAGEMENT_NAMESPACE = "MANAGEMENT_NAMESPACE";
    /// Name of the Kubernetes Secret that HyperShift reads.
    K8S_SECRET_NAME = "K8S_SECRET_NAME";
    /// File that holds the pull secret.
    PULL_SECRET_FILE = "PULL_SECRET_FILE";
    /// Trace that the run belongs to, in the W3C's form.
    TRACEPARENT = "TRACEPARENT";
}
