//! The credentials service as a part of this process: the one place here that knows how it is configured.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use credentials::ledger::Ledger;
use credentials::registry::AnyRegistry;
use credentials::run::Sources;
use credentials::server::{Server, open};
use credentials::settings::Checked;
use daemon::faults::Faults;
use emulators::quay::Quay;
use jiff::Timestamp;
use serde_json::json;

use crate::daemons::{self, HOST};
use crate::folder::Folder;

/// The team whose members may pull.
pub(crate) const TEAM: &str = "pullers";

/// Time without a pull after which an old credential counts as quiet; the registry's log has whole seconds.
pub(crate) const QUIET: &str = "2s";

/// Time in which a lost request may still arrive. The settings demand five minutes at least, as replicas are killed and networks
/// delay; here there is one replica, and all of it is on this machine.
const LATE: Duration = Duration::from_secs(2);

/// The surroundings of the service, for its configuration.
pub(crate) struct Wiring<'a> {
    pub(crate) folder: &'a Folder,
    pub(crate) api: &'a str,
    pub(crate) quay: &'a Quay,
    /// The host of images: the key in pull secrets.
    pub(crate) host: String,
    /// The repository that probes ask for, without its organization.
    pub(crate) repository: &'a str,
}

/// The service, with its addresses taken, and what people see of it.
pub(crate) struct Prepared {
    pub(crate) server: Server,
    pub(crate) ledger: Ledger,
    /// The configuration, for commands.
    pub(crate) config: PathBuf,
}

/// Sets up the organization as its administrator does, and prepares the service.
pub(crate) async fn prepare(wiring: &Wiring<'_>) -> anyhow::Result<Prepared> {
    let config = write(wiring)?;
    let flags = BTreeMap::from([("config", config.clone())]);
    let environment = BTreeMap::<&str, &str>::new();
    let mut checked = Checked::load(flags, &environment).map_err(Faults::of_configuration)?;
    for configured in &mut checked.registries {
        configured.policy.late = LATE;
        if let AnyRegistry::Quay(quay) = configured.connect()?.registry {
            quay.prepare().await?;
        }
    }
    // The permission for the team's members is a default for new repositories.
    wiring.quay.add_repository(wiring.repository);
    let keyring = Arc::new(checked.keyring().map_err(anyhow::Error::msg)?);
    let ledger = open(&checked, &environment, keyring).map_err(anyhow::Error::msg)?;
    let sources = Sources { now: Arc::new(Timestamp::now), random: Arc::new(rand::random::<u128>) };
    let server = Server::prepare(checked, &environment, sources, "credentials".to_owned()).await;
    let server = server.context("the credentials service cannot start")?;
    Ok(Prepared { server, ledger, config: config.into() })
}

/// Writes the configuration.
fn write(wiring: &Wiring<'_>) -> anyhow::Result<String> {
    let Wiring { folder, api, quay, host, repository } = wiring;
    let token = folder.path("quay-token");
    daemon::file::replace(&token, quay.token().as_bytes())?;
    let free = json!({ "host": HOST.to_string(), "port": 0 });
    let organization = quay.organization();
    let registry = json!({
        "name": "quay",
        "type": "quay",
        "url": quay.url(),
        "host": host,
        "organization": organization,
        "team": TEAM,
        "token_file": token,
        "image": format!("{organization}/{repository}"),
        "calls_per_minute": 6000,
        "policy": {
            "retire": "manual", "nodes": "renounced", "quiet": QUIET, "interval": "500ms", "fresh": "5s", "late": "5m",
        },
    });
    let configuration = json!({
        "clients": { "hyperfleet_api": { "base_url": api, "auth": { "token_path": folder.token("adapter-token")? } } },
        "database": { "path": folder.path("credentials.db") },
        "keys": [{ "id": "local", "file": folder.key("credentials-key")? }],
        "registries": [registry],
        "health": free,
        "metrics": free,
    });
    daemons::write(folder, "credentials.yaml", &configuration)
}
