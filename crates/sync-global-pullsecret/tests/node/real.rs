//! A node with a real systemd, a syncer's process on it, and a folder of mounted Secrets.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use sync_global_pullsecret::client;
use sync_global_pullsecret::status::Status;
use tempfile::TempDir;

/// Time limit for anything on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(2);

static NODES: AtomicU32 = AtomicU32::new(0);

/// A node of its own for one test; it ends with the test.
pub(crate) struct Node {
    script: String,
    name: String,
    pub(crate) bus: String,
    pub(crate) kubelet: PathBuf,
    enter: PathBuf,
    source: Mounted,
}

/// A folder as the kubelet mounts Secrets into it.
pub(crate) struct Mounted {
    folder: TempDir,
    swaps: AtomicU32,
}

/// A syncer's process.
pub(crate) struct Syncer {
    child: Child,
    lines: Receiver<String>,
    /// The lines that it has logged so far.
    pub(crate) log: Vec<String>,
}

/// A node; without a systemd to run it, `None` and one line that says how to get one.
pub(crate) fn node() -> Option<Node> {
    let Some(script) = environment("REAL_SYSTEMD_SCRIPT") else {
        let notice = "not tried on a real systemd: run it by `hack/real-parts/with.sh systemd -- cargo test …`";
        assert!(environment("CI").as_deref() != Some("true"), "{notice}");
        eprintln!("{notice}");
        return None;
    };
    let name = format!("test-{}-{}", std::process::id(), NODES.fetch_add(1, Ordering::Relaxed));
    let exports = run(&script, "up", &name);
    let (bus, kubelet) = (export(&exports, "REAL_SYSTEMD_BUS"), export(&exports, "REAL_SYSTEMD_KUBELET").into());
    let enter = export(&exports, "REAL_SYSTEMD_ENTER").into();
    Some(Node { script, name, bus, kubelet, enter, source: Mounted::new() })
}

/// Runs a command of the node's script; returns its output.
fn run(script: &str, command: &str, name: &str) -> String {
    let output = Command::new(script).args([command, name]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn export(exports: &str, name: &str) -> String {
    let prefix = format!("export {name}=");
    exports.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap().to_owned()
}

fn environment(name: &str) -> Option<String> {
    use daemon::environment::Environment as _;
    daemon::environment::ProcessEnvironment.text(name).unwrap()
}

impl Node {
    pub(crate) fn script(&self, command: &str) {
        drop(run(&self.script, command, &self.name));
    }

    /// Cuts its power, at which the syncer ends too, and starts it again.
    pub(crate) fn reboot(&mut self, syncer: Syncer) {
        syncer.kill();
        self.bus = export(&run(&self.script, "reboot", &self.name), "REAL_SYSTEMD_BUS");
    }

    /// Runs a command in the node; returns its output.
    pub(crate) fn inside(&self, arguments: &[&str]) -> String {
        let output = Command::new(&self.enter).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub(crate) fn publish(&self, text: &str) {
        self.source.publish("global", Some(text), None);
    }

    pub(crate) fn file(&self) -> Option<String> {
        fs::read_to_string(self.kubelet.join("config.json")).ok()
    }

    pub(crate) fn put_file(&self, text: &str) {
        let temporary = self.kubelet.join("put");
        daemon::file::replace(&temporary, text.as_bytes()).unwrap();
        fs::rename(temporary, self.kubelet.join("config.json")).unwrap();
        // The kubelet runs with it, as on a node that has booted with it, unless it never gets ready with it.
        let flags: &[&str] = if text.contains("hang") { &["--no-block"] } else { &[] };
        self.inside(&["systemctl", "reset-failed", "kubelet.service"]);
        self.inside(&[&["systemctl", "restart", "kubelet.service"], flags].concat());
        self.inside(&["systemctl", "reset-failed", "kubelet.service"]);
    }

    /// The file that the kubelet read at its last start.
    pub(crate) fn loaded_file(&self) -> Option<String> {
        fs::read_to_string(self.kubelet.join("seen.json")).ok()
    }

    pub(crate) fn starts(&self) -> usize {
        fs::read_to_string(self.kubelet.join("starts")).unwrap().lines().count()
    }

    pub(crate) fn state(&self) -> String {
        self.inside(&["systemctl", "is-active", "kubelet.service"])
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.kubelet.join("global-pull-secret/socket")
    }

    pub(crate) fn status(&self) -> Status {
        client::status(&self.socket()).unwrap()
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sync-global-pullsecret"));
        command.args(["--bus", &self.bus, "--stable-for", "1s", "--restart-timeout", "30s"]);
        command.arg("--kubelet-file").arg(self.kubelet.join("config.json"));
        command.arg("--from-files").arg(self.source.path());
        command
    }

    pub(crate) fn sync(&self, further: &[&str]) -> Syncer {
        let mut command = self.command();
        command.args(further);
        Syncer::start(command)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _too_late_to_care = Command::new(&self.script).args(["down", &self.name]).output();
    }
}

impl Mounted {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), swaps: AtomicU32::new(0) }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Replaces all files of a Secret at once, as the kubelet does: by the swap of a link.
    pub(crate) fn publish(&self, secret: &str, text: Option<&str>, revision: Option<&str>) {
        let folder = self.folder.path().join(secret);
        let state = format!("..{}", self.swaps.fetch_add(1, Ordering::Relaxed));
        fs::create_dir_all(folder.join(&state)).unwrap();
        for (name, text) in [(".dockerconfigjson", text), ("revision", revision)] {
            if let Some(text) = text {
                daemon::file::replace(&folder.join(&state).join(name), text.as_bytes()).unwrap();
            }
        }
        let old = fs::read_link(folder.join("..data")).ok();
        symlink(&state, folder.join("..data_tmp")).unwrap();
        fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
        if let Some(old) = old {
            fs::remove_dir_all(folder.join(old)).unwrap();
        }
    }
}

impl Syncer {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines, log: Vec::new() }
    }

    /// Waits for the next log line; `None` when there will be none.
    pub(crate) fn line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(TIMEOUT) {
            Ok(line) => {
                self.log.push(line.clone());
                Some(line)
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                panic!("nothing more is logged:\n{}", self.log.join("\n"))
            }
        }
    }

    pub(crate) fn until_line(&mut self, text: &str) {
        loop {
            let line = self.line().unwrap_or_else(|| panic!("it has ended:\n{}", self.log.join("\n")));
            if line.contains(text) {
                return;
            }
        }
    }

    /// Waits until it reports this reason.
    pub(crate) fn until(&mut self, reason: &str) {
        self.until_line(&format!("\"reason\":\"{reason}\""));
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn terminate(mut self) -> ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap()
    }

    pub(crate) fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _reaped = self.child.wait();
    }
}
