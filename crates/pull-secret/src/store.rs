//! Secret Manager as the fleet's commands reach it: one endpoint, all projects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use adapter::Stores;
use anyhow::Context as _;
use daemon::environment::{Environment as _, ProcessEnvironment};
use pull_secret_job::sweep;
use secret_store::{
    Endpoint, GoogleProjects, GoogleSecretManager, ListedSecrets, Metadata, SecretId, SecretStore as _, Settings,
    StoreError,
};

use crate::context::Chosen;

/// Maximum time of one call to Secret Manager: a page may have 25,000 secrets.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_mins(2);

/// Returns Google's endpoint, or the emulator that the environment names.
pub(crate) fn endpoint() -> anyhow::Result<Endpoint> {
    let Some(host) = ProcessEnvironment.text("SECRET_MANAGER_EMULATOR_HOST")? else { return Ok(Endpoint::Provider) };
    let token_file = ProcessEnvironment.text("SECRET_MANAGER_EMULATOR_TOKEN_FILE")?.map(Into::into);
    Ok(Endpoint::Emulator { host, token_file })
}

/// The project and the location of stored secrets.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) project: String,
    pub(crate) location: Option<String>,
}

/// Settings of a client of one project's Secret Manager, each of whose calls takes at most `call_timeout`.
pub(crate) fn settings(project: &str, location: Option<&str>, call_timeout: Duration) -> anyhow::Result<Settings> {
    Ok(Settings {
        project: project.parse().context("--project")?,
        location: location.map(str::parse).transpose().context("--location")?,
        endpoint: endpoint()?,
        call_timeout,
        calls: None,
    })
}

/// Lists the secrets of a project that this software manages.
pub(crate) async fn managed(store: &GoogleSecretManager) -> Result<BTreeMap<SecretId, Metadata>, StoreError> {
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

/// Returns the stores of all projects, for the adapter's checks.
pub(crate) fn stores(endpoint: Endpoint) -> Stores {
    let projects = Arc::new(GoogleProjects::new(endpoint, CALL_TIMEOUT));
    Stores::new(move |project, location| {
        let projects = Arc::clone(&projects);
        async move { projects.client(project, location).await }
    })
}

// === impl Place ===

impl Place {
    /// The place that the flags name, else the context; `None` if neither names a project.
    pub(crate) fn of(project: Option<&String>, location: Option<&String>, context: &Chosen) -> Option<Self> {
        let named = context.or(project, "project")?;
        // The location of the context belongs to the project of the context.
        let location = if project.is_some() { location.cloned() } else { context.or(location, "location") };
        Some(Self { project: named, location })
    }
}
