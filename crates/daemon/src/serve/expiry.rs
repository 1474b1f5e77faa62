//! The time at which a certificate expires.

use std::path::Path;

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use x509_parser::parse_x509_certificate;

/// Returns the time, in Unix time, at which the first certificate of a PEM file expires; `None` if the file has none.
pub fn certificate_expiry(file: &Path) -> Option<i64> {
    let certificate = CertificateDer::from_pem_file(file).ok()?;
    not_after(&certificate)
}

/// The same of one certificate, DER.
pub(crate) fn not_after(certificate: &[u8]) -> Option<i64> {
    let (_rest, certificate) = parse_x509_certificate(certificate).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::utc_time(2027, 1_798_761_600)]
    #[case::generalized_time(2060, 2_840_140_800)]
    fn the_expiry_is_that_of_the_first_certificate(#[case] year: i32, #[case] expected: i64) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tls.crt");
        assert_eq!(certificate_expiry(&file), None);
        let mut parameters = CertificateParams::new(["a.example".to_owned()]).unwrap();
        parameters.not_after = date_time_ymd(year, 1, 1);
        let certificate = parameters.self_signed(&KeyPair::generate().unwrap()).unwrap();
        crate::file::replace(&file, certificate.pem().as_bytes()).unwrap();
        assert_eq!(certificate_expiry(&file), Some(expected));
        for length in 0..certificate.der().len() {
            assert_eq!(not_after(&certificate.der()[..length]), None);
        }
    }
}
