//! Certificates of servers and of their clients: made at a server's start, and signed by an authority of its own.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::start_error::StartError;

/// The names of this machine to which clients connect.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// An authority that signs the certificates of one emulator.
pub(crate) struct Authority {
    /// The name of the emulator.
    name: &'static str,
    certificate: CertificateDer<'static>,
    /// The authority's certificate, in PEM.
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// The clients that a server lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clients {
    /// All.
    Any,
    /// Those that show a certificate of the same authority.
    Certified,
}

/// A client's certificate and its key, in PEM. The key is never printed.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

// === impl Authority ===

impl Authority {
    pub(crate) fn make(name: &'static str) -> Result<Self, StartError> {
        let mut parameters = CertificateParams::new(Vec::new()).map_err(unmade)?;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        // OpenSSL takes a certificate that has its issuer's name for self-signed, and refuses it.
        parameters.distinguished_name.push(DnType::CommonName, format!("{name} CA"));
        let key = KeyPair::generate().map_err(unmade)?;
        let certificate = parameters.self_signed(&key).map_err(unmade)?;
        let (pem, certificate) = (certificate.pem(), certificate.der().clone());
        Ok(Self { name, certificate, pem, issuer: Issuer::new(parameters, key) })
    }

    /// TLS as a server on this machine speaks it.
    pub(crate) fn server(&self, clients: Clients) -> Result<Arc<ServerConfig>, StartError> {
        let mut parameters = CertificateParams::new(NAMES.map(str::to_owned)).map_err(unmade)?;
        parameters.distinguished_name.push(DnType::CommonName, self.name);
        parameters.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(unmade)?;
        let certificate = parameters.signed_by(&key, &self.issuer).map_err(unmade)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(unmade)?;
        let builder = match clients {
            Clients::Any => builder.with_no_client_auth(),
            Clients::Certified => {
                let mut roots = RootCertStore::empty();
                roots.add(self.certificate.clone()).map_err(unmade)?;
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(unmade)?)
            }
        };
        Ok(Arc::new(builder.with_single_cert(vec![certificate.der().clone()], key.into()).map_err(unmade)?))
    }

    /// A client's certificate.
    pub(crate) fn client(&self, name: &str) -> Result<Pair, StartError> {
        let mut parameters = CertificateParams::new(Vec::new()).map_err(unmade)?;
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        parameters.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(unmade)?;
        let certificate = parameters.signed_by(&key, &self.issuer).map_err(unmade)?.pem();
        Ok(Pair { certificate, key: key.serialize_pem() })
    }
}

fn unmade(error: impl std::fmt::Display) -> StartError {
    StartError::Certificate { reason: error.to_string() }
}
