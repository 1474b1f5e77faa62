//! The HyperFleet API: resources, statuses, aggregation, search, change stream; SQLite or PostgreSQL.
//!
//! The crate serves HyperFleet's REST API: clients declare the desired state of clusters, node pools and other kinds,
//! adapters report what they observe, and the API derives conditions such as `Reconciled` from the reports. Any number of
//! servers share one PostgreSQL; a single server can use SQLite. The program that runs it is `pull-secret api`.
//!
//! # The way of a request
//!
//! ```text
//! listener ─> http::middleware   request id, access log, metrics, limits of size and time, a panic becomes a 500
//!                 ├─> http::route      the endpoint that the path names
//!                 ├─> http::auth, jwt  the caller: identity, tenancy, permissions ([`authorization`])
//!                 ├─> http::access     the permission that the request needs; http::audit records what was denied
//!                 └─> http::handlers   parameters (http::query, search) and body (decide::body)
//!                        ├─> service      one operation: read, decide, write in one transaction
//!                        │     ├─> decide    pure rules: validation, generations, reports, conditions, deletion
//!                        │     ├─> sealed    encryption and redaction of pull secrets
//!                        │     └─> store     SQL for both databases (`database`), and the feed of changes
//!                        ├─> http::watch  the change stream, from the store's feed
//!                        └─> page         HTML pages
//! ```
//!
//! A rule that refuses a request returns an error of its own; [`problem`] maps it to an RFC 9457 problem. [`openapi`]
//! describes all of it, for the kinds that the configuration registers ([`entity`]).
//!
//! # Invariants
//!
//! | invariant | test |
//! |---|---|
//! | `Reconciled` is True only if every required adapter has reported success for the current generation. | `decide::aggregate::tests::invariants` |
//! | A change of spec, labels or references increments the generation exactly once; other requests never do. | `tests/api/patch.rs`, `a_patch_without_a_difference_has_no_effect` |
//! | A resource with adapters is removed only after a `Finalized` report of each, or by a forced deletion. | `tests/api/deletion.rs`, `final_only_when_all_have_finalized` |
//! | A report never replaces one of a newer generation or of a later time. | `tests/api/discards.rs` |
//! | A pull secret is stored encrypted, and returned only to a caller with that permission. | `tests/api/pull_secret.rs`, `is_redacted_everywhere`, `only_a_reader_reads_it` |
//! | An authenticated caller may do what a grant says, and nothing else. | `tests/api/authorization.rs`, `nothing_is_allowed_without_a_grant` |
//! | A resource of another tenant answers as a missing one does. | `tests/api/isolation.rs` |
//! | A configuration that cannot be used replaces no grant and no key. | `tests/api/reload.rs`; `tests/api/keys.rs`, `keys_are_replaced_without_a_restart` |
//! | Text of a user never becomes SQL, HTML or a log line. | `search::tests::properties`; `tests/pages/escaping.rs`; `tests/api/injection.rs` |
//! | A search selects the same resources in memory, in SQLite and in PostgreSQL. | `search::tests::databases` |
//! | A change stream sends each change once and in order; it can be resumed from every version that it has sent. | `tests/api/watch_many.rs`, `events_come_once_and_in_order` |
//! | After a restore no position and no generation is given a second time. | `tests/api/restore.rs` |
//! | Concurrent writers on several servers lose no update. | `tests/faults/concurrency.rs`; `tests/api/watch_many.rs`, `concurrent_writers_lose_nothing` |
//! | No response contains text of a database driver or of the program's internals. | every response in `tests/api`, `Answer::check` |
//! | The `OpenAPI` document and the server agree. | `tests/openapi` |
//!
//! # Example
//!
//! ```
//! use hyperfleet_api::search::Search;
//!
//! let search = Search::parse("labels.shard = '1' and status.conditions.Reconciled = 'False'");
//! assert!(search.is_ok_and(|search| !search.is_blank()));
//!
//! let error = Search::parse("color = 'red'").map(|_| ()).map_err(|error| error.column());
//! assert_eq!(error, Err(Some(1)));
//! ```

pub mod audit;
pub mod authorization;
pub mod decide;
pub mod entity;
pub mod excerpt;
pub mod http;
pub mod live;
pub mod mapping;
pub mod metrics;
pub mod openapi;
pub mod page;
pub mod problem;
pub mod rekey;
pub mod reload;
pub mod render;
pub mod resource;
pub mod restore;
pub mod sealed;
pub mod search;
pub mod server;
pub mod service;
pub mod settings;
pub mod spec_schema;
pub mod store;
pub mod tenancy;
pub mod tombstone;
