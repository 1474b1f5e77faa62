//! Waiting until every part says that it is ready.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::bail;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::fleet::Places;

/// A part that is not ready by then says why, and everything ends.
const TIMEOUT: Duration = Duration::from_mins(3);
/// Interval between two readiness requests.
const INTERVAL: Duration = Duration::from_millis(20);
/// One answer may take so long.
const ANSWER: Duration = Duration::from_secs(2);

/// Waits until every listener for probes answers that it is ready.
pub(crate) async fn wait(places: &Places) -> anyhow::Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    for (name, address) in &places.listeners {
        if let Some(part) = name.strip_suffix(" health") {
            until_ready(part, *address, deadline).await?;
        }
    }
    Ok(())
}

/// Waits until a part answers that it is ready.
pub(crate) async fn wait_for(part: &str, address: SocketAddr) -> anyhow::Result<()> {
    until_ready(part, address, Instant::now() + TIMEOUT).await
}

async fn until_ready(part: &str, address: SocketAddr, deadline: Instant) -> anyhow::Result<()> {
    loop {
        let answer = timeout(ANSWER, ask(address)).await;
        let answer = answer.unwrap_or_else(|_elapsed| Ok("no answer".to_owned()));
        let answer = answer.unwrap_or_else(|error| error.kind().to_string());
        if answer.starts_with("HTTP/1.1 200") {
            return Ok(());
        }
        if Instant::now() > deadline {
            let body = answer.rsplit("\r\n\r\n").next().unwrap_or_default();
            bail!("the part `{part}` is not ready after {} s: {}", TIMEOUT.as_secs(), daemon::output::plain(body));
        }
        sleep(INTERVAL).await;
    }
}

async fn ask(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: local\r\nconnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
