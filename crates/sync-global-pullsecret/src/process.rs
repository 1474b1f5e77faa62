//! A process from its command line to its exit code.

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
use crate::run::{Ears, Syncer};
use crate::settings::{Settings, Values};
use crate::source::{Reader, Watch};
use crate::status::{Board, Status};
use crate::units::Systemd;
use crate::{ask, cli, serve};

/// Not ready, or a defect.
const FAILED: u8 = 1;
/// Settings are wrong.
const WRONG_SETTINGS: u8 = 2;
/// Another syncer works on this node.
const TAKEN: u8 = 5;

/// Back-off while the disk cannot be used.
const OPEN: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(1));

type Flags = BTreeMap<&'static str, String>;

/// Runs the command line.
pub fn main() -> ExitCode {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let (command, flags) = match cli::parse(words) {
        Ok(line) => line,
        Err(wrong) => {
            let _nobody_listens = writeln!(io::stderr(), "error: {wrong}");
            return ExitCode::from(WRONG_SETTINGS);
        }
    };
    let ended = match command {
        Command::Ready => ready(&flags),
        Command::Status => status(&flags),
        Command::Sync => sync(&flags),
        Command::Help => say(&cli::help()).map(|()| ExitCode::SUCCESS),
        Command::Version => {
            let version = env!("CARGO_PKG_VERSION");
            say(&format!("sync-global-pullsecret {version}\n")).map(|()| ExitCode::SUCCESS)
        }
    };
    ended.unwrap_or_else(|error| {
        let _nobody_listens = writeln!(io::stderr(), "error: {error:#}");
        ExitCode::from(FAILED)
    })
}

fn say(text: &str) -> anyhow::Result<()> {
    io::stdout().write_all(text.as_bytes()).context("cannot write to standard output")
}

fn ask_running(flags: &Flags) -> anyhow::Result<Result<Status, ask::AskError>> {
    let flags = |flag: &str| flags.get(flag).cloned();
    let socket = Values::new(&flags, &ProcessEnvironment).socket();
    let socket = socket.map_err(|faults| anyhow::anyhow!("{}", faults.join("; ")))?;
    Ok(ask::status(&socket))
}

fn ready(flags: &Flags) -> anyhow::Result<ExitCode> {
    match ask_running(flags)? {
        Ok(status) => {
            let fault = status.fault.map(|fault| format!(" ({fault})")).unwrap_or_default();
            say(&format!("{}: {}{fault}\n", status.reason, status.message))?;
            Ok(if status.ready { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
        }
        Err(error) => {
            say(&format!("{error}\n"))?;
            Ok(ExitCode::from(FAILED))
        }
    }
}

fn status(flags: &Flags) -> anyhow::Result<ExitCode> {
    let status = ask_running(flags)??;
    if flags.get("output").is_some_and(|format| format == "json") {
        say(&(serde_json::to_string_pretty(&status).context("cannot write the status")? + "\n"))?;
    } else {
        say(&status.to_text())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn sync(flags: &Flags) -> anyhow::Result<ExitCode> {
    let flags = |flag: &str| flags.get(flag).cloned();
    let log = Values::new(&flags, &ProcessEnvironment).log();
    daemon::log::start(log)?;
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        error!(operation = "panic", "The program has a defect at {place}");
    }));
    let settings = match Values::new(&flags, &ProcessEnvironment).resolve() {
        Ok(settings) => settings,
        Err(faults) => {
            for fault in faults {
                error!(operation = "settings", "{fault}");
            }
            return Ok(ExitCode::from(WRONG_SETTINGS));
        }
    };
    // One thread: nothing here is done at the same time, and a node has better uses for its memory.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(async {
        let stop = daemon::shutdown::on_signal().context("cannot listen for signals")?;
        Ok(serve_node(settings, stop).await)
    })
}

/// How taking hold of the node's file ended.
enum Opened {
    Open(Lock, Box<KubeletFile<RealDisk>>),
    Taken,
    Stopped,
}

async fn serve_node(settings: Settings, stop: CancellationToken) -> ExitCode {
    let board = Board::new(Status::new(settings.revision.expected.clone(), Timestamp::now()));
    if let Some(address) = settings.listen {
        match TcpListener::bind(address).await {
            Ok(listener) => drop(tokio::spawn(serve::loopback(listener, board.clone()))),
            Err(error) => warn!(operation = "listen", "--listen: cannot listen there: {}", error.kind()),
        }
    }
    match open(&settings, &board, &stop).await {
        Opened::Open(lock, file) => {
            run(&settings, *file, &board, stop).await;
            drop(lock);
        }
        Opened::Stopped => {}
        Opened::Taken => {
            error!(operation = "lock", "{}", LockError::Taken);
            return ExitCode::from(TAKEN);
        }
    }
    info!(operation = "stop", "Stopped");
    leave_last_word(&settings.termination_log, &board);
    ExitCode::SUCCESS
}

/// Takes hold of the kubelet's file. A disk that cannot be used, or a folder that is not there, is waited for.
async fn open(settings: &Settings, board: &Board, stop: &CancellationToken) -> Opened {
    let mut failures = 0_u32;
    loop {
        let why = match try_open(settings) {
            Ok(Some((lock, file))) => return Opened::Open(lock, Box::new(file)),
            Ok(None) => return Opened::Taken,
            Err(why) => why,
        };
        failures = failures.saturating_add(1);
        warn!(operation = "open", "{why}");
        let reason = Reason::DiskFault;
        board.change(|status| {
            reason.name().clone_into(&mut status.reason);
            reason.meaning().clone_into(&mut status.message);
            status.fault = Some(why);
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
    RealDisk.make_folder(&folder).map_err(|error| format!("cannot make the folder of the state: {error}"))?;
    let lock = match Lock::take(&folder.join("lock")) {
        Ok(lock) => lock,
        Err(LockError::Taken) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let file = KubeletFile::open(RealDisk, &settings.kubelet_file, settings.foreign);
    file.map(|file| Some((lock, file))).map_err(|error| error.to_string())
}

async fn run(settings: &Settings, file: KubeletFile<RealDisk>, board: &Board, stop: CancellationToken) {
    match serve::bind(&settings.socket) {
        Ok(listener) => drop(tokio::spawn(serve::socket(listener, board.clone()))),
        Err(error) => warn!(operation = "listen", "cannot make the socket of health and status: {}", error.kind()),
    }
    let (sender, sayings) = mpsc::channel(4);
    let reader = Reader::new(file.key().clone());
    drop(tokio::spawn(settings.source.clone().run(reader, sender)));
    let touches = match touches(&settings.kubelet_file) {
        Ok(touches) => Some(touches),
        Err(error) => {
            warn!(operation = "watch", "changes of the kubelet's file by others will not be seen: {error}");
            None
        }
    };
    let units = Systemd::new(settings.unit.clone());
    let syncer = Syncer::new(file, units, settings.rules, settings.revision.clone(), board.clone());
    syncer.run(Ears { sayings, touches, stop }).await;
}

/// What tells of changes of the kubelet's file.
fn touches(file: &Path) -> io::Result<(Watch, Vec<u8>)> {
    use std::os::unix::ffi::OsStrExt as _;
    let parent = file.parent().unwrap_or(Path::new("/"));
    let watch = Watch::new()?;
    watch.add(parent)?;
    Ok((watch, file.file_name().unwrap_or_default().as_bytes().to_vec()))
}

/// Kubernetes shows it with the ended container.
fn leave_last_word(path: &Path, board: &Board) {
    let Ok(mut file) = std::fs::OpenOptions::new().write(true).truncate(true).open(path) else { return };
    let status = board.read();
    let _nobody_reads = writeln!(file, "{}: {}", status.reason, status.message);
}
