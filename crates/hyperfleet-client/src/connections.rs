//! Connections to the API: whom we trust, and that certificate authorities are replaced without a restart.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use daemon::reload::Reloaded;
use reqwest::{Certificate, redirect};
use tokio::time::Instant;

use crate::Settings;
use crate::error::SetupError;

/// The HTTP client. It is made anew when the file of certificate authorities is replaced; requests under way go on with
/// the one before.
#[derive(Debug)]
pub(crate) struct Http {
    builder: Builder,
    client: Reloaded<reqwest::Client>,
}

#[derive(Debug)]
struct Builder {
    user_agent: String,
    connect_timeout: Duration,
    trust: Trust,
}

#[derive(Debug)]
enum Trust {
    /// Without TLS there is no certificate to check.
    Nothing,
    System,
    File(PathBuf),
}

// === impl Http ===

impl Http {
    pub(crate) fn new(settings: &Settings) -> Result<Self, SetupError> {
        let trust = match &settings.ca_file {
            _ if settings.base_url.is_plain() => Trust::Nothing,
            Some(path) => Trust::File(path.clone()),
            None => Trust::System,
        };
        let files = if let Trust::File(path) = &trust { vec![path.clone()] } else { Vec::new() };
        let builder =
            Builder { user_agent: settings.user_agent.clone(), connect_timeout: settings.attempt_timeout, trust };
        let client = Reloaded::new("the API's certificate authorities", files, || builder.build())?;
        Ok(Self { builder, client })
    }

    /// Returns the client for the next request.
    pub(crate) fn current(&self) -> Arc<reqwest::Client> {
        self.at(Instant::now())
    }

    fn at(&self, now: Instant) -> Arc<reqwest::Client> {
        self.client.at(now, || self.builder.build())
    }
}

// === impl Builder ===

impl Builder {
    fn build(&self) -> Result<reqwest::Client, SetupError> {
        let builder = reqwest::Client::builder()
            .user_agent(self.user_agent.as_str())
            .redirect(redirect::Policy::none())
            // For a probe, which reads the end of the server's certificate.
            .tls_info(true)
            .connect_timeout(self.connect_timeout);
        let builder = match &self.trust {
            // A proxy's operator could read tokens and pull secrets.
            Trust::Nothing => builder.no_proxy().tls_certs_only([]),
            Trust::System => builder,
            Trust::File(path) => builder.tls_certs_only(authorities(path)?),
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
    use daemon::reload::CHECK_INTERVAL;

    use super::*;

    #[test]
    fn a_file_without_certificates_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let mut settings = Settings::new("https://api".parse().unwrap());
        settings.ca_file = Some(path.clone());
        assert!(matches!(Http::new(&settings), Err(SetupError::CaFile { .. })));
        daemon::file::replace(&path, b"not pem").unwrap();
        assert!(matches!(Http::new(&settings), Err(SetupError::NoCertificate { .. })));
    }

    #[test]
    fn replaced_authorities_are_trusted_without_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let pem = || rcgen::generate_simple_self_signed(["api".to_owned()]).unwrap().cert.pem();
        daemon::file::replace(&path, pem().as_bytes()).unwrap();
        let mut settings = Settings::new("https://api".parse().unwrap());
        settings.ca_file = Some(path.clone());
        let http = Http::new(&settings).unwrap();
        let start = Instant::now();
        let at = |checks: u32| http.at(start + CHECK_INTERVAL * 2 * checks);
        let first = at(1);
        daemon::file::replace(&path, pem().as_bytes()).unwrap();
        let second = at(2);
        assert!(!Arc::ptr_eq(&first, &second));
        daemon::file::replace(&path, b"not pem").unwrap();
        assert!(Arc::ptr_eq(&at(3), &second));
    }
}
