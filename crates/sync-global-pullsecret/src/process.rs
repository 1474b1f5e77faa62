//! The process, from its command line to its exit code.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use daemon::backoff::Backoff;
use daemon::environment::ProcessEnvironment;
use jiff::Timestamp;
use std::collections::BTreeMap;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::cli::Command;
use crate::disk::{Disk as _, RealDisk};
use crate::kubelet_file::{FOLDER, KubeletFile};
use crate::lock::{Lock, LockError};
use crate::reason::Reason;
use crate::run::{FileEvents, Inputs, Syncer};
use crate::serve::Scope;
use crate::settings::{Settings, Values};
use crate::source::{CredentialsReader, SourceSettings, Watch};
use crate::status::{SharedStatus, Status};
use crate::units::Systemd;
use crate::{cli, client, confirm, serve};

/// Exit code: not ready, or a defect.
const FAILED: u8 = 1;
/// Exit code: invalid settings.
const INVALID_SETTINGS: u8 = 2;
/// Exit code: another syncer runs on this node.
const LOCKED: u8 = 5;

/// Back-off while the disk cannot be used.
const OPEN: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(1));

type Flags = BTreeMap<&'static str, String>;

/// Runs the command line.
pub fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    let (command, flags) = match cli::parse(arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            let _unwritable = writeln!(io::stderr(), "error: {error}");
            return ExitCode::from(INVALID_SETTINGS);
        }
    };
    let result = match command {
        Command::Ready => ready(&flags),
        Command::Status => status(&flags),
        Command::Sync => sync(&flags),
        Command::Help => print(&cli::help()).map(|()| ExitCode::SUCCESS),
        Command::Version => print(&version(&flags)).map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|error| {
        let _unwritable = writeln!(io::stderr(), "error: {error:#}");
        ExitCode::from(FAILED)
    })
}

fn print(text: &str) -> anyhow::Result<()> {
    io::stdout().write_all(text.as_bytes()).context("cannot write to standard output")
}

fn version(flags: &Flags) -> String {
    let version = daemon::version!("sync-global-pullsecret");
    if is_json(flags) { version.json() } else { version.text() }
}

fn is_json(flags: &Flags) -> bool {
    flags.get(cli::OUTPUT).is_some_and(|format| format == "json")
}

fn running_status(flags: &Flags) -> anyhow::Result<Result<Status, client::StatusError>> {
    let flags = |flag: &str| flags.get(flag).cloned();
    let socket = Values::new(&flags, &ProcessEnvironment).socket();
    let socket = socket.map_err(|faults| anyhow::anyhow!("{}", faults.join("; ")))?;
    Ok(client::status(&socket))
}

fn ready(flags: &Flags) -> anyhow::Result<ExitCode> {
    match running_status(flags)? {
        answer if is_json(flags) => {
            let is_ready = answer.as_ref().is_ok_and(|status| status.ready);
            let text = match answer {
                Ok(status) => serde_json::to_string_pretty(&status).context("cannot write the status")?,
                Err(error) => format!("{:#}", serde_json::json!({ "ready": false, "message": error.to_string() })),
            };
            print(&(text + "\n"))?;
            Ok(if is_ready { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
        }
        Ok(status) => {
            let fault = status.source_unavailable.or(status.fault);
            let fault = fault.map(|fault| format!(" ({fault})")).unwrap_or_default();
            print(&format!("{}: {}{fault}\n", status.reason, status.message))?;
            Ok(if status.ready { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
        }
        Err(error) => {
            print(&format!("{error}\n"))?;
            Ok(ExitCode::from(FAILED))
        }
    }
}

fn status(flags: &Flags) -> anyhow::Result<ExitCode> {
    let status = running_status(flags)??;
    if is_json(flags) {
        print(&(serde_json::to_string_pretty(&status).context("cannot write the status")? + "\n"))?;
    } else {
        print(&status.to_text())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn sync(flags: &Flags) -> anyhow::Result<ExitCode> {
    let flags = |flag: &str| flags.get(flag).cloned();
    let log = Values::new(&flags, &ProcessEnvironment).log();
    daemon::log::start(log)?;
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        error!(operation = "panic", "Panic at {location}: this is a defect, please report it");
    }));
    let settings = match Values::new(&flags, &ProcessEnvironment).resolve() {
        Ok(settings) => settings,
        Err(faults) => {
            for fault in faults {
                error!(operation = "settings", "{fault}");
            }
            return Ok(ExitCode::from(INVALID_SETTINGS));
        }
    };
    // One thread: nothing here runs in parallel, and a node has better uses for its memory.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(async {
        let stop = daemon::shutdown::on_signal().context("cannot listen for signals")?;
        Ok(serve_node(settings, stop).await)
    })
}

/// The result of opening the kubelet's file.
enum Opened {
    Open(Lock, Box<KubeletFile<RealDisk>>),
    Locked,
    Stopped,
}

async fn serve_node(settings: Settings, stop: CancellationToken) -> ExitCode {
    let status = SharedStatus::new(Status::new(settings.revision.expected.clone(), Timestamp::now()));
    for (flag, address, scope) in
        [("listen", settings.listen, Scope::All), ("metrics-listen", settings.metrics_listen, Scope::Metrics)]
    {
        let Some(address) = address else { continue };
        match TcpListener::bind(address).await {
            Ok(listener) => drop(tokio::spawn(serve::address(listener, status.clone(), scope))),
            Err(error) => warn!(operation = "listen", "--{flag}: cannot listen on this address: {}", error.kind()),
        }
    }
    match open(&settings, &status, &stop).await {
        Opened::Open(lock, file) => {
            run(&settings, *file, &status, stop).await;
            drop(lock);
        }
        Opened::Stopped => {}
        Opened::Locked => {
            error!(operation = "lock", "{}", LockError::Held);
            return ExitCode::from(LOCKED);
        }
    }
    info!(operation = "stop", "Stopped");
    write_termination_log(&settings.termination_log, &status);
    ExitCode::SUCCESS
}

/// Opens the kubelet's file. Retries while the disk cannot be used or the folder is missing.
async fn open(settings: &Settings, status: &SharedStatus, stop: &CancellationToken) -> Opened {
    let mut failures = 0_u32;
    loop {
        let fault = match try_open(settings) {
            Ok(Some((lock, file))) => return Opened::Open(lock, Box::new(file)),
            Ok(None) => return Opened::Locked,
            Err(fault) => fault,
        };
        failures = failures.saturating_add(1);
        warn!(operation = "open", "{fault}");
        let reason = Reason::DiskFault;
        status.update(|status| {
            reason.as_str().clone_into(&mut status.reason);
            reason.meaning().clone_into(&mut status.message);
            status.fault = Some(fault);
            status.counts.disk_faults += 1;
        });
        tokio::select! {
            () = stop.cancelled() => return Opened::Stopped,
            () = tokio::time::sleep(OPEN.nominal(failures)) => {}
        }
    }
}

fn try_open(settings: &Settings) -> Result<Option<(Lock, KubeletFile<RealDisk>)>, String> {
    let folder = settings.kubelet_file.parent().map(|parent| parent.join(FOLDER)).unwrap_or_default();
    RealDisk.make_folder(&folder).map_err(|error| format!("cannot create the state folder: {error}"))?;
    let lock = match Lock::take(&folder.join("lock")) {
        Ok(lock) => lock,
        Err(LockError::Held) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let file = KubeletFile::open(RealDisk, &settings.kubelet_file, settings.unmanaged_entries);
    file.map(|file| Some((lock, file))).map_err(|error| error.to_string())
}

async fn run(settings: &Settings, file: KubeletFile<RealDisk>, status: &SharedStatus, stop: CancellationToken) {
    match serve::bind(&settings.socket) {
        Ok(listener) => drop(tokio::spawn(serve::socket(listener, status.clone()))),
        Err(error) => warn!(operation = "listen", "cannot listen on the status socket: {}", error.kind()),
    }
    let (sender, source_events) = mpsc::channel(4);
    let reader = CredentialsReader::new(file.key().clone());
    drop(tokio::spawn(settings.source.clone().run(reader, sender)));
    if let (Some(confirm), SourceSettings::Api(api)) = (&settings.confirm, &settings.source) {
        drop(tokio::spawn(confirm::run(confirm.clone(), api.clone(), status.clone())));
    }
    let file_events = match watch_file(&settings.kubelet_file) {
        Ok(events) => Some(events),
        Err(error) => {
            warn!(operation = "watch", "changes of the kubelet's file by other programs go unnoticed: {error}");
            None
        }
    };
    let units = Systemd::new(settings.unit.clone());
    let syncer = Syncer::new(file, units, settings.rules, settings.revision.clone(), status.clone());
    syncer.run(Inputs { source_events, file_events, stop }).await;
}

/// Watches the kubelet's file for changes.
fn watch_file(file: &Path) -> io::Result<FileEvents> {
    use std::os::unix::ffi::OsStrExt as _;
    let parent = file.parent().unwrap_or(Path::new("/"));
    let watch = Watch::new()?;
    watch.add(parent)?;
    Ok(FileEvents { watch, name: file.file_name().unwrap_or_default().as_bytes().to_vec() })
}

/// Writes the last status for Kubernetes, which shows it with the terminated container.
fn write_termination_log(path: &Path, status: &SharedStatus) {
    let Ok(mut file) = std::fs::OpenOptions::new().write(true).truncate(true).open(path) else { return };
    let status = status.read();
    let _unwritable = writeln!(file, "{}: {}", status.reason, status.message);
}
