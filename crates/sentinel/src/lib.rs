//! Which resource needs an event now, and why.
//!
//! [`decide`] says for one resource whether it needs an event; [`fleet::Fleet`] knows all resources and whose turn is next;
//! [`server::Sentinel`] feeds it from the API's change stream and publishes what it says.

pub mod decide;
pub mod event;
pub mod fleet;
pub mod leader;
pub mod message_data;
pub mod metrics;
pub mod moment;
pub mod publisher;
pub mod reason;
pub mod run;
pub mod server;
pub mod settings;
pub mod shard;
pub mod sighting;
pub mod spread;

pub use reason::Reason;
pub use server::Sentinel;
pub use settings::{Plan, Settings};
