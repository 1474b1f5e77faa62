//! The process, from its command line to its exit code.

use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use jiff::Timestamp;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use zeroize::Zeroizing;

use crate::refusal::Refusal;
use crate::request::Request;
use crate::settings::{self, Command, Settings};
use crate::{decide, exchange};

/// The most bytes of a request. Annotations of one object have 256 KiB at most.
const LONGEST_REQUEST: u64 = 1024 * 1024;

/// Runs the command line.
pub fn main() -> ExitCode {
    protect_memory();
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            let _unwritable = writeln!(io::stderr(), "error: {refusal}");
            ExitCode::from(refusal.code())
        }
    }
}

/// Leaves no core dump. `daemon` does more for processes that stay, and would bring a runtime.
fn protect_memory() {
    let _best_effort = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _best_effort = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

fn run(arguments: impl Iterator<Item = String>) -> Result<(), Refusal> {
    match settings::parse(arguments).map_err(Refusal::Arguments)? {
        Command::Help => print(settings::help().as_bytes()),
        Command::Version => print(version().as_bytes()),
        Command::Provide(settings) => provide(&settings),
    }
}

fn provide(settings: &Settings) -> Result<(), Refusal> {
    let request = Request::parse(&read_request()?)?;
    let exchange = Arc::new(decide::exchange(settings, request)?);
    let answer = exchange::perform(&exchange, settings)?;
    print(&decide::response(settings, &exchange, &answer, Timestamp::now())?)
}

fn read_request() -> Result<Zeroizing<Vec<u8>>, Refusal> {
    let mut text = Zeroizing::new(Vec::new());
    let size = io::stdin().lock().take(LONGEST_REQUEST + 1).read_to_end(&mut text);
    let size = size.map_err(|error| Refusal::Request(error.to_string()))?;
    if u64::try_from(size).is_ok_and(|size| size > LONGEST_REQUEST) {
        return Err(Refusal::Request("it is too large".to_owned()));
    }
    Ok(text)
}

fn version() -> String {
    let version = option_env!("VERSION").unwrap_or(env!("CARGO_PKG_VERSION"));
    let (commit, built) = (option_env!("COMMIT").unwrap_or("unknown"), option_env!("BUILD_DATE").unwrap_or("unknown"));
    format!(
        "keyless-credential-provider version info:\n  Version:    {version}\n  Commit:     {commit}\n  Built:      {built}\n"
    )
}

fn print(text: &[u8]) -> Result<(), Refusal> {
    let mut out = io::stdout().lock();
    out.write_all(text).and_then(|()| out.flush()).map_err(Refusal::Output)
}
