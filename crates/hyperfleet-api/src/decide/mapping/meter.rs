//! What evaluating one expression may cost.

use std::sync::atomic::{AtomicUsize, Ordering};

use cel::{ExecutionError, Value};

/// How many elements all loops of an expression may visit: the reference's cost limit (`api.md` §5.4).
pub(super) const MOST_STEPS: usize = 10_000;
/// How much may pass through loops and `toJson`, in bytes. It stops what grows from loop to loop.
pub(super) const MOST_BYTES: usize = 16 << 20;
/// What a number, a key or an entry counts besides its text.
const BYTES_OF_A_NODE: usize = 8;

/// What the running expression has cost so far.
///
/// CEL without loops costs no more than its source is long, so loops are what is metered: each pays for its whole list
/// when it starts.
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
    pub(super) fn pay_loop(&self, range: &Value) -> Result<(), ExecutionError> {
        let steps = match range {
            Value::List(elements) => elements.len(),
            Value::Map(map) => map.map.len(),
            _ => 0,
        };
        self.steps.fetch_add(steps, Ordering::Relaxed);
        self.pay_bytes(weight(range))
    }

    /// Pays for handling that much.
    pub(super) fn pay_bytes(&self, bytes: usize) -> Result<(), ExecutionError> {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
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
