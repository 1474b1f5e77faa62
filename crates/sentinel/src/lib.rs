//! Which resource needs an event now, and why.
