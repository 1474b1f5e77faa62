//! Settings of a server, the calls that it has received, and the errors of its start.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use super::faults::Fault;
use super::tokens::User;

/// Number of changes that are kept for watches.
const WATCH_HISTORY: usize = 4096;

/// Back-off of a real cluster before a failed Pod is replaced.
const BACK_OFF: Duration = Duration::from_secs(10);

/// Behaviour of a server.
#[derive(Clone)]
pub struct Settings {
    /// The address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The folder in which objects outlive the server; in memory if none. One server at a time may use a folder.
    pub data_dir: Option<PathBuf>,
    /// The folder of the Pods' files, emptied at the start; one in the data folder if none, or else a temporary one.
    pub pods_dir: Option<PathBuf>,
    /// Scripted faults, in the order in which they are tried.
    pub faults: Vec<Fault>,
    /// Authorization.
    pub authorization: Authorization,
    /// Users by bearer token; tokens of `ServiceAccount`s are accepted besides.
    pub tokens: BTreeMap<String, User>,
    /// Namespaces that are there from the start besides `default`, `kube-system` and `kube-public`.
    pub namespaces: Vec<String>,
    /// Number of changes that are kept; a watch from before them is answered with 410.
    pub watch_history: usize,
    /// The programs that stand for images: Pods of these images run as child processes. With none, every Pod stays Pending, as
    /// on a cluster without nodes, and a test may play kubelet.
    pub run_pods: BTreeMap<String, PathBuf>,
    /// First delay of a failed Pod or a crashed container; the later delays and their caps grow with it.
    pub back_off: Duration,
    /// Receiver of every line that Pods write.
    pub pod_lines: Option<UnboundedSender<PodLine>>,
}

/// Authorization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authorization {
    /// Everybody everything.
    #[default]
    Off,
    /// Roles and `ClusterRole`s decide; members of `system:masters` may do everything.
    Rbac,
}

/// A call that was received. It never holds content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// `create`, `get`, `list`, `watch`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// The plural, such as `secrets`.
    pub resource: String,
    /// Such as `status`; mostly empty.
    pub subresource: String,
    /// Empty for cluster-wide objects and for all namespaces.
    pub namespace: String,
    /// Empty for lists and for creations.
    pub name: String,
    /// The caller.
    pub user: String,
    /// The caller's user agent.
    pub user_agent: String,
    /// True if nothing was to be stored.
    pub dry_run: bool,
    /// The media type of the body, which tells the kinds of patches apart.
    pub content_type: String,
    /// The HTTP status that was answered; none while it waits, and for good if its connection was cut or it hung.
    pub outcome: Option<u16>,
}

/// A line that a Pod's program has written. `Debug` does not show it: a program may print its secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct PodLine {
    /// The Pod's namespace.
    pub namespace: String,
    /// Its name.
    pub pod: String,
    /// The line, without its end.
    pub line: String,
}

// === impl Settings ===

impl Default for Settings {
    /// In memory on a free port of the loopback interface, with nothing that gets in the way.
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            data_dir: None,
            pods_dir: None,
            faults: Vec::new(),
            authorization: Authorization::Off,
            tokens: BTreeMap::new(),
            namespaces: Vec::new(),
            watch_history: WATCH_HISTORY,
            run_pods: BTreeMap::new(),
            back_off: BACK_OFF,
            pod_lines: None,
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            listen,
            data_dir,
            pods_dir,
            faults,
            authorization,
            tokens,
            namespaces,
            watch_history,
            run_pods,
            back_off,
            pod_lines: _,
        } = self;
        let users: Vec<&str> = tokens.values().map(|user| user.name.as_str()).collect();
        formatter
            .debug_struct("Settings")
            .field("listen", listen)
            .field("data_dir", data_dir)
            .field("pods_dir", pods_dir)
            .field("faults", faults)
            .field("authorization", authorization)
            .field("users", &users)
            .field("namespaces", namespaces)
            .field("watch_history", watch_history)
            .field("run_pods", run_pods)
            .field("back_off", back_off)
            .finish()
    }
}

// === impl PodLine ===

impl fmt::Debug for PodLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PodLine").field("pod", &self.pod).finish_non_exhaustive()
    }
}
