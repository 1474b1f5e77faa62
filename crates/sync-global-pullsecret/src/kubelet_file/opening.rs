//! Taking hold of the file: the state beside it, what a crash has left, and what an earlier process has recorded.

use std::path::Path;

use tracing::warn;
use zeroize::Zeroizing;

use super::{Done, Fault, KubeletFile, Paths, cannot};
use crate::combine::Foreign;
use crate::disk::{Disk, Held};
use crate::record::Record;

/// The folder beside the kubelet's file.
pub const FOLDER: &str = "global-pull-secret";

/// More than a record of thousands of registries.
const MOST_STATE: u64 = 4 * 1024 * 1024;

/// Why the file cannot be taken hold of.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path has no folder or no name.
    #[error("the kubelet's file needs a path with a folder and a name")]
    NoFolder,
    /// The disk refuses.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl<D: Disk> KubeletFile<D> {
    /// Takes hold of the file at `path`. What a crash has left is removed, a state that cannot be read is set aside.
    pub fn open(disk: D, path: &Path, foreign: Foreign) -> Result<Self, OpenError> {
        let paths = Paths::of(path).ok_or(OpenError::NoFolder)?;
        disk.make_folder(&paths.state).map_err(cannot("make the folder of the state"))?;
        for leftover in
            [&paths.temporary, &paths.state("state.tmp"), &paths.state("before.tmp"), &paths.state("key.tmp")]
        {
            disk.remove(leftover).map_err(cannot("remove what a crash has left"))?;
        }
        let key = read_key(&disk, &paths)?;
        let record = read_record(&disk, &paths)?;
        Ok(Self { disk, paths, key, foreign, record, plan: None })
    }
}

/// The node's key. Without it, ids of earlier processes mean nothing, and that costs one look more.
fn read_key<D: Disk>(disk: &D, paths: &Paths) -> Result<Zeroizing<[u8; 32]>, Fault> {
    let fail = cannot("read the node's key");
    let path = paths.state("key");
    if let Held::Bytes(bytes) = disk.read(&path, MOST_STATE).map_err(fail)?
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

fn read_record<D: Disk>(disk: &D, paths: &Paths) -> Result<Record, Fault> {
    let path = paths.state("state.json");
    match disk.read(&path, MOST_STATE).map_err(cannot("read the state"))? {
        Held::Absent => return Ok(Record::default()),
        Held::Bytes(bytes) => {
            if let Some(record) = Record::parse(&bytes) {
                return Ok(record);
            }
        }
        Held::TooLarge(_) => {}
    }
    warn!(
        operation = "open",
        "the state cannot be read; it is set aside, and every entry of the file counts as foreign"
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
