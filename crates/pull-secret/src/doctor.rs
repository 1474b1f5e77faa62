//! `pull-secret doctor`: checks of the parts that the service depends on.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use daemon::environment::{Environment as _, ProcessEnvironment};
use daemon::output;
use diagnosis::doctor::facts::{ApiFacts, Facts};
use diagnosis::doctor::{self, decide, observe};
use jiff::Timestamp;

use crate::cli::{ClientFlags, DoctorArguments, OutputFormat};
use crate::client;

/// Checks everything that is configured, all at once.
pub(crate) fn doctor(arguments: DoctorArguments) -> anyhow::Result<ExitCode> {
    let DoctorArguments { api, kubeconfig, namespace, output: format } = arguments;
    let kubeconfig = match kubeconfig {
        Some(path) => Some(path),
        None => ProcessEnvironment.text("KUBECONFIG")?.map(PathBuf::from),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start tokio")?;
    let facts = runtime.block_on(async {
        let kubernetes = async {
            match &kubeconfig {
                Some(path) => Some(observe::kubernetes(path, &namespace).await),
                None => None,
            }
        };
        let (api, kubernetes) = tokio::join!(observe_api(&api), kubernetes);
        Facts { now: Timestamp::now(), api, kubernetes }
    });
    let lines = decide::lines(&facts);
    match format {
        OutputFormat::Table => output::print(doctor::text(&lines))?,
        OutputFormat::Json => {
            let lines = lines.iter().map(|line| Ok(serde_json::to_string(line)? + "\n"));
            output::print(lines.collect::<serde_json::Result<String>>()?)?
        }
    };
    Ok(if doctor::is_sound(&lines) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Observes the API, unless its settings cannot be used.
async fn observe_api(flags: &ClientFlags) -> Result<ApiFacts, String> {
    let client = client::client(flags).map_err(|error| format!("{error:#}"))?;
    Ok(observe::api(&client).await)
}
