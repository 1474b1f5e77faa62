//! The time at which a certificate expires.

use std::path::Path;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Returns the time, in Unix time, at which the first certificate of a PEM file expires; `None` if the file has none.
pub fn certificate_expiry(file: &Path) -> Option<i64> {
    let certificate = CertificateDer::from_pem_file(file).ok()?;
    not_after(&certificate)
}

/// The `notAfter` of a certificate in DER (RFC 5280, section 4.1).
fn not_after(certificate: &[u8]) -> Option<i64> {
    let (outer, _rest) = element(certificate, SEQUENCE)?;
    let (mut fields, _signature) = element(outer, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        (_, fields) = any(fields)?;
    }
    for _serial_algorithm_issuer in 0..3 {
        (_, fields) = any(fields)?;
    }
    let (validity, _rest) = element(fields, SEQUENCE)?;
    let (_not_before, rest) = any(validity)?;
    let text = |content: &[u8]| String::from_utf8(content.to_vec()).ok();
    let time = match *rest.first()? {
        UTC_TIME => {
            let text = text(any(rest)?.0)?;
            // Years from 50 on are of the twentieth century.
            let century = if text.as_str() < "50" { "20" } else { "19" };
            format!("{century}{text}")
        }
        GENERALIZED_TIME => text(any(rest)?.0)?,
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", time).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
}

/// Splits off the first element, which must have this tag: its content, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    if bytes.first() == Some(&tag) { any(bytes) } else { None }
}

fn any(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = bytes.get(1..)?.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |length, digit| (length << 8) | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
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
