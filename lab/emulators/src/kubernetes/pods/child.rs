//! A container's process, from its start until it is reaped.
//!
//! It leads a process group of its own, and the group ends with it, as a container does. When the emulator stops or is
//! dropped, the group is killed. An emulator that is itself killed with SIGKILL cannot do that: the next one does ([`leftover`]).

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Child;
use tokio::sync::mpsc::UnboundedReceiver;

use super::leftover;
use super::log::Log;
use super::root::Launch;

/// Maximum time that output is read from a process that has left the process group.
const DRAIN: Duration = Duration::from_secs(1);

/// A signal to a running process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Terminate,
    Kill,
}

/// A process group that does not outlive this.
struct Group(Option<Pid>);

/// Runs a program of the Pod with this folder until it ends and all of its output is in the log.
pub(crate) async fn run(
    mut launch: Launch,
    pod: &Path,
    log: &Log,
    mut orders: UnboundedReceiver<Order>,
) -> io::Result<ExitStatus> {
    launch.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    launch.command.process_group(0).kill_on_drop(true);
    let mut child = launch.spawn().await?;
    let group = Group::of(&child);
    child.id().map_or(Ok(()), |process| leftover::record(pod, process))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let output = async { tokio::join!(copy(stdout, log), copy(stderr, log)) };
    tokio::pin!(output);
    let mut drained = false;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            Some(order) = orders.recv() => group.signal(order),
            _ = &mut output, if !drained => drained = true,
        }
    };
    drop(group);
    if !drained {
        // Only a process that has left the group can still hold the pipe; its output is not waited for.
        drop(tokio::time::timeout(DRAIN, output).await);
    }
    Ok(status)
}

async fn copy(output: Option<impl AsyncRead + Unpin>, log: &Log) {
    let Some(mut output) = output else { return };
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        log.append(buffer.get(..count).unwrap_or_default());
    }
}

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)))
    }

    /// A process that is gone already needs no signal.
    fn signal(&self, order: Order) {
        let Some(leader) = self.0 else { return };
        let signalled = match order {
            Order::Terminate => kill_process(leader, Signal::TERM),
            Order::Kill => kill_process_group(leader, Signal::KILL),
        };
        signalled.unwrap_or_default();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Order::Kill);
    }
}
