//! The parts that every daemon shares: settings, server skeleton, probes, readiness, back-off, log, shutdown.
//!
//! Invariants:
//!
//! - A back-off never exceeds its cap plus jitter: `backoff::tests::delays_grow_by_the_factor_up_to_the_cap`.
//! - A retry never outlives the budget of its run: `retry::tests::gives_up_before_a_wait_that_leads_past_the_deadline`.
//! - A listener that cannot start names the setting to change:
//!   `serve::tests::a_port_in_use_names_address_purpose_and_setting`.
//! - A daemon that shuts down never becomes ready again: `readiness::tests::shutting_down_is_final`.
//! - A log line cannot be forged by a field: `log::tests::control_characters_do_not_break_a_text_line`.
//! - An error of a call is one line of bounded length: `service_error::tests::a_long_detail_is_cut`.
//! - A dump of settings holds no credential: `settings::dump::tests::credentials_are_redacted`.
//! - Every server's certificate is on the metric of its expiry:
//!   `serve::tls::tests::the_expiry_is_that_of_the_certificates_in_use`.
//! - A silent, slow or stalled client is closed, and silent ones give way: `serve::tests::connections`.
//! - Probes answer while the daemon's own runtime is blocked: `probes::tests`.
//! - A process that holds credentials leaves no core dump: `memory::tests::a_protected_process_leaves_no_core`.
//! - A client trusts what the file of authorities holds now:
//!   `connections::tests::replaced_authorities_are_trusted_without_a_restart`.
//! - A replaced file is read again, and content that cannot be used changes nothing:
//!   `reload::tests::a_replaced_file_is_read_once_and_a_bad_one_is_kept_out`.
//! - A failed pass is attempted again, until the stop: `passes::tests::a_failed_pass_is_attempted_again_until_the_stop`.
//! - A file is replaced as a whole: `file::tests::replaces_and_leaves_no_temporary_file`.
//!
//! Retry a call within the time of a run:
//!
//! ```
//! use std::time::Duration;
//! use daemon::backoff::{Backoff, RetryPolicy};
//! use daemon::retry::{Budget, Transient};
//! use tokio_util::sync::CancellationToken;
//!
//! #[derive(Debug)]
//! struct Busy;
//!
//! impl Transient for Busy {
//!     fn is_transient(&self) -> bool {
//!         true
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let backoff = Backoff::doubling(Duration::from_millis(1), Duration::from_millis(4)).with_jitter(20);
//! let budget = Budget::new(Duration::from_secs(5), CancellationToken::new());
//! let mut attempts = 0;
//! let result = budget
//!     .retry(&RetryPolicy { backoff, max_retries: 3 }, |_, _, _| {}, async || {
//!         attempts += 1;
//!         if attempts < 3 { Err(Busy) } else { Ok("done") }
//!     })
//!     .await;
//! assert_eq!(result.ok(), Some("done"));
//! # }
//! ```

pub mod backoff;
pub mod calls;
pub mod causes;
#[cfg(feature = "serve")]
pub mod certificates;
#[cfg(feature = "connections")]
pub mod connections;
#[cfg(feature = "endpoint")]
pub mod endpoint;
pub mod environment;
#[cfg(feature = "connections")]
pub mod exchange;
pub mod faults;
pub mod file;
pub mod host;
pub mod log;
pub mod memory;
#[cfg(feature = "serve")]
pub mod metrics;
#[cfg(feature = "output")]
pub mod output;
pub mod passes;
#[cfg(feature = "serve")]
pub mod probes;
pub mod program;
pub mod proxy;
#[cfg(feature = "serve")]
pub mod readiness;
pub mod reload;
pub mod retry;
#[cfg(feature = "serve")]
pub mod serve;
pub mod service_error;
pub mod settings;
pub mod shutdown;
#[cfg(feature = "traces")]
pub mod traces;
pub mod version;
