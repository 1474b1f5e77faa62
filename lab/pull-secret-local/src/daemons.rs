//! API and Sentinel as parts of this process, configured by files in its data directory.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use anyhow::Context as _;
use daemon::faults::Faults;
use hyperfleet_api::server::{Build, Server};
use message_broker::{Broker, Name};
use secrecy::ExposeSecret as _;
use sentinel::Sentinel;
use sentinel::leader::Election;
use sentinel::publisher::TopicPublisher;
use serde_json::{Value, json};

use crate::cli;
use crate::folder::{Folder, Port, Ports};
use crate::options::Options;

/// The host of everything here.
pub(crate) const HOST: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Resync interval; short, as a person waits for repairs.
const RESYNC: &str = "1m";

/// The API, with its addresses taken.
pub(crate) async fn api(folder: &Folder, ports: &Ports, options: &Options) -> anyhow::Result<Server> {
    let configuration = json!({
        "server": address(ports, Port::Api),
        "health": address(ports, Port::ApiHealth),
        "metrics": address(ports, Port::ApiMetrics),
        // A disk of a busy machine may keep the one writer for seconds.
        "database": { "path": folder.path("hyperfleet.db"), "pool": { "acquire_timeout": "1m" } },
        "pull_secret": {
            "keys": [{ "id": "local", "file": folder.key("sealing-key")? }],
            "digest_key_file": folder.key("digest-key")?,
            "reader_token_file": folder.token("adapter-token")?,
        },
    });
    let flags = BTreeMap::from([("config", write(folder, "api.yaml", &configuration)?)]);
    // Not this process's own environment: what is set there for other servers is not meant for this one.
    let mut environment = BTreeMap::new();
    if let Some(url) = &options.database {
        environment.insert("DATABASE_URL", url.expose_secret());
    }
    let settings = hyperfleet_api::settings::Settings::load(flags, &environment).map_err(Faults::of_configuration)?;
    let (version, time) = cli::build();
    Server::prepare(settings, &environment, Build { version, time }).await.context("the API cannot start")
}

/// The Sentinel, with its addresses taken.
pub(crate) async fn sentinel(
    folder: &Folder,
    ports: &Ports,
    api: &str,
    broker: Broker,
    topic: &Name,
) -> anyhow::Result<Sentinel<TopicPublisher>> {
    let configuration = json!({
        "resource_type": "clusters",
        "clients": { "hyperfleet_api": { "base_url": api }, "broker": { "topic": topic.as_str() } },
        "decision": { "resync": RESYNC },
        "health": address(ports, Port::SentinelHealth),
        "metrics": address(ports, Port::SentinelMetrics),
    });
    let flags = BTreeMap::from([("config", write(folder, "sentinel.yaml", &configuration)?)]);
    let checked = sentinel::Checked::load(flags, &BTreeMap::<&str, &str>::new());
    let publisher = TopicPublisher { broker, topic: topic.clone() };
    let sentinel =
        Sentinel::prepare(checked.map_err(Faults::of_configuration)?, publisher, Election::Alone, cli::build().0).await;
    sentinel.context("the Sentinel cannot start")
}

/// A part's address in the form of configurations.
pub(crate) fn address(ports: &Ports, port: Port) -> Value {
    json!({ "host": HOST.to_string(), "port": ports.of(port) })
}

/// Writes a configuration into the folder; JSON is YAML too.
pub(crate) fn write(folder: &Folder, name: &str, configuration: &Value) -> anyhow::Result<String> {
    let path = folder.path(name);
    let text = format!("# Written anew at every start.\n{configuration:#}\n");
    daemon::file::replace(&path, text.as_bytes()).with_context(|| format!("cannot write {name}"))?;
    Ok(path.display().to_string())
}
