//! Writes several texts as one, of characters that tags and staging labels may have.
//!
//! `key@value/key@value`; any other byte than a letter, a digit, `.`, `_`, `:`, `+` or `-` is `=` and its two hexadecimal digits.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Returns the texts as one.
pub(super) fn encode(texts: &BTreeMap<String, String>) -> String {
    let mut encoded = String::new();
    for (key, value) in texts {
        if !encoded.is_empty() {
            encoded.push('/');
        }
        escape(&mut encoded, key);
        encoded.push('@');
        escape(&mut encoded, value);
    }
    encoded
}

/// Returns the texts; `None` if it is not of that form.
pub(super) fn decode(encoded: &str) -> Option<BTreeMap<String, String>> {
    if encoded.is_empty() {
        return Some(BTreeMap::new());
    }
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('@')?;
        Some((unescape(key)?, unescape(value)?))
    };
    encoded.split('/').map(pair).collect()
}

fn escape(encoded: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"._:+-".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _infallible = write!(encoded, "={byte:02X}");
        }
    }
}

fn unescape(encoded: &str) -> Option<String> {
    let mut parts = encoded.split('=');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(part.get(2..)?.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
        texts.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        for (pairs, encoded) in [
            (&[][..], ""),
            (&[("", "")], "@"),
            (
                &[("hyperfleet-added", "1,2"), ("version", "2026-01-02T03:04:05Z")],
                "hyperfleet-added@1=2C2/version@2026-01-02T03:04:05Z",
            ),
            (&[("a/b@c=d", "\u{0}ö\"{}")], "a=2Fb=40c=3Dd@=00=C3=B6=22=7B=7D"),
        ] {
            assert_eq!(encode(&texts(pairs)), encoded);
            assert_eq!(decode(encoded), Some(texts(pairs)), "{encoded}");
        }
    }

    #[test]
    fn what_is_damaged_is_not_read() {
        for damaged in ["a", "a@b/", "a@=", "a@=4", "a@=zz", "a@=ff", "a@=C3", "/", "a@=é"] {
            assert_eq!(decode(damaged), None, "{damaged}");
        }
    }
}
