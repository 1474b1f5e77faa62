//! The settings of the commands about events, and the errors of their broker.

use std::collections::BTreeMap;
use std::process::ExitCode;

use daemon::environment::ProcessEnvironment;
use daemon::faults::Faults;
use daemon::output::{self, plain};
use daemon::retry::Transient as _;
use daemon::settings::Loaded;
use message_broker::BrokerError;
use sentinel::settings::table::EVENTS;
use sentinel::settings::{self, EventsSettings};

use crate::cli::ContextFlag;
use crate::context::Chosen;

/// The exit code of `EX_TEMPFAIL` in sysexits.h: the broker does not answer now.
const UNREACHABLE: u8 = 75;

/// Reads the settings.
pub(super) fn settings(
    mut flags: BTreeMap<&'static str, String>,
    context: &ContextFlag,
) -> anyhow::Result<EventsSettings> {
    Chosen::of(context)?.broker(&EVENTS, &mut flags)?;
    let loaded = settings::read(&EVENTS, flags, &ProcessEnvironment);
    Ok(loaded.and_then(Loaded::done).map_err(Faults::of_configuration)?)
}

/// Prints an error of the broker and returns its exit code: 75 for a transient one.
pub(super) fn refused(error: &BrokerError) -> ExitCode {
    output::note(format_args!("error: {}", plain(&error.to_string())));
    ExitCode::from(if error.is_transient() { UNREACHABLE } else { 2 })
}
