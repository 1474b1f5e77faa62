//! Being told to stop.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The exit code of a process that SIGTERM has ended, as shells write it.
const TERMINATED: i32 = 143;

/// A token that is cancelled at the first SIGTERM or SIGINT; a second one ends the process at once. Must be called within
/// a tokio runtime.
#[expect(clippy::disallowed_methods, clippy::exit, reason = "whoever asks twice does not want to wait for destructors")]
pub fn on_signal() -> io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if stopping.is_cancelled() {
                std::process::exit(TERMINATED);
            }
            stopping.cancel();
        }
    });
    Ok(stop)
}
