//! A proxy before the emulator that holds back answers, so that a Job waits for one as long as a test needs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A proxy for one Job, which makes one call after the other.
pub(crate) struct Line {
    pub(crate) address: SocketAddr,
    delivered: watch::Sender<usize>,
}

impl Line {
    /// A proxy that delivers the answers to this number of calls, and holds back the later ones.
    pub(crate) async fn to(server: SocketAddr, answers: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (delivered, calls) = (watch::Sender::new(answers), Arc::new(AtomicUsize::new(0)));
        let deliverable = delivered.subscribe();
        tokio::spawn(async move {
            while let Ok((job, _)) = listener.accept().await {
                tokio::spawn(carry(job, server, Arc::clone(&calls), deliverable.clone()));
            }
        });
        Self { address, delivered }
    }

    /// Delivers the answers to this number of calls from the first one on.
    pub(crate) fn deliver(&self, answers: usize) {
        self.delivered.send_replace(answers);
    }
}

/// Carries the calls on a connection and their answers.
async fn carry(
    job: TcpStream,
    server: SocketAddr,
    calls: Arc<AtomicUsize>,
    mut deliverable: watch::Receiver<usize>,
) -> std::io::Result<()> {
    let (mut from_job, mut to_job) = job.into_split();
    let (mut from_server, mut to_server) = TcpStream::connect(server).await?.into_split();
    let (mut asked, mut answered) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    let (mut call, mut is_answered) = (0, true);
    loop {
        tokio::select! {
            length = from_job.read(&mut asked) => {
                let length = length?;
                if length == 0 {
                    return Ok(());
                }
                if is_answered {
                    (call, is_answered) = (calls.fetch_add(1, Ordering::SeqCst) + 1, false);
                }
                to_server.write_all(&asked[..length]).await?;
            }
            length = from_server.read(&mut answered) => {
                let length = length?;
                if length == 0 || deliverable.wait_for(|answers| *answers >= call).await.is_err() {
                    return Ok(());
                }
                is_answered = true;
                to_job.write_all(&answered[..length]).await?;
            }
        }
    }
}
