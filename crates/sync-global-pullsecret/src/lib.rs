//! The node's loop: write the kubelet's credentials, restart it, put them back if that fails.
//!
//! `decide` is the machine, `run` its loop; `kubelet_file` is the disk's side of a change, `units` systemd's, `source` is
//! where credentials come from.

pub mod ask;
pub mod cli;
mod combine;
pub mod content;
pub mod decide;
pub mod disk;
pub mod kubelet_file;
pub mod lock;
mod process;
pub mod reason;
mod record;
pub mod reference;
pub mod run;
pub mod serve;
pub mod settings;
pub mod source;
pub mod status;
pub mod units;

pub use combine::Foreign;
pub use process::main;
