//! Decides the state of a resource after the database was restored from a backup.

use fleet_model::Generation;

use super::change::{RequestInfo, later};
use crate::resource::Resource;

/// The number by which generations are raised after a restore.
///
/// It must exceed the number of changes that any resource had between backup and restore: then no generation of before the
/// restore is given again, and nothing that was reported, applied or stored for one of them is mistaken for the present one.
pub const RAISE: u64 = 1_000_000;

/// Returns the resource with a generation that was never given before.
pub fn raise(before: &Resource, request: &RequestInfo) -> Resource {
    let mut after = before.clone();
    let raised = before.generation.get().saturating_add(RAISE);
    after.generation = Generation::new(raised).unwrap_or(before.generation);
    after.updated_time = later(before.updated_time, request.time);
    after.updated_by.clone_from(&request.caller);
    after.state.trace.clone_from(&request.trace);
    after
}

#[cfg(test)]
mod tests {

    use jiff::Timestamp;

    use super::*;
    use crate::decide::body::Creation;
    use crate::decide::change::{PullSecretRights, Relations, create};
    use crate::tenancy::{Reach, Tenancy};

    #[test]
    fn only_generation_and_update_change() {
        let at = |second: i64| RequestInfo {
            caller: "someone".to_owned(),
            tenancy: Tenancy::new(),
            reach: Reach::Unlimited,
            time: Timestamp::from_second(second).unwrap(),
            pull_secrets: PullSecretRights { reads: false, chooses_destination: false },
            trace: None,
        };
        let body = Creation { kind: "Cluster".to_owned(), name: "one".to_owned(), ..Creation::default() };
        let before = create(body, "one".to_owned(), Relations::default(), &at(10));
        let request = RequestInfo { caller: "system".to_owned(), ..at(5) };
        let after = raise(&before, &request);
        assert_eq!(after.generation, Generation::from(1_000_001));
        assert_eq!((after.updated_time, after.updated_by.as_str()), (before.updated_time, "system"));
        let mut same = after;
        same.generation = before.generation;
        same.updated_by.clone_from(&before.updated_by);
        assert_eq!(same, before);
    }
}
