//! The certificates that a program uses, and the metric by which their end is seen before it comes.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use fleet_model::metrics::common;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use crate::serve::expiry::not_after;

/// A certificate that may be replaced while it is in use.
pub(crate) trait Expires: fmt::Debug + Send + Sync {
    /// The time, in Unix time, at which the certificate expires that is used now.
    fn expiry(&self) -> Option<i64>;
}

/// The certificates of one program. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Certificates(Arc<Mutex<Vec<Certificate>>>);

#[derive(Debug)]
struct Certificate {
    name: Cow<'static, str>,
    source: Arc<dyn Expires>,
}

/// The expiry of a certificate that is read once.
#[derive(Debug)]
struct Fixed(i64);

// === impl Fixed ===

impl Expires for Fixed {
    fn expiry(&self) -> Option<i64> {
        Some(self.0)
    }
}

// === impl Certificates ===

impl Certificates {
    /// Registers the metric. It has a series for each certificate that is added, now or later.
    pub fn register(registry: &mut Registry) -> Self {
        let certificates = Self::default();
        registry.register_collector(Box::new(certificates.clone()));
        certificates
    }

    /// Adds a client's certificate, the first of a PEM text; `name` is that of the setting it comes from. A text without a
    /// certificate is left out, as the client refuses it.
    pub fn add_client(&self, name: &'static str, pem: &str) {
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).ok();
        if let Some(expiry) = certificate.and_then(|certificate| not_after(&certificate)) {
            self.add(Certificate { name: name.into(), source: Arc::new(Fixed(expiry)) });
        }
    }

    /// Adds a certificate that is replaced while it is in use; `name` is that of the setting it comes from.
    pub(crate) fn add_replaced(&self, name: Cow<'static, str>, source: Arc<dyn Expires>) {
        self.add(Certificate { name, source });
    }

    fn add(&self, certificate: Certificate) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(certificate);
    }
}

impl Collector for Certificates {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let certificates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if certificates.is_empty() {
            return Ok(());
        }
        let metric = &common::CERTIFICATE_EXPIRY;
        let help = format!("{}.", metric.help());
        let mut series = encoder.encode_descriptor(metric.name, &help, Some(&Unit::Seconds), MetricType::Gauge)?;
        for Certificate { name, source } in certificates.iter() {
            if let Some(expiry) = source.expiry() {
                series.encode_family(&[("certificate", name.as_ref())])?.encode_gauge(&expiry)?;
            }
        }
        Ok(())
    }
}
