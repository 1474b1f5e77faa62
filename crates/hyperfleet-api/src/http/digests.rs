//! Hides digests of pull secrets from callers that may not read these: equal digests tell of equal content, so that a caller
//! could otherwise learn whether a cluster holds the content that it has given to another one.
//!
//! Digests are in specs, and in whatever adapters report. They are hidden where every response passes.

use axum::body::{Body, Bytes};
use axum::response::Response;
use http_body_util::BodyExt as _;

/// The beginning of a digest, as `docker_config::Digest` writes it.
const BEGINNING: &[u8] = b"hmac-sha256:";
/// The number of hexadecimal digits after it.
const DIGITS: usize = 64;

/// Hides every digest in a response. Its frames are whole documents, or whole lines.
pub(super) fn hide(response: Response) -> Response {
    response.map(|body| Body::new(body.map_frame(|frame| frame.map_data(|bytes| hidden(&bytes)))))
}

/// The text with `null` in place of each JSON string that is a digest, and without the digits of others.
fn hidden(text: &Bytes) -> Bytes {
    let (mut shown, mut rest) = (Vec::new(), &text[..]);
    while let Some((before, digits, after)) = next(rest) {
        let is_value = before.ends_with(b"\"") && after.starts_with(b"\"") && !after.starts_with(b"\":");
        if let (true, Some((before, after))) =
            (is_value, before.split_last().map(|(_, before)| before).zip(after.get(1..)))
        {
            shown.extend_from_slice(before);
            shown.extend_from_slice(b"null");
            rest = after;
        } else {
            shown.extend_from_slice(before);
            shown.extend_from_slice(BEGINNING);
            shown.extend_from_slice(if digits.is_empty() { b"" } else { b"hidden" });
            rest = after;
        }
    }
    if shown.is_empty() {
        return text.clone();
    }
    shown.extend_from_slice(rest);
    shown.into()
}

/// The text before the next beginning of a digest, its digits, which are none if it is no digest, and the text after it.
fn next(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let at = text.windows(BEGINNING.len()).position(|window| window == BEGINNING)?;
    let (before, rest) = text.split_at_checked(at)?;
    let rest = rest.get(BEGINNING.len()..)?;
    let digits = rest.get(..DIGITS).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit)).unwrap_or_default();
    Some((before, digits, rest.get(digits.len()..)?))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::a_member(r#"{"a":1,"digest":"D","b":"c"}"#, r#"{"a":1,"digest":null,"b":"c"}"#)]
    #[case::two(r#"["D","D"]"#, "[null,null]")]
    #[case::in_a_sentence(r#""digest D!""#, r#""digest hmac-sha256:hidden!""#)]
    #[case::a_name(r#"{"D":"x"}"#, r#"{"hmac-sha256:hidden":"x"}"#)]
    #[case::in_a_page("<code>D</code>", "<code>hmac-sha256:hidden</code>")]
    #[case::longer("\"Dff\"", "\"hmac-sha256:hiddenff\"")]
    #[case::no_digest(r#""hmac-sha256:12""#, r#""hmac-sha256:12""#)]
    #[case::at_the_end("D", "hmac-sha256:hidden")]
    #[case::nothing("{}", "{}")]
    fn digests_are_hidden(#[case] text: &str, #[case] expected: &str) {
        let digest = format!("hmac-sha256:{}", "0a".repeat(32));
        let shown = hidden(&Bytes::from(text.replace('D', &digest)));
        assert_eq!(std::str::from_utf8(&shown).unwrap(), expected);
    }
}
