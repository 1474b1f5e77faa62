//! Watches one Secret through the API server; no other object is ever requested.

use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use daemon::backoff::Backoff;
use serde::{Deserialize, Deserializer};
use tokio::time::{Instant, sleep, timeout};
use zeroize::Zeroizing;

use super::event::{CredentialsReader, SourceEvent, SourceEvents};
use super::http::{self, Server};

/// Duration of a watch in seconds, after which the server ends it and it is resumed at its `resourceVersion`.
const WATCH_SECONDS: u64 = 290;

/// Maximum time without a byte from the server during a watch. The API server sends a bookmark about every minute, so
/// longer silence means a connection that is open on this side only, for instance behind a proxy on the node.
const MAX_SILENCE: Duration = Duration::from_secs(90);

/// Back-off while the API server is unavailable.
const RETRY: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(1)).with_jitter(20);
/// Time limit for reading the body of a list.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum bytes of a list or of one event: a Secret holds 1 MiB, here in base64, with its metadata.
const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;

/// Namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The Secret to watch, and the API server.
#[derive(Clone, Debug)]
pub struct ApiSettings {
    /// The Secret.
    pub secret: ObjectName,
    /// The API server's host, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// File with the certificates that sign the server's; `None` speaks plain HTTP.
    pub authority: Option<PathBuf>,
    /// File with the token of the pod's service account.
    pub token: PathBuf,
}

/// The reason why a list or a watch ended early.
enum Interruption {
    /// The `resourceVersion` is too old to resume from.
    Expired,
    /// The API server is unavailable, for this reason.
    Unavailable(String),
    /// The receiver of the events was dropped.
    Closed,
}

#[derive(Deserialize)]
struct List {
    metadata: Metadata,
    #[serde(default)]
    items: Vec<Object>,
}

#[derive(Deserialize)]
struct WatchEvent {
    r#type: String,
    object: Object,
}

/// A Secret, or the `Status` that takes its place in an error event.
#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Metadata,
    data: Option<Data>,
    code: Option<u16>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(rename = "resourceVersion", default)]
    resource_version: String,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = ".dockerconfigjson", default, deserialize_with = "zeroizing")]
    credentials: Zeroizing<String>,
    #[serde(default)]
    revision: String,
    reverting: Option<String>,
}

fn zeroizing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Zeroizing<String>, D::Error> {
    String::deserialize(deserializer).map(Zeroizing::new)
}

/// The watch of the Secret, across requests.
struct Watcher<'a> {
    server: Server,
    path: String,
    reader: &'a CredentialsReader,
    events: &'a SourceEvents,
    /// The `resourceVersion` to resume from; `None` before the first list, and once it has expired.
    resource_version: Option<String>,
    unavailable: bool,
}

pub(super) async fn run(settings: &ApiSettings, reader: &CredentialsReader, events: &SourceEvents) {
    let ObjectName { namespace, name } = &settings.secret;
    let server = settings.server();
    let path = format!("/api/v1/namespaces/{namespace}/secrets?fieldSelector=metadata.name%3D{name}");
    let mut watcher = Watcher { server, path, reader, events, resource_version: None, unavailable: false };
    let mut failures = 0_u32;
    loop {
        let began = Instant::now();
        let step = tokio::select! {
            step = watcher.step() => step,
            () = events.closed() => return,
        };
        match step {
            Err(Interruption::Closed) => return,
            Err(Interruption::Expired) => watcher.resource_version = None,
            Ok(()) => {}
            Err(Interruption::Unavailable(reason)) => {
                if !watcher.unavailable && events.send(SourceEvent::Unavailable(reason)).await.is_err() {
                    return;
                }
                watcher.unavailable = true;
            }
        }
        // A list leads to a watch at once; a watch that ends as soon as it has begun counts as a failure.
        let succeeded = !watcher.unavailable && began.elapsed() > Duration::from_secs(1);
        failures = if succeeded { 0 } else { failures.saturating_add(1) };
        if failures > 1 || watcher.unavailable {
            sleep(RETRY.delay(failures, rand::random())).await;
        }
    }
}

// === impl ApiSettings ===

impl ApiSettings {
    /// The API server.
    pub(crate) fn server(&self) -> Server {
        let Self { secret: _, host, port, authority, token } = self;
        Server { host: host.clone(), port: *port, authority: authority.clone(), token: token.clone() }
    }
}

// === impl ObjectName ===

/// The error of a text that does not name an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a namespace and a name, such as kube-system/global-pull-secret")]
pub struct NotAnObjectName;

impl FromStr for ObjectName {
    type Err = NotAnObjectName;

    fn from_str(text: &str) -> Result<Self, NotAnObjectName> {
        let (namespace, name) = text.split_once('/').ok_or(NotAnObjectName)?;
        let is_name = |part: &str| {
            let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
            !part.is_empty() && part.len() <= 253 && part.bytes().all(fits)
        };
        if !is_name(namespace) || !is_name(name) {
            return Err(NotAnObjectName);
        }
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

// === impl Watcher ===

impl Watcher<'_> {
    async fn step(&mut self) -> Result<(), Interruption> {
        match self.resource_version.clone() {
            None => self.list().await,
            Some(version) => self.watch(&version).await,
        }
    }

    async fn get(&mut self, query: &str) -> Result<http::Response, Interruption> {
        let response = http::get(&self.server, &format!("{}{query}", self.path)).await;
        let response = response.map_err(|error| unavailable(format!("the API server cannot be reached: {error}")))?;
        match response.status.as_u16() {
            200 => {}
            410 => return Err(Interruption::Expired),
            401 => return Err(unavailable("the API server refuses the token (401)")),
            403 => {
                return Err(unavailable("the service account may not list and watch the Secret (403): see the Role"));
            }
            status => return Err(unavailable(format!("the API server answers {status}"))),
        }
        if self.unavailable {
            self.unavailable = false;
            self.send(SourceEvent::Available).await?;
        }
        Ok(response)
    }

    async fn list(&mut self) -> Result<(), Interruption> {
        let mut body = self.get("").await?.body;
        let mut text = Zeroizing::new(Vec::new());
        let reading = async {
            while body.read(&mut text).await? {
                if text.len() > MAX_EVENT_BYTES {
                    return Err(io::Error::other("too long a response"));
                }
            }
            Ok(())
        };
        match timeout(LIST_TIMEOUT, reading).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(unavailable(format!("the API server's response is cut short: {error}"))),
            Err(_elapsed) => return Err(unavailable("the API server's response takes too long")),
        }
        // serde's own message may quote a value.
        let list: List = serde_json::from_slice(&text).map_err(|_quotes| not_understood())?;
        let event = list.items.first().map_or(SourceEvent::Missing, |secret| self.read(secret));
        self.send(event).await?;
        self.resource_version = Some(list.metadata.resource_version);
        Ok(())
    }

    async fn watch(&mut self, version: &str) -> Result<(), Interruption> {
        let query =
            format!("&watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={version}");
        let mut body = self.get(&query).await?.body;
        let mut text = Zeroizing::new(Vec::new());
        loop {
            match timeout(MAX_SILENCE, body.read(&mut text)).await {
                Ok(Ok(true)) => {}
                // The server ended the watch, the connection was cut, or nothing arrived for too long: all are resumed.
                Ok(Ok(false) | Err(_)) | Err(_) => return Ok(()),
            }
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let rest = Zeroizing::new(text.get(end + 1..).unwrap_or_default().to_vec());
                text.truncate(end);
                self.handle(&text).await?;
                text = rest;
            }
            if text.len() > MAX_EVENT_BYTES {
                return Err(not_understood());
            }
        }
    }

    async fn handle(&mut self, line: &[u8]) -> Result<(), Interruption> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let event: WatchEvent = serde_json::from_slice(line).map_err(|_quotes| not_understood())?;
        match event.r#type.as_str() {
            "ADDED" | "MODIFIED" => self.send(self.read(&event.object)).await?,
            "DELETED" => self.send(SourceEvent::Missing).await?,
            "BOOKMARK" => {}
            _ if event.object.code == Some(410) => return Err(Interruption::Expired),
            _ => {
                let code = event.object.code.unwrap_or_default();
                return Err(unavailable(format!("the API server ends the watch with {code}")));
            }
        }
        if !event.object.metadata.resource_version.is_empty() {
            self.resource_version = Some(event.object.metadata.resource_version);
        }
        Ok(())
    }

    fn read(&self, secret: &Object) -> SourceEvent {
        let Some(data) = &secret.data else { return SourceEvent::Missing };
        let Ok(bytes) = STANDARD.decode(data.credentials.as_bytes()).map(Zeroizing::new) else {
            return SourceEvent::Invalid("the Secret's data is not base64".to_owned());
        };
        let revision = STANDARD.decode(&data.revision).ok().and_then(|text| String::from_utf8(text).ok());
        let revision = revision.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let event = self.reader.read(bytes, revision);
        if data.reverting.is_some() { event.as_revert() } else { event }
    }

    async fn send(&self, event: SourceEvent) -> Result<(), Interruption> {
        self.events.send(event).await.map_err(|_closed| Interruption::Closed)
    }
}

fn unavailable(reason: impl Into<String>) -> Interruption {
    Interruption::Unavailable(reason.into())
}

fn not_understood() -> Interruption {
    unavailable("the API server's response is not understood")
}
