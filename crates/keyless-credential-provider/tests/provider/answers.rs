//! Answers of servers that are slow, wrong or others, and connections that are not trusted.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use emulators::quay::Settings;
use rstest::rstest;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::json;
use tempfile::TempDir;
use testkit::fake::{Fake, json as document, page};
use testkit::leaks;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::federation::quay;
use crate::rig::{ROBOT, Run, at, provide, request, unsigned_token};

async fn answer_of(address: SocketAddr) -> Run {
    provide(&at(address), &request(&unsigned_token())).await
}

#[tokio::test]
async fn the_token_is_the_password_of_the_robot() {
    let fake = Fake::answering(document(200, &json!({"token": "opaque"}))).await;
    assert_eq!(answer_of(fake.address).await.response()["cacheDuration"], "0s");
    let sent = fake.only();
    assert_eq!(format!("{} {}", sent.method, sent.target), "GET /oauth2/federation/robot/token");
    let login = BASE64_STANDARD.encode(format!("{ROBOT}:{}", unsigned_token()));
    assert_eq!(sent.headers["authorization"], format!("Basic {login}"));
    assert_eq!(sent.headers["host"], fake.address.to_string());
    assert!(sent.headers["user-agent"].to_str().unwrap().starts_with("keyless-credential-provider/"));
}

#[rstest]
#[case(400, 4, "it must reach the issuer over https")]
#[case(401, 4, "(status 401)")]
#[case(404, 4, "has no federation of robots there")]
#[case(429, 75, "the kubelet tries again")]
#[case(500, 75, "the kubelet tries again")]
#[case(503, 75, "the kubelet tries again")]
#[tokio::test]
async fn no_word_of_a_failing_registry_is_repeated(#[case] status: u16, #[case] code: i32, #[case] expected: &str) {
    let fake = Fake::answering(page(status, leaks::TOKEN)).await;
    answer_of(fake.address).await.refused(code, expected);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = Fake::answering(document(200, &json!({"token": "opaque"}))).await;
    let mut redirect = document(302, &json!({"token": "opaque"}));
    redirect.headers_mut().insert("location", format!("http://{}/", other.address).parse().unwrap());
    let fake = Fake::answering(redirect).await;
    answer_of(fake.address).await.refused(4, "redirects are not followed");
    assert_eq!(other.received().len(), 0);
}

#[rstest]
#[case::no_http("SSH-2.0-OpenSSH_9.2\r\n", "it is no HTTP")]
#[case::nothing("", "it ends too early")]
#[case::cut("HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n{\"token\": \"tok3nThat", "it ends too early")]
#[case::no_json("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\ntok3nThatMustNotShow", "it has no token")]
#[case::no_token("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "it has no token")]
#[case::announced("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "it is too large")]
#[tokio::test]
async fn what_is_no_answer_of_quay_is_refused(#[case] bytes: &'static str, #[case] expected: &str) {
    let fake = Fake::speaking(bytes).await;
    answer_of(fake.address).await.refused(75, expected);
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_refused() {
    let fake = Fake::answering(document(200, &json!({"token": leaks::TOKEN.repeat(10_000)}))).await;
    answer_of(fake.address).await.refused(75, "it is too large");
}

#[tokio::test]
async fn a_silent_server_is_left_after_the_time_limit() {
    let fake = Fake::silent().await;
    let flags = [at(fake.address), vec!["--timeout=1".to_owned()]].concat();
    provide(&flags, &request(&unsigned_token())).await.refused(75, "was not answered within 1 s");
}

#[tokio::test]
async fn no_server_listens() {
    // It stays bound, so that no other test gets the address.
    let unheard = TcpSocket::new_v4().unwrap();
    unheard.bind(([127, 0, 0, 1], 0).into()).unwrap();
    answer_of(unheard.local_addr().unwrap()).await.refused(75, "Connection refused");
}

#[tokio::test]
async fn a_request_that_is_too_large_is_refused() {
    let run = provide(&at(([127, 0, 0, 1], 1).into()), &json!({"image": "x".repeat(1024 * 1024)})).await;
    run.refused(2, "it is too large");
}

#[rstest]
#[case(&["--registry", "quay.io", "--federation-url", "http://quay.io/"], "must be an https:// address")]
#[case(&["--registry", "quay.io", "tok3nThatMustNotShow"], "there are only flags")]
#[case(&[], "--registry is missing")]
#[tokio::test]
async fn invalid_arguments_are_refused(#[case] flags: &[&str], #[case] expected: &str) {
    let flags: Vec<_> = flags.iter().map(|&flag| flag.to_owned()).collect();
    provide(&flags, &request(&unsigned_token())).await.refused(2, expected);
}

#[tokio::test]
async fn help_and_version_are_on_stdout() {
    for (flag, expected) in [("--help", "--federation-url URL"), ("--version", "version info:")] {
        let run = provide(&[flag.to_owned()], &json!(null)).await;
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        assert!(run.stdout.contains(expected), "{}", run.stdout);
    }
}

/// A server with a certificate for `localhost`, in front of another one.
struct Secured {
    port: u16,
    folder: TempDir,
}

impl Secured {
    async fn before(inner: SocketAddr) -> Self {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![certified.cert.der().clone()], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let Ok(mut outer) = acceptor.accept(connection).await else { continue };
                let mut inner = TcpStream::connect(inner).await.unwrap();
                let _ended = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
            }
        });
        let folder = tempfile::tempdir().unwrap();
        daemon::file::replace(&folder.path().join("ca.crt"), certified.cert.pem().as_bytes()).unwrap();
        Self { port, folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn flags(&self, host: &str, file: &str) -> Vec<String> {
        let url = format!("https://{host}:{}/oauth2/federation/robot/token", self.port);
        let file = self.file(file).display().to_string();
        ["--registry", "quay.example.com", "--federation-url", &url, "--ca-file", &file].map(str::to_owned).to_vec()
    }
}

#[tokio::test]
async fn a_trusted_server_gets_the_token_and_no_other() {
    let issuer = "https://issuer.example.com";
    let server = quay(Settings::default(), issuer, "system:serviceaccount:pulls:puller").await;
    let secured = Secured::before(server.quay.address()).await;
    let token = server.quay.subject_token(issuer, "system:serviceaccount:pulls:puller", "any");
    let request = request(&token);
    let response = provide(&secured.flags("localhost", "ca.crt"), &request).await.response();
    assert_eq!(response["auth"]["quay.example.com"]["username"], ROBOT);

    let before = server.quay.calls().len();
    provide(&secured.flags("127.0.0.1", "ca.crt"), &request).await.refused(75, "certificate not valid for name");
    let stranger = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    daemon::file::replace(&secured.file("other.crt"), stranger.cert.pem().as_bytes()).unwrap();
    provide(&secured.flags("localhost", "other.crt"), &request).await.refused(75, "invalid peer certificate");
    provide(&secured.flags("localhost", "missing.crt"), &request).await.refused(2, "check --ca-file");
    daemon::file::replace(&secured.file("empty.crt"), b"").unwrap();
    provide(&secured.flags("localhost", "empty.crt"), &request).await.refused(2, "it has none");
    // The node's authorities, which do not know this one. A machine may have none.
    let own: Vec<_> = secured.flags("localhost", "").into_iter().take(4).collect();
    let run = provide(&own, &request).await;
    assert!(matches!(run.code, 2 | 75) && run.stdout.is_empty(), "{}", run.stderr);
    assert_eq!(server.quay.calls().len(), before);
}

/// A proxy that answers with this status, and forwards every connection to this port after 200. It keeps what it was asked for.
async fn proxy(status: u16, port: u16, asked: Arc<Mutex<Vec<String>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut outer, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                assert_ne!(outer.read_buf(&mut head).await.unwrap(), 0);
            }
            asked.lock().unwrap().push(String::from_utf8(head).unwrap());
            outer.write_all(format!("HTTP/1.1 {status} Any\r\nVia: x\r\n\r\n").as_bytes()).await.unwrap();
            if status == 200 {
                let mut inner = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                let _ended = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
            }
        }
    });
    address.to_string()
}

#[rstest]
#[case::forwards(200, None)]
#[case::refuses(403, Some("it refuses the connection with status 403"))]
#[tokio::test]
async fn a_proxy_sees_the_address_and_no_token(#[case] status: u16, #[case] refused: Option<&str>) {
    let fake = Fake::answering(document(200, &json!({"token": "opaque"}))).await;
    let secured = Secured::before(fake.address).await;
    let asked = Arc::default();
    let address = proxy(status, secured.port, Arc::clone(&asked)).await;
    let mut flags = secured.flags("localhost", "ca.crt");
    flags.extend(["--proxy".to_owned(), address]);
    let run = provide(&flags, &request(&unsigned_token())).await;
    match refused {
        Some(refused) => run.refused(75, refused),
        None => assert_eq!(run.response()["auth"]["quay.example.com"]["password"], "opaque"),
    }
    let target = format!("localhost:{}", secured.port);
    assert_eq!(*asked.lock().unwrap(), [format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")]);
    assert_eq!(fake.received().len(), usize::from(refused.is_none()));
}

#[tokio::test]
async fn an_answer_in_pieces_is_understood() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            assert_ne!(connection.read_buf(&mut head).await.unwrap(), 0);
        }
        for piece in [
            "HTTP/1.1 200 OK\r\nTransfer-Enc",
            "oding: chunked\r\n\r\n11\r\n{\"token\":\"opaque\"\r\n1\r\n",
            "}\r\n0\r\n\r\n",
        ] {
            connection.write_all(piece.as_bytes()).await.unwrap();
            connection.flush().await.unwrap();
            tokio::task::yield_now().await;
        }
        // It stays open: the end is in the answer.
        std::future::pending::<()>().await;
    });
    assert_eq!(answer_of(address).await.response()["auth"]["quay.example.com"]["password"], "opaque");
}
