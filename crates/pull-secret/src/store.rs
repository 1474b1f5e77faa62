//! Secret Manager as the fleet's commands reach it: one endpoint, all projects.

use std::sync::Arc;
use std::time::Duration;

use adapter::Stores;
use daemon::environment::{Environment as _, ProcessEnvironment};
use secret_store::{Endpoint, GoogleProjects};

/// Maximum time of one call to Secret Manager: a page may have 25,000 secrets.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_mins(2);

/// Returns Google's endpoint, or the emulator that the environment names.
pub(crate) fn endpoint() -> anyhow::Result<Endpoint> {
    let Some(host) = ProcessEnvironment.text("SECRET_MANAGER_EMULATOR_HOST")? else { return Ok(Endpoint::Provider) };
    let token_file = ProcessEnvironment.text("SECRET_MANAGER_EMULATOR_TOKEN_FILE")?.map(Into::into);
    Ok(Endpoint::Emulator { host, token_file })
}

/// Returns the stores of all projects, for the adapter's checks.
pub(crate) fn stores(endpoint: Endpoint) -> Stores {
    let projects = Arc::new(GoogleProjects::new(endpoint, CALL_TIMEOUT));
    Stores::new(move |project, location| {
        let projects = Arc::clone(&projects);
        async move { projects.client(project, location).await }
    })
}
