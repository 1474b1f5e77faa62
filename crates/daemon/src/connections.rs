//! Connections of an HTTP client: whom it trusts, and that certificate authorities are replaced without a restart.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Certificate, redirect};
use tokio::time::Instant;

use crate::reload::Reloaded;

/// The server that a client connects to.
#[derive(Clone, Debug)]
pub struct Server {
    /// The owner of the certificate authorities, for the log, such as `the API's certificate authorities`.
    pub authorities: &'static str,
    /// True if the address is `http://…`.
    pub is_plain: bool,
    /// File with the certificate authorities of the server, in PEM; `None` for the system's.
    pub ca_file: Option<PathBuf>,
    /// Name of the program that calls.
    pub user_agent: String,
    /// Maximum time until a connection is made.
    pub connect_timeout: Duration,
}

/// An HTTP client that follows no redirect. It is made anew when the file of certificate authorities is replaced; requests
/// under way go on with the one before.
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
    /// Authorities that cannot be read, or are none.
    pub fn new(server: Server) -> Result<Self, SetupError> {
        let files = server.authorities_file().map(Path::to_path_buf).into_iter().collect();
        let client = Reloaded::new(server.authorities, files, || server.client())?;
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

    fn client(&self) -> Result<reqwest::Client, SetupError> {
        let builder = reqwest::Client::builder()
            .user_agent(self.user_agent.as_str())
            .redirect(redirect::Policy::none())
            // For a probe, which reads the end of the server's certificate.
            .tls_info(true)
            .connect_timeout(self.connect_timeout);
        let builder = match self.authorities_file() {
            // A proxy's operator could read tokens and pull secrets.
            _ if self.is_plain => builder.no_proxy().tls_certs_only([]),
            Some(path) => builder.tls_certs_only(authorities(path)?),
            None => builder,
        };
        builder.build().map_err(|source| SetupError::Http { source })
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
    use super::*;
    use crate::reload::CHECK_INTERVAL;

    fn server(ca_file: &Path) -> Server {
        Server {
            authorities: "the test's certificate authorities",
            is_plain: false,
            ca_file: Some(ca_file.to_path_buf()),
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
}
