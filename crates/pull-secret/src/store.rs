//! The secret store as the fleet's commands reach it, one place of it, and as the adapter checks it.

mod checked;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use daemon::environment::{Environment as _, ProcessEnvironment};
use daemon::proxy;
use fleet_model::StoredCopy;
use pull_secret_job::settings::resolve_store;
use pull_secret_job::sweep;
use secret_store::{
    AnyStore, AwsSettings, AzureSettings, Endpoint, ListedSecrets, Metadata, SecretId, SecretStore as _, Settings,
    StoreError, StoreSettings, VaultSettings,
};

use crate::cli::StoreFlags;
use crate::context::Chosen;

pub(crate) use checked::{fault_of, stores};

/// Maximum time of one call to the store: a page may have 25,000 secrets.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_mins(2);

/// Returns Google's endpoint, or the emulator that the environment names.
pub(crate) fn endpoint() -> anyhow::Result<Endpoint> {
    let Some(host) = ProcessEnvironment.text("SECRET_MANAGER_EMULATOR_HOST")? else { return Ok(Endpoint::Provider) };
    let token_file = ProcessEnvironment.text("SECRET_MANAGER_EMULATOR_TOKEN_FILE")?.map(Into::into);
    Ok(Endpoint::Emulator { host, token_file })
}

/// The store that flags or variables choose, else Google's with the project of the flags or the context; `None` if no project is
/// given. A call takes at most `call_timeout`.
pub(crate) fn settings(
    flags: &StoreFlags,
    context: &Chosen,
    call_timeout: Duration,
) -> anyhow::Result<Option<StoreSettings>> {
    let StoreFlags { secret_store, project, location } = flags;
    let mut store = match resolve_store(secret_store.as_deref(), &ProcessEnvironment)? {
        Some(store) => {
            for (flag, is_given) in [("--project", project.is_some()), ("--location", location.is_some())] {
                anyhow::ensure!(!is_given, "{flag}: has no effect with another store than Google's: leave it out");
            }
            store
        }
        None => match google(project.as_ref(), location.as_ref(), context)? {
            Some(google) => StoreSettings::Google(google),
            None => return Ok(None),
        },
    };
    match &mut store {
        StoreSettings::Google(Settings { call_timeout: limit, .. })
        | StoreSettings::Vault(VaultSettings { call_timeout: limit, .. })
        | StoreSettings::Aws(AwsSettings { call_timeout: limit, .. })
        | StoreSettings::Azure(AzureSettings { call_timeout: limit, .. }) => *limit = call_timeout,
    }
    match fault(&store) {
        None => Ok(Some(store)),
        Some(fault) => anyhow::bail!(fault),
    }
}

/// The settings of a command that cannot do without a store.
pub(crate) fn required(flags: &StoreFlags, context: &Chosen) -> anyhow::Result<StoreSettings> {
    let missing = "--project: missing; give it, set it in the context, or choose another store with --secret-store";
    settings(flags, context, CALL_TIMEOUT)?.context(missing)
}

fn google(project: Option<&String>, location: Option<&String>, context: &Chosen) -> anyhow::Result<Option<Settings>> {
    let Some(named) = context.or(project, "project") else {
        anyhow::ensure!(location.is_none(), "--location: has no effect without --project");
        return Ok(None);
    };
    // The location of the context belongs to the project of the context.
    let location = if project.is_some() { location.cloned() } else { context.or(location, "location") };
    Ok(Some(Settings {
        project: named.parse().context("--project")?,
        location: location.as_deref().map(str::parse).transpose().context("--location")?,
        endpoint: endpoint()?,
        call_timeout: CALL_TIMEOUT,
        calls: None,
    }))
}

/// The fault of settings of a store that this build has no client of, or with which requests are not encrypted and pass a
/// proxy, whose operator could read them.
pub(crate) fn fault(settings: &StoreSettings) -> Option<String> {
    if !settings.is_built() {
        return Some(not_built(settings.name()));
    }
    let host = settings.plain_host()?;
    let variable = proxy::applying_to(&ProcessEnvironment, host)?;
    Some(format!(
        "{variable}: requests to {host} are not encrypted and would pass that proxy; add that host to no_proxy"
    ))
}

/// The fault of a store that this build has no client of.
fn not_built(store: &str) -> String {
    format!("this build has no client of {store}; use one that has (cargo features of the package pull-secret)")
}

/// Returns the copy of a pull secret that a secret in this place is.
pub(crate) fn copy(settings: &StoreSettings, secret: &SecretId) -> StoredCopy {
    named(settings, secret.to_string())
}

/// Returns a copy in this place, without a name.
pub(crate) fn place(settings: &StoreSettings) -> StoredCopy {
    named(settings, String::new())
}

fn named(settings: &StoreSettings, name: String) -> StoredCopy {
    match settings {
        StoreSettings::Google(Settings { project, location, .. }) => StoredCopy::Secret {
            project: project.to_string(),
            location: location.as_ref().map(ToString::to_string),
            name,
        },
        StoreSettings::Vault(VaultSettings { address, namespace, mount, folder, .. }) => StoredCopy::VaultSecret {
            server: address.to_string(),
            namespace: namespace.as_ref().map(ToString::to_string),
            mount: mount.to_string(),
            folder: folder.to_string(),
            name,
        },
        StoreSettings::Aws(AwsSettings { region, folder, .. }) => {
            StoredCopy::AwsSecret { region: region.to_string(), folder: folder.to_string(), name }
        }
        StoreSettings::Azure(AzureSettings { vault, .. }) => StoredCopy::AzureSecret { vault: vault.to_string(), name },
    }
}

/// Lists the secrets that this software manages.
pub(crate) async fn managed(store: &AnyStore) -> Result<BTreeMap<SecretId, Metadata>, StoreError> {
    let (mut listed, mut page) = (BTreeMap::new(), None);
    loop {
        let ListedSecrets { secrets, next } = store.list(&sweep::LABELS, page.as_deref()).await?;
        listed.extend(secrets);
        page = next;
        if page.is_none() {
            return Ok(listed);
        }
    }
}
