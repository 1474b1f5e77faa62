//! `emulator`: one emulator as a process of its own.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use emulators::key_vault::{self, Identity, KeyVault};
use emulators::kubernetes::{self, Authorization, Kubernetes, User};
use emulators::quay::{self, Quay};
use emulators::secret_manager::{self, Quotas, SecretManager};
use tokio_util::sync::CancellationToken;

use crate::cli::{KeyVaultArguments, KubernetesArguments, QuayArguments, SecretManagerArguments};
use daemon::output;

/// The time after which an assertion is written anew: well before it expires, as kubelet does with projected tokens.
const RENEWAL: Duration = Duration::from_mins(20);

/// Serves Secret Manager until the process is stopped.
pub(crate) fn secret_manager(arguments: SecretManagerArguments) -> anyhow::Result<ExitCode> {
    let SecretManagerArguments {
        listen,
        data_dir,
        write_token,
        fault,
        latency,
        metadata_lag,
        deny,
        reads_per_minute,
        writes_per_minute,
        accesses_per_minute,
    } = arguments;
    let token = token(data_dir.as_deref())?;
    let place = data_dir.as_ref().map_or("in memory".to_owned(), |folder| format!("in {}", folder.display()));
    let settings = secret_manager::Settings {
        listen,
        data_dir,
        faults: fault,
        quotas: Quotas { reads_per_minute, writes_per_minute, accesses_per_minute },
        latency: latency.unwrap_or_default(),
        metadata_lag: metadata_lag.unwrap_or_default(),
        denied_permissions: deny.into_iter().collect(),
        required_token: Some(token.clone()),
    };
    until_stopped(async |stop| {
        let mut server = SecretManager::start(settings).await?;
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let token_file = write_token.unwrap_or_else(|| folder.path().join("token"));
        daemon::file::replace(&token_file, token.as_bytes())?;
        let address = server.address();
        output::note(format_args!(
            "Secret Manager emulator, REST and gRPC on http://{address}, secrets {place}.\n\
             For development and tests only: no encryption. Ctrl-C stops it."
        ));
        output::print(format_args!(
            "export SECRET_MANAGER_EMULATOR_TOKEN_FILE={}\nexport SECRET_MANAGER_EMULATOR_HOST={address}\n",
            token_file.display()
        ))?;
        tokio::select! {
            () = stop.cancelled() => server.shutdown().await,
            () = server.stopped() => anyhow::bail!("the emulator has stopped by itself"),
        }
        Ok(())
    })
}

/// Serves Key Vault, with the endpoint that issues its tokens, until the process is stopped.
pub(crate) fn key_vault(arguments: KeyVaultArguments) -> anyhow::Result<ExitCode> {
    let KeyVaultArguments { listen, write_files, fault, latency, transition, version_lag, purge_protection } =
        arguments;
    let admin = Identity { secret: None, ..Identity::admin() };
    let settings = key_vault::Settings {
        listen,
        identities: vec![admin.clone()],
        faults: fault,
        latency: latency.unwrap_or_default(),
        transition: transition.unwrap_or_default(),
        version_lag: version_lag.unwrap_or_default(),
        purge_protection,
        ..key_vault::Settings::default()
    };
    let tenant = settings.tenant.clone();
    until_stopped(async |stop| {
        let mut server = KeyVault::start(settings).await?;
        let temporary = tempfile::tempdir().context("cannot make a temporary folder")?;
        let folder = write_files.unwrap_or_else(|| temporary.path().to_owned());
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let [authority, assertion] = ["ca.pem", "assertion"].map(|name| folder.join(name));
        daemon::file::replace(&authority, server.authority().as_bytes())?;
        let subject = admin.subject.unwrap_or_default();
        daemon::file::replace(&assertion, server.assertion(&subject).as_bytes())?;
        let url = server.url();
        output::note(format_args!(
            "Key Vault emulator on {url}, secrets in memory. Clients have to trust {} and must not compare the domain of\n\
             the challenge with the vault's. For development and tests only. Ctrl-C stops it.",
            authority.display()
        ));
        output::print(format_args!(
            "export AZURE_TENANT_ID={tenant}\nexport AZURE_CLIENT_ID={}\nexport AZURE_FEDERATED_TOKEN_FILE={}\n\
             export AZURE_AUTHORITY_HOST={url}\nexport AZURE_CA_FILE={}\nexport AZURE_KEY_VAULT_URL={url}\n",
            admin.client_id,
            assertion.display(),
            authority.display()
        ))?;
        let mut renewal = tokio::time::interval(RENEWAL);
        loop {
            tokio::select! {
                () = stop.cancelled() => break server.shutdown().await,
                () = server.stopped() => anyhow::bail!("the emulator has stopped by itself"),
                _ = renewal.tick() => daemon::file::replace(&assertion, server.assertion(&subject).as_bytes())?,
            }
        }
        Ok(())
    })
}

/// Serves Quay's API and its token service until the process is stopped.
pub(crate) fn quay(arguments: QuayArguments) -> anyhow::Result<ExitCode> {
    let QuayArguments { listen, write_files, organization, repository, team, fault, latency, list_lag } = arguments;
    let defaults = quay::Settings::default();
    let settings = quay::Settings {
        listen,
        organization,
        repositories: if repository.is_empty() { defaults.repositories } else { repository.into_iter().collect() },
        teams: if team.is_empty() { defaults.teams } else { team.into_iter().collect() },
        faults: fault,
        latency: latency.unwrap_or_default(),
        list_lag: list_lag.unwrap_or_default(),
        ..quay::Settings::default()
    };
    until_stopped(async |stop| {
        let mut server = Quay::start(settings).await?;
        let temporary = tempfile::tempdir().context("cannot make a temporary folder")?;
        let folder = write_files.unwrap_or_else(|| temporary.path().to_owned());
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let [token, authority] = ["token", "issuer.pem"].map(|name| folder.join(name));
        daemon::file::replace(&token, server.token().as_bytes())?;
        daemon::file::replace(&authority, server.authority().as_bytes())?;
        output::note(format_args!(
            "Quay emulator on {}, robots in memory. A registry takes its tokens with auth.token: realm {}, service {},\n\
             issuer {}, rootcertbundle {}. For development and tests only. Ctrl-C stops it.",
            server.url(),
            server.realm(),
            server.service(),
            server.issuer(),
            authority.display()
        ));
        output::print(format_args!(
            "export QUAY_TOKEN_FILE={}\nexport QUAY_ISSUER_FILE={}\nexport QUAY_ORGANIZATION={}\nexport QUAY_URL={}\n",
            token.display(),
            authority.display(),
            server.organization(),
            server.url()
        ))?;
        tokio::select! {
            () = stop.cancelled() => server.shutdown().await,
            () = server.stopped() => anyhow::bail!("the emulator has stopped by itself"),
        }
        Ok(())
    })
}

/// Serves the Kubernetes API until the process is stopped.
pub(crate) fn kubernetes(arguments: KubernetesArguments) -> anyhow::Result<ExitCode> {
    let KubernetesArguments { listen, data_dir, write_kubeconfig, run_pods, fault } = arguments;
    let token = token(data_dir.as_deref())?;
    let place = data_dir.as_ref().map_or("in memory".to_owned(), |folder| format!("in {}", folder.display()));
    let settings = kubernetes::Settings {
        listen,
        data_dir,
        faults: fault,
        authorization: Authorization::Rbac,
        tokens: BTreeMap::from([(token, User::admin())]),
        run_pods: run_pods.into_iter().collect(),
        ..kubernetes::Settings::default()
    };
    until_stopped(async |stop| {
        let mut server = Kubernetes::start(settings).await?;
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let kubeconfig = write_kubeconfig.unwrap_or_else(|| folder.path().join("kubeconfig"));
        daemon::file::replace(&kubeconfig, server.kubeconfig().as_bytes())?;
        output::note(format_args!(
            "Kubernetes emulator on {}, objects {place}.\nFor development and tests only: no encryption. Ctrl-C stops it.",
            server.url()
        ));
        output::print(format_args!("export KUBECONFIG={}\n", kubeconfig.display()))?;
        tokio::select! {
            () = stop.cancelled() => server.shutdown().await,
            () = server.stopped() => anyhow::bail!("the emulator has stopped by itself"),
        }
        Ok(())
    })
}

/// The token that an emulator requires: kept in the data folder, so that its clients outlive a restart.
pub(crate) fn token(data_dir: Option<&Path>) -> anyhow::Result<String> {
    let token = format!("{:032x}", rand::random::<u128>());
    let Some(folder) = data_dir else { return Ok(token) };
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let file = folder.join("admin-token");
    daemon::file::create(&file, token.as_bytes()).with_context(|| format!("cannot write {}", file.display()))?;
    std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
}

/// Runs a server with a token that is cancelled by SIGTERM or SIGINT.
fn until_stopped(serve: impl AsyncFnOnce(CancellationToken) -> anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(async {
        let stop = daemon::shutdown::on_signal().context("cannot listen for signals")?;
        serve(stop).await
    })?;
    Ok(ExitCode::SUCCESS)
}
