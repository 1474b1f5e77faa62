//! The server's certificate: made at its start, and signed by an authority of its own.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use crate::start_error::StartError;

/// The names of this machine to which clients connect.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The authority's name. The server's certificate has another one: OpenSSL takes a certificate that has its issuer's name for
/// self-signed, and refuses it.
const AUTHORITY: &str = "Key Vault emulator CA";

/// The name of the server's certificate.
const SERVER: &str = "Key Vault emulator";

/// TLS as the server speaks it, and the authority that its clients have to trust.
pub(crate) struct Certificate {
    pub(crate) tls: Arc<ServerConfig>,
    /// The authority's certificate, in PEM.
    pub(crate) authority: String,
}

// === impl Certificate ===

impl Certificate {
    pub(crate) fn make() -> Result<Self, StartError> {
        let fail = |error: rcgen::Error| StartError::Certificate { reason: error.to_string() };
        let mut parameters = CertificateParams::new(Vec::new()).map_err(fail)?;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        parameters.distinguished_name.push(DnType::CommonName, AUTHORITY);
        let authority_key = KeyPair::generate().map_err(fail)?;
        let authority = parameters.self_signed(&authority_key).map_err(fail)?.pem();
        let issuer = Issuer::new(parameters, authority_key);
        let mut parameters = CertificateParams::new(NAMES.map(str::to_owned)).map_err(fail)?;
        parameters.distinguished_name.push(DnType::CommonName, SERVER);
        parameters.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(fail)?;
        let certificate = parameters.signed_by(&key, &issuer).map_err(fail)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let fail = |error: tokio_rustls::rustls::Error| StartError::Certificate { reason: error.to_string() };
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(fail)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .map_err(fail)?;
        Ok(Self { tls: Arc::new(config), authority })
    }
}
