//! The hosted cluster's loop: validate, merge, roll out, clean up.
//!
//! [`decide`](decide::decide) is the rule: from all that is seen to a [`Plan`](plan::Plan). [`run`] watches, decides and
//! acts, for ever. `explain` says for one image which key wins and why; `merge` does offline what the controller does.

pub mod cli;
pub mod decide;
pub mod explain;
pub mod facts;
pub mod metrics;
pub mod objects;
pub mod offline;
pub mod plan;
pub mod probe;
pub mod reason;
pub mod record;
pub mod run;
pub mod server;
pub mod settings;
pub mod status;
