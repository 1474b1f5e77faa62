//! The times that a credential itself states: JSON Web Tokens (RFC 7519) and the passwords of Amazon ECR.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use secrecy::zeroize::Zeroizing;
use serde::Deserialize;

/// The validity of a credential; nothing is verified, since only its issuer decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validity {
    /// Its beginning.
    pub issued: Option<Timestamp>,
    /// Its end.
    pub expires: Option<Timestamp>,
}

/// The members that are read, of a token's claims (`iat`, `exp`) and of the document in an ECR password.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Stated {
    iat: Option<f64>,
    exp: Option<f64>,
    expiration: Option<f64>,
}

// === impl Validity ===

impl Validity {
    /// Returns the validity that a password or token states; empty if it states none.
    pub fn of(credential: &[u8]) -> Self {
        let stated = claims(credential).or_else(|| STANDARD.decode(credential).ok().map(Zeroizing::new));
        let stated: Stated = stated.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default();
        Self { issued: time(stated.iat), expires: time(stated.exp.or(stated.expiration)) }
    }
}

/// Returns the claims of a token in the compact form: three parts in base64.
fn claims(token: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let mut parts = token.split(|byte| *byte == b'.');
    let (header, claims, _signature) = (parts.next()?, parts.next()?, parts.next()?);
    if header.is_empty() || parts.next().is_some() {
        return None;
    }
    URL_SAFE_NO_PAD.decode(claims).ok().map(Zeroizing::new)
}

/// Returns the time of a `NumericDate`: seconds since 1970, possibly with a fraction. Those before 2000 state nothing.
#[expect(clippy::cast_possible_truncation, reason = "saturates, and what is out of range is no time")]
fn time(seconds: Option<f64>) -> Option<Timestamp> {
    const YEAR_2000: i64 = 946_684_800;
    let seconds = seconds.filter(|seconds| seconds.is_finite())? as i64;
    Timestamp::from_second(seconds).ok().filter(|time| time.as_second() >= YEAR_2000)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn token(claims: &str) -> String {
        format!("{}.{}.c2ln", URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256"}"#), URL_SAFE_NO_PAD.encode(claims))
    }

    #[rstest]
    #[case::both(token(r#"{"iat":1700000000,"exp":1700003600}"#), Some(1_700_000_000), Some(1_700_003_600))]
    #[case::without_end(token(r#"{"iat":1700000000,"sub":"uhc-pool"}"#), Some(1_700_000_000), None)]
    #[case::fraction(token(r#"{"exp":1700003600.75}"#), None, Some(1_700_003_600))]
    #[case::never(token(r#"{"exp":0}"#), None, None)]
    #[case::far(token(r#"{"exp":1e300}"#), None, None)]
    #[case::text(token(r#"{"exp":"1700003600"}"#), None, None)]
    #[case::ecr(STANDARD.encode(r#"{"payload":"p","version":"2","type":"DATA_KEY","expiration":1700003600}"#), None, Some(1_700_003_600))]
    #[case::password("hunter2".to_owned(), None, None)]
    #[case::dots("a.b.c".to_owned(), None, None)]
    #[case::four(format!("{}.x", token(r#"{"exp":1700003600}"#)), None, None)]
    #[case::array(STANDARD.encode("[1,2]"), None, None)]
    #[case::empty(String::new(), None, None)]
    fn what_it_states(#[case] credential: String, #[case] issued: Option<i64>, #[case] expires: Option<i64>) {
        let seconds = |time: Option<Timestamp>| time.map(Timestamp::as_second);
        let Validity { issued: begins, expires: ends } = Validity::of(credential.as_bytes());
        assert_eq!((seconds(begins), seconds(ends)), (issued, expires));
    }
}
