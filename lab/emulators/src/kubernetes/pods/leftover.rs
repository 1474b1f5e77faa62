//! Ends the containers' processes that a killed emulator has left behind.
//!
//! To the next emulator their Pods have failed. A process that went on would be a container that Kubernetes takes for ended.

use std::fs;
use std::io;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// File in a Pod's folder that identifies its process: its number and its start.
const FILE: &str = "process";

/// Maximum time until a killed process is gone.
const TIMEOUT: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// Records a process that leads a process group in its Pod's folder.
#[expect(
    clippy::disallowed_methods,
    reason = "a crash of the machine, which could tear the file, ends the process too"
)]
pub(super) fn record(pod: &Path, process: u32) -> io::Result<()> {
    // One without a start has ended already.
    start(process).map_or(Ok(()), |start| fs::write(pod.join(FILE), format!("{process} {start}")))
}

/// Kills the recorded process groups of all Pods in `folder`, and waits for their end.
pub(super) fn end_all(folder: &Path) -> io::Result<()> {
    for pod in fs::read_dir(folder)? {
        let Ok(recorded) = fs::read_to_string(pod?.path().join(FILE)) else { continue };
        let Some((group, started)) = recorded.split_once(' ') else { continue };
        let Ok(group) = group.parse() else { continue };
        // The number may be another process's by now. A group outlives its leader.
        if start(group).is_none_or(|start| start == started) {
            end(group)?;
        }
    }
    Ok(())
}

fn end(group: u32) -> io::Result<()> {
    let pid = |process: u32| i32::try_from(process).ok().and_then(Pid::from_raw);
    let members: Vec<_> = members(group)?.into_iter().filter_map(pid).collect();
    let opened: Vec<_> = members.iter().filter_map(|member| pidfd_open(*member, PidfdFlags::empty()).ok()).collect();
    let Some(group) = pid(group).filter(|_| !opened.is_empty()) else { return Ok(()) };
    match kill_process_group(group, Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(error) => return Err(error.into()),
    }
    for member in &opened {
        if poll(&mut [PollFd::new(member, PollFlags::IN)], Some(&TIMEOUT))? == 0 {
            return Err(io::Error::other(format!("the processes {members:?} of an earlier Pod do not end")));
        }
    }
    Ok(())
}

/// The processes of a process group.
fn members(group: u32) -> io::Result<Vec<u32>> {
    let processes = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let group = group.to_string();
    Ok(processes.filter(|process| field(*process, 2).as_ref() == Some(&group)).collect())
}

/// The start of a process in clock ticks since boot.
fn start(process: u32) -> Option<String> {
    field(process, 19)
}

/// A field of a process's `stat`, counted from the one after its name (proc(5)).
fn field(process: u32, index: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(index).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::{Child, Command, Stdio};

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
    fn a_group_is_killed_whose_leader_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & read -r line"]).process_group(0).stdin(Stdio::piped());
        let mut leader = command.spawn().unwrap();
        record(&pod(folder.path(), "pod-a"), leader.id()).unwrap();
        let group = leader.id();
        // Both are there before the leader ends.
        while members(group).unwrap().len() < 2 {
            std::thread::yield_now();
        }
        drop(leader.stdin.take());
        leader.wait().unwrap();
        assert_eq!(members(group).unwrap().len(), 1);
        end_all(folder.path()).unwrap();
        let is_running = |member: &u32| field(*member, 0).is_some_and(|state| state != "Z");
        assert_eq!(members(group).unwrap().iter().filter(|member| is_running(member)).count(), 0);
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
