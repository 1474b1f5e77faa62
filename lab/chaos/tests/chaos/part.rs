//! One process of the fleet plane: started, killed, started again; all that it prints is kept.

use std::fs::OpenOptions;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Maximum time of an orderly shutdown, on a busy machine.
const FAREWELL: Duration = Duration::from_mins(2);

pub(crate) struct Part {
    pub(crate) name: &'static str,
    command: Box<dyn Fn() -> Command + Send>,
    log: PathBuf,
    /// Length of the log when the process was started.
    printed_before: u64,
    child: Option<Child>,
}

impl Part {
    /// A part that does not run yet.
    pub(crate) fn new(
        folder: &Path,
        name: &'static str,
        arguments: Vec<String>,
        environment: Vec<(&'static str, String)>,
    ) -> Self {
        let log = folder.join(format!("{name}.log"));
        let folder = folder.to_path_buf();
        // The emulators are in a program of their own.
        let program = if arguments[0] == "emulator" { "pull-secret-local" } else { "pull-secret" };
        let program = testkit::program::path(program);
        let command = Box::new(move || {
            let mut command = Command::new(&program);
            command.args(&arguments).env_clear().envs(environment.iter().cloned()).current_dir(&folder);
            command.stdin(Stdio::null()).kill_on_drop(true);
            command
        });
        Self { name, command, log, printed_before: 0, child: None }
    }

    pub(crate) fn start(&mut self) {
        let log = OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        self.printed_before = log.metadata().unwrap().len();
        let mut command = (self.command)();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().unwrap());
    }

    /// Ends it with that signal. The error says what was not as it should be: nothing ends by itself, and what is asked to end
    /// ends well.
    pub(crate) async fn end(&mut self, signal: Signal) -> Result<(), String> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let name = self.name;
        if let Some(ended) = self.ended(&mut child) {
            return Err(ended);
        }
        kill_process(pid(&child), signal).unwrap();
        let Ok(status) = timeout(FAREWELL, child.wait()).await else {
            drop(child.kill().await);
            return Err(format!("{name} did not end when it was asked to"));
        };
        let status = status.unwrap();
        // The signal itself ends a process that does not listen to it yet.
        let is_early = status.signal() == Some(Signal::TERM.as_raw()) && !self.has_printed();
        if signal == Signal::TERM && status.code() != Some(0) && !is_early {
            return Err(format!("{name} was asked to end, and did so with {status}; see {}", self.log.display()));
        }
        Ok(())
    }

    /// Returns true if the process has printed anything since its start.
    fn has_printed(&self) -> bool {
        std::fs::metadata(&self.log).unwrap().len() > self.printed_before
    }

    /// The exit of the process, if it has ended.
    pub(crate) fn has_ended(&mut self) -> Option<String> {
        let mut child = self.child.take()?;
        let ended = self.ended(&mut child);
        self.child = Some(child);
        ended
    }

    fn ended(&self, child: &mut Child) -> Option<String> {
        let status = child.try_wait().unwrap()?;
        Some(format!("{} has ended by itself: {status}; see {}", self.name, self.log.display()))
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap()
}
