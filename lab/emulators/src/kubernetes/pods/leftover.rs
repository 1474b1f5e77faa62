//! Ends the containers' processes that a killed emulator has left behind.
//!
//! To the next emulator their Pods have failed. A process that went on would be a container that Kubernetes takes for ended.

use std::fs;
use std::io;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// File in a Pod's folder that identifies its process: its number and its start.
const FILE: &str = "process";

/// Maximum time until a killed process is gone.
const PATIENCE: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// Records a process that leads a process group in its Pod's folder.
#[expect(
    clippy::disallowed_methods,
    reason = "a crash of the machine, which could tear the file, ends the process too"
)]
pub(super) fn record(pod: &Path, process: u32) -> io::Result<()> {
    // One without a start has ended already.
    start(process).map_or(Ok(()), |start| fs::write(pod.join(FILE), format!("{process} {start}")))
}

/// Kills the recorded processes of all Pods in `folder`, and waits for their end.
pub(super) fn end_all(folder: &Path) -> io::Result<()> {
    for pod in fs::read_dir(folder)? {
        let Ok(recorded) = fs::read_to_string(pod?.path().join(FILE)) else { continue };
        let Some((process, started)) = recorded.split_once(' ') else { continue };
        let Some(pid) = process.parse().ok().and_then(Pid::from_raw) else { continue };
        let Ok(opened) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        // The number may be another process's by now.
        if start(pid.as_raw_nonzero().get().unsigned_abs()).as_deref() != Some(started) {
            continue;
        }
        kill_process_group(pid, Signal::KILL)?;
        if poll(&mut [PollFd::new(&opened, PollFlags::IN)], Some(&PATIENCE))? == 0 {
            return Err(io::Error::other(format!("process {pid} of an earlier Pod does not end")));
        }
    }
    Ok(())
}

/// The start of a process in clock ticks since boot: the 22nd field of its `stat`, the 20th after its name (proc(5)).
fn start(process: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::{Child, Command};

    use super::*;

    fn process() -> Child {
        Command::new("sleep").arg("600").process_group(0).spawn().unwrap()
    }

    fn pod(folder: &Path, name: &str) -> std::path::PathBuf {
        let pod = folder.join(name);
        fs::create_dir(&pod).unwrap();
        pod
    }

    #[test]
    fn recorded_processes_are_killed() {
        let folder = tempfile::tempdir().unwrap();
        let mut left = process();
        record(&pod(folder.path(), "pod-a"), left.id()).unwrap();
        pod(folder.path(), "pod-that-never-ran");
        end_all(folder.path()).unwrap();
        assert_eq!(left.wait().unwrap().signal(), Some(9));
        // One that is gone is no error.
        end_all(folder.path()).unwrap();
    }

    #[test]
    fn another_process_with_the_number_is_spared() {
        let folder = tempfile::tempdir().unwrap();
        let mut other = process();
        let pod = pod(folder.path(), "pod-a");
        record(&pod, other.id()).unwrap();
        let earlier = format!("{} 1", other.id());
        daemon::file::replace(&pod.join(FILE), earlier.as_bytes()).unwrap();
        end_all(folder.path()).unwrap();
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
