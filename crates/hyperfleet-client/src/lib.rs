//! Client of the HyperFleet API: resources, reports, change stream.
//!
//! A [`Client`] has the address and the identity; its [`Calls`] have a budget and belong to a trace:
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use daemon::retry::Budget;
//! use hyperfleet_client::{Client, Settings};
//!
//! let client = Client::new(Settings::new("http://hyperfleet-api:8000".parse()?))?;
//! let budget = Budget::new(std::time::Duration::from_secs(30), tokio_util::sync::CancellationToken::new());
//! if let Some(cluster) = client.within(&budget).get("clusters", "cls-123").await? {
//!     println!("{} is at generation {}", cluster.name, cluster.generation);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`Client::watch`] delivers every change, through the API's change stream if it has one, otherwise by polling.
//!
//! | invariant | test in `tests/client` |
//! |---|---|
//! | Only idempotent calls are repeated, and never beyond the budget. | `what_may_not_be_done_twice_is_not_tried_again`, `a_wait_longer_than_the_budget_is_not_begun` |
//! | No body is quoted that is not a problem. | `no_answer_s_body_is_quoted_unless_it_is_a_problem` |
//! | A watch resumes where it was, and lists again where it cannot. | `changes_come_as_they_happen_and_after_a_cut_go_on`, `a_version_that_is_too_old_starts_over` |
//! | A list names each resource once, whatever is created or deleted meanwhile. | `what_is_created_meanwhile_is_found_and_nothing_comes_twice` |
//! | A token is sent in clear text to loopback or a host that settings name only, and nothing without it. | `a_token_is_sent_in_clear_text_to_a_named_host_only`, `nothing_is_sent_without_the_token` |

mod calls;
mod client;
mod declared;
mod error;
mod identity;
mod list_query;
mod observed;
mod pages;
mod probe;
mod report;
mod reports;
mod request;
mod retry_after;
mod secret;
mod settings;
mod token;
mod transport;
mod view;
mod watch;
mod wire;

pub use calls::{Calls, Patch};
pub use client::Client;
pub use declared::{Api, Auth};
pub use error::{Error, SetupError};
pub use fleet_model::condition::known_time;
pub use fleet_model::{
    Cause, Causes, Condition, Generation, InvalidTraceContext, Report, ReportMetadata, ReportedCondition, Status,
    TraceContext, Transition,
};
pub use identity::{Claims, Identity};
pub use list_query::ListQuery;
pub use pages::Pages;
pub use probe::{ConnectionFault, Probe};
pub use report::{NewCondition, NewReport, Reported};
pub use secret::WithPullSecret;
pub use settings::{BaseUrl, InvalidBaseUrl, ReportMethod, Settings, TokenSettings, WatchSettings};
pub use view::{ReportView, View};
pub use watch::{Health, Watch, WatchEvent, WatchKind, WatchQuery};
pub use wire::{FieldError, NewResource, Page, Problem, Reference, Resource, ResourceStatus, Tombstone};

/// Maximum number of items of a page.
pub const MAX_PAGE_SIZE: u32 = 100;
