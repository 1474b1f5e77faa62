//! Probes answer whatever happens to the daemon's own runtime.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use super::Probes;
use crate::readiness::{Readiness, ReadinessSender};
use crate::serve::Endpoint;
use crate::settings::Table;
use crate::settings::common;

const TABLE: Table = Table::of(&[common::HEALTH]);

async fn probes() -> Probes {
    let endpoint = || Endpoint::new(&TABLE, "health", "probes", "127.0.0.1", 0);
    let readiness = ReadinessSender::not_ready("has not started");
    Probes::listen(&endpoint(), &endpoint(), Registry::default(), readiness).await.unwrap()
}

/// The response to a request, read without any help of a runtime.
fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// The only thread of the daemon's runtime is blocked for as long as each of these requests takes.
#[tokio::test]
async fn probes_answer_while_the_daemons_runtime_is_blocked() {
    let probes = probes().await;
    let (health, metrics, readiness) = (probes.health_address(), probes.metrics_address(), probes.readiness());
    let work = async {
        assert!(get(health, "/healthz").starts_with("HTTP/1.1 200"));
        assert!(get(health, "/readyz").starts_with("HTTP/1.1 503"));
        readiness.set(Readiness::Ready);
        assert!(get(health, "/readyz").starts_with("HTTP/1.1 200"));
        assert!(get(metrics, "/metrics").starts_with("HTTP/1.1 200"));
        "ended"
    };
    assert_eq!(probes.serve_during(CancellationToken::new(), work).await, "ended");
    TcpStream::connect(health).unwrap_err();
}

/// More silent connections than there are places.
#[tokio::test]
async fn probes_answer_while_silent_connections_are_open() {
    let probes = probes().await;
    let health = probes.health_address();
    let work = async {
        let silent: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(health).unwrap()).collect();
        assert!(get(health, "/healthz").starts_with("HTTP/1.1 200"));
        drop(silent);
    };
    probes.serve_during(CancellationToken::new(), work).await;
}

#[tokio::test]
async fn probes_end_with_a_daemon_that_is_dropped() {
    let probes = probes().await;
    let health = probes.health_address();
    let serving = tokio::spawn(probes.serve_during(CancellationToken::new(), std::future::pending::<()>()));
    let answer = tokio::task::spawn_blocking(move || get(health, "/healthz")).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"));
    serving.abort();
    assert!(serving.await.is_err());
    while TcpStream::connect(health).is_ok() {
        std::thread::yield_now();
    }
}
