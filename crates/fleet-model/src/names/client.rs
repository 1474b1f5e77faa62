//! Names with which the programs introduce themselves to servers.

names! {
    /// Names of the programs: field managers in Kubernetes, and the beginning of `User-Agent`.
    PROGRAMS:
    /// The fleet plane's program; field manager of what a Job applies.
    PULL_SECRET = "pull-secret";
    /// The server of HyperFleet's API; named in the history as the source of its own conditions.
    HYPERFLEET_API = "hyperfleet-api";
    /// The Sentinel as a client of HyperFleet's API.
    SENTINEL = "hyperfleet-sentinel";
    /// An adapter as a client of HyperFleet's API.
    ADAPTER = "hyperfleet-adapter";
    /// The client library, where the program sets no name of its own.
    CLIENT = "hyperfleet-client";
    /// The hosted cluster's controller; also its field manager.
    GLOBAL_PULL_SECRET = "global-pull-secret";
    /// Probes of a registry's accounts, which are left out of their usage.
    REGISTRY_PROBE = "pull-secret-probe";
    /// The node agent.
    SYNCER = "sync-global-pullsecret";
    /// The kubelet's credential provider.
    CREDENTIAL_PROVIDER = "keyless-credential-provider";
}
