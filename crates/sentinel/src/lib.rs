//! Publishes an event for each resource of the HyperFleet API that adapters have to reconcile.
//!
//! [`decide`] decides about one resource, [`fleet::Fleet`] holds the state of all resources and the order of their events,
//! and [`run`] applies the API's change stream to it and publishes what is due.
//!
//! | invariant | test |
//! |---|---|
//! | a change is published at once, however recent the last event is | `decide::tests::a_second_after_the_last_event` |
//! | a resource that is not reconciled is published again after a back-off | `fleet::tests::a_change_is_published_once_and_repeated_until_it_is_reconciled` |
//! | an event that the broker refuses is published later, with the newest state | `fleet::tests::a_refused_event_is_published_later_with_the_newest_state` |
//! | a restart re-publishes no reconciled resource in a burst | `fleet::tests::a_restart_with_a_reconciled_fleet_makes_no_burst` |
//! | a successor publishes what its predecessor has not | `tests/sentinel/successors.rs` |
//! | an older list page never replaces what the change stream has delivered | `fleet::tests::a_page_that_is_older_than_the_stream_changes_nothing` |
//! | events never contain a pull secret | `message_data::tests::secret_or_unknown_members_are_refused_by_their_path` |
//!
//! ```
//! use sentinel::decide::{Facts, Policy, State, decide};
//! use sentinel::moment::Moment;
//! use std::time::Duration;
//!
//! let policy = Policy {
//!     min_interval: Duration::from_secs(10),
//!     max_interval: Duration::from_mins(10),
//!     resync: Duration::from_mins(30),
//!     is_conditional: false,
//! };
//! let state = State { generation: 1.into(), ..State::default() };
//! let facts = Facts { state, reconciled: Some(false), changed: None, is_inherited: true };
//! let decision = decide(&facts, None, 0, &policy, Moment(0));
//! assert_eq!(decision.reason, sentinel::Reason::New);
//! ```

pub mod decide;
pub mod event;
pub mod fleet;
pub mod leader;
pub mod message_data;
pub mod metrics;
pub mod moment;
pub mod observation;
pub mod position;
pub mod publisher;
pub mod reason;
pub mod resync_slot;
pub mod run;
pub mod server;
pub mod settings;
pub mod shard;

pub use reason::Reason;
pub use server::Sentinel;
pub use settings::{Checked, Settings};
