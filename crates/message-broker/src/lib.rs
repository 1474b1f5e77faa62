//! Message brokers: one contract, implemented by `memory`, `pubsub` and `rabbitmq`.
//!
//! [`Broker`] is the contract: [`Broker::publish`] returns once the broker has the event. Every subscription of the topic
//! receives it, and within a subscription one of its consumers, in no particular order. A [`Delivery`] is acknowledged,
//! returned for a later attempt, or dead-lettered. [`Event`] and [`Message`] define the form on the wire.
//!
//! The suite in `tests/broker` runs every case against all three brokers:
//!
//! | invariant | test |
//! |---|---|
//! | A confirmed event is delivered at least once, also across a restart. | `broker/delivering.rs`, `broker/journal.rs` |
//! | A message that is not settled is delivered again after the back-off, and dead-lettered after the last attempt. | `broker/failing.rs` |
//! | An outage is survived and shown in [`Health`]. | `broker/outages.rs`, `broker/health.rs` |
//! | Draining loses no delivery. | `broker/draining.rs` |
//! | An inspection changes nothing at the broker. | `broker/inspecting.rs` |
//! | Messages have the form that HyperFleet's Go services read. | `broker/wire.rs`, `event::tests` |
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! use std::time::Duration;
//!
//! use daemon::retry::Budget;
//! use jiff::Timestamp;
//! use message_broker::memory::Memory;
//! use message_broker::{Broker, Consume, Event, Subscription};
//! use tokio_util::sync::CancellationToken;
//!
//! let (broker, stop) = (Broker::Memory(Memory::new()), CancellationToken::new());
//! let subscription = Subscription::new("clusters", "pullsecret")?;
//! let mut deliveries = broker.subscribe(&subscription, Consume::default(), &stop).await?;
//!
//! let event = Event::new("hyperfleet-sentinel", "cluster.reconcile", Timestamp::now(), serde_json::json!({"id": "c"}));
//! broker.publish(&subscription.topic, &event, &Budget::new(Duration::from_secs(5), stop)).await?;
//!
//! let delivery = deliveries.next().await.ok_or("stopped")?;
//! assert_eq!(delivery.event().map(|event| event.kind.as_str()), Ok("cluster.reconcile"));
//! delivery.ack().await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod broker;
pub mod commands;
pub mod dead_letters;
mod deliveries;
mod delivery;
pub mod error;
pub mod event;
mod health;
pub mod inspection;
pub mod memory;
pub mod message;
pub mod name;
#[cfg(feature = "pubsub")]
pub mod pubsub;
#[cfg(feature = "rabbitmq")]
pub mod rabbitmq;
#[cfg(any(feature = "pubsub", feature = "rabbitmq"))]
mod receiving;
pub mod settings;

pub use broker::Broker;
pub use deliveries::{Deliveries, Undrained};
pub use delivery::Delivery;
pub use error::{BrokerError, ErrorKind, Operation};
pub use event::{Data, Event, Format, Malformed};
pub use health::Health;
pub use inspection::Inspection;
pub use message::Message;
pub use name::{InvalidName, Name, Subscription};
pub use settings::Consume;
