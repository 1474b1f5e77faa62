//! The budget for evaluating one expression.

use std::sync::atomic::{AtomicUsize, Ordering};

use cel::{ExecutionError, Value};

/// Maximum number of elements that all loops of an expression visit, as in HyperFleet's API.
pub(super) const MAX_STEPS: usize = 10_000;
/// Maximum number of bytes that pass through loops, `toJson` and `dig`. It stops values that grow from loop to loop.
pub(super) const MAX_BYTES: usize = 16 << 20;
/// Bytes charged for a number, a key or an entry besides its text.
const NODE_BYTES: usize = 8;

/// The cost of the running expression so far.
///
/// CEL without loops takes no more steps than its source has tokens, so only loops are metered: each is charged for its
/// whole list when it starts. The cost of one step is not metered: comparing or joining large values costs in proportion.
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

    /// Charges a loop over a list or a map.
    pub(super) fn charge_steps(&self, range: &Value) -> Result<(), ExecutionError> {
        let steps = match range {
            Value::List(elements) => elements.len(),
            Value::Map(map) => map.map.len(),
            _ => 0,
        };
        self.steps.fetch_add(steps, Ordering::Relaxed);
        self.check()
    }

    /// Charges copies of these values.
    pub(super) fn charge_copies(&self, values: &[Value]) -> Result<(), ExecutionError> {
        self.bytes.fetch_add(values.iter().map(weight).sum(), Ordering::Relaxed);
        self.check()
    }

    /// Fails once the budget is exhausted.
    pub(super) fn check(&self) -> Result<(), ExecutionError> {
        if self.is_exhausted() { Err(ExecutionError::function_error("cost", "exhausted")) } else { Ok(()) }
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.steps.load(Ordering::Relaxed) > MAX_STEPS || self.bytes.load(Ordering::Relaxed) > MAX_BYTES
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
    NODE_BYTES + content
}
