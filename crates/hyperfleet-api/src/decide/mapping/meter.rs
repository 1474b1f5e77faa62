//! What evaluating one expression may cost.

use std::sync::atomic::{AtomicUsize, Ordering};

use cel::{ExecutionError, Value};

/// How many elements all loops of an expression may visit: the reference's cost limit (`api.md` §5.4).
pub(super) const MOST_STEPS: usize = 10_000;
/// How many bytes may pass through loops, `toJson` and `dig`. It stops what grows from loop to loop.
pub(super) const MOST_BYTES: usize = 16 << 20;
/// What a number, a key or an entry counts besides its text.
const BYTES_OF_A_NODE: usize = 8;

/// What the running expression has cost so far.
///
/// CEL without loops takes no more steps than its source has words, so loops are what is metered: each pays for its whole
/// list when it starts. What one step costs is not metered: comparing or joining large values is as expensive as they are.
/// The bound protects from a mistake in the configuration and from large reports, not from a malicious configuration.
#[derive(Debug, Default)]
pub(super) struct Meter {
    steps: AtomicUsize,
    bytes: AtomicUsize,
}

impl Meter {
    pub(super) fn reset(&self) {
        self.steps.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Pays for a loop over a list or a map.
    pub(super) fn pay_steps(&self, range: &Value) -> Result<(), ExecutionError> {
        let steps = match range {
            Value::List(elements) => elements.len(),
            Value::Map(map) => map.map.len(),
            _ => 0,
        };
        self.steps.fetch_add(steps, Ordering::Relaxed);
        self.check()
    }

    /// Pays for handling these.
    pub(super) fn pay_copies(&self, values: &[Value]) -> Result<(), ExecutionError> {
        self.bytes.fetch_add(values.iter().map(weight).sum(), Ordering::Relaxed);
        self.check()
    }

    /// Whether the expression may go on.
    pub(super) fn check(&self) -> Result<(), ExecutionError> {
        if self.is_exhausted() { Err(ExecutionError::function_error("cost", "exhausted")) } else { Ok(()) }
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.steps.load(Ordering::Relaxed) > MOST_STEPS || self.bytes.load(Ordering::Relaxed) > MOST_BYTES
    }
}

fn weight(value: &Value) -> usize {
    let content = match value {
        Value::List(elements) => elements.iter().map(weight).sum(),
        Value::Map(map) => map.map.iter().map(|(key, value)| key.to_string().len() + weight(value)).sum(),
        Value::String(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    BYTES_OF_A_NODE + content
}
