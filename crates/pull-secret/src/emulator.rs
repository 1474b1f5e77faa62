//! `pull-secret emulator`: servers that stand in for cloud services.

use std::process::ExitCode;

use anyhow::Context as _;
use emulators::secret_manager::{Quotas, SecretManager, Settings};

use crate::cli::SecretManagerArguments;
use crate::output;

/// Serves Secret Manager until the process is told to stop.
pub(crate) fn secret_manager(arguments: SecretManagerArguments) -> anyhow::Result<ExitCode> {
    let SecretManagerArguments {
        listen,
        data_dir,
        fault,
        latency,
        metadata_lag,
        deny,
        reads_per_minute,
        writes_per_minute,
        accesses_per_minute,
    } = arguments;
    let place = data_dir.as_ref().map_or("in memory".to_owned(), |folder| format!("in {}", folder.display()));
    let settings = Settings {
        listen,
        data_dir,
        faults: fault,
        quotas: Quotas { reads_per_minute, writes_per_minute, accesses_per_minute },
        latency: latency.unwrap_or_default(),
        metadata_lag: metadata_lag.unwrap_or_default(),
        denied_permissions: deny.into_iter().collect(),
        required_token: None,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(async {
        let stop = daemon::shutdown::on_signal().context("cannot listen for signals")?;
        let mut server = SecretManager::start(settings).await?;
        let address = server.address();
        output::tell(format_args!(
            "Secret Manager emulator, REST and gRPC on http://{address}, secrets {place}.\n\
             For development and tests only: no encryption, no authentication. Ctrl-C stops it."
        ));
        output::print(format_args!("export SECRET_MANAGER_EMULATOR_HOST={address}\n"))?;
        tokio::select! {
            () = stop.cancelled() => server.shutdown().await,
            () = server.stopped() => anyhow::bail!("the emulator has stopped by itself"),
        }
        Ok(ExitCode::SUCCESS)
    })
}
