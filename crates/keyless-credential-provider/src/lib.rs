//! The kubelet's image credential provider: a password of a Quay robot, for one hour, in exchange for a Pod's service-account token.
//!
//! The kubelet starts the program for a pull, and gives it a [`request`] on standard input. The rules are pure: which token
//! goes where with which robot's name, and what the registry's answer means to the kubelet. One blocking exchange stands
//! between them; there is no runtime, since the process makes one request and ends.
//!
//! # Invariants
//!
//! | invariant | test |
//! |---|---|
//! | A token goes to the one registry's exchange, encrypted, and only for images of that registry. | `decide::tests::requests_are_refused`, `endpoint::tests::tokens_are_sent_only_over_tls_or_loopback` |
//! | The kubelet forgets a password before it ends, whatever the node's clock shows. | `decide::tests::a_password_is_kept_for_less_than_its_life` |
//! | An answer that is slow, too large or none of Quay's is an error, and nothing of it is repeated. | `tests/provider/answers.rs` |
//! | No token is printed but in the response. | `tests/provider/answers.rs`: every case |
//! | The kubelet pulls with it, and a Pod of another service account is refused. | `tests/provider/node.rs` |
//!
//! ```
//! use keyless_credential_provider::settings::{Command, parse};
//!
//! let command = parse(["--registry", "quay.io"].map(str::to_owned)).unwrap();
//! assert!(matches!(command, Command::Provide(_)));
//! ```

mod answer;
mod decide;
pub mod endpoint;
mod exchange;
mod interface;
mod jwt;
mod process;
pub mod proxy;
pub mod refusal;
pub mod request;
pub mod robot;
pub mod settings;

pub use process::main;
