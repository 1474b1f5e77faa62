//! A disk in memory that simulates power cuts: flushed content and flushed names survive.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use sync_global_pullsecret::disk::{Disk, FileContent};
use zeroize::Zeroizing;

/// A handle on the disk; clones are the same disk.
#[derive(Clone, Default)]
pub(crate) struct MemoryDisk(Rc<RefCell<Inner>>);

#[derive(Clone, Default)]
struct Inner {
    /// Contents, each flushed when it was made.
    files: Vec<Vec<u8>>,
    /// The files that all users may read.
    open: std::collections::BTreeSet<usize>,
    names: BTreeMap<PathBuf, usize>,
    /// Names that survive a power cut.
    durable: BTreeMap<PathBuf, usize>,
    /// Changes of names that are not flushed: each step as a whole.
    pending: Vec<Change>,
    /// Steps left before the end.
    fuel: Option<u64>,
    end: End,
    /// Steps that were taken.
    steps: u64,
    dead: bool,
}

#[derive(Clone)]
struct Change {
    folder: PathBuf,
    add: Option<(PathBuf, usize)>,
    take: Option<PathBuf>,
}

/// The event when the fuel is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// The process is gone: every step fails.
    #[default]
    Death,
    /// Every step that writes fails, until there is space again.
    Full,
}

impl MemoryDisk {
    /// Adds a file with content and name flushed.
    pub(crate) fn put(&self, path: &Path, bytes: &[u8]) {
        let mut inner = self.0.borrow_mut();
        inner.files.push(bytes.to_vec());
        let file = inner.files.len() - 1;
        inner.open.insert(file);
        inner.names.insert(path.to_path_buf(), file);
        inner.durable.insert(path.to_path_buf(), file);
    }

    pub(crate) fn get(&self, path: &Path) -> Option<Vec<u8>> {
        let inner = self.0.borrow();
        inner.names.get(path).map(|file| inner.files[*file].clone())
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.borrow().names.keys().map(|path| path.display().to_string()).collect()
    }

    /// The names of files that all users may read.
    pub(crate) fn open_names(&self) -> Vec<String> {
        let inner = self.0.borrow();
        let open = inner.names.iter().filter(|(_, file)| inner.open.contains(file));
        open.map(|(path, _)| path.display().to_string()).collect()
    }

    pub(crate) fn steps(&self) -> u64 {
        self.0.borrow().steps
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.0.borrow().dead
    }

    pub(crate) fn end_after(&self, steps: Option<u64>, end: End) {
        let mut inner = self.0.borrow_mut();
        (inner.fuel, inner.end) = (steps, end);
    }

    /// Counts a step of something else than the disk. Returns false if the process is gone.
    pub(crate) fn step(&self) -> bool {
        self.0.borrow_mut().take(false).is_ok()
    }

    /// The disk as the next process finds it after a kill.
    pub(crate) fn after_kill(&self) -> Self {
        let mut inner = self.0.borrow().clone();
        (inner.dead, inner.fuel) = (false, None);
        Self(Rc::new(RefCell::new(inner)))
    }

    /// The disk as the next boot finds it after a power cut: any of the steps that were not flushed may be lost.
    pub(crate) fn after_power_cut(&self, which: u64) -> Self {
        let disk = self.after_kill();
        {
            let mut inner = disk.0.borrow_mut();
            let pending = std::mem::take(&mut inner.pending);
            for (index, change) in pending.into_iter().enumerate() {
                if which >> (index % 64) & 1 == 1 {
                    change.apply(&mut inner.durable);
                }
            }
            inner.names = inner.durable.clone();
        }
        disk
    }
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        if let Some(path) = &self.take {
            names.remove(path);
        }
        if let Some((path, file)) = &self.add {
            names.insert(path.clone(), *file);
        }
    }
}

impl Inner {
    fn take(&mut self, writes: bool) -> io::Result<()> {
        self.steps += 1;
        match (&mut self.fuel, self.end) {
            (Some(0), End::Death) => self.dead = true,
            (Some(0), End::Full) if writes => return Err(io::ErrorKind::StorageFull.into()),
            (Some(0), End::Full) | (None, _) => {}
            (Some(fuel), _) => *fuel -= 1,
        }
        if self.dead { Err(io::Error::other("the process is gone")) } else { Ok(()) }
    }

    fn change(&mut self, path: &Path, add: Option<usize>, take: Option<&Path>) {
        let folder = path.parent().unwrap().to_path_buf();
        let change =
            Change { folder, add: add.map(|file| (path.to_path_buf(), file)), take: take.map(Path::to_path_buf) };
        change.apply(&mut self.names);
        self.pending.push(change);
    }
}

impl Disk for MemoryDisk {
    fn read(&self, path: &Path, max: u64) -> io::Result<FileContent> {
        let mut inner = self.0.borrow_mut();
        inner.take(false)?;
        Ok(match inner.names.get(path).map(|file| inner.files[*file].clone()) {
            None => FileContent::Absent,
            Some(bytes) if bytes.len() as u64 > max => FileContent::TooLarge(bytes.len() as u64),
            Some(bytes) => FileContent::Bytes(Zeroizing::new(bytes)),
        })
    }

    fn make_folder(&self, _path: &Path) -> io::Result<()> {
        self.0.borrow_mut().take(false)
    }

    fn link(&self, file: &Path, name: &Path) -> io::Result<()> {
        let mut inner = self.0.borrow_mut();
        inner.take(true)?;
        if inner.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = *inner.names.get(file).ok_or(io::ErrorKind::NotFound)?;
        inner.change(name, Some(file), None);
        Ok(())
    }

    fn create(&self, path: &Path, bytes: &[u8], _like: Option<&Path>) -> io::Result<()> {
        let mut inner = self.0.borrow_mut();
        inner.take(true)?;
        inner.files.push(bytes.to_vec());
        let file = inner.files.len() - 1;
        inner.change(path, Some(file), None);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.0.borrow_mut();
        inner.take(false)?;
        let file = *inner.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        // Two names of one file stay two names, as POSIX has it.
        if inner.names.get(to) != Some(&file) {
            inner.change(to, Some(file), Some(from));
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.0.borrow_mut();
        inner.take(false)?;
        if inner.names.contains_key(path) {
            inner.change(path, None, Some(path));
        }
        Ok(())
    }

    fn protect(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.0.borrow_mut();
        inner.take(false)?;
        let file = *inner.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        inner.open.remove(&file);
        Ok(())
    }

    fn shred(&self, path: &Path) -> io::Result<()> {
        let file = self.0.borrow().names.get(path).copied();
        self.remove(path)?;
        let mut inner = self.0.borrow_mut();
        if let Some(file) = file.filter(|file| !inner.names.values().any(|named| named == file)) {
            inner.files[file].fill(0);
        }
        Ok(())
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut inner = self.0.borrow_mut();
        inner.take(false)?;
        let of_folder = inner.names.keys().filter(|path| path.parent() == Some(folder));
        Ok(of_folder.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect())
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.0.borrow_mut();
        inner.take(false)?;
        let pending = std::mem::take(&mut inner.pending);
        for change in pending {
            if change.folder == path {
                change.apply(&mut inner.durable);
            } else {
                inner.pending.push(change);
            }
        }
        Ok(())
    }
}
