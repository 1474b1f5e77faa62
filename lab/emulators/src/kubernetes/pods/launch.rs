//! From a Pod to the command that stands for its container: volumes written, environment resolved, paths mapped.
//!
//! The image's program takes the place of `command`'s first word (or of the image's entry point); the rest of `command` and
//! `args` are its arguments. The environment is what the Pod says, plus `PATH`, `SSL_CERT_FILE` and
//! `TERMINATION_LOG_PATH`.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::environment::{Environment, expand, resolve};
use super::folder::file_mode;
use super::root::{Isolation, Launch, Mount, rewritten};
use super::spec::{Container, Pod, Sources, Volume};
use super::volumes::{Content, content};

/// Default PATH of a container.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The bundles of the machine's trusted certificate authorities. The images name theirs too (`Containerfile`): without that, a
/// program reads it and a folder with the same certificates.
const CERTIFICATE_BUNDLES: [&str; 2] = ["/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/certs/ca-certificates.crt"];

/// A termination message is no longer than this.
const MESSAGE_BYTES: u64 = 4096;

/// A container that can be started.
pub(crate) struct Prepared {
    pub(crate) launch: Launch,
    pub(crate) message: MessageFile,
}

/// Path of the termination message.
#[derive(Clone, Debug)]
pub(crate) struct MessageFile {
    path: PathBuf,
    /// True if the log's end stands in for a message that is missing after a failure.
    or_log: bool,
}

/// One run of a container: in which folder, and how it is kept apart.
pub(crate) struct Run<'a> {
    pub(crate) program: &'a Path,
    /// The Pod's folder.
    pub(crate) folder: &'a Path,
    /// The number of the container's run.
    pub(crate) number: u32,
    pub(crate) isolation: &'a Isolation,
}

/// Writes all that the container needs into the Pod's folder. The error says why it cannot be started.
pub(crate) fn prepare(
    pod: &Pod,
    container: &Container,
    run: &Run<'_>,
    sources: &dyn Sources,
) -> Result<Prepared, String> {
    let mut environment = resolve(pod, container, sources)?;
    let scratch = run.folder.join(format!("run-{}", run.number));
    make_folder(&scratch, 0o700).map_err(|error| format!("cannot make a folder: {error}"))?;
    let mut mounts = Vec::new();
    for volume in &pod.spec.volumes {
        let folder = write_volume(pod, volume, run.folder, sources)?;
        let wanted = container.volume_mounts.iter().filter(|mount| mount.name == volume.name);
        let mounted = wanted.map(|mount| Mount {
            path: mount.mount_path.clone().into(),
            source: if mount.sub_path.is_empty() { folder.clone() } else { folder.join(&mount.sub_path) },
            read_only: mount.read_only || volume.empty_dir.is_none(),
        });
        mounts.extend(mounted);
    }
    let failed = |error: io::Error| format!("cannot make the container's folders: {error}");
    make_folders_of(&mounts).map_err(failed)?;
    let message = message_file(container, &scratch).map_err(failed)?;
    let mut arguments: Vec<String> =
        container.command.iter().skip(1).chain(&container.args).map(|text| expand(text, &environment)).collect();
    let seen = PathBuf::from(container.message_path());
    add_image_environment(&mut environment);
    mounts.push(Mount { path: seen.clone(), source: message.path.clone(), read_only: false });
    let (working_folder, view) = match run.isolation {
        Isolation::Namespace(roots) => {
            add_message_path(&mut environment, &seen);
            let working_folder = if container.working_dir.is_empty() { "/" } else { &container.working_dir };
            (PathBuf::from(working_folder), Some(roots.view(mounts).map_err(failed)?))
        }
        Isolation::Rewriting => {
            rewrite(&mut environment, &mut arguments, &mounts);
            add_message_path(&mut environment, &message.path);
            let idle = run.folder.join("work");
            make_folder(&idle, 0o555).map_err(failed)?;
            let wanted = rewritten(&container.working_dir, &mounts);
            (if wanted.is_empty() { idle } else { wanted.into() }, None)
        }
    };
    let mut command = Command::new(run.program);
    command.args(arguments).env_clear().envs(environment).current_dir(working_folder);
    let launch = Launch { command, view };
    Ok(Prepared { launch, message })
}

/// Adds what the environment of the image would be.
fn add_image_environment(environment: &mut Environment) {
    environment.entry("PATH".to_owned()).or_insert_with(|| PATH.to_owned());
    if let Some(bundle) = CERTIFICATE_BUNDLES.iter().find(|path| Path::new(path).is_file()) {
        environment.entry("SSL_CERT_FILE".to_owned()).or_insert_with(|| (*bundle).to_owned());
    }
}

fn add_message_path(environment: &mut Environment, path: &Path) {
    let path = path.display().to_string();
    environment.entry("TERMINATION_LOG_PATH".to_owned()).or_insert(path);
}

fn rewrite(environment: &mut Environment, arguments: &mut [String], mounts: &[Mount]) {
    for value in environment.values_mut().chain(arguments) {
        *value = rewritten(value, mounts);
    }
}

/// An `emptyDir` stays for the life of the Pod; everything else is written anew for every run.
fn write_volume(pod: &Pod, volume: &Volume, folder: &Path, sources: &dyn Sources) -> Result<PathBuf, String> {
    let folder = folder.join("volumes").join(&volume.name);
    let Content(files) = content(pod, volume, sources)?;
    let write = || -> io::Result<()> {
        if volume.empty_dir.is_none() && folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        make_folder(&folder, 0o700)?;
        for (path, (bytes, mode)) in &files {
            let path = folder.join(path);
            if let Some(parent) = path.parent() {
                make_folder(parent, 0o700)?;
            }
            File::options().write(true).create_new(true).mode(0o600).open(&path)?.write_all(bytes)?;
            fs::set_permissions(&path, Permissions::from_mode(file_mode(*mode)))?;
        }
        Ok(())
    };
    write().map_err(|error| format!("cannot write the volume {:?}: {error}", volume.name))?;
    Ok(folder)
}

/// A `subPath` that is not there yet is a folder.
fn make_folders_of(mounts: &[Mount]) -> io::Result<()> {
    mounts.iter().filter(|mount| !mount.source.exists()).try_for_each(|mount| make_folder(&mount.source, 0o700))
}

fn make_folder(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(path)
}

fn message_file(container: &Container, scratch: &Path) -> io::Result<MessageFile> {
    let path = scratch.join("termination-log");
    File::create_new(&path)?;
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok(MessageFile { path, or_log: container.termination_message_policy == "FallbackToLogsOnError" })
}

impl Container {
    fn message_path(&self) -> &str {
        let path = self.termination_message_path.as_str();
        if path.is_empty() { "/dev/termination-log" } else { path }
    }
}

impl MessageFile {
    /// The termination message, up to its limit; after a failure perhaps the end of the log instead.
    pub(crate) fn read(&self, failed: bool, tail: impl FnOnce() -> String) -> String {
        let mut bytes = Vec::new();
        let file = File::open(&self.path);
        // A message that cannot be read is no message.
        drop(file.and_then(|file| file.take(MESSAGE_BYTES).read_to_end(&mut bytes)));
        if bytes.is_empty() && failed && self.or_log {
            return tail();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
