//! `pull-secret run-job`: a Job's process from its environment to its exit code.

use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;

use anyhow::Context as _;
use daemon::environment::{Environment as _, ProcessEnvironment};
use daemon::retry::Budget;
use fleet_model::job::Reason;
use pull_secret_job::settings::{self, LogSettings, Setting, Settings, Values};
use pull_secret_job::{Ending, report};
use secret_store::GoogleSecretManager;
use tracing::error;

use crate::cli::JobFlags;

/// The crates whose events are logged.
const CRATES: &[&str] = &["daemon", "pull_secret", "pull_secret_job", "secret_store"];

/// Flags first, then the environment.
struct FlagsAndEnvironment(BTreeMap<&'static str, String>);

impl Values for FlagsAndEnvironment {
    fn get(&self, setting: &Setting) -> Result<Option<String>, String> {
        let flag = setting.flag.and_then(|flag| self.0.get(flag)).map(|value| value.trim().to_owned());
        if let Some(value) = flag.filter(|value| !value.is_empty()) {
            return Ok(Some(value));
        }
        setting.variable.map_or(Ok(None), |name| ProcessEnvironment.text(name).map_err(|problem| problem.to_string()))
    }
}

/// Runs the Pull Secret Job.
pub(crate) fn pull_secret(flags: JobFlags) -> anyhow::Result<ExitCode> {
    let values = FlagsAndEnvironment(flags.0);
    start_log(settings::resolve_log(&values))?;
    let settings = match settings::resolve(&values) {
        Ok(settings) => settings,
        Err(problems) => {
            let component = pull_secret_job::run::COMPONENT;
            let reason = Reason::InvalidConfiguration;
            error!(component, operation = "validate-config", reason = %reason, "{problems}");
            report_problems(&values, reason, problems.to_string());
            return Ok(ExitCode::from(reason.exit_code()));
        }
    };
    // One thread: the run waits for one call after the other.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let ending = runtime.block_on(async {
        let stop = daemon::shutdown::on_signal().context("cannot listen for signals")?;
        let budget = Budget::new(settings.run_timeout, stop);
        Ok::<_, anyhow::Error>(pull_secret_job::run(&settings, &budget, GoogleSecretManager::connect).await)
    })?;
    tell_result(&settings, &ending);
    // A resolver thread that still waits for an answer must not hold the process back.
    runtime.shutdown_background();
    Ok(ExitCode::from(ending.reason.exit_code()))
}

fn start_log(LogSettings { format, level }: LogSettings) -> anyhow::Result<()> {
    let log = daemon::log::Settings { format, level, crates: CRATES };
    tracing::subscriber::set_global_default(daemon::log::subscriber(log, io::stdout())).context("cannot start the log")
}

/// Where a broken configuration still says where results go, they are told there.
fn report_problems(values: &dyn Values, reason: Reason, message: String) {
    let ending = Ending { reason, message, details: report::Details::default() };
    let (results_path, termination_log) = settings::resolve_paths(values);
    write_result(results_path.as_deref(), &termination_log, &report::render(&ending));
}

fn tell_result(settings: &Settings, ending: &Ending) {
    write_result(settings.results_path.as_deref(), &settings.termination_log, &report::render(ending));
}

/// A result that cannot be told does not undo what was done: it is logged and the exit code stays.
fn write_result(results_path: Option<&std::path::Path>, termination_log: &std::path::Path, result: &str) {
    if let Some(path) = results_path
        && let Err(problem) = report::write_result(path, result)
    {
        error!(operation = "write-result", "{:#}", anyhow::Error::new(problem));
    }
    if let Err(problem) = report::write_termination_message(termination_log, result) {
        error!(operation = "write-result", "cannot write {}: {problem}", termination_log.display());
    }
}
