//! The folder in which a fleet plane keeps everything: one process at a time, secrets for their owner only.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use rustix::fs::statvfs;
use tempfile::TempDir;

/// The file that marks a folder as a data directory of this program; locked while in use.
const MARK: &str = "pull-secret-local.lock";
/// The file with the port of each part, for the next start.
const PORTS: &str = "ports.json";

/// The temporary folder of a machine that names no other one in `TMPDIR`.
const DEFAULT_TEMPORARY: &str = "/tmp";

/// The folder in memory that Linux has for shared memory. A fleet plane writes thousands of small files and flushes each.
const IN_MEMORY: &str = "/dev/shm";

/// Minimum of free bytes in memory; containers have 64 MiB by default.
const IN_MEMORY_MINIMUM: u64 = 1 << 30;

/// The beginning of the names of temporary folders.
const TEMPORARY: &str = "pull-secret-local-";

/// The listeners, in the order of their ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Port {
    Api,
    Kubernetes,
    SecretManager,
    ApiHealth,
    ApiMetrics,
    SentinelHealth,
    SentinelMetrics,
    AdapterHealth,
    AdapterMetrics,
}

/// A folder that is ours alone.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    lock: File,
    temporary: Option<TempDir>,
}

/// The ports of the parts.
#[derive(Clone, Debug)]
pub(crate) struct Ports {
    first: u16,
    before: BTreeMap<String, u16>,
}

// === impl Folder ===

impl Folder {
    /// Opens a folder that is kept, made if it is not there; or a temporary one that is removed with this.
    pub(crate) fn open(kept: Option<&Path>) -> anyhow::Result<Self> {
        let temporary = if kept.is_some() {
            None
        } else {
            let parent = temporary_parent(&std::env::temp_dir());
            remove_abandoned(&parent);
            let owner = Permissions::from_mode(0o700);
            let folder = tempfile::Builder::new().prefix(TEMPORARY).permissions(owner).tempdir_in(parent);
            Some(folder.context("no temporary folder")?)
        };
        let path = kept.or(temporary.as_ref().map(TempDir::path)).unwrap_or(Path::new("."));
        // Parts change into no folder, but Jobs do.
        let path = std::path::absolute(path).context("--data-dir")?;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| anyhow::anyhow!("--data-dir: the folder cannot be made: {}", error.kind()))?;
        let mark = path.join(MARK);
        let mut entries = fs::read_dir(&path).context("--data-dir: the folder cannot be read")?;
        if !mark.exists() && entries.next().is_some() {
            bail!(
                "--data-dir: the folder holds something else; give an empty one, or one that was made by this command"
            );
        }
        let lock = File::options().create(true).truncate(false).write(true).open(&mark);
        let lock = lock.map_err(|error| anyhow::anyhow!("--data-dir: cannot be written to: {}", error.kind()))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, lock, temporary }),
            Err(TryLockError::WouldBlock) => {
                bail!("--data-dir: another process uses the folder; end it first, or give another folder")
            }
            Err(TryLockError::Error(error)) => bail!("--data-dir: cannot be locked: {}", error.kind()),
        }
    }

    /// Something in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The folder itself.
    pub(crate) fn root(&self) -> &Path {
        &self.path
    }

    /// True if the folder is kept after the end.
    pub(crate) fn is_kept(&self) -> bool {
        self.temporary.is_none()
    }

    /// A file of 32 random bytes, made once, for its owner only.
    pub(crate) fn key(&self, name: &str) -> anyhow::Result<PathBuf> {
        let bytes: [u8; 32] = rand::random();
        self.once(name, &bytes)
    }

    /// A file with a random word of letters and digits, made once, for its owner only.
    pub(crate) fn token(&self, name: &str) -> anyhow::Result<PathBuf> {
        let word = format!("{:032x}{:032x}", rand::random::<u128>(), rand::random::<u128>());
        self.once(name, word.as_bytes())
    }

    fn once(&self, name: &str, content: &[u8]) -> anyhow::Result<PathBuf> {
        let path = self.path(name);
        daemon::file::create(&path, content).with_context(|| format!("cannot make {name} in the data directory"))?;
        Ok(path)
    }

    /// The ports to take: from `first` on, or with 0 the ones of the last time as far as they are free.
    pub(crate) fn ports(&self, first: u16) -> Ports {
        let text = fs::read_to_string(self.path(PORTS)).unwrap_or_default();
        Ports { first, before: serde_json::from_str(&text).unwrap_or_default() }
    }

    /// Notes which ports were taken: Jobs that outlive this process know them.
    pub(crate) fn remember(&self, ports: &BTreeMap<String, u16>) -> anyhow::Result<()> {
        let text = serde_json::to_string(ports)?;
        daemon::file::replace(&self.path(PORTS), text.as_bytes()).context("cannot write into the data directory")
    }

    /// Gives it back: a temporary one is removed.
    pub(crate) fn close(self) {
        let Self { path: _, lock, temporary } = self;
        drop(lock);
        // What cannot be removed is in the system's temporary folder, and for its owner only.
        let _left_behind = temporary.map(TempDir::close);
    }
}

/// The folder for temporary folders: in memory, unless `TMPDIR` names one or memory has too little room.
fn temporary_parent(usual: &Path) -> PathBuf {
    let in_memory = Path::new(IN_MEMORY);
    let room = || statvfs(in_memory).map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize));
    let in_memory = (usual == Path::new(DEFAULT_TEMPORARY) && room() >= IN_MEMORY_MINIMUM).then_some(in_memory);
    in_memory.unwrap_or(usual).to_path_buf()
}

/// Removes the temporary folders of processes that were killed: they hold credentials. Those in use are locked.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(TEMPORARY)) {
        let path = entry.path();
        // One without the mark is about to be used.
        let Ok(mark) = File::options().write(true).open(path.join(MARK)) else { continue };
        if mark.try_lock().is_ok() {
            // Another user's folder, or one that is being removed by another process, is left to them.
            let _left_to_them = fs::remove_dir_all(&path);
        }
    }
}

// === impl Ports ===

impl Ports {
    /// The port of a part; 0 for whichever is free.
    pub(crate) fn of(&self, port: Port) -> u16 {
        if self.first > 0 {
            return self.first.saturating_add(port as u16);
        }
        let before = self.before.get(port.name()).copied().unwrap_or_default();
        if before > 0 && is_free(before) { before } else { 0 }
    }

    /// Fails where a port that was asked for is taken, with all that are.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let taken = Port::ALL.into_iter().map(|port| (port, self.of(port)));
        let taken = taken.filter(|(_, number)| *number > 0 && !is_free(*number));
        let taken: Vec<String> = taken.map(|(port, number)| format!("{number} ({})", port.name())).collect();
        if taken.is_empty() {
            return Ok(());
        }
        bail!("these ports are taken: {}; give another first one with --port, or 0 for free ones", taken.join(", "))
    }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

// === impl Port ===

impl Port {
    const ALL: [Self; 9] = [
        Self::Api,
        Self::Kubernetes,
        Self::SecretManager,
        Self::ApiHealth,
        Self::ApiMetrics,
        Self::SentinelHealth,
        Self::SentinelMetrics,
        Self::AdapterHealth,
        Self::AdapterMetrics,
    ];

    /// Its name in the file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Kubernetes => "kubernetes",
            Self::SecretManager => "secret-manager",
            Self::ApiHealth => "api-health",
            Self::ApiMetrics => "api-metrics",
            Self::SentinelHealth => "sentinel-health",
            Self::SentinelMetrics => "sentinel-metrics",
            Self::AdapterHealth => "adapter-health",
            Self::AdapterMetrics => "adapter-metrics",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_folder_is_for_one_process_and_keeps_its_keys() {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().join("data");
        let first = Folder::open(Some(&path)).unwrap();
        let key = fs::read(first.key("key").unwrap()).unwrap();
        let refused = Folder::open(Some(&path)).unwrap_err();
        assert!(refused.to_string().contains("another process uses the folder"), "{refused}");
        assert!(first.is_kept());
        first.close();
        let second = Folder::open(Some(&path)).unwrap();
        assert_eq!(fs::read(second.key("key").unwrap()).unwrap(), key);
        assert_eq!(fs::metadata(second.path("key")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(second.root()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn an_unmanaged_folder_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        File::create(folder.path().join("thesis.txt")).unwrap();
        let refused = Folder::open(Some(folder.path())).unwrap_err();
        assert!(refused.to_string().contains("holds something else"), "{refused}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_temporary_folder_is_removed() {
        let folder = Folder::open(None).unwrap();
        let path = folder.root().to_path_buf();
        assert!(path.exists() && !folder.is_kept());
        folder.close();
        assert!(!path.exists());
    }

    #[test]
    fn ports_follow_each_other_or_are_those_of_the_last_time() {
        let folder = Folder::open(None).unwrap();
        assert_eq!(folder.ports(8000).of(Port::Kubernetes), 8001);
        assert_eq!(folder.ports(0).of(Port::Api), 0);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        folder.remember(&BTreeMap::from([("api".to_owned(), port)])).unwrap();
        assert_eq!(folder.ports(0).of(Port::Api), 0, "taken by another process");
        let refused = folder.ports(port.min(65_000)).check().map_err(|error| error.to_string());
        assert!(port > 65_000 || refused.is_err_and(|words| words.contains(&format!("{port} (api)"))));
        drop(listener);
        assert_eq!(folder.ports(0).of(Port::Api), port);
        assert_eq!(folder.ports(9000).of(Port::Api), 9000);
    }

    #[test]
    fn what_a_killed_process_has_left_is_removed_and_what_another_uses_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let [killed, used, new, other] = ["pull-secret-local-a", "pull-secret-local-b", "pull-secret-local-c", "x"]
            .map(|name| parent.path().join(name));
        for folder in [&killed, &used, &new, &other] {
            fs::create_dir(folder).unwrap();
            drop(File::create(folder.join("key")).unwrap());
        }
        drop((File::create(killed.join(MARK)).unwrap(), File::create(other.join(MARK)).unwrap()));
        let lock = File::create(used.join(MARK)).unwrap();
        lock.try_lock().unwrap();
        remove_abandoned(parent.path());
        assert_eq!([&killed, &used, &new, &other].map(|folder| folder.exists()), [false, true, true, true]);
    }
}
