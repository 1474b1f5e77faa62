//! Threads whose stacks are deep enough for CEL.

use std::io;
use std::marker::PhantomData;
use std::thread::Builder;

/// In a debug build the parser needs some 90 KiB of stack for each nested parenthesis, and evaluation more than 32 KiB for
/// each level of the tree; this is several times as much as the bounds of `fence` allow. Only pages that are touched
/// become memory.
const STACK_SIZE: usize = 64 << 20;

/// Evidence that the current thread has a deep stack.
///
/// Parsing and evaluation demand it, so that they cannot overflow the stack of another thread and end the process. It
/// cannot be sent to another thread.
pub(super) struct DeepStack(PhantomData<*const ()>);

/// Runs work on a new thread with a deep stack and waits for its result.
pub(super) fn run<T: Send>(work: impl FnOnce(&DeepStack) -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let running = builder().spawn_scoped(scope, || work(&DeepStack(PhantomData)));
        let running = running.map_err(|error| format!("cannot start a thread: {error}"))?;
        running.join().map_err(|_| "the CEL library panicked".to_owned())
    })
}

/// Starts a thread with a deep stack.
pub(super) fn spawn(work: impl FnOnce(&DeepStack) + Send + 'static) -> io::Result<()> {
    builder().spawn(|| work(&DeepStack(PhantomData))).map(drop)
}

fn builder() -> Builder {
    Builder::new().name("cel".to_owned()).stack_size(STACK_SIZE)
}
