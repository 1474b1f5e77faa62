//! Secrets as the kubelet mounts them: folders whose files change by the swap of one link.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::sleep;
use zeroize::Zeroizing;

use super::{CREDENTIALS_KEY, REVISION_KEY, Reader, Said, Sayings, Watch};
use crate::combine::MOST_BYTES;

/// A folder with the folders `global`, which counts, and `original`, which counts while the other has no content. Where
/// neither is there, the folder itself is read.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

/// While folders cannot be watched, they are looked at so often.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

pub(super) async fn run(folder: &Folder, reader: &Reader, sayings: &Sayings) {
    loop {
        // Watched first and read then: what changes in between is told.
        let watch = folder.watch();
        if sayings.send(folder.read(reader)).await.is_err() {
            return;
        }
        let Ok(watch) = watch else {
            sleep(LOOK_AGAIN).await;
            continue;
        };
        let changed = tokio::select! {
            changed = watch.changed(|_name| true) => changed,
            () = sayings.closed() => return,
        };
        if changed.is_err() {
            sleep(LOOK_AGAIN).await;
        }
    }
}

impl Folder {
    fn places(&self) -> [PathBuf; 3] {
        [self.0.join("global"), self.0.join("original"), self.0.clone()]
    }

    /// What is there is watched; the parent tells of what is not there yet.
    fn watch(&self) -> io::Result<Watch> {
        let watch = Watch::new()?;
        let mut missing = None;
        for place in self.places() {
            match watch.add(&place) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => missing = Some(error),
                other => other?,
            }
        }
        match missing.filter(|_error| !self.0.is_dir()) {
            Some(error) => Err(error),
            None => Ok(watch),
        }
    }

    fn read(&self, reader: &Reader) -> Said {
        for place in self.places() {
            match read_place(&place, reader) {
                Ok(Said::Missing) => {}
                Ok(said) => return said,
                Err(error) => return Said::Away(Some(format!("cannot read the mounted files: {}", error.kind()))),
            }
        }
        Said::Missing
    }
}

/// Reads one mounted Secret. The link `..data` is followed once, so that credentials and revision are of one state; if it
/// was swapped meanwhile, that state may have been removed half-way, and it is read again.
fn read_place(place: &Path, reader: &Reader) -> io::Result<Said> {
    loop {
        let link = std::fs::read_link(place.join("..data")).ok();
        let state = link.as_ref().map_or_else(|| place.to_path_buf(), |target| place.join(target));
        let said = read_state(&state, reader);
        if std::fs::read_link(place.join("..data")).ok() == link {
            return said;
        }
    }
}

fn read_state(state: &Path, reader: &Reader) -> io::Result<Said> {
    let Some(bytes) = read_file(&state.join(CREDENTIALS_KEY))? else { return Ok(Said::Missing) };
    let revision = read_file(&state.join(REVISION_KEY))?;
    let revision = revision.and_then(|text| Some(std::str::from_utf8(&text).ok()?.trim().to_owned()));
    Ok(reader.read(bytes, revision.filter(|text| !text.is_empty())))
}

fn read_file(path: &Path) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    use std::io::Read as _;
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len().min(MOST_BYTES);
    // Room for one byte more than may be, so that too much is noticed and nothing grows.
    let mut bytes = Zeroizing::new(Vec::with_capacity(usize::try_from(length + 1).unwrap_or(0)));
    file.take(length + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}
