//! Secrets as the kubelet mounts them: folders whose files change by the swap of one link.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::sleep;
use zeroize::Zeroizing;

use super::event::{CredentialsReader, SourceEvent, SourceEvents};
use super::watch::Watch;
use crate::combine::MAX_BYTES;

/// The name of the file that holds the credentials.
const CREDENTIALS_KEY: &str = ".dockerconfigjson";

/// The name of the file that names the revision of the credentials beside it.
const REVISION_KEY: &str = "revision";

/// The name of the file that says that a node is reverted to the credentials beside it.
const REVERTING_KEY: &str = "reverting";

/// A folder with the folders `global`, which counts, and `original`, which counts while the other has no content. Without
/// both, the folder itself is read.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

/// Interval at which folders are read while they cannot be watched.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

pub(super) async fn run(folder: &Folder, reader: &CredentialsReader, events: &SourceEvents) {
    loop {
        // Watched first and read then, so that a change in between is noticed.
        let watch = folder.watch();
        if events.send(folder.read(reader)).await.is_err() {
            return;
        }
        let Ok(watch) = watch else {
            sleep(POLL_INTERVAL).await;
            continue;
        };
        let changed = tokio::select! {
            changed = watch.changed(|_name| true) => changed,
            () = events.closed() => return,
        };
        if changed.is_err() {
            sleep(POLL_INTERVAL).await;
        }
    }
}

impl Folder {
    fn candidates(&self) -> [PathBuf; 3] {
        [self.0.join("global"), self.0.join("original"), self.0.clone()]
    }

    /// Watches the folders that exist; the parent reports those that appear later.
    fn watch(&self) -> io::Result<Watch> {
        let watch = Watch::new()?;
        let mut missing = None;
        for folder in self.candidates() {
            match watch.add(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => missing = Some(error),
                other => other?,
            }
        }
        match missing.filter(|_error| !self.0.is_dir()) {
            Some(error) => Err(error),
            None => Ok(watch),
        }
    }

    fn read(&self, reader: &CredentialsReader) -> SourceEvent {
        for folder in self.candidates() {
            match read_mount(&folder, reader) {
                Ok(SourceEvent::Missing) => {}
                Ok(event) => return event,
                Err(error) => {
                    return SourceEvent::Unavailable(format!("cannot read the mounted files: {}", error.kind()));
                }
            }
        }
        SourceEvent::Missing
    }
}

/// Reads one mounted Secret. The link `..data` is followed once, so that credentials and revision are of one state; if it
/// was swapped meanwhile, that state may have been removed half-way, and it is read again.
fn read_mount(folder: &Path, reader: &CredentialsReader) -> io::Result<SourceEvent> {
    loop {
        let link = std::fs::read_link(folder.join("..data")).ok();
        let state = link.as_ref().map_or_else(|| folder.to_path_buf(), |target| folder.join(target));
        let event = read_state(&state, reader);
        if std::fs::read_link(folder.join("..data")).ok() == link {
            return event;
        }
    }
}

fn read_state(state: &Path, reader: &CredentialsReader) -> io::Result<SourceEvent> {
    let Some(bytes) = read_file(&state.join(CREDENTIALS_KEY))? else { return Ok(SourceEvent::Missing) };
    let revision = read_file(&state.join(REVISION_KEY))?;
    let revision = revision.and_then(|text| Some(std::str::from_utf8(&text).ok()?.trim().to_owned()));
    let event = reader.read(bytes, revision.filter(|text| !text.is_empty()));
    Ok(if state.join(REVERTING_KEY).exists() { event.as_revert() } else { event })
}

fn read_file(path: &Path) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    use std::io::Read as _;
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len().min(MAX_BYTES);
    // Capacity for one byte more than allowed: an oversized file is noticed, and nothing grows.
    let mut bytes = Zeroizing::new(Vec::with_capacity(usize::try_from(length + 1).unwrap_or(0)));
    file.take(length + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}
