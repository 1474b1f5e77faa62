//! Silent, slow and stalled clients, each a raw socket; where a clock is needed it is paused, and advances while all are idle.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::{get, post};
use http_body::Frame;
use rstest::rstest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::endpoint;
use crate::serve::stream::FirstBytes;
use crate::serve::{ConnectionLimits, ServeOptions, listen};

const HEAD: Duration = Duration::from_secs(5);
/// Far more than any limit: a test that takes as long has hung.
const HUNG: Duration = Duration::from_hours(24);

fn limits(connections: usize) -> ConnectionLimits {
    let seconds = Duration::from_secs;
    ConnectionLimits { body: seconds(60), stall: seconds(30), keep_alive: seconds(20), connections }
}

async fn serve(router: Router, head_timeout: Duration, limits: ConnectionLimits) -> SocketAddr {
    let listener = listen(&endpoint("127.0.0.1", 0)).await.unwrap().with_limits(limits);
    let address = listener.address();
    let options = ServeOptions { head_timeout, drain_timeout: Duration::from_secs(1), tls: None };
    drop(tokio::spawn(listener.serve(router, options, CancellationToken::new())));
    address
}

fn router() -> Router {
    Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/body", post(|body: Bytes| async move { body.len().to_string() }))
}

/// All that the server sends until it closes the connection.
async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset is an end too.
    let _reset = timeout(HUNG, stream.read_to_end(&mut bytes)).await.expect("the server does not close the connection");
    bytes
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[rstest]
#[case::nothing(b"", HEAD)]
#[case::one_byte(b"P", HEAD)]
#[case::one_byte_of_another(b"G", HEAD)]
#[case::half_a_preface(PREFACE.split_at(12).0, HEAD)]
#[case::half_a_head(b"GET / HTTP/1.1\r\nHost: a\r\n", HEAD)]
#[case::a_preface(PREFACE, Duration::from_secs(40))]
#[tokio::test(start_paused = true)]
async fn a_client_that_falls_silent_is_closed(#[case] sent: &[u8], #[case] within: Duration) {
    let address = serve(router(), HEAD, limits(10)).await;
    let began = Instant::now();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(sent).await.unwrap();
    rest(&mut stream).await;
    assert!(began.elapsed() <= within + Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn first_bytes_that_are_read_late_are_not_too_late() {
    let (mut client, server) = tokio::io::duplex(64);
    let mut stream = FirstBytes::new(server, HEAD);
    client.write_all(b"P").await.unwrap();
    tokio::time::advance(HEAD * 2).await;
    let mut bytes = [0; 2];
    assert_eq!(stream.read(&mut bytes).await.unwrap(), 1);
    assert_eq!(stream.read(&mut bytes).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn a_slow_body_is_refused() {
    let address = serve(router(), HEAD, limits(10)).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx").await.unwrap();
    // A byte every ten seconds is not enough either.
    let (mut read, mut write) = stream.split();
    let dripping = async {
        while write.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
    };
    let mut answer = Vec::new();
    let reading = timeout(HUNG, read.read_to_end(&mut answer));
    tokio::select! {
        ended = reading => drop(ended.expect("the server waits for the body")),
        () = dripping => {}
    }
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
}

/// A body without an end, which says when it is dropped.
struct Endless(Arc<Notify>);

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        std::task::Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 8192])))))
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_is_closed() {
    let dropped = Arc::new(Notify::new());
    let body = Arc::clone(&dropped);
    let router = Router::new().route("/", get(move || async move { Body::new(Endless(body)) }));
    let address = serve(router, HEAD, limits(10)).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    timeout(HUNG, dropped.notified()).await.expect("the server waits for the reader");
}

/// A connection that is not asked for signs of life, which a paused clock does not wait for.
const PATIENT: ConnectionLimits =
    ConnectionLimits { body: HUNG, stall: Duration::from_secs(30), keep_alive: HUNG, connections: 10 };

/// A client of HTTP/2; its streams have windows of that size.
async fn client(address: SocketAddr, window: u32) -> h2::client::SendRequest<Bytes> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (client, connection) = h2::client::Builder::new()
        .initial_window_size(window)
        .initial_connection_window_size(1 << 20)
        .handshake(stream)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

/// Asks for a path; returns the body.
async fn ask(client: &mut h2::client::SendRequest<Bytes>, path: &str) -> h2::RecvStream {
    let request = http::Request::get(format!("http://a{path}")).body(()).unwrap();
    let (response, _sent) = client.send_request(request, true).unwrap();
    let response = timeout(HUNG, response).await.unwrap().unwrap();
    assert_eq!(response.status(), 200);
    response.into_body()
}

#[rstest]
#[case::no_window(0, "/endless")]
#[case::no_window_for_a_large_body(0, "/large")]
#[case::no_window_for_a_small_body(0, "/")]
#[case::a_window_of_one_byte(1, "/large")]
#[case::the_usual_window(65_535, "/endless")]
#[case::the_usual_window_for_a_large_body(65_535, "/large")]
#[tokio::test(start_paused = true)]
async fn an_unread_http2_stream_is_reset(#[case] window: u32, #[case] path: &str) {
    let dropped = Arc::new(Notify::new());
    let body = Arc::clone(&dropped);
    let router = router()
        .route("/endless", get(move || async move { Body::new(Endless(body)) }))
        .route("/large", get(|| async { vec![b'x'; 1024 * 1024] }));
    let address = serve(router, HEAD, PATIENT).await;
    let began = Instant::now();
    let mut client = client(address, window).await;
    let mut body = ask(&mut client, path).await;
    let reset = loop {
        match timeout(HUNG, body.data()).await.expect("the server waits for the reader") {
            // It is read, and gives no room for more.
            Some(Ok(_data)) => {}
            Some(Err(error)) => break error,
            None => panic!("the body has ended"),
        }
    };
    assert_eq!(reset.reason(), Some(h2::Reason::CANCEL));
    assert!(began.elapsed() <= Duration::from_secs(70), "{:?}", began.elapsed());
    if path == "/endless" {
        timeout(HUNG, dropped.notified()).await.expect("the server keeps the body");
    }
    // The connection serves others.
    if window >= 5 {
        let mut body = ask(&mut client, "/").await;
        assert_eq!(body.data().await.unwrap().unwrap(), "hello");
    }
}

/// A change stream is quiet for as long as nothing changes.
#[tokio::test(start_paused = true)]
async fn an_http2_stream_may_wait_for_the_server() {
    let lines = || {
        futures_util::stream::unfold(0_u64, |number| async move {
            tokio::time::sleep(Duration::from_mins(10)).await;
            Some((Ok::<_, io::Error>(Bytes::from(number.to_string())), number + 1))
        })
    };
    let router = Router::new().route("/", get(move || async move { Body::from_stream(lines()) }));
    let address = serve(router, HEAD, PATIENT).await;
    let mut client = client(address, 10).await;
    let mut body = ask(&mut client, "/").await;
    for number in 0..5 {
        let data = timeout(HUNG, body.data()).await.unwrap().unwrap().unwrap();
        assert_eq!(data, number.to_string());
        body.flow_control().release_capacity(data.len()).unwrap();
    }
}

async fn hello(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
    String::from_utf8(rest(&mut stream).await).unwrap()
}

/// No limit of time is in reach: only the place of another one lets the request in.
#[tokio::test]
async fn silent_clients_give_way_to_those_that_ask() {
    let address = serve(router(), HUNG, limits(3)).await;
    let mut silent = Vec::new();
    for _ in 0..10 {
        silent.push(TcpStream::connect(address).await.unwrap());
        assert!(hello(address).await.ends_with("hello"));
    }
    assert_eq!(rest(&mut silent[0]).await, b"");
}

/// A client that has made a request keeps its connection.
#[tokio::test]
async fn a_client_that_asks_is_not_closed_for_silent_ones() {
    let address = serve(router(), HUNG, limits(3)).await;
    let mut asking = TcpStream::connect(address).await.unwrap();
    let mut buffer = vec![0; 1024];
    for _ in 0..5 {
        let _silent = TcpStream::connect(address).await.unwrap();
        asking.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let length = asking.read(&mut buffer).await.unwrap();
        assert!(buffer[..length].starts_with(b"HTTP/1.1 200"));
    }
}

#[test]
fn connections_leave_descriptors_for_probes() {
    let descriptors = crate::serve::limits::descriptors();
    let connections = ConnectionLimits::default().connections as u64;
    assert!(connections * 100 <= descriptors * 60, "{connections} of {descriptors}");
}
