//! `pull-secret run-job`: a Job's process from its environment to its exit code.

use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use daemon::environment::ProcessEnvironment;
use daemon::output;
use daemon::retry::Budget;
use daemon::traces::{self, Program, StartError};
use fleet_model::ClusterId;
use fleet_model::job::Reason;
use fleet_model::names::trace::SERVICE_JOB;
use pull_secret_job::settings::{self, Flags, InvalidSettings, Settings};
use pull_secret_job::{Details, Outcome, report};
use secret_store::{AnyStore, ProjectId, StoreSettings};
use tracing::error;

use crate::cli::{self, JobFlags};
use crate::store;

/// The crates whose events are logged.
const CRATES: &[&str] = &["daemon", "kubernetes", "pull_secret", "pull_secret_job", "secret_store"];

/// Runs the Pull Secret Job.
pub(crate) fn pull_secret(flags: JobFlags) -> anyhow::Result<ExitCode> {
    let flags = flags.0;
    if let Some(patch) = settings::hosted_cluster_patch(&flags, &ProcessEnvironment) {
        return Ok(output::print(format_args!("{}\n", patch?))?);
    }
    let log = settings::resolve_log(&flags, &ProcessEnvironment, CRATES);
    let export = settings::resolve_export(&flags, &ProcessEnvironment);
    let program = Program { name: SERVICE_JOB, version: cli::build().0 };
    // Dropped last: the result is written before what is left of the trace is sent.
    let traces = match traces::start(log, export, program) {
        Err(StartError::Exporter(fault)) => {
            daemon::log::start(log)?;
            Err(InvalidSettings(vec![daemon::log::causes(&fault)]))
        }
        started => Ok(started?),
    };
    let settings = match traces.as_ref().map_err(Clone::clone).and_then(|_started| resolve(&flags)) {
        Ok(settings) => settings,
        Err(problems) => {
            let component = pull_secret_job::run::COMPONENT;
            let reason = Reason::InvalidConfiguration;
            let (cluster, project) = settings::resolve_names(&flags, &ProcessEnvironment);
            let cluster_id = cluster.as_ref().map(ClusterId::as_str);
            let gcp_project = project.as_ref().map(ProjectId::as_str);
            error!(component, cluster_id, gcp_project, operation = "validate-config", reason = %reason, "{problems}");
            report_problems(&flags, reason, problems.to_string());
            return Ok(ExitCode::from(reason.exit_code()));
        }
    };
    // One thread: the run waits for one call after the other.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let run = || {
        runtime.block_on(async {
            let stop = daemon::shutdown::on_signal().context("cannot listen for signals")?;
            let budget = Budget::new(settings.run_timeout, stop);
            let connect = async |store: &StoreSettings, calls| AnyStore::connect(store, Some(calls)).await;
            Ok::<_, anyhow::Error>(pull_secret_job::run(&settings, &budget, connect).await)
        })
    };
    let outcome = unless_it_panics(run).unwrap_or_else(|| Ok(broken()))?;
    write_results(&settings, &outcome);
    // A resolver thread that still waits for an answer must not hold the process back.
    runtime.shutdown_background();
    Ok(ExitCode::from(outcome.reason.exit_code()))
}

fn resolve(flags: &Flags) -> Result<Settings, InvalidSettings> {
    let settings = settings::resolve(flags, &ProcessEnvironment)?;
    let faults: Vec<_> = settings.store.iter().chain(&settings.mirror).filter_map(store::fault).collect();
    if faults.is_empty() { Ok(settings) } else { Err(InvalidSettings(faults)) }
}

/// A panic is a defect of this program. Only its location is logged, as its message may quote a credential.
fn unless_it_panics<T>(work: impl FnOnce() -> T) -> Option<T> {
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        error!(operation = "panic", reason = %Reason::InternalError, "The program has a defect at {place}");
    }));
    panic::catch_unwind(AssertUnwindSafe(work)).ok()
}

fn broken() -> Outcome {
    let reason = Reason::InternalError;
    Outcome { reason, message: reason.meaning().to_owned(), details: Details::default() }
}

/// Writes the problems to the result file, if the invalid configuration still names one.
fn report_problems(flags: &Flags, reason: Reason, message: String) {
    let outcome = Outcome { reason, message, details: Details::default() };
    let (results_path, termination_log) = settings::resolve_paths(flags, &ProcessEnvironment);
    write_result(results_path.as_deref(), &termination_log, &report::render(&outcome));
}

/// Writes the result of a run. That of a dry run is no termination message: a reader of `success` would take the secret for
/// stored.
fn write_results(settings: &Settings, outcome: &Outcome) {
    let termination_log = if settings.dry_run { Path::new("") } else { &settings.termination_log };
    write_result(settings.results_path.as_deref(), termination_log, &report::render(outcome));
}

/// A result that cannot be written does not undo the run: it is logged and the exit code stays. Paths are not logged:
/// a credential could have been given in their place.
fn write_result(results_path: Option<&Path>, termination_log: &Path, result: &str) {
    if let Some(path) = results_path
        && let Err(problem) = report::write_result(path, result)
    {
        error!(operation = "write-result", "RESULTS_PATH: cannot write the file: {}", problem.kind());
    }
    if let Err(problem) = report::write_termination_message(termination_log, result) {
        error!(operation = "write-result", "TERMINATION_LOG_PATH: cannot write the file: {}", problem.kind());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_ending() {
        assert_eq!(unless_it_panics(|| 7), Some(7));
        assert_eq!(unless_it_panics(|| panic!("s3cret")), None::<u8>);
        assert_eq!(broken().reason.exit_code(), 1);
    }
}
