//! The one Secret, watched through the API server: no other object is ever asked for.

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

use super::http::{self, Server};
use super::{Reader, Said, Sayings};

/// How long a watch lasts before it is asked for again, from where it was.
const WATCH_SECONDS: u64 = 600;

/// More than any event about one Secret has: a Secret holds 1 MiB, here in base64, with its metadata.
const MOST_EVENT: usize = 8 * 1024 * 1024;

/// Back-off while the API server is away.
const RETRY: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(1)).with_jitter(20);

/// Which Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Which Secret, and where.
#[derive(Clone, Debug)]
pub struct ApiSettings {
    /// The Secret.
    pub secret: SecretName,
    /// The API server's host, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The file with the certificates that sign the server's; `None` speaks without encryption.
    pub authority: Option<PathBuf>,
    /// The file with the token of the pod's service account.
    pub token: PathBuf,
}

/// Why a listing or a watch ended.
enum Trouble {
    /// The version from which to go on is too old.
    Gone,
    /// This.
    Away(String),
    /// Nobody listens any more.
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

/// A Secret, or the status that takes its place when something is wrong.
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
    #[serde(rename = ".dockerconfigjson", default, deserialize_with = "wiped")]
    credentials: Zeroizing<String>,
    #[serde(default)]
    revision: String,
}

fn wiped<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Zeroizing<String>, D::Error> {
    String::deserialize(deserializer).map(Zeroizing::new)
}

/// A follower of the Secret.
struct Follower<'a> {
    server: Server,
    path: String,
    reader: &'a Reader,
    sayings: &'a Sayings,
    /// From where the watch goes on; `None` before the first listing, and when that is too old.
    version: Option<String>,
    away: bool,
}

pub(super) async fn run(settings: &ApiSettings, reader: &Reader, sayings: &Sayings) {
    let SecretName { namespace, name } = &settings.secret;
    let server = Server {
        host: settings.host.clone(),
        port: settings.port,
        authority: settings.authority.clone(),
        token: Some(settings.token.clone()),
    };
    let path = format!("/api/v1/namespaces/{namespace}/secrets?fieldSelector=metadata.name%3D{name}");
    let mut follower = Follower { server, path, reader, sayings, version: None, away: false };
    let mut failures = 0_u32;
    loop {
        let began = Instant::now();
        let step = tokio::select! {
            step = follower.step() => step,
            () = sayings.closed() => return,
        };
        match step {
            Err(Trouble::Closed) => return,
            Err(Trouble::Gone) => follower.version = None,
            Ok(()) => {}
            Err(Trouble::Away(why)) => {
                if !follower.away && sayings.send(Said::Away(Some(why))).await.is_err() {
                    return;
                }
                follower.away = true;
            }
        }
        // A listing leads to a watch at once; a watch that ends as soon as it has begun is as bad as none.
        let is_well = step_is_well(follower.away, began.elapsed());
        failures = if is_well { 0 } else { failures.saturating_add(1) };
        if failures > 1 || follower.away {
            sleep(RETRY.delay(failures, rand::random())).await;
        }
    }
}

fn step_is_well(away: bool, took: Duration) -> bool {
    !away && took > Duration::from_secs(1)
}

// === impl SecretName ===

/// A text that names no Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a namespace and a name, such as kube-system/global-pull-secret")]
pub struct NotASecretName;

impl FromStr for SecretName {
    type Err = NotASecretName;

    fn from_str(text: &str) -> Result<Self, NotASecretName> {
        let (namespace, name) = text.split_once('/').ok_or(NotASecretName)?;
        let is_name = |part: &str| {
            let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
            !part.is_empty() && part.len() <= 253 && part.bytes().all(fits)
        };
        if !is_name(namespace) || !is_name(name) {
            return Err(NotASecretName);
        }
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

// === impl Follower ===

impl Follower<'_> {
    async fn step(&mut self) -> Result<(), Trouble> {
        match self.version.clone() {
            None => self.list().await,
            Some(version) => self.watch(&version).await,
        }
    }

    async fn ask(&mut self, query: &str) -> Result<http::Answer, Trouble> {
        let answer = http::get(&self.server, &format!("{}{query}", self.path)).await;
        let answer = answer.map_err(|error| Trouble::Away(format!("the API server cannot be asked: {error}")))?;
        match answer.status {
            200 => {}
            410 => return Err(Trouble::Gone),
            401 => return Err(Trouble::Away("the API server does not take the token (401)".to_owned())),
            403 => {
                let why = "the service account may not list and watch the Secret (403): see the Role";
                return Err(Trouble::Away(why.to_owned()));
            }
            status => return Err(Trouble::Away(format!("the API server answers {status}"))),
        }
        if self.away {
            self.away = false;
            self.say(Said::Away(None)).await?;
        }
        Ok(answer)
    }

    async fn list(&mut self) -> Result<(), Trouble> {
        let mut body = self.ask("").await?.body;
        let mut text = Zeroizing::new(Vec::new());
        let reading = async {
            while body.piece(&mut text).await? {
                if text.len() > MOST_EVENT {
                    return Err(io::Error::other("too long an answer"));
                }
            }
            Ok(())
        };
        match timeout(Duration::from_secs(30), reading).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(Trouble::Away(format!("the API server's answer is cut short: {error}"))),
            Err(_elapsed) => return Err(Trouble::Away("the API server's answer takes too long".to_owned())),
        }
        // serde's own words may quote what is there.
        let list: List = serde_json::from_slice(&text).map_err(|_words| not_understood())?;
        self.say(match list.items.first() {
            Some(secret) => self.read(secret),
            None => Said::Missing,
        })
        .await?;
        self.version = Some(list.metadata.resource_version);
        Ok(())
    }

    async fn watch(&mut self, version: &str) -> Result<(), Trouble> {
        let query =
            format!("&watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={version}");
        let mut body = self.ask(&query).await?.body;
        let mut text = Zeroizing::new(Vec::new());
        let patience = Duration::from_secs(WATCH_SECONDS + 30);
        loop {
            let piece = timeout(patience, body.piece(&mut text)).await;
            match piece {
                Ok(Ok(true)) => {}
                // The server ends every watch some day; a connection that is cut is no more than that.
                Ok(Ok(false) | Err(_)) | Err(_) => return Ok(()),
            }
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let rest = Zeroizing::new(text.get(end + 1..).unwrap_or_default().to_vec());
                text.truncate(end);
                self.hear(&text).await?;
                text = rest;
            }
            if text.len() > MOST_EVENT {
                return Err(not_understood());
            }
        }
    }

    async fn hear(&mut self, line: &[u8]) -> Result<(), Trouble> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let event: WatchEvent = serde_json::from_slice(line).map_err(|_words| not_understood())?;
        match event.r#type.as_str() {
            "ADDED" | "MODIFIED" => self.say(self.read(&event.object)).await?,
            "DELETED" => self.say(Said::Missing).await?,
            "BOOKMARK" => {}
            _ if event.object.code == Some(410) => return Err(Trouble::Gone),
            _ => {
                let code = event.object.code.unwrap_or_default();
                return Err(Trouble::Away(format!("the API server ends the watch with {code}")));
            }
        }
        if !event.object.metadata.resource_version.is_empty() {
            self.version = Some(event.object.metadata.resource_version);
        }
        Ok(())
    }

    fn read(&self, secret: &Object) -> Said {
        let Some(data) = &secret.data else { return Said::Missing };
        let Ok(bytes) = STANDARD.decode(data.credentials.as_bytes()).map(Zeroizing::new) else {
            return Said::Invalid("the Secret's data is not base64".to_owned());
        };
        let revision = STANDARD.decode(&data.revision).ok().and_then(|text| String::from_utf8(text).ok());
        let revision = revision.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        self.reader.read(bytes, revision)
    }

    async fn say(&self, said: Said) -> Result<(), Trouble> {
        self.sayings.send(said).await.map_err(|_closed| Trouble::Closed)
    }
}

fn not_understood() -> Trouble {
    Trouble::Away("the API server's answer is not understood".to_owned())
}
