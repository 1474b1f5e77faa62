//! A scripted registry, over TLS.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use daemon::certificates::Certificates;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

use crate::rig::{CANARY, encode};

/// The behaviour of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    /// Sends to its token endpoint, which takes the password 2.
    Tokens,
    /// The same, with `access_token`.
    AccessTokens,
    /// Takes the password 2 at /v2/ itself.
    Basic,
    /// Takes it, and says so in no JSON.
    BasicGarbage,
    /// The token endpoint answers with this status and body.
    Answers(u16, &'static str),
    /// The token endpoint redirects.
    RedirectsToken,
    /// /v2/ redirects.
    Redirects,
    /// /v2/ gives no answer.
    Hangs,
    /// The token endpoint has a very long answer.
    Huge,
    /// The token endpoint is there.
    RealmAt(&'static str),
    /// /v2/ demands no credential.
    IsOpen,
}

pub(crate) struct Registry {
    pub(crate) address: SocketAddr,
    pub(crate) authority: PathBuf,
    /// The heads of all requests.
    observed: Arc<Mutex<Vec<String>>>,
    _folder: TempDir,
    _serving: AbortOnDropHandle<()>,
}

impl Registry {
    pub(crate) async fn start(does: Does) -> Self {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let pair = rcgen::generate_simple_self_signed(names).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (authority, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
        daemon::file::replace(&authority, pair.cert.pem().as_bytes()).unwrap();
        daemon::file::replace(&key, pair.signing_key.serialize_pem().as_bytes()).unwrap();
        let acceptor = TlsAcceptor::from(daemon::serve::tls(&authority, &key, &Certificates::default()).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let observed = Arc::new(Mutex::new(Vec::new()));
        let heads = Arc::clone(&observed);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, heads) = (acceptor.clone(), Arc::clone(&heads));
                heads.lock().unwrap().push("connection".to_owned());
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = stream.read_u8().await else { return };
                        head.push(byte);
                    }
                    let head = String::from_utf8(head).unwrap();
                    heads.lock().unwrap().push(head.clone());
                    let Some(result) = result(does, address.port(), &head) else {
                        return std::future::pending().await;
                    };
                    drop(stream.write_all(result.as_bytes()).await);
                    drop(stream.shutdown().await);
                });
            }
        });
        Self { address, authority, observed, _folder: folder, _serving: AbortOnDropHandle::new(serving) }
    }

    pub(crate) fn host(&self) -> String {
        format!("localhost:{}", self.address.port())
    }

    pub(crate) fn observed(&self) -> Vec<String> {
        self.observed.lock().unwrap().clone()
    }
}

/// The whole answer; `None` for none at all. What a registry says repeats the credential, as the worst one would.
fn result(does: Does, port: u16, head: &str) -> Option<String> {
    let given = head.lines().find_map(|line| line.strip_prefix("authorization: Basic "));
    let is_good = given == Some(&encode(format!("u:{CANARY}2").as_bytes()));
    let whole = |status: u16, headers: &str, body: &str| {
        let length = body.len();
        Some(format!(
            "HTTP/1.1 {status} {CANARY}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n{body}"
        ))
    };
    let refused = || whole(401, "WWW-Authenticate: Basic realm=\"x\"\r\n", CANARY);
    if head.starts_with("GET /token?service=s+1&scope=a%3Ab ") {
        return match does {
            Does::Answers(status, body) => whole(status, "", body),
            Does::RedirectsToken => whole(302, &format!("Location: https://localhost:{port}/elsewhere\r\n"), ""),
            Does::Huge => whole(200, "", &format!(r#"{{"token": "{}"}}"#, "a".repeat(1_000_000))),
            _ if !is_good => refused(),
            Does::AccessTokens => whole(200, "", r#"{"access_token": "c4n4ry"}"#),
            _ => whole(200, "", r#"{"token": "c4n4ry", "expires_in": 60}"#),
        };
    }
    match does {
        Does::Hangs => None,
        Does::IsOpen => whole(200, "", "{}"),
        Does::Redirects => whole(307, &format!("Location: https://localhost:{port}/token\r\n"), ""),
        Does::Basic if is_good => whole(200, "", "{}"),
        Does::BasicGarbage if is_good => whole(200, "", "<html>"),
        Does::Basic | Does::BasicGarbage => refused(),
        Does::RealmAt(realm) => whole(401, &format!("WWW-Authenticate: Bearer realm=\"{realm}\"\r\n"), ""),
        _ => {
            let realm = format!("https://localhost:{port}/token");
            whole(401, &format!("WWW-Authenticate: Bearer realm=\"{realm}\",service=\"s 1\",scope=\"a:b\"\r\n"), "")
        }
    }
}
