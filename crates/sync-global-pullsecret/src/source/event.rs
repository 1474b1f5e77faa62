//! Events of a source: the credentials that it holds, or the reason why there are none.

use tokio::sync::mpsc;
use zeroize::Zeroizing;

use crate::combine;
use crate::content::ContentId;

/// Valid credentials, as a source holds them.
#[derive(Clone)]
pub struct Credentials {
    id: ContentId,
    revision: Option<String>,
    bytes: Zeroizing<Vec<u8>>,
    is_revert: bool,
}

/// The state of a source, sent whenever it changes.
#[derive(Clone, Debug)]
pub enum SourceEvent {
    /// There is no Secret, file or key.
    Missing,
    /// The source holds something that cannot be used, for this reason.
    Invalid(String),
    /// The source holds these credentials.
    Credentials(Credentials),
    /// The source cannot be read, for this reason; its last state stands.
    Unavailable(String),
    /// The source can be read again.
    Available,
}

/// The channel into which a source sends its events.
pub type SourceEvents = mpsc::Sender<SourceEvent>;

/// Turns the bytes of a source into an event.
#[derive(Clone)]
pub struct CredentialsReader {
    key: Zeroizing<[u8; 32]>,
}

// === impl Credentials ===

impl Credentials {
    /// The id of their meaning.
    pub fn id(&self) -> ContentId {
        self.id
    }

    /// Their revision, as the publisher of the Secret names it.
    pub fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    /// True if they are the original ones, to which the node is reverted: no others are to be left on it.
    pub fn is_revert(&self) -> bool {
        self.is_revert
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Credentials")
            .field("id", &self.id)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

// === impl CredentialsReader ===

impl CredentialsReader {
    /// A reader that derives ids with this key.
    pub fn new(key: Zeroizing<[u8; 32]>) -> Self {
        Self { key }
    }

    /// Validates the bytes of a source. No bytes at all count as missing.
    pub fn read(&self, bytes: Zeroizing<Vec<u8>>, revision: Option<String>) -> SourceEvent {
        if bytes.is_empty() {
            return SourceEvent::Missing;
        }
        match combine::parse_desired(&bytes) {
            Ok(document) => {
                let id = document.digest().keyed(&*self.key).into();
                SourceEvent::Credentials(Credentials { id, revision, bytes, is_revert: false })
            }
            Err(reason) => SourceEvent::Invalid(reason),
        }
    }
}

impl SourceEvent {
    /// Marks credentials as those to which the node is reverted.
    #[must_use]
    pub fn as_revert(self) -> Self {
        match self {
            Self::Credentials(credentials) => Self::Credentials(Credentials { is_revert: true, ..credentials }),
            other => other,
        }
    }
}

impl std::fmt::Debug for CredentialsReader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CredentialsReader").finish_non_exhaustive()
    }
}
