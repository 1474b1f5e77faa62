//! How events travel: one promise, `memory`, `pubsub`, `rabbitmq`.
//!
//! [`Broker`] is the promise: [`Broker::publish`] returns when the broker has the event; every subscription of the topic
//! gets it, and within one subscription one of its consumers, at least once and in no particular order. A [`Delivery`]
//! is acknowledged, handed back to be tried later, or put among the dead letters; one that is forgotten is tried later.
//! What was confirmed is not lost. The suite in `tests/broker` holds all three to it. What a message looks like is in
//! [`Event`] and [`Message`].

pub mod broker;
mod deliveries;
mod delivery;
pub mod error;
pub mod event;
mod health;
pub mod memory;
pub mod message;
pub mod name;
#[cfg(feature = "pubsub")]
pub mod pubsub;
#[cfg(feature = "rabbitmq")]
pub mod rabbitmq;
pub mod settings;

pub use broker::Broker;
pub use deliveries::{Deliveries, Undrained};
pub use delivery::Delivery;
pub use error::{Action, BrokerError, Fault};
pub use event::{Data, Event, Format, Malformed};
pub use health::Health;
pub use message::Message;
pub use name::{InvalidName, Name, Subscription};
pub use settings::Consume;
