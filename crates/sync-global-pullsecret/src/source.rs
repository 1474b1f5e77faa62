//! Where credentials come from: mounted files, or the one Secret.

mod api;
mod chunks;
mod files;
mod http;
mod watch;

use tokio::sync::mpsc;
use zeroize::Zeroizing;

use crate::combine;
use crate::content::ContentId;

pub use api::{ApiSettings, SecretName};
pub use files::Folder;
pub use watch::Watch;

/// The key of a Secret, and the name of a file, that holds the credentials.
pub const CREDENTIALS_KEY: &str = ".dockerconfigjson";

/// The key of a Secret, and the name of a file, that names the revision of the credentials beside it.
pub const REVISION_KEY: &str = "revision";

/// Valid content.
#[derive(Clone)]
pub struct Content {
    id: ContentId,
    revision: Option<String>,
    bytes: Zeroizing<Vec<u8>>,
}

/// What a source says.
#[derive(Clone, Debug)]
pub enum Said {
    /// There is no Secret, file or key.
    Missing,
    /// What is there cannot be used, for this reason.
    Invalid(String),
    /// This.
    Content(Content),
    /// The source cannot be asked, for this reason; what it said before stands. `None`: it can be asked again.
    Away(Option<String>),
}

/// Which source is used.
#[derive(Clone, Debug)]
pub enum SourceSettings {
    /// Folders in which the kubelet mounts Secrets.
    Files(Folder),
    /// The API server.
    Api(ApiSettings),
}

/// Makes content of bytes, if it is valid.
#[derive(Clone)]
pub struct Reader {
    key: Zeroizing<[u8; 32]>,
}

/// Where sources say what they have to say.
pub type Sayings = mpsc::Sender<Said>;

impl SourceSettings {
    /// Says what is there, and again whenever it changes. Ends when nobody listens any more.
    pub async fn run(self, reader: Reader, sayings: Sayings) {
        match self {
            Self::Files(folder) => files::run(&folder, &reader, &sayings).await,
            Self::Api(settings) => api::run(&settings, &reader, &sayings).await,
        }
    }
}

// === impl Content ===

impl Content {
    /// Which content it is.
    pub fn id(&self) -> ContentId {
        self.id
    }

    /// Its revision, as whoever published it calls it.
    pub fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::fmt::Debug for Content {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Content")
            .field("id", &self.id)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

// === impl Reader ===

impl Reader {
    /// A reader whose ids are made with this key.
    pub fn new(key: Zeroizing<[u8; 32]>) -> Self {
        Self { key }
    }

    /// Reads what a source holds. No bytes at all count as nothing there.
    pub fn read(&self, bytes: Zeroizing<Vec<u8>>, revision: Option<String>) -> Said {
        if bytes.is_empty() {
            return Said::Missing;
        }
        match combine::wanted(&bytes) {
            Ok(document) => Said::Content(Content { id: document.digest().keyed(&*self.key).into(), revision, bytes }),
            Err(why) => Said::Invalid(why),
        }
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Reader").finish_non_exhaustive()
    }
}
