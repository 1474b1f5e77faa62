//! Ids of content: keyed digests of a document's meaning.

use std::fmt;
use std::str::FromStr;

use docker_config::KeyedDigest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The id of content: equal for documents of equal meaning, and useless without the node's key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContentId(pub(crate) [u8; 32]);

/// The error of a text that is no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not an id of content: 64 hexadecimal digits")]
pub struct NotAnId;

// === impl ContentId ===

impl ContentId {
    /// An id of these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl From<KeyedDigest> for ContentId {
    fn from(digest: KeyedDigest) -> Self {
        let text = digest.to_string();
        // A keyed digest is displayed as its algorithm, a colon and 32 bytes in hexadecimal digits.
        text.rsplit(':').next().and_then(|hex| hex.parse().ok()).unwrap_or(Self([0; 32]))
    }
}

impl FromStr for ContentId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let mut id = [0; 32];
        if text.len() != 2 * id.len() || !text.is_ascii() {
            return Err(NotAnId);
        }
        for (byte, digits) in id.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_not_text| NotAnId)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_not_hex| NotAnId)?;
        }
        Ok(Self(id))
    }
}

impl fmt::Display for ContentId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second, ..] = self.0;
        write!(formatter, "ContentId({first:02x}{second:02x}…)")
    }
}

impl Serialize for ContentId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_being_written() {
        let digest = docker_config::Digest::of_bytes(b"a");
        let id = ContentId::from(digest.keyed(b"key"));
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_ne!(id, ContentId::from(digest.keyed(b"other key")));
        assert_eq!(format!("hmac-sha256:{id}"), digest.keyed(b"key").to_string());
        assert_eq!("zz".repeat(32).parse::<ContentId>(), Err(NotAnId));
        assert_eq!("é".repeat(32).parse::<ContentId>(), Err(NotAnId));
    }
}
