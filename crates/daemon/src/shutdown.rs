//! Shutdown on SIGTERM and SIGINT.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit code of a process that SIGTERM has ended, as shells report it.
const TERMINATED: i32 = 143;

/// Returns a token that the first SIGTERM or SIGINT cancels. A second signal exits at once. Requires a tokio runtime.
#[expect(clippy::disallowed_methods, clippy::exit, reason = "a second signal skips the graceful shutdown")]
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
