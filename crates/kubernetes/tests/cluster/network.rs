//! Peers of a connection that fail: a server that answers everything alike, a proxy that cuts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A line to a server, which a test can break.
pub(crate) struct Line {
    pub(crate) address: String,
    broken: Arc<Notify>,
}

impl Line {
    pub(crate) async fn to(server: &str) -> Self {
        let (server, broken) = (server.to_owned(), Arc::new(Notify::new()));
        let (listener, address) = listen().await;
        let breaking = Arc::clone(&broken);
        tokio::spawn(async move {
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                let (server, breaking) = (server.clone(), Arc::clone(&breaking));
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(server).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        () = breaking.notified() => {}
                    }
                });
            }
        });
        Self { address, broken }
    }

    /// Breaks every connection; new ones are fine.
    pub(crate) fn cut(&self) {
        self.broken.notify_waiters();
    }
}

/// A server that answers everything alike and counts how often it was asked.
pub(crate) struct Parrot {
    pub(crate) address: String,
    asked: Arc<AtomicUsize>,
}

impl Parrot {
    /// An empty answer closes the connection.
    pub(crate) async fn saying(answer: &'static str) -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let (listener, address) = listen().await;
        let count = Arc::clone(&asked);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let count = Arc::clone(&count);
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    if request(&mut stream).await.is_some() {
                        count.fetch_add(1, Ordering::SeqCst);
                        stream.write_all(answer.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        Self { address, asked }
    }

    /// Number of requests since the last call of this method.
    pub(crate) fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::SeqCst)
    }
}

/// Reads one request to its end.
async fn request(stream: &mut BufReader<TcpStream>) -> Option<()> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        let read = stream.read_line(&mut line).await.ok()?;
        match line.trim().to_lowercase() {
            _ if read == 0 => return None,
            end if end.is_empty() => break,
            header => {
                if let Some(value) = header.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok().map(drop)
}

pub(crate) async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}
