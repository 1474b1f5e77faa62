//! The act that follows a restore of the database from a backup.
//!
//! A restored database gives positions of the change stream and generations a second time, for other contents. A new epoch
//! makes readers of the stream begin anew. Raised generations make Sentinel publish and adapters apply what the restored
//! database says, and make everything that was reported or applied before the restore older than that.

use jiff::Timestamp;

use crate::decide::change::RequestInfo;
use crate::service::{Failure, Service};
use crate::store::Version;

/// Maximum number of resources whose ids are read at once.
const BATCH: i64 = 500;

/// The refusal of a server whose database was restored, while its generations are not all raised.
pub const UNFINISHED: &str = "the database was restored from a backup, and not all generations are raised: run `pull-secret api \
                              restored` again";

/// The outcome of [`restored`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The position at which the change stream begins anew.
    pub begins: Version,
    /// Number of resources whose generation was raised.
    pub raised: usize,
}

/// Begins a new epoch of the change stream and raises the generation of every resource. No server may run meanwhile. It can be
/// repeated when it was interrupted; until it is complete no server starts.
pub async fn restored(service: &Service, epoch: &str, now: Timestamp) -> Result<Restored, Failure> {
    let store = service.store();
    let begins = store.begin_epoch(epoch).await?;
    let request = RequestInfo::of_operator(now);
    let (mut raised, mut after) = (0, String::new());
    loop {
        let ids = store.ids(&after, BATCH).await?;
        let Some(last) = ids.last() else { break };
        after.clone_from(last);
        for id in ids {
            raised += usize::from(service.raise_generation(&id, &request).await?);
        }
    }
    store.end_restore().await?;
    Ok(Restored { begins, raised })
}
