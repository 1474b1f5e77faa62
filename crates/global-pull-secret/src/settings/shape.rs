//! Declares the controller's settings: each with its key, flag, type, default, bounds and sentence.

use std::path::PathBuf;
use std::time::Duration;

use daemon::settings::Row;
use daemon::settings::common::{self, Address, Log};
use daemon::settings::traces::Tracing;

daemon::settings! {
    /// Settings of the controller, every one given or defaulted.
    pub struct Settings {
        /// Kubeconfig of the hosted cluster
        pub hosted_kubeconfig: Option<PathBuf> = Row::at("hosted_kubeconfig")
            .flag("hosted-kubeconfig")
            .unset("the cluster of the hosted control plane is the hosted one too"),
        /// Kubeconfig of the cluster with the hosted control plane
        pub kubeconfig: Option<PathBuf> =
            Row::at("kubeconfig").flag("kubeconfig").unset("the Pod's service account, else the user's kubeconfig"),
        /// Namespace of the hosted control plane, which holds the original pull secret
        pub control_plane_namespace: Option<String> =
            Row::at("control_plane_namespace").flag("control-plane-namespace").required(),
        /// Name of the original pull secret
        pub original_secret: String = Row::at("original_secret").flag("original-secret").default("pull-secret"),
        /// Secret that the original is copied from, `NAMESPACE/NAME` beside it: the trace that its annotation names is linked to that of
        /// the roll-out; needs to get it
        pub source_secret: Option<String> = Row::at("source_secret")
            .flag("source-secret")
            .placeholder("NAMESPACE/NAME")
            .unset("only an annotation of the original itself counts"),
        /// The node syncer
        pub syncer: SyncerSettings,
        /// Entry that is kept where both Secrets have one for a registry
        pub conflict_policy: ConflictChoice =
            Row::at("conflict_policy").flag("conflict-policy").default("additional-wins"),
        /// Registry, or a path prefix in one, whose entries only the original may have; repeat the flag, or separate by
        /// commas
        pub protected_prefix: Option<String> = Row::at("protected_prefix").flag("protected-prefix"),
        /// Effect of an invalid entry: its Secret is rejected, or the entry is left out
        pub invalid_entries: InvalidChoice =
            Row::at("invalid_entries").flag("invalid-entries").default("reject-all"),
        /// Merge Secrets with the label hypershift.openshift.io/additional-pull-secret=true too; needs to list Secrets
        pub labelled_additional: bool =
            Row::at("labelled_additional").flag("labelled-additional").default("false"),
        /// Report images of running Pods from which a change takes the key; needs to list the Pods of all namespaces
        pub running_images: bool = Row::at("running_images").flag("running-images").default("true"),
        /// Verification of credentials at registries
        pub probe: ProbeSettings,
        /// Roll-out of a change: to all nodes at once, or by new Pods step by step
        pub rollout: RolloutChoice = Row::at("rollout").flag("rollout").default("immediate"),
        /// Time after which nodes that have not applied a change are named in the condition Degraded
        pub node_deadline: Duration = Row::at("node_deadline").flag("node-deadline").default("10m").least("1s"),
        /// Maximum time for nodes to return to the original before clean-up removes everything regardless
        pub cleanup_deadline: Duration = Row::at("cleanup_deadline").flag("cleanup-deadline").default("10m").least("1s"),
        /// Maximum time of a request to Kubernetes
        pub call_timeout: Duration = Row::at("call_timeout").default("10s").least("1s"),
        /// The log
        pub log: Log,
        /// Traces
        pub tracing: Tracing,
        /// Probes
        pub health: Address = common::HEALTH,
        /// Metrics
        pub metrics: Address = common::METRICS,
    }
}

daemon::settings! {
    /// The node syncer.
    pub struct SyncerSettings {
        /// Image of the node syncer
        pub image: Option<String> = Row::at("syncer.image").flag("syncer-image").required(),
        /// Priority class of the syncer's Pods; it must exist
        pub priority_class: String =
            Row::at("syncer.priority_class").flag("syncer-priority-class").default("openshift-user-critical"),
        /// Labels of the nodes that run the syncer
        pub node_selector: Option<String> =
            Row::at("syncer.node_selector").flag("syncer-node-selector").placeholder("KEY=VALUE,…").unset("all nodes"),
        /// Maximum number or percentage of nodes that a rolling change takes at a time
        pub max_unavailable: String = Row::at("syncer.max_unavailable").flag("max-unavailable").default("10%"),
        /// Restart of the kubelet after a change; without one it rereads its file within 5 minutes
        pub restart_policy: RestartChoice = Row::at("syncer.restart_policy").flag("restart-policy").default("always"),
    }
}

daemon::settings! {
    /// Verification of credentials at registries.
    pub struct ProbeSettings {
        /// Verification of new credentials at their registries before the roll-out: none, a warning, or a block of
        /// refused ones
        pub credentials: ProbeChoice = Row::at("probe.credentials").flag("probe-credentials").default("off"),
        /// Host that is never contacted, nor its subdomains; repeat the flag, or separate by commas
        pub deny: Option<String> = Row::at("probe.deny").flag("probe-deny"),
        /// Contact registries at private and loopback addresses too, which lets admins of the hosted cluster reach them
        /// from here
        pub allow_private: bool = Row::at("probe.allow_private").flag("probe-allow-private").default("false"),
        /// Further certificate authorities of registries, PEM
        pub ca_file: Option<PathBuf> = Row::at("probe.ca_file").flag("probe-ca-file"),
        /// Maximum time of a request to a registry
        pub timeout: Duration =
            Row::at("probe.timeout").flag("probe-timeout").default("10s").within("100ms", "1m"),
    }
}

daemon::choices! {
    /// Entry that is kept where both Secrets have one for a registry.
    pub enum ConflictChoice {
        /// The additional Secret's.
        AdditionalWins = "additional-wins",
        /// The original pull secret's.
        OriginalWins = "original-wins",
    }
}

daemon::choices! {
    /// Effect of an invalid entry.
    pub enum InvalidChoice {
        /// Its Secret is rejected.
        RejectAll = "reject-all",
        /// The entry is left out.
        Skip = "skip",
    }
}

daemon::choices! {
    /// Roll-out of a change.
    pub enum RolloutChoice {
        /// To all nodes at once.
        Immediate = "immediate",
        /// By new Pods step by step.
        Rolling = "rolling",
    }
}

daemon::choices! {
    /// Restart of the kubelet after a change.
    pub enum RestartChoice {
        /// On every change.
        Always = "always",
        /// On none.
        Never = "never",
    }
}

daemon::choices! {
    /// Verification of new credentials at their registries.
    pub enum ProbeChoice {
        /// None.
        Off = "off",
        /// Refusals are reported.
        Warn = "warn",
        /// Refused credentials are held back.
        Block = "block",
    }
}
