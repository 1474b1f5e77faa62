//! The Sentinel beside the real API server and a broker: from a change to its event.

#![expect(clippy::unwrap_used, reason = "in a test that is the right way to fail")]

mod changes;
mod go_api;
mod leaders;
mod outages;
mod probes;
mod rig;
mod shards;
mod successors;
