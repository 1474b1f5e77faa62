//! Keeps the kubelet's credential file in sync with the global pull secret, and rolls a change back if the kubelet does not
//! come up with it.
//!
//! One instance runs on each node, as root. Credentials come from a [`source`]: mounted files, or one Secret that is watched
//! through the API server. [`decide`] is the state machine, a pure function; [`run`] is its loop; [`kubelet_file`] performs
//! the effects on disk and [`units`] those on systemd; [`status`] is served on a Unix socket by [`serve`].
//!
//! # Invariants
//!
//! | invariant | test |
//! |---|---|
//! | After any sequence of events, kills and faults, the kubelet runs with the file as it is, and the file is the desired one or the last good one. | `decide::tests::world::file_kubelet_and_journal_never_end_in_a_bad_state` |
//! | Every effect is awaited once, and no phase before the end of a change lacks a journal entry. | `decide::tests::every_step_keeps_the_invariants` |
//! | A kill, a power cut or a full disk at any step is recovered from. | `tests/node/simulated.rs`: `every_step_may_be_the_last` |
//! | Three failed attempts lead to a rollback; failed content is not retried before a long back-off. | `decide::tests::changes`, `decide::tests::content_that_failed_is_held_back` |
//! | Unmanaged entries of the file stay; one that would make the kubelet reject the file is left out. | `combine::tests::entries_are_combined` |
//! | A connection that is open on this side only is replaced within minutes. | `tests/node/api.rs`: `a_silent_watch_is_resumed_on_a_new_connection` |
//! | A revision is confirmed once it is applied, until the server has taken it. | `tests/node/confirming.rs` |
//! | No credential is printed, served, logged or recorded in the state file. | `tests/node/program.rs`: `no_credential_is_printed_anywhere` |
//!
//! # Example
//!
//! ```
//! use jiff::Timestamp;
//! use sync_global_pullsecret::content::ContentId;
//! use sync_global_pullsecret::decide::{Delays, Effect, Event, Journal, Rules, SourceState, start, step};
//!
//! let delays = Delays { failed_content: std::time::Duration::from_secs(600) };
//! let now = Timestamp::UNIX_EPOCH;
//! let (state, _) = start(Rules { restart: true, delays }, Journal::default(), now);
//! let desired = ContentId::new([1; 32]);
//! let (_, effects) = step(state, Event::Source(SourceState::Content(desired)), now);
//! assert_eq!(effects, [Effect::Compare(desired)]);
//! ```

pub mod cli;
pub mod client;
mod combine;
pub mod confirm;
pub mod content;
pub mod decide;
pub mod disk;
pub mod kubelet_file;
pub mod lock;
mod process;
pub mod reason;
mod record;
pub mod reference;
pub mod run;
pub mod serve;
pub mod settings;
pub mod source;
pub mod status;
pub mod units;

pub use combine::UnmanagedEntries;
pub use process::main;
