//! The folder in which Pods have their volumes, Secrets among them: for its owner only, and empty at each start.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempDir};

use super::leftover;

/// The folder of all Pods of a server.
#[derive(Debug)]
pub(super) enum PodFolder {
    /// In the server's data folder. The files and processes that a killed server has left are ended and removed by the next one.
    Kept(PathBuf),
    /// Of a server that keeps nothing.
    Temporary(TempDir),
}

impl PodFolder {
    /// Makes it, empty.
    pub(super) fn make(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path else {
            let owner = Permissions::from_mode(0o700);
            return Builder::new().prefix("emulator-pods-").permissions(owner).tempdir().map(Self::Temporary);
        };
        match leftover::end_all(path).and_then(|()| fs::remove_dir_all(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        // Processes find their volumes from wherever they run.
        std::path::absolute(path).map(Self::Kept)
    }

    /// Makes the folder of a Pod, which is removed with its value.
    pub(super) fn of_pod(&self) -> io::Result<TempDir> {
        Builder::new().prefix("pod-").permissions(Permissions::from_mode(0o700)).tempdir_in(self.path())
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }
}

/// The mode that a file of a volume has on this machine: what Kubernetes lets every user of a container read is for the owner
/// here, since the machine has other users.
pub(super) fn file_mode(mode: u32) -> u32 {
    let is_for_others = mode.trailing_zeros() < 3;
    if is_for_others { mode & 0o700 } else { mode }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_a_killed_server_has_left_is_removed_at_the_next_start() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join("pods");
        let folder = PodFolder::make(Some(&path)).unwrap();
        let pod = folder.of_pod().unwrap();
        assert_eq!((mode(&path), mode(pod.path())), (0o700, 0o700));
        drop(fs::File::create_new(pod.path().join("secret")).unwrap());
        // A killed process drops nothing.
        let left = pod.keep();
        assert!(left.starts_with(&path) && left.exists());
        PodFolder::make(Some(&path)).unwrap();
        assert!(!left.exists());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }

    #[test]
    fn without_a_data_folder_it_is_the_owners_too_and_ends_with_the_server() {
        let folder = PodFolder::make(None).unwrap();
        let pod = folder.of_pod().unwrap();
        let PodFolder::Temporary(of_all) = &folder else { panic!("it is kept") };
        let path = of_all.path().to_path_buf();
        assert_eq!((mode(&path), mode(pod.path())), (0o700, 0o700));
        drop((pod, folder));
        assert!(!path.exists());
    }

    #[test]
    fn files_are_their_owners() {
        assert_eq!([0o644, 0o444, 0o400, 0o440, 0o777].map(file_mode), [0o600, 0o400, 0o400, 0o440, 0o700]);
    }
}
