//! Prepares an API server in the test's process; the rigs of the test programs share it.

use std::collections::BTreeMap;

use hyperfleet_api::reload::Source;
use hyperfleet_api::server::{Build, Server, StartError};
use hyperfleet_api::settings::Settings;

/// Prepares a server on free loopback ports with these environment variables, or returns the faults of the settings.
pub(crate) async fn prepare(variables: &[(&str, &str)], build: Build) -> Result<Server, Vec<String>> {
    let mut environment = BTreeMap::from([
        ("HYPERFLEET_SERVER_PORT", "0"),
        ("HYPERFLEET_HEALTH_PORT", "0"),
        ("HYPERFLEET_METRICS_PORT", "0"),
    ]);
    environment.extend(variables.iter().copied());
    let owned: BTreeMap<String, String> =
        environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let source = Source::new(Settings::file(&BTreeMap::new(), &environment), move || {
        let environment: BTreeMap<&str, &str> = owned.iter().map(|(name, value)| (&**name, &**value)).collect();
        Settings::load(BTreeMap::new(), &environment)
    });
    let (settings, files) = source.read()?;
    let server = Server::prepare(settings, &environment, build).await.map_err(|error| match error {
        StartError::Settings(faults) => faults,
        other @ StartError::Listen(_) => vec![other.to_string()],
    })?;
    Ok(server.reloading(source, files))
}
