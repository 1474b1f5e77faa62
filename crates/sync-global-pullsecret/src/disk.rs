//! The disk operations of the syncer, each of which may fail or be the last before a crash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::Path;

use rustix::fs::{OFlags, XattrFlags};
use rustix::io::Errno;
use zeroize::Zeroizing;

/// The extended attribute of the `SELinux` label, which decides who may read a file.
const LABEL: &str = "security.selinux";

/// The content of a path.
pub enum FileContent {
    /// There is no file.
    Absent,
    /// A file with these bytes.
    Bytes(Zeroizing<Vec<u8>>),
    /// A file of this many bytes, more than the limit.
    TooLarge(u64),
}

/// The disk operations of the syncer. Every method is one step after which the process may end.
pub trait Disk {
    /// Reads a regular file of at most `max` bytes. Anything but a regular file is an error.
    fn read(&self, path: &Path, max: u64) -> io::Result<FileContent>;
    /// Creates the folder, readable by its owner only, unless it exists. Its parent must exist.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Gives the file a second name, which must be free.
    fn link(&self, file: &Path, name: &Path) -> io::Result<()>;
    /// Creates a file, readable by its owner only, with owner, group and `SELinux` label of `like`, and flushes it to disk. An
    /// existing file is replaced.
    fn create(&self, path: &Path, bytes: &[u8], like: Option<&Path>) -> io::Result<()>;
    /// Renames a file; a file that has the new name already is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file, if it exists.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes a file readable by its owner only, under all of its names.
    fn protect(&self, path: &Path) -> io::Result<()>;
    /// Removes a file, if it exists. Its content is overwritten first, unless it has another name.
    fn shred(&self, path: &Path) -> io::Result<()>;
    /// The names in a folder.
    fn names(&self, folder: &Path) -> io::Result<Vec<String>>;
    /// Flushes the names in a folder, so that they survive a power cut.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// The real disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

// === impl FileContent ===

impl std::fmt::Debug for FileContent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent => formatter.write_str("Absent"),
            Self::Bytes(bytes) => write!(formatter, "Bytes({} of them)", bytes.len()),
            Self::TooLarge(length) => write!(formatter, "TooLarge({length})"),
        }
    }
}

// === impl RealDisk ===

impl Disk for RealDisk {
    fn read(&self, path: &Path, max: u64) -> io::Result<FileContent> {
        // A symbolic link is not followed, and a pipe does not block.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FileContent::Absent),
            Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                return Err(io::Error::other("a symbolic link stands in place of the file"));
            }
            Err(error) => return Err(error),
        };
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(io::Error::other("something else than a file stands in its place"));
        }
        if meta.len() > max {
            return Ok(FileContent::TooLarge(meta.len()));
        }
        // One allocation that never grows, so no copy of a credential is left behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(usize::try_from(max.min(meta.len() + 1)).unwrap_or(0)));
        file.take(meta.len()).read_to_end(&mut bytes)?;
        Ok(FileContent::Bytes(bytes))
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt as _;
        match fs::DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    fn link(&self, file: &Path, name: &Path) -> io::Result<()> {
        fs::hard_link(file, name)
    }

    fn create(&self, path: &Path, bytes: &[u8], like: Option<&Path>) -> io::Result<()> {
        self.remove(path)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        if let Some(like) = like {
            copy_owner(like, &file)?;
            copy_label(like, &file)?;
        }
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn protect(&self, path: &Path) -> io::Result<()> {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))
    }

    fn shred(&self, path: &Path) -> io::Result<()> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        match OpenOptions::new().write(true).custom_flags(flags.bits().cast_signed()).open(path) {
            Ok(file) => overwrite(file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // Whatever it is, it is removed.
            Err(_no_file) => {}
        }
        self.remove(path)
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(folder)?;
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

/// Overwrites the content of a file, unless it is in use under another name.
fn overwrite(mut file: File) -> io::Result<()> {
    let meta = file.metadata()?;
    if !meta.is_file() || meta.nlink() > 1 {
        return Ok(());
    }
    io::copy(&mut io::repeat(0).take(meta.len()), &mut file)?;
    file.sync_all()
}

fn copy_owner(like: &Path, file: &File) -> io::Result<()> {
    let (source, target) = (fs::symlink_metadata(like)?, file.metadata()?);
    if (source.uid(), source.gid()) == (target.uid(), target.gid()) {
        return Ok(());
    }
    fchown(file, Some(source.uid()), Some(source.gid()))
}

fn copy_label(like: &Path, file: &File) -> io::Result<()> {
    // A label is a short text; SELinux's own tools expect at most 255 bytes.
    let mut label = [0_u8; 1024];
    let length = match rustix::fs::lgetxattr(like, LABEL, &mut label[..]) {
        Ok(length) => length,
        Err(Errno::NODATA | Errno::NOTSUP) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let label = label.get(..length).unwrap_or_default();
    Ok(rustix::fs::fsetxattr(file, LABEL, label, XattrFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, SeekFrom};

    use super::*;

    fn content(file: &mut File) -> Vec<u8> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_shredded_file_is_overwritten_unless_it_has_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        RealDisk.create(&one, b"secret", None).unwrap();
        RealDisk.link(&one, &other).unwrap();
        let mut open = File::open(&one).unwrap();
        RealDisk.shred(&one).unwrap();
        assert_eq!(content(&mut open), b"secret", "the other name is in use");
        RealDisk.shred(&other).unwrap();
        assert_eq!(content(&mut open), [0; 6]);
        assert!(RealDisk.names(folder.path()).unwrap().is_empty());
        RealDisk.shred(&other).unwrap();
        // A link is removed, not what it names.
        RealDisk.create(&one, b"theirs", None).unwrap();
        std::os::unix::fs::symlink(&one, &other).unwrap();
        RealDisk.shred(&other).unwrap();
        assert_eq!(fs::read(&one).unwrap(), b"theirs");
    }

    #[test]
    fn a_protected_file_is_its_owners_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        RealDisk.create(&file, b"x", None).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        RealDisk.protect(&file).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(RealDisk.protect(&folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
