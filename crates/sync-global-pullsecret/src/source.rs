//! The sources of credentials: mounted files, or one Secret that is watched through the API server.

mod api;
mod event;
mod files;
pub(crate) mod http;
mod watch;

pub use api::{ApiSettings, ObjectName};
pub use event::{Credentials, CredentialsReader, SourceEvent, SourceEvents};
pub use files::Folder;
pub use watch::Watch;

/// The source that is read.
#[derive(Clone, Debug)]
pub enum SourceSettings {
    /// Folders in which the kubelet mounts Secrets.
    Files(Folder),
    /// The API server.
    Api(ApiSettings),
}

impl SourceSettings {
    /// Sends the state of the source, and again whenever it changes. Ends when the receiver is dropped.
    pub async fn run(self, reader: CredentialsReader, events: SourceEvents) {
        match self {
            Self::Files(folder) => files::run(&folder, &reader, &events).await,
            Self::Api(settings) => api::run(&settings, &reader, &events).await,
        }
    }
}
