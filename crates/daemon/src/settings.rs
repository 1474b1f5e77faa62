//! Settings of a program, each declared once: flags take precedence over variables, variables over the file, the file over defaults.
//!
//! [`settings!`](crate::settings!) declares a structure together with its rows: a field's type is the setting's type, its
//! documentation is the sentence of `--help` and of the reference page, and the row beside it has the rest.
//!
//! ```
//! # #[cfg(feature = "settings")] {
//! use daemon::settings::{Given, Row, Section as _, Table, load, variable};
//!
//! daemon::settings! {
//!     /// Settings of a server.
//!     pub struct Settings {
//!         /// Address to listen on.
//!         pub server: Server,
//!     }
//! }
//! daemon::settings! {
//!     /// Address to listen on.
//!     pub struct Server {
//!         /// Port to listen on; 0 takes a free one
//!         pub port: u16 = Row::at("server.port").flag("port").default("8080"),
//!     }
//! }
//! const TABLE: Table =
//!     Table { variable: |path| variable("X", path), families: &["X_"], ..Table::of(Settings::ROWS) };
//!
//! let variables = std::collections::BTreeMap::from([("X_SERVER_PROT", "80")]);
//! let faults = load::<Settings>(&TABLE, &variables, &Given::default()).done().unwrap_err();
//! assert_eq!(faults, ["X_SERVER_PROT: unknown variable; did you mean X_SERVER_PORT?"]);
//! # }
//! ```

#[cfg(feature = "settings")]
pub mod common;
#[cfg(feature = "settings")]
mod configuration;
mod declare;
#[cfg(feature = "settings")]
pub mod dump;
pub mod duration;
#[cfg(feature = "cli")]
pub mod flags;
#[cfg(feature = "settings")]
pub mod held;
pub mod hint;
#[cfg(feature = "settings")]
mod load;
#[cfg(feature = "settings")]
mod loaded;
pub mod page;
mod row;
#[cfg(all(test, feature = "settings"))]
mod tests;
#[cfg(feature = "settings")]
pub mod traces;
#[cfg(feature = "settings")]
mod tree;

#[cfg(feature = "settings")]
pub use configuration::{File, configuration, unreadable};
pub use declare::{Section, Setting};
#[cfg(feature = "settings")]
pub use load::{Given, load, load_beside, missing};
#[cfg(feature = "settings")]
pub use loaded::Loaded;
pub use row::{Inert, Kind, Row, Table, Variable, variable};
