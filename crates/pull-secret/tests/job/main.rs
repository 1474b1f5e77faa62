//! The Pull Secret Job as a process, against the Secret Manager emulator.

mod authentication;
mod configuration;
mod consistency;
mod faults;
mod kill;
mod leaks;
mod modes;
mod races;
mod rig;
mod story;
