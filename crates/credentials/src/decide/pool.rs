//! The number of credentials to reserve for the pool of a registry.

/// Calls of the registry that a pooled credential takes: create, permit, probe.
pub const CALLS: u64 = 3;

/// The pool of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Credentials that wait for a cluster.
    pub ready: u64,
    /// Credentials without a cluster on their way to the pool.
    pub in_progress: u64,
    /// Credentials that should be ready.
    pub target: u64,
    /// Calls that the lane of refills may still make in this minute.
    pub remaining_calls: u64,
}

/// Returns the number of credentials to reserve now. What is in progress has a claim on the calls first; at a low rate one
/// is made after the other.
pub fn reserve(pool: &Pool) -> u64 {
    let missing = pool.target.saturating_sub(pool.ready).saturating_sub(pool.in_progress);
    let free = (pool.remaining_calls / CALLS).max(u64::from(pool.remaining_calls > 0)).saturating_sub(pool.in_progress);
    missing.min(free)
}
