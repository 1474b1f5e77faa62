//! A private view of the file system for a container: the machine's own, with the Pod's volumes at their mount paths.
//!
//! With the right to mount (as root, of a user namespace too), the process starts in a mount namespace of its own, whose
//! root is made of bind mounts. Without it, volumes stay in a folder, and values of the environment and arguments that
//! begin with a mount path are rewritten to that folder ([`rewritten`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{MountFlags, MountPropagationFlags, mount_bind, mount_bind_recursive, mount_change, mount_remount};
use rustix::process::{chdir, chroot, getegid, geteuid};
use rustix::thread::UnshareFlags;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// The entries of `/dev` once something is added to it, as container runtimes do.
const DEVICES: [&str; 12] =
    ["null", "zero", "full", "random", "urandom", "tty", "fd", "stdin", "stdout", "stderr", "shm", "pts"];

/// The isolation of a container from the machine's files.
#[derive(Clone, Debug)]
pub(crate) enum Isolation {
    /// A mount namespace.
    Namespace(Arc<Roots>),
    /// None: paths are rewritten.
    Rewriting,
}

/// The roots of containers, one for all that mount at the same paths.
#[derive(Debug)]
pub(crate) struct Roots {
    /// Parent of their folders.
    folder: PathBuf,
    made: Mutex<BTreeMap<Vec<Target>, Arc<Root>>>,
}

/// A path at which a container has a mount.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    path: PathBuf,
    is_folder: bool,
}

/// A folder with something to mount on for everything that a container sees.
#[derive(Debug)]
struct Root {
    folder: PathBuf,
    binds: Vec<Bind>,
}

/// The machine's own file or folder in a new root.
#[derive(Debug)]
struct Bind {
    source: PathBuf,
    target: PathBuf,
}

/// A folder or file that the container sees at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) path: PathBuf,
    pub(crate) source: PathBuf,
    pub(crate) read_only: bool,
}

/// A program with all that it is started with.
pub(crate) struct Launch {
    /// It has its program, arguments, environment and working folder.
    pub(crate) command: Command,
    pub(crate) view: Option<View>,
}

/// The files that a container sees.
pub(crate) struct View {
    root: Arc<Root>,
    mounts: Vec<Mount>,
}

impl Isolation {
    /// The best that this process may have, found by trying it. Roots are made in `folder`.
    pub(crate) async fn probe(folder: &Path) -> Self {
        let roots = Arc::new(Roots { folder: folder.to_path_buf(), made: Mutex::default() });
        let path = PathBuf::from("/emulator-probe/volume");
        let mounts = vec![Mount { path: path.clone(), source: folder.to_path_buf(), read_only: true }];
        let works = match roots.view(mounts) {
            Ok(view) => within(view, move || Ok(path.is_dir())).await.unwrap_or(false),
            Err(_) => false,
        };
        if works { Self::Namespace(roots) } else { Self::Rewriting }
    }
}

impl Launch {
    /// Starts the program.
    pub(crate) async fn spawn(self) -> io::Result<Child> {
        let Self { mut command, view } = self;
        let Some(view) = view else { return command.spawn() };
        let runtime = Handle::current();
        let start = move || {
            let _entered = runtime.enter();
            command.spawn()
        };
        within(view, start).await
    }
}

/// Gives an ordinary user's process the right to mount, as root of a user namespace of its own, if the machine allows that.
/// Other threads may not run yet.
///
/// # Errors
///
/// The process has a user namespace, but its user could not be mapped into it, so it cannot go on.
#[expect(deprecated, reason = "only files that threads do not share make it unsafe, and those stay shared")]
#[expect(clippy::disallowed_methods, reason = "files of the kernel are written in place")]
pub fn allow_mounts() -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    if user.is_root() || !may_map_itself() {
        return Ok(());
    }
    rustix::thread::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {} 1", user.as_raw()))?;
    fs::write("/proc/self/gid_map", format!("0 {} 1", group.as_raw()))
}

/// True if another process of this user can do it. There is no way back from a user namespace, and some distributions
/// (`AppArmor` on Ubuntu) let a process make one but not map its user into it.
fn may_map_itself() -> bool {
    let mut attempt = std::process::Command::new("unshare");
    attempt.args(["--user", "--map-root-user", "--mount", "true"]).stdout(Stdio::null()).stderr(Stdio::null());
    attempt.status().is_ok_and(|status| status.success())
}

/// Runs `work` in a thread that sees other files than the rest of the process, as do the processes that it starts.
async fn within<T: Send + 'static>(view: View, work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let (sender, receiver) = oneshot::channel();
    let run = move || {
        // A container that is no longer wanted is not waited for; its process ends with its handle.
        drop(sender.send(view.enter().and_then(|()| work())));
    };
    thread::Builder::new().name("container".to_owned()).spawn(run)?;
    receiver.await.map_err(io::Error::other)?
}

impl View {
    /// Moves the calling thread into a mount namespace with these files.
    #[expect(deprecated, reason = "only files that threads do not share make it unsafe, and those stay shared")]
    fn enter(&self) -> io::Result<()> {
        rustix::thread::unshare(UnshareFlags::NEWNS)?;
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        let Root { folder, binds } = &*self.root;
        mount_bind(folder, folder)?;
        for Bind { source, target } in binds {
            match mount_bind_recursive(source, target) {
                // What has gone meanwhile is not missed.
                Err(rustix::io::Errno::NOENT) => {}
                done => done?,
            }
        }
        for Mount { path, source, read_only } in &self.mounts {
            let target = below(folder, path);
            mount_bind(source, &target)?;
            if *read_only {
                protect(&target)?;
            }
        }
        // Containers share what lies between the mounts.
        protect(folder)?;
        chroot(folder)?;
        Ok(chdir("/")?)
    }
}

/// Makes a bind mount read-only. In a user namespace its other flags may not be taken away.
fn protect(mount: &Path) -> io::Result<()> {
    let flags = statvfs(mount)?.f_flag;
    let pairs = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let kept: MountFlags = pairs.into_iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, flag)| flag).collect();
    Ok(mount_remount(mount, MountFlags::BIND | MountFlags::RDONLY | kept, c"")?)
}

impl Roots {
    /// The files of a container with these mounts.
    pub(crate) fn view(&self, mut mounts: Vec<Mount>) -> io::Result<View> {
        for mount in &mut mounts {
            mount.path = resolved(&mount.path);
        }
        mounts.sort_by(|one, other| one.path.cmp(&other.path));
        let mut targets = Vec::new();
        for (index, mount) in mounts.iter().enumerate() {
            let outer = mounts.iter().take(index).rev().find(|outer| mount.path.starts_with(&outer.path));
            match outer.and_then(|outer| Some((outer, mount.path.strip_prefix(&outer.path).ok()?))) {
                Some((outer, rest)) => place(&outer.source.join(rest), mount.source.is_dir())?,
                None => targets.push(Target { path: mount.path.clone(), is_folder: mount.source.is_dir() }),
            }
        }
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let root = if let Some(root) = made.get(&targets) {
            Arc::clone(root)
        } else {
            let folder = self.folder.join(format!("root-{}", made.len()));
            let root = Arc::new(Root::make(folder, &targets)?);
            made.insert(targets, Arc::clone(&root));
            root
        };
        Ok(View { root, mounts })
    }
}

impl Root {
    /// Makes the folders of a new root. Entries that the machine's folders around `targets` get later are not seen in it.
    fn make(folder: PathBuf, targets: &[Target]) -> io::Result<Self> {
        let missing = || targets.iter().filter(|target| !target.path.exists());
        let mut opened = BTreeSet::from([PathBuf::from("/")]);
        for target in missing() {
            let existing = target.path.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
            opened.extend(existing.ancestors().map(Path::to_path_buf));
        }
        let mut binds = Vec::new();
        for original in &opened {
            binds.extend(open(&folder, original, &opened)?);
        }
        // What holds the new root comes first, or it would show everything mounted before it a second time.
        binds.sort_by_key(|bind| !folder.starts_with(&bind.source));
        for target in missing() {
            place(&below(&folder, &target.path), target.is_folder)?;
        }
        Ok(Self { folder, binds })
    }
}

/// A folder in the new root whose entries are those of the machine's own, one by one, so that others can be added.
fn open(root: &Path, folder: &Path, opened: &BTreeSet<PathBuf>) -> io::Result<Vec<Bind>> {
    fs::create_dir_all(below(root, folder))?;
    let mut binds = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (source, kind) = (entry.path(), entry.file_type()?);
        let is_device = entry.file_name().to_str().is_some_and(|name| DEVICES.contains(&name));
        if opened.contains(&source) || (folder == Path::new("/dev") && !is_device) {
            continue;
        }
        let target = below(root, &source);
        if kind.is_symlink() {
            symlink(fs::read_link(&source)?, &target)?;
            continue;
        }
        place(&target, kind.is_dir())?;
        binds.push(Bind { source, target });
    }
    Ok(binds)
}

/// `text` with the mount path at its beginning replaced by the folder that stands for it.
pub(crate) fn rewritten(text: &str, mounts: &[Mount]) -> String {
    let fits = mounts.iter().filter_map(|mount| {
        let rest = text.strip_prefix(mount.path.to_str()?)?;
        (rest.is_empty() || rest.starts_with('/')).then_some((mount, rest))
    });
    let longest = fits.min_by_key(|(_, rest)| rest.len());
    longest.map_or_else(|| text.to_owned(), |(mount, rest)| format!("{}{rest}", mount.source.display()))
}

/// Something to mount a folder or a file on.
fn place(target: &Path, is_folder: bool) -> io::Result<()> {
    if is_folder {
        return fs::create_dir_all(target);
    }
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    if target.exists() { Ok(()) } else { File::create_new(target).map(drop) }
}

/// A path without the symbolic links of the part of it that exists: `/var/run` is `/run`.
fn resolved(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|folder| Some((folder, folder.canonicalize().ok()?)));
    let rest = existing.as_ref().and_then(|(folder, _)| path.strip_prefix(folder).ok());
    match (&existing, rest) {
        (Some((_, real)), Some(rest)) if !rest.as_os_str().is_empty() => real.join(rest),
        (Some((_, real)), _) => real.clone(),
        (None, _) => path.to_path_buf(),
    }
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}
