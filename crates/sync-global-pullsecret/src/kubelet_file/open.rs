//! Opens the kubelet's file: reads the state beside it and removes what a crash has left.

use std::path::Path;

use tracing::warn;
use zeroize::Zeroizing;

use super::{DiskFault, Done, KubeletFile, Paths, cannot};
use crate::combine::UnmanagedEntries;
use crate::disk::{Disk, FileContent};
use crate::record::Record;

/// The folder beside the kubelet's file.
pub const FOLDER: &str = "global-pull-secret";

/// Maximum bytes of a state file, enough for thousands of registries.
const MAX_STATE_BYTES: u64 = 4 * 1024 * 1024;

/// The error of opening the file.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path has no folder or no name.
    #[error("the kubelet's file needs a path with a folder and a name")]
    NoFolder,
    /// The disk refused a step.
    #[error(transparent)]
    Fault(#[from] DiskFault),
}

impl<D: Disk> KubeletFile<D> {
    /// Opens the file at `path`. Leftovers of a crash are removed; a state that cannot be read is set aside.
    pub fn open(disk: D, path: &Path, unmanaged_entries: UnmanagedEntries) -> Result<Self, OpenError> {
        let paths = Paths::of(path).ok_or(OpenError::NoFolder)?;
        disk.make_folder(&paths.state).map_err(cannot("create the state folder"))?;
        for leftover in
            [&paths.temporary, &paths.state("state.tmp"), &paths.state("before.tmp"), &paths.state("key.tmp")]
        {
            disk.shred(leftover).map_err(cannot("remove the leftovers of a crash"))?;
        }
        for folder in [&paths.state, &paths.parent] {
            disk.sync_folder(folder).map_err(cannot("remove the leftovers of a crash"))?;
        }
        let key = read_key(&disk, &paths)?;
        let record = read_record(&disk, &paths)?;
        let mut file = Self { disk, paths, key, unmanaged_entries, record, prepared: None };
        file.adopt_set_aside()?;
        Ok(file)
    }
}

/// Reads the node's key. A new key makes the ids of earlier processes meaningless, which costs one comparison more.
fn read_key<D: Disk>(disk: &D, paths: &Paths) -> Result<Zeroizing<[u8; 32]>, DiskFault> {
    let fail = cannot("read the node's key");
    let path = paths.state("key");
    if let FileContent::Bytes(bytes) = disk.read(&path, MAX_STATE_BYTES).map_err(fail)?
        && let Ok(key) = <[u8; 32]>::try_from(bytes.as_slice())
    {
        return Ok(Zeroizing::new(key));
    }
    let key = Zeroizing::new(rand::random::<[u8; 32]>());
    let temporary = paths.state("key.tmp");
    let written = disk.create(&temporary, &*key, None).and_then(|()| disk.rename(&temporary, &path));
    written.and_then(|()| disk.sync_folder(&paths.state)).map_err(cannot("write the node's key"))?;
    Ok(key)
}

fn read_record<D: Disk>(disk: &D, paths: &Paths) -> Result<Record, DiskFault> {
    let path = paths.state("state.json");
    match disk.read(&path, MAX_STATE_BYTES).map_err(cannot("read the state"))? {
        FileContent::Absent => return Ok(Record::default()),
        FileContent::Bytes(bytes) => {
            if let Some(record) = Record::parse(&bytes) {
                return Ok(record);
            }
        }
        FileContent::TooLarge(_) => {}
    }
    warn!(
        operation = "open",
        "the state cannot be read; it is set aside, and every entry of the file counts as unmanaged"
    );
    set_aside(disk, paths).map(|()| Record::default())
}

fn set_aside<D: Disk>(disk: &D, paths: &Paths) -> Done {
    let renamed = disk.rename(&paths.state("state.json"), &paths.state("state-unreadable.json"));
    renamed.map_err(cannot("set the state aside"))
}

impl Paths {
    fn of(path: &Path) -> Option<Self> {
        let parent = path.parent().filter(|parent| parent.is_absolute())?;
        let name = path.file_name()?.to_str()?;
        Some(Self {
            file: path.to_path_buf(),
            parent: parent.to_path_buf(),
            temporary: parent.join(format!(".{name}.{FOLDER}")),
            state: parent.join(FOLDER),
        })
    }
}
