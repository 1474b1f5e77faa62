//! JSON Web Tokens, as one reads them without the key: for messages and for the time for which a password is kept.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;
use zeroize::Zeroizing;

/// Number of parts of a token: header, claims and signature.
const PARTS: usize = 3;
/// The longest claim that a message quotes, in characters.
const LONGEST_QUOTE: usize = 200;

/// The claims that are of use here.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) iss: Option<String>,
    pub(crate) sub: Option<String>,
    pub(crate) iat: Option<i64>,
    pub(crate) exp: Option<i64>,
}

/// Returns true for a text of three parts, each in the alphabet of base64url. Quay fails with status 500 for another one.
pub(crate) fn is_jwt(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.split('.').count() == PARTS && text.split('.').all(is_part)
}

/// Returns the claims of a token; `None` for what is no token. The signature is not checked.
pub(crate) fn claims(token: &str) -> Option<Claims> {
    let claims = token.split('.').nth(1).filter(|_claims| is_jwt(token))?;
    let claims = Zeroizing::new(BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?);
    serde_json::from_slice(&claims).ok()
}

/// Returns a claim for a message: quoted, and short.
pub(crate) fn quoted(claim: Option<&str>) -> String {
    let Some(claim) = claim else { return "(none)".to_owned() };
    format!("'{}'", claim.chars().take(LONGEST_QUOTE).flat_map(char::escape_debug).collect::<String>())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn token(claims: &str) -> String {
        format!("e30.{}.c2ln", BASE64_URL_SAFE_NO_PAD.encode(claims))
    }

    #[rstest]
    #[case("a.b.c", true)]
    #[case("aB3-.x_.0", true)]
    #[case("a.b", false)]
    #[case("a.b.c.d", false)]
    #[case("a..c", false)]
    #[case("a.b.c\r\n", false)]
    #[case("a.b.c:d", false)]
    #[case("", false)]
    fn tokens_have_three_parts(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(is_jwt(text), expected);
    }

    #[rstest]
    #[case(&token(r#"{"iss":"i","sub":"s","iat":1,"exp":2,"aud":["a"]}"#), Some((Some("i"), Some(2))))]
    #[case(&token("{}"), Some((None, None)))]
    #[case(&token("[]"), None)]
    #[case(&token(r#"{"exp":"soon"}"#), None)]
    #[case("e30.?.c2ln", None)]
    #[case("e30.AAAAA.c2ln", None)]
    fn claims_are_read(#[case] token: &str, #[case] expected: Option<(Option<&str>, Option<i64>)>) {
        let claims = claims(token);
        assert_eq!(claims.as_ref().map(|claims| (claims.iss.as_deref(), claims.exp)), expected);
    }

    #[test]
    fn a_claim_cannot_forge_a_line() {
        assert_eq!(quoted(Some("a'\nerror: b")), r"'a\'\nerror: b'");
        assert_eq!(quoted(Some(&"x".repeat(1000))).len(), LONGEST_QUOTE + 2);
        assert_eq!(quoted(None), "(none)");
    }
}
