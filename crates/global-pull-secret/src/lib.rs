//! The Global Pull Secret controller of a hosted cluster: validates, merges, rolls out and removes additional pull secrets.
//!
//! [`decide`](decide::decide) is a pure function from the observed [`Facts`](facts::Facts) to a [`Plan`](plan::Plan). [`run`]
//! watches, decides, acts and publishes. `explain` shows which key wins for an image; `plan`, which images would lose theirs by a
//! change; `merge` merges files offline as the controller merges Secrets. The invariants:
//!
//! | invariant | test |
//! |---|---|
//! | The desired state is reached through faults of any call. | `faults::the_desired_state_is_reached_through_faults` |
//! | Unmanaged objects are never overwritten or removed. | `decide::tests::repairing`, `story` |
//! | An unchanged cluster causes no write. | `story::nothing_is_written_when_nothing_changes` |
//! | A killed controller leaves a state from which the next one continues. | `killed` |
//! | Clean-up reverts the nodes before it removes the syncer. | `decide::tests::cleaning` |
//! | Refused credentials are held back, and no probe reaches an internal address. | `decide::tests::probing`, `probing` |
//! | An image that loses its key is reported, and holds no roll-out back. | `decide::tests::keys`, `plan` |
//! | No credential is printed, logged, published or exposed. | `leaks::no_credential_is_printed_anywhere` |

pub mod arguments;
pub mod cli;
pub mod decide;
pub mod explain;
pub mod facts;
pub mod finding;
pub mod image_plan;
pub mod images;
pub mod keys;
pub mod metrics;
pub mod objects;
pub mod offline;
pub mod plan;
pub mod policy;
pub mod probe;
pub mod reason;
pub mod record;
pub mod run;
pub mod server;
pub mod settings;
pub mod status;
