//! A private view of the file system for a container: the machine's own, with the Pod's volumes at their mount paths.
//!
//! With mount namespaces (as root, or where users may make user namespaces), the process gets a new root of
//! bind mounts of its own. Without them, volumes stay in a folder, and values of the environment and arguments that
//! begin with a mount path are rewritten to that folder ([`rewritten`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tokio::process::Command;

/// The entries of `/dev` once something is added to it, as container runtimes do.
const DEVICES: [&str; 12] =
    ["null", "zero", "full", "random", "urandom", "tty", "fd", "stdin", "stdout", "stderr", "shm", "pts"];

/// The paths of the tools that make a namespace.
const TOOL_FOLDERS: [&str; 6] = ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin", "/usr/local/sbin"];

/// Mounts, then becomes the program. No variable is assigned: the shell would pass it on.
const SCRIPT: &str = r#""$1" --all --fstab "$2" >&2 || exit 125; shift 2; exec "$@""#;

/// Variables that the shell adds to the environment.
const SHELL_VARIABLES: [&str; 4] = ["PWD", "OLDPWD", "SHLVL", "_"];

/// The isolation of a container from the machine's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// A mount namespace, in a user namespace of its own if need be.
    Namespace { tools: Tools, user: bool },
    /// None: paths are rewritten.
    Rewriting,
}

/// The tools of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tools {
    unshare: PathBuf,
    sh: PathBuf,
    mount: PathBuf,
    chroot: PathBuf,
    env: PathBuf,
}

/// A folder or file that the container sees at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) path: PathBuf,
    pub(crate) source: PathBuf,
    pub(crate) read_only: bool,
}

/// A program with all that it is started with. It has no `Debug`: its environment may hold secrets.
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) working_folder: PathBuf,
    pub(crate) mounts: Vec<Mount>,
    /// An empty folder for what it takes to start it.
    pub(crate) scratch: PathBuf,
}

impl Isolation {
    /// The best that this machine allows, found by trying it.
    pub(crate) async fn probe() -> Self {
        let Some(tools) = Tools::find() else { return Self::Rewriting };
        for user in [false, true] {
            let isolation = Self::Namespace { tools: tools.clone(), user };
            if isolation.works().await.unwrap_or(false) {
                return isolation;
            }
        }
        Self::Rewriting
    }

    pub(crate) async fn works(&self) -> io::Result<bool> {
        let folder = tempfile::Builder::new().prefix("pod-probe-").tempdir()?;
        let scratch = folder.path().join("scratch");
        fs::create_dir(&scratch)?;
        let source = folder.path().join("volume");
        fs::create_dir(&source)?;
        let test = "/emulator-probe/volume";
        let mounts = vec![Mount { path: test.into(), source, read_only: true }];
        let arguments = ["-d", test].map(str::to_owned).to_vec();
        let program = tool("test").ok_or(io::ErrorKind::NotFound)?;
        let (environment, working_folder) = (BTreeMap::new(), PathBuf::from("/"));
        let launch = Launch { program, arguments, environment, working_folder, mounts, scratch };
        let output = self.command(&launch)?.kill_on_drop(true).output().await?;
        Ok(output.status.success())
    }

    /// The command that starts a program so.
    pub(crate) fn command(&self, launch: &Launch) -> io::Result<Command> {
        let Launch { program, arguments, environment, working_folder, mounts, scratch } = launch;
        let Self::Namespace { tools, user } = self else {
            let mut command = Command::new(program);
            command.args(arguments).env_clear().envs(environment).current_dir(working_folder);
            return Ok(command);
        };
        let root = scratch.join("root");
        let table = scratch.join("fstab");
        File::create_new(&table)?.write_all(build(&root, mounts, scratch)?.as_bytes())?;
        let mut command = Command::new(&tools.unshare);
        if *user {
            command.args(["--user", "--map-root-user"]);
        }
        command.args(["--mount", "--propagation", "private", "--"]);
        command.arg(&tools.sh).args(["-c", SCRIPT, "sh"]).arg(&tools.mount).arg(&table);
        command.arg(&tools.chroot).arg(&root).arg(&tools.env);
        command.args(SHELL_VARIABLES.iter().flat_map(|name| ["-u", name]));
        command.arg(format!("--chdir={}", working_folder.display()));
        // A shell drops variables with such names.
        let odd = environment.iter().filter(|(name, _)| !is_shell_name(name));
        command.args(odd.map(|(name, value)| format!("{name}={value}")));
        command.arg(program).args(arguments).env_clear().envs(environment).current_dir("/");
        Ok(command)
    }
}

impl Tools {
    fn find() -> Option<Self> {
        Some(Self {
            unshare: tool("unshare")?,
            sh: tool("sh")?,
            mount: tool("mount")?,
            chroot: tool("chroot")?,
            env: tool("env")?,
        })
    }
}

fn tool(name: &str) -> Option<PathBuf> {
    TOOL_FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}

fn is_shell_name(name: &str) -> bool {
    name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !name.starts_with(|first: char| first.is_ascii_digit())
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

/// Makes the folders of a new root, and the table of what is mounted on them.
fn build(root: &Path, mounts: &[Mount], scratch: &Path) -> io::Result<String> {
    let mut mounts: Vec<Mount> = mounts.to_vec();
    for mount in &mut mounts {
        mount.path = resolved(&mount.path);
    }
    mounts.sort_by(|one, other| one.path.cmp(&other.path));
    let mut opened = BTreeSet::from([PathBuf::from("/")]);
    let mut own = Vec::new();
    for (index, mount) in mounts.iter().enumerate() {
        let outer = mounts.iter().take(index).rev().find(|outer| mount.path.starts_with(&outer.path));
        if let Some((outer, rest)) = outer.and_then(|outer| Some((outer, mount.path.strip_prefix(&outer.path).ok()?))) {
            place(&outer.source.join(rest), &mount.source)?;
        } else if !mount.path.exists() {
            let existing = mount.path.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
            opened.extend(existing.ancestors().map(Path::to_path_buf));
        }
        own.push(line(&mount.source, &below(root, &mount.path), if mount.read_only { "bind,ro" } else { "bind" }));
    }
    let mut table = Vec::new();
    for folder in &opened {
        table.extend(open(root, folder, &opened)?);
    }
    // What holds the new root comes first, or it would show everything mounted before it a second time.
    table.sort_by_key(|(original, _)| !scratch.starts_with(original));
    for mount in &mounts {
        let target = below(root, &mount.path);
        if !mount.path.exists() {
            place(&target, &mount.source)?;
        }
    }
    Ok(table.into_iter().map(|(_, line)| line).chain(own).collect())
}

/// A folder in the new root whose entries are those of the machine's own, one by one, so that others can be added.
fn open(root: &Path, folder: &Path, opened: &BTreeSet<PathBuf>) -> io::Result<Vec<(PathBuf, String)>> {
    fs::create_dir_all(below(root, folder))?;
    let mut table = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (original, kind) = (entry.path(), entry.file_type()?);
        let is_device = entry.file_name().to_str().is_some_and(|name| DEVICES.contains(&name));
        if opened.contains(&original) || (folder == Path::new("/dev") && !is_device) {
            continue;
        }
        let target = below(root, &original);
        if kind.is_symlink() {
            symlink(fs::read_link(&original)?, &target)?;
            continue;
        }
        place(&target, &original)?;
        // What has gone meanwhile is not missed.
        let options = if kind.is_dir() { "rbind,nofail" } else { "bind,nofail" };
        table.push((original.clone(), line(&original, &target, options)));
    }
    Ok(table)
}

/// Something for `source` to be mounted on.
fn place(target: &Path, source: &Path) -> io::Result<()> {
    if source.is_dir() {
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

fn line(source: &Path, target: &Path, options: &str) -> String {
    let escaped = |path: &Path| {
        let text = path.to_string_lossy();
        text.replace('\\', "\\134").replace(' ', "\\040").replace('\t', "\\011").replace('\n', "\\012")
    };
    format!("{} {} none {options} 0 0\n", escaped(source), escaped(target))
}
