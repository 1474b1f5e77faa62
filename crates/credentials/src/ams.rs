//! Leaving AMS: its credentials are imported, compared with the pull secrets of the clusters, and replaced cluster by cluster.
//!
//! | phase | does | proof | way back |
//! |---|---|---|---|
//! | import | reads the credentials of AMS and the pull secrets of the clusters, and changes nothing | the numbers per registry; every entry is known | the rows are dropped |
//! | shadow | composes each pull secret as it would be published, and compares it with the one that is there | no difference for some days | it ends |
//! | issue | makes a credential of our own for each cluster, and probes it | it is probed | it is deleted |
//! | move | publishes it, cluster by cluster | adoption | AMS's entry is put back |
//! | retire | deletes AMS's credential | no cluster uses it, and it is quiet | none |
//!
//! A cluster's phase is not stored: it follows from what is recorded of its credentials ([`crate::decide::ams::phase`]), so that a
//! process that is killed leaves nothing half done behind.

mod back;
mod error;
mod import;
mod issue;
mod model;
mod paced;
mod retire;
mod secrets;
mod shadow;
mod status;

pub use back::{Back, BackError, back};
pub use error::ImportError;
pub use import::{Import, Imported, NotFound, import};
pub use issue::{Issued, issue};
pub use model::{AmsCluster, AmsCredential, AmsEntry, Comparison, Finding, HostDifference, ImportPass, RegistryCount};
pub use paced::{BUDGET, Paced, Pacing, Waits};
pub use retire::{RetireError, Retired, Retirement, retire};
pub use secrets::{Content, PullSecrets};
pub use shadow::{Shadow, Shadowed, shadow};
pub use status::{ClusterStatus, Target, status};
