//! The registry credential that a cluster should have now: the ledger, the pool, the states of each credential.
//!
//! A [`credential::Credential`] is an account at a registry. The [`ledger::Ledger`] has a row for each, with its password sealed,
//! and append-only events, in SQLite or PostgreSQL. A [`run::Worker`] claims a due row, lets [`decide::step`] decide, records
//! the one outward action, carries it out, and records what came back. Any number of replicas share a ledger: a row belongs
//! to one of them until its lease ends, and the write of an overtaken replica changes nothing.
//!
//! ```text
//! reserved → created → permitted → (pooled) → probed → published → adopted
//!                                                                     │ a newer one of the cluster is adopted
//!                                                                     ▼
//!                                 waited out ← dead ← retiring ← quiet
//! ```
//!
//! - After an answer that was lost, the registry is asked again by the account's name, and the API for the entry of the
//!   cluster's pull secret. A name is used once; a name that belongs to another account is left alone for good.
//! - A cluster has adopted a credential when the adapter has reported its generation, all nodes have the revision, and a node
//!   has pulled with it. The old one is retired when it was not used for the quiet time and the pull secret does not name it.
//!   Each part of this evidence is kept with its time and its source; a person can attest a part. What is missing is named
//!   as a [`reason::Reason`]; no timer alone revokes.
//! - [`decide::budget`] shares the calls of a registry among lanes; [`decide::pool`] keeps the pool full with what is left.
//! - [`publish::ApiClusters`] writes the entry of one registry into `spec.pullSecret.data` and leaves everything else as it is.
//! - [`registry::AnyRegistry`] is a registry of any kind that the settings can name.
//! - [`server::Server`] runs the worker on the registries of [`settings::Checked`], and gives each cluster that a registry's search finds
//!   its first credential: from the change stream at once, from complete lists what was missed. `pull-secret credentials` is the
//!   program.
//! - [`entries`] are what pull secrets hold, of this service and of others: the service reads all of them, and the ledger knows since when and until
//!   when each credential is good, by its digest.
//! - [`http`] is an API over the ledger for others, off by default: it records orders as the commands do, and shows what they have come to.
//! - [`sweep::Sweep`] names accounts that the ledger does not know. It deletes nothing.
//!
//! Nodes are not known to the HyperFleet API: [`publish::ApiClusters`] has no evidence about them. An operator attests it, or
//! renounces it ([`credential::NodesEvidence::Renounced`]).
//!
//! | invariant | test |
//! |---|---|
//! | A worker that is killed at any call is succeeded: no account is lost, leaked, used twice, or deleted while in use. | `tests/credentials/kills.rs` |
//! | A worker that goes on after its lease changes nothing. | `tests/credentials/kills.rs`, `tests/credentials/ledger.rs` |
//! | Two replicas at once share rows, pool and rate. | `tests/credentials/replicas.rs`, `tests/credentials/ledger.rs` |
//! | No time that passes deletes an account that a pull secret may name. | `decide::tests::credentials::no_timer_alone_revokes` |
//! | Each part of the evidence is demanded; clusters that never report are named. | `decide/tests/credentials.rs`, `tests/credentials/people.rs` |
//! | Break-glass overrides by a recorded person and reason. | `tests/credentials/people.rs` |
//! | An account of another owner is not deleted. | `tests/credentials/pool.rs`, `tests/credentials/sweep.rs` |
//! | An urgent lane has calls where a lower one has none, and all keep the rate. | `decide/tests/rates.rs` |
//! | One entry of a pull secret changes, at the generation that was read. | `publish/compose.rs`, `tests/publish/main.rs` |
//! | No password is in a table, an event, an error or `Debug`; each is bound to its account. | `tests/credentials/secrecy.rs` |
//! | All faults of the settings are listed at once. | `settings/tests.rs` |
//! | The program assigns credentials, keeps them over a kill, and retires them; nothing that it prints is a password. | `crates/pull-secret/tests/program/credentials.rs` |
//! | A rotation keeps its concurrency, group by group, with any number of replicas; failures stop it; what has begun can be put back. | `decide/tests/rotations.rs`, `tests/credentials/rotations.rs` |
//! | A cluster leaves AMS phase by phase; nothing of AMS is deleted while a cluster needs it; each way back works until the last. | `decide/tests/ams.rs`, `tests/credentials/leaving.rs` |
//! | A lost key costs no cluster its credential. | `tests/credentials/secrecy.rs` |
//! | An entry keeps its age as long as its credential is the same; a late read changes nothing. | `tests/credentials/entries.rs` |
//! | At Harbor, which shows a password once, a cluster gets an account after a lost answer, too. | `tests/credentials/harbor.rs` |
//! | Events are only ever added; one that was changed or removed all the same is found by its chain. | `tests/credentials/ledger.rs`, `tests/credentials/chain.rs` |
//! | The HTTP API answers callers whom Kubernetes permits it, and gives passwords with a grant of its own; both are recorded. | `tests/credentials/http.rs`, `tests/credentials/http_kubernetes.rs` |
//! | The status of a rotation follows from rows and events alone. | `http/rotation/tests.rs`, `tests/credentials/http.rs` |
//!
//! ```
//! use credentials::decide::{Pool, reserve};
//!
//! // Two are missing, and the rate allows the calls of one.
//! assert_eq!(reserve(&Pool { ready: 3, in_progress: 0, target: 5, remaining_calls: 4 }), 1);
//! ```

pub mod ams;
pub mod chain;
pub mod credential;
pub mod decide;
pub mod entries;
pub mod http;
pub mod ledger;
pub mod metrics;
pub mod publish;
pub mod reason;
pub mod registry;
pub mod rotation;
pub mod run;
pub mod server;
pub mod settings;
pub mod state;
pub mod sweep;
