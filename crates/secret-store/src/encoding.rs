//! Texts as stores keep them beside a secret: in ASCII, cut into pieces, or as a digest.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Escapes what is not printable ASCII in a JSON text: some stores refuse unprintable characters, and a piece may end anywhere.
#[cfg(any(feature = "azure", feature = "vault"))]
pub(crate) fn ascii(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for char in json.chars() {
        if matches!(char, ' '..='~') {
            escaped.push(char);
        } else {
            for unit in char.encode_utf16(&mut [0; 2]) {
                let _infallible = write!(escaped, "\\u{unit:04x}");
            }
        }
    }
    escaped
}

/// Returns the pieces of a text in ASCII, each with its key.
pub(crate) fn pieces(first: &str, text: &str, longest: usize) -> impl Iterator<Item = (String, String)> {
    let pieces = text.as_bytes().chunks(longest).map(|piece| String::from_utf8_lossy(piece).into_owned());
    (1..).zip(pieces).map(move |(piece, text)| (piece_key(first, piece), text))
}

/// Returns the key of a piece: the first has the key of the whole, others a number behind it.
pub(crate) fn piece_key(first: &str, piece: usize) -> String {
    if piece == 1 { first.to_owned() } else { format!("{first}-{piece}") }
}

/// Returns the first 128 bits of a digest, in hexadecimal digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let mut digits = String::new();
    for byte in Sha256::digest(bytes).iter().take(16) {
        let _infallible = write!(digits, "{byte:02x}");
    }
    digits
}
