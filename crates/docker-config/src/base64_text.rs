//! Decodes base64 as the two readers of `auth` do, into zeroizing memory.

use base64::alphabet;
use base64::engine::{DecodePaddingMode, Engine, GeneralPurpose, GeneralPurposeConfig};
use zeroize::Zeroizing;

use crate::problem::ProblemKind;

/// Go's decoder, which both readers use, ignores the unused last bits.
const STANDARD: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// Decoded base64 text.
pub(crate) struct Decoded {
    pub(crate) bytes: Zeroizing<Vec<u8>>,
    /// True if padding is missing, which kubelet accepts and containers/image refuses.
    pub(crate) unpadded: bool,
}

/// Decodes standard base64, with its padding or with none at all.
pub(crate) fn decode(text: &str) -> Result<Decoded, ProblemKind> {
    let body = text.trim_end_matches('=');
    let padding = text.len() - body.len();
    let mut bytes = Zeroizing::new(vec![0; body.len()]);
    let length = STANDARD.decode_slice(body, bytes.as_mut_slice()).map_err(|_| explain(text, body))?;
    if padding > 0 && (padding > 2 || !text.len().is_multiple_of(4)) {
        return Err(ProblemKind::BadPadding);
    }
    bytes.truncate(length);
    Ok(Decoded { bytes, unpadded: !text.len().is_multiple_of(4) })
}

/// Returns true for base64 of text with a colon, as a credential is.
pub(crate) fn is_encoded_pair(text: &str) -> bool {
    decode(text).is_ok_and(|d| std::str::from_utf8(&d.bytes).is_ok_and(|decoded| decoded.contains(':')))
}

/// Returns the most specific problem of text that cannot be decoded.
fn explain(text: &str, body: &str) -> ProblemKind {
    let url_safe = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    if text.contains(|c: char| c.is_whitespace()) {
        ProblemKind::WhitespaceInBase64
    } else if body.contains(['-', '_']) && body.bytes().all(url_safe) {
        ProblemKind::UrlSafeBase64
    } else {
        ProblemKind::NotBase64
    }
}
