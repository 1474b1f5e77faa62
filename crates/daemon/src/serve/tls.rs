//! The identity of a server: certificate and key from files, read again when they change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::time::Instant;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

use super::expiry::not_after;
use crate::certificates::{Certificates, Expires};
use crate::reload::Reloaded;

/// A certificate or key that cannot be used. The files are named by their settings, not by their paths.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file holds no certificate.
    #[error("the certificate file cannot be read as PEM certificates")]
    Certificate,
    /// The file holds no key.
    #[error("the key file cannot be read as a PEM private key")]
    Key,
    /// Certificate and key do not belong together, or cannot be used.
    #[error("certificate and key cannot be used together")]
    Pair(#[source] tokio_rustls::rustls::Error),
}

/// The identity in two files. A handshake finds the newest pair that is complete and valid.
#[derive(Debug)]
struct Identity {
    certificate: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    pair: Reloaded<CertifiedKey>,
}

/// Reads a server's certificate and key from PEM files. They are read again when they have changed, so that a renewed
/// certificate is used without a restart; a pair that cannot be used is reported, and the last good one stays. Its expiry is
/// exposed with that of the program's other certificates.
pub fn tls(
    certificate_file: &Path,
    key_file: &Path,
    certificates: &Certificates,
) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let name = "the server's certificate";
    let identity = Arc::new(Identity::read(name, certificate_file, key_file, Arc::clone(&provider))?);
    certificates.add_replaced("server".into(), Arc::<Identity>::clone(&identity));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Pair)?
        .with_no_client_auth()
        .with_cert_resolver(identity);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Exposes the expiry of a client's certificate, the newest one that is complete and valid; `setting` is that of its file. Files
/// that cannot be used are left out, as the client refuses them.
pub fn expose_client(setting: String, certificate_file: &Path, key_file: &Path, certificates: &Certificates) {
    let provider = Arc::new(aws_lc_rs::default_provider());
    if let Ok(pair) = Identity::read("the client's certificate of the metric", certificate_file, key_file, provider) {
        certificates.add_replaced(setting.into(), Arc::new(pair));
    }
}

// === impl Identity ===

impl Identity {
    fn read(
        name: &'static str,
        certificate: &Path,
        key: &Path,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, TlsError> {
        let (certificate, key) = (certificate.to_path_buf(), key.to_path_buf());
        let files = vec![certificate.clone(), key.clone()];
        let pair = Reloaded::new(name, files, || pair(&certificate, &key, &provider))?;
        Ok(Self { certificate, key, provider, pair })
    }

    /// Returns the newest usable pair, as of `now`.
    fn at(&self, now: Instant) -> Arc<CertifiedKey> {
        self.pair.at(now, || pair(&self.certificate, &self.key, &self.provider))
    }
}

impl Expires for Identity {
    fn expiry(&self) -> Option<i64> {
        not_after(self.at(Instant::now()).cert.first()?)
    }
}

impl ResolvesServerCert for Identity {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.at(Instant::now()))
    }
}

fn pair(certificate: &Path, key: &Path, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
    let certificates = CertificateDer::pem_file_iter(certificate).map_err(|_unreadable| TlsError::Certificate)?;
    let certificates: Vec<_> = certificates.collect::<Result<_, _>>().map_err(|_no_pem| TlsError::Certificate)?;
    if certificates.is_empty() {
        return Err(TlsError::Certificate);
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(|_no_pem| TlsError::Key)?;
    CertifiedKey::from_der(certificates, key, provider).map_err(TlsError::Pair)
}

#[cfg(test)]
mod tests {
    use fleet_model::metrics::common;
    use prometheus_client::registry::Registry;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;
    use crate::reload::CHECK_INTERVAL;

    /// Writes a new pair; returns its certificate.
    fn write(certificate: &Path, key: &Path) -> CertificateDer<'static> {
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        crate::file::replace(certificate, pair.cert.pem().as_bytes()).unwrap();
        crate::file::replace(key, pair.signing_key.serialize_pem().as_bytes()).unwrap();
        pair.cert.der().clone()
    }

    #[test]
    fn a_renewed_certificate_is_used_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
        let first = write(&certificate, &key);
        let provider = Arc::new(aws_lc_rs::default_provider());
        let identity = Identity::read("the test's certificate", &certificate, &key, provider).unwrap();
        let start = Instant::now();
        let at = |checks: u32| identity.at(start + CHECK_INTERVAL * 2 * checks).cert[0].clone();
        assert_eq!(at(1), first);
        let second = write(&certificate, &key);
        assert_eq!(identity.at(start + CHECK_INTERVAL * 2).cert[0], first, "the files are not read for each handshake");
        assert_eq!(at(2), second);
        // Half of a renewal: the pair does not fit.
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        crate::file::replace(&certificate, pair.cert.pem().as_bytes()).unwrap();
        assert_eq!(at(3), second);
        crate::file::replace(&key, pair.signing_key.serialize_pem().as_bytes()).unwrap();
        assert_eq!(at(4), *pair.cert.der());
        crate::file::replace(&certificate, b"nothing").unwrap();
        assert_eq!(at(5), *pair.cert.der());
        std::fs::remove_file(&key).unwrap();
        assert_eq!(at(6), *pair.cert.der());
        assert_eq!(at(7), *pair.cert.der());
        let third = write(&certificate, &key);
        assert_eq!(at(8), third);
    }

    #[test]
    fn files_that_cannot_be_used_are_named_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
        assert!(matches!(tls(&certificate, &key, &Certificates::default()), Err(TlsError::Certificate)));
        write(&certificate, &key);
        let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        crate::file::replace(&key, other.signing_key.serialize_pem().as_bytes()).unwrap();
        assert!(matches!(tls(&certificate, &key, &Certificates::default()), Err(TlsError::Pair(_))));
        std::fs::remove_file(&key).unwrap();
        assert!(matches!(tls(&certificate, &key, &Certificates::default()), Err(TlsError::Key)));
    }

    fn ending_in(year: i32) -> [String; 2] {
        let mut parameters = CertificateParams::new(["a.example".to_owned()]).unwrap();
        parameters.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        [parameters.self_signed(&key).unwrap().pem(), key.serialize_pem()]
    }

    fn exposed(registry: &Registry) -> Vec<String> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_expiry_is_that_of_the_certificates_in_use() {
        let mut registry = Registry::default();
        let certificates = Certificates::register(&mut registry);
        assert_eq!(exposed(&registry), [""; 0]);
        certificates.add_client("kubeconfig", "none");
        certificates.add_client("kubeconfig", &ending_in(2027)[0]);
        let folder = tempfile::tempdir().unwrap();
        let files = ["tls.crt", "tls.key"].map(|name| folder.path().join(name));
        let write = |texts: [String; 2]| {
            for (path, text) in files.iter().zip(texts) {
                crate::file::replace(path, text.as_bytes()).unwrap();
            }
        };
        write(ending_in(2060));
        let _config = tls(&files[0], &files[1], &certificates).unwrap();
        let series = |certificate: &str, expiry: i64| {
            format!("hyperfleet_certificate_expiry_timestamp_seconds{{certificate=\"{certificate}\"}} {expiry}")
        };
        let client = series("kubeconfig", 1_798_761_600);
        assert_eq!(exposed(&registry), [client.clone(), series("server", 2_840_140_800)]);
        let differences = crate::metrics::differences(&registry, &[common::METRICS], "");
        assert_eq!(differences, [""; 0]);
        // A renewal is seen without a handshake; what cannot be used is not served, so it does not count.
        write(ending_in(2061));
        tokio::time::advance(CHECK_INTERVAL * 2).await;
        assert_eq!(exposed(&registry)[1], series("server", 2_871_763_200));
        write(["nothing".to_owned(), ending_in(2062)[1].clone()]);
        tokio::time::advance(CHECK_INTERVAL * 2).await;
        assert_eq!(exposed(&registry)[1], series("server", 2_871_763_200));
    }
}
