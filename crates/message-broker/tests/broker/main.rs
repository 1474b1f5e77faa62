//! Conformance of every broker to the contract, on the real RabbitMQ and Google's emulator where they run.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "what is missing fails the test")]
#![expect(clippy::print_stderr, reason = "a test that is skipped says why")]

mod admin;
mod conformance;
mod delivering;
mod draining;
mod failing;
mod health;
mod inspecting;
mod journal;
mod log;
mod outages;
mod provision;
mod rig;
mod wire;
