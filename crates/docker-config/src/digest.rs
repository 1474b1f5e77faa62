//! Digests of documents: plain for comparison in memory, keyed for everything else.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

/// Separates bytes from documents: no input of one is an input of the other.
const BYTES_DOMAIN: &[u8] = b"docker-config/bytes/1\0";

/// SHA-256's block size, the longest key that HMAC uses as it is (RFC 2104).
const BLOCK_BYTES: usize = 64;

/// The digest of a document's meaning; equal digests mean equal documents.
///
/// It must not leave the process, because passwords can be tried against it. Use [`Digest::keyed`] for labels, annotations
/// and logs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// A digest that reveals nothing without the key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyedDigest([u8; 32]);

impl Digest {
    /// The digest of content that is not a valid document; never equal to a document's.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self::finish(Sha256::new().chain_update(BYTES_DOMAIN).chain_update(bytes))
    }

    /// Returns HMAC-SHA-256 over this digest. The key may have any length; use 32 random bytes.
    pub fn keyed(&self, key: &[u8]) -> KeyedDigest {
        let mut block = Zeroizing::new([0_u8; BLOCK_BYTES]);
        if key.len() > BLOCK_BYTES {
            copy(&mut *block, &Sha256::digest(key));
        } else {
            copy(&mut *block, key);
        }
        // A key padded to the block size is the same key and is always valid.
        let mut mac = Hmac::<Sha256>::new((&*block).into());
        mac.update(&self.0);
        KeyedDigest(mac.finalize().into_bytes().into())
    }

    /// Returns HMAC-SHA-256 over this digest under a key that only a reader of that other document knows.
    pub fn keyed_by(&self, other: &Self) -> KeyedDigest {
        self.keyed(&other.0)
    }

    pub(crate) fn finish(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(redacted)")
    }
}

impl fmt::Display for KeyedDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hmac-sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyedDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn copy(target: &mut [u8], source: &[u8]) {
    for (slot, byte) in target.iter_mut().zip(source) {
        *slot = *byte;
    }
}
