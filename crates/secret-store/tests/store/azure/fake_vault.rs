//! A vault that answers as a test wants, over TLS, with a service for tokens.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use daemon::file::replace;
use http::Response;
use secret_store::{AzureIdentity, AzureSettings, AzureStore};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use testkit::fake::{Fake, Received, json as document};

/// The token of the vault. No error and no `Debug` may show it.
pub(super) const TOKEN: &str = "m4rker-of-a-token.eyJhbGciOiJSUzI1NiJ9";
/// The token of the workload, likewise.
pub(super) const ASSERTION: &str = "m4rker-of-an-assertion.eyJhbGciOiJSUzI1NiJ9";

/// A vault; it ends when it is dropped.
pub(super) struct FakeVault {
    pub(super) fake: Fake,
    pub(super) address: SocketAddr,
    pub(super) folder: TempDir,
    task: JoinHandle<()>,
}

// === impl FakeVault ===

impl FakeVault {
    /// Answers each request that has a token.
    pub(super) async fn start(answer: impl Fn(&Received) -> Response<String> + Clone + Send + Sync + 'static) -> Self {
        let answer = move |request: &Received| {
            let token = json!({"token_type": "Bearer", "expires_in": 3600, "access_token": TOKEN});
            match request.headers.get("authorization") {
                _ if request.target.ends_with("/oauth2/v2.0/token") => document(200, &token),
                Some(_) => answer(request),
                None => challenge(),
            }
        };
        Self::before(Fake::start(answer).await).await
    }

    /// Answers each request that has a token in the same way.
    pub(super) async fn answering(answer: Response<String>) -> Self {
        Self::start(move |_| answer.clone()).await
    }

    /// Decrypts what is sent, and passes it on to a server.
    pub(super) async fn before(fake: Fake) -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        replace(&folder.path().join("ca.pem"), made.cert.pem().as_bytes()).unwrap();
        replace(&folder.path().join("token"), ASSERTION.as_bytes()).unwrap();
        let (acceptor, behind) = (TlsAcceptor::from(Arc::new(config)), fake.address);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut secured) = acceptor.accept(connection).await else { return };
                    let mut plain = TcpStream::connect(behind).await.unwrap();
                    drop(copy_bidirectional(&mut secured, &mut plain).await);
                });
            }
        });
        Self { fake, address, folder, task }
    }

    pub(super) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    pub(super) fn settings(&self) -> AzureSettings {
        AzureSettings {
            vault: self.url().parse().unwrap(),
            identity: AzureIdentity::Workload {
                authority: self.url().parse().unwrap(),
                tenant: "tenant".to_owned(),
                client_id: "client".to_owned(),
                token_file: self.folder.path().join("token"),
            },
            ca_file: Some(self.folder.path().join("ca.pem")),
            purge: false,
            call_timeout: Duration::from_mins(1),
            calls: None,
        }
    }

    pub(super) fn store(&self) -> AzureStore {
        AzureStore::connect(&self.settings()).unwrap()
    }

    /// The requests with a token.
    pub(super) fn received(&self) -> Vec<Received> {
        let received = self.fake.received().into_iter();
        received.filter(|request| request.headers.contains_key("authorization")).collect()
    }
}

impl Drop for FakeVault {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn challenge() -> Response<String> {
    let mut answer = refusal(401, "Unauthorized", "", "Request is missing a Bearer or PoP token.");
    let challenge = "Bearer authorization=\"https://login.example.com/other\", resource=\"https://other.example.com\"";
    answer.headers_mut().insert("www-authenticate", challenge.parse().unwrap());
    answer
}

/// A refusal in Azure's form; an inner code that is empty is left out.
pub(super) fn refusal(status: u16, code: &str, inner: &str, message: &str) -> Response<String> {
    let mut error = json!({"code": code, "message": message});
    if !inner.is_empty() {
        error["innererror"] = json!({"code": inner});
    }
    document(status, &json!({"error": error}))
}

/// A page of versions: the placeholder, and a first version.
pub(super) fn versions() -> Value {
    let version = |id: &str, created: u64, number: &str| {
        let id = format!("https://fleet.vault.azure.net/secrets/pull-secret/{id}");
        let attributes = json!({"enabled": number != "0", "created": created, "updated": created});
        json!({"id": id, "attributes": attributes, "tags": {"hyperfleet-version": number}})
    };
    json!({"value": [version("a", 1, "0"), version("b", 2, "1")]})
}
