//! Connections of an HTTP client: whom it trusts, its own certificate, and that both are replaced without a restart.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Certificate, Identity, redirect};
use secrecy::zeroize::Zeroizing;
use tokio::time::Instant;

use crate::reload::Reloaded;

/// Time for which a connection without a request is kept. HyperFleet's API closes one after five seconds (`server.timeouts.read`): no
/// request is to be sent at that moment, as it would get no answer.
const MAX_IDLE: Duration = Duration::from_secs(3);

/// The server that a client connects to.
#[derive(Clone, Debug)]
pub struct Server {
    /// The files, for the log, such as `the API's certificate authorities`.
    pub authorities: &'static str,
    /// True if the address is `http://…`.
    pub is_plain: bool,
    /// File with the certificate authorities of the server, in PEM; `None` for the system's.
    pub ca_file: Option<PathBuf>,
    /// The certificate by which the server knows the client.
    pub certificate: Option<ClientCertificate>,
    /// Name of the program that calls.
    pub user_agent: String,
    /// Maximum time until a connection is made.
    pub connect_timeout: Duration,
}

/// The certificate of a client, in PEM.
#[derive(Clone, Debug)]
pub struct ClientCertificate {
    /// File with the certificate, and those between it and its authority.
    pub cert_file: PathBuf,
    /// File with its private key.
    pub key_file: PathBuf,
}

/// An HTTP client that follows no redirect. It is made anew when one of its files is replaced; requests under way go on with
/// the one before.
#[derive(Debug)]
pub struct Connections {
    server: Server,
    client: Reloaded<reqwest::Client>,
}

/// The cause of a client that cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The file of certificate authorities could not be read.
    #[error("cannot read the CA file {}; check its path and its permissions", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file holds no certificate.
    #[error("cannot use the CA file {}: it must hold certificates in PEM form", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A file of the client's certificate could not be read.
    #[error("cannot read {}, of the client's certificate; check its path and its permissions", path.display())]
    CertificateFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The files of the client's certificate cannot be used. The cause could quote them.
    #[error("cannot use the client's certificate in {} with the key in {}: both must be in PEM form, and belong together", cert.display(), key.display())]
    NoIdentity {
        /// The file of the certificate.
        cert: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// The HTTP client could not be made.
    #[error("cannot set up the HTTP client; check the CA file, the system's certificates and the user agent")]
    Http {
        /// The cause.
        source: reqwest::Error,
    },
}

// === impl Connections ===

impl Connections {
    /// Sets up the client.
    ///
    /// # Errors
    ///
    /// Authorities, or a certificate of the client, that cannot be read, or are none.
    pub fn new(server: Server) -> Result<Self, SetupError> {
        let client = Reloaded::new(server.authorities, server.files(), || server.client())?;
        Ok(Self { server, client })
    }

    /// Returns the client for the next request.
    pub fn current(&self) -> Arc<reqwest::Client> {
        self.at(Instant::now())
    }

    fn at(&self, now: Instant) -> Arc<reqwest::Client> {
        self.client.at(now, || self.server.client())
    }
}

// === impl Server ===

impl Server {
    /// Returns the file to read; without TLS there is no certificate to check.
    fn authorities_file(&self) -> Option<&Path> {
        self.ca_file.as_deref().filter(|_| !self.is_plain)
    }

    /// Returns the certificate to show; without TLS it is not shown.
    fn own_certificate(&self) -> Option<&ClientCertificate> {
        self.certificate.as_ref().filter(|_| !self.is_plain)
    }

    fn files(&self) -> Vec<PathBuf> {
        let own = self.own_certificate().map(|own| [&own.cert_file, &own.key_file]);
        let authorities = self.authorities_file().map(Path::to_path_buf);
        authorities.into_iter().chain(own.into_iter().flatten().cloned()).collect()
    }

    fn client(&self) -> Result<reqwest::Client, SetupError> {
        let builder = reqwest::Client::builder()
            .user_agent(self.user_agent.as_str())
            .redirect(redirect::Policy::none())
            // For a probe, which reads the end of the server's certificate.
            .tls_info(true)
            .pool_idle_timeout(MAX_IDLE)
            .connect_timeout(self.connect_timeout);
        let builder = match self.authorities_file() {
            // A proxy's operator could read tokens and pull secrets.
            _ if self.is_plain => builder.no_proxy().tls_certs_only([]),
            Some(path) => builder.tls_certs_only(authorities(path)?),
            None => builder,
        };
        let Some(own) = self.own_certificate() else {
            return builder.build().map_err(|source| SetupError::Http { source });
        };
        // The authorities were read: what remains is a key of another certificate.
        builder.identity(own.identity()?).build().map_err(|_error| own.unusable())
    }
}

// === impl ClientCertificate ===

impl ClientCertificate {
    fn identity(&self) -> Result<Identity, SetupError> {
        let read = |path: &Path| {
            let content = std::fs::read(path).map(Zeroizing::new);
            content.map_err(|source| SetupError::CertificateFile { path: path.to_path_buf(), source })
        };
        let Self { cert_file, key_file } = self;
        let pem = Zeroizing::new([read(key_file)?.as_slice(), b"\n", read(cert_file)?.as_slice()].concat());
        Identity::from_pem(&pem).map_err(|_error| self.unusable())
    }

    fn unusable(&self) -> SetupError {
        SetupError::NoIdentity { cert: self.cert_file.clone(), key: self.key_file.clone() }
    }
}

/// Returns the certificates in a file, of which there must be one at least.
fn authorities(path: &Path) -> Result<Vec<Certificate>, SetupError> {
    let pem = std::fs::read(path).map_err(|source| SetupError::CaFile { path: path.to_path_buf(), source })?;
    let certificates = Certificate::from_pem_bundle(&pem).unwrap_or_default();
    if certificates.is_empty() {
        return Err(SetupError::NoCertificate { path: path.to_path_buf() });
    }
    Ok(certificates)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::reload::CHECK_INTERVAL;

    fn server(ca_file: &Path) -> Server {
        Server {
            authorities: "the test's certificate authorities",
            is_plain: false,
            ca_file: Some(ca_file.to_path_buf()),
            certificate: None,
            user_agent: "test".to_owned(),
            connect_timeout: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        assert!(matches!(Connections::new(server(&path)), Err(SetupError::CaFile { .. })));
        crate::file::replace(&path, b"not pem").unwrap();
        assert!(matches!(Connections::new(server(&path)), Err(SetupError::NoCertificate { .. })));
    }

    #[tokio::test]
    async fn no_request_is_sent_when_a_server_closes_an_idle_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        // It closes a connection at its second request.
        drop(tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                drop(tokio::spawn(async move {
                    let mut head = [0; 4096];
                    assert_ne!(stream.read(&mut head).await.unwrap(), 0);
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
                    stream.read(&mut head).await
                }));
            }
        }));
        let plain = Server { is_plain: true, ca_file: None, ..server(Path::new("")) };
        let connections = Connections::new(plain).unwrap();
        for _ in 0..3 {
            assert_eq!(connections.current().get(&url).send().await.unwrap().status(), 200);
            tokio::time::pause();
            tokio::time::advance(MAX_IDLE + Duration::from_millis(1)).await;
            tokio::time::resume();
        }
    }

    #[test]
    fn replaced_authorities_are_trusted_without_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let pem = || rcgen::generate_simple_self_signed(["api".to_owned()]).unwrap().cert.pem();
        crate::file::replace(&path, pem().as_bytes()).unwrap();
        let connections = Connections::new(server(&path)).unwrap();
        let start = Instant::now();
        let at = |checks: u32| connections.at(start + CHECK_INTERVAL * 2 * checks);
        let first = at(1);
        crate::file::replace(&path, pem().as_bytes()).unwrap();
        let second = at(2);
        assert!(!Arc::ptr_eq(&first, &second));
        crate::file::replace(&path, b"not pem").unwrap();
        assert!(Arc::ptr_eq(&at(3), &second));
    }

    /// A renewed certificate comes as two files, so that there is a moment at which they do not belong together.
    #[test]
    fn a_replaced_certificate_of_the_client_is_shown_without_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let [ca_file, cert_file, key_file] = ["ca.pem", "tls.crt", "tls.key"].map(|name| folder.path().join(name));
        let write = |path: &Path, text: &str| crate::file::replace(path, text.as_bytes()).unwrap();
        let pair = || rcgen::generate_simple_self_signed(["client".to_owned()]).unwrap();
        let own = ClientCertificate { cert_file: cert_file.clone(), key_file: key_file.clone() };
        let shown = Server { certificate: Some(own), ..server(&ca_file) };
        write(&ca_file, &pair().cert.pem());
        assert!(
            matches!(Connections::new(shown.clone()), Err(SetupError::CertificateFile { path, .. }) if path == key_file)
        );
        let first = pair();
        write(&key_file, &first.signing_key.serialize_pem());
        write(&cert_file, "not pem");
        let error = Connections::new(shown.clone()).unwrap_err().to_string();
        assert!(error.contains("tls.crt") && !error.contains("not pem"), "{error}");
        write(&cert_file, &first.cert.pem());
        let connections = Connections::new(shown.clone()).unwrap();
        let start = Instant::now();
        let at = |checks: u32| connections.at(start + CHECK_INTERVAL * 2 * checks);
        let (before, second) = (at(1), pair());
        write(&cert_file, &second.cert.pem());
        assert!(Arc::ptr_eq(&at(2), &before), "it is not the certificate of the key");
        write(&key_file, &second.signing_key.serialize_pem());
        assert!(!Arc::ptr_eq(&at(3), &before));
        drop(Connections::new(Server { is_plain: true, ca_file: None, ..shown }).unwrap());
    }
}
