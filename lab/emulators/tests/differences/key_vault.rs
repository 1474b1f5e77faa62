//! The Key Vault emulator's guesses, as `key_vault.yaml` has them, and its answers to them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use emulators::key_vault::Settings;
use serde::Deserialize;
use serde_json::Value;
use testkit::http::Reply;
use testkit::key_vault::{Server, versioned};

use crate::page::cut;

/// A behaviour that is not known of the service.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Guess {
    #[serde(rename = "guess")]
    title: String,
    #[serde(default)]
    vault: Vault,
    /// False leaves the version of the API out.
    #[serde(default = "yes")]
    api_version: bool,
    steps: Vec<Step>,
    /// Pointers into the body of an answer that is no error.
    #[serde(default)]
    show: Vec<String>,
    /// The reason why it is not known.
    why: String,
}

/// The settings of the vault.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Vault {
    #[default]
    Plain,
    Slow,
    Protected,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// Method and path.
    #[serde(default)]
    call: String,
    #[serde(default)]
    body: Value,
    /// The value has this many bytes.
    padding: Option<usize>,
    /// The resource of the access token; the vault's if none.
    audience: Option<String>,
    /// Changed fields of a request for a token, which is the call.
    token: Option<BTreeMap<String, String>>,
}

fn yes() -> bool {
    true
}

/// The page's section.
pub(crate) async fn section() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differences/key_vault.yaml");
    let guesses: Vec<Guess> = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut section = format!(
        "\n## Guesses of the Key Vault emulator\n\nNo vault was asked for what follows: {} behaviours are the emulator's own choice, and every text of an \
         error is written from memory. A program may rely on status and code of the others.\n\n\
         | behaviour | answer of the emulator | why it is not known |\n|---|---|---|\n",
        guesses.len()
    );
    for guess in &guesses {
        let answer = guess.play().await;
        // Writing to a String cannot fail.
        let _infallible = writeln!(section, "| {} | {answer} | {} |", guess.title, guess.why);
    }
    section
}

impl Guess {
    /// The last answer, as a cell.
    async fn play(&self) -> String {
        let settings = match self.vault {
            Vault::Plain => Settings::default(),
            Vault::Slow => Settings { transition: Duration::from_hours(1), ..Settings::default() },
            Vault::Protected => Settings { purge_protection: true, ..Settings::default() },
        };
        let server = Server::start(settings).await;
        let mut last = None;
        for step in &self.steps {
            last = Some(step.send(&server, self.api_version).await);
        }
        shown(&last.unwrap(), &self.show)
    }
}

impl Step {
    async fn send(&self, server: &Server, has_version: bool) -> Reply {
        if let Some(changes) = &self.token {
            let changes: Vec<_> = changes.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            return server.request_token(&server.form(&changes)).await;
        }
        let (method, path) = self.call.split_once(' ').unwrap();
        let path = if has_version { versioned(path) } else { path.to_owned() };
        let token = match &self.audience {
            Some(audience) => server.issue(&format!("{audience}/.default")).await,
            None => server.token.clone(),
        };
        let mut body = self.body.clone();
        if let Some(length) = self.padding {
            body["value"] = "x".repeat(length).into();
        }
        let body = if body.is_null() { String::new() } else { body.to_string() };
        server.raw(method, &path, &body, &format!("authorization: Bearer {token}\r\n")).await.unwrap()
    }
}

/// An error by status, codes and text; another answer by the parts that are shown.
fn shown(reply: &Reply, pointers: &[String]) -> String {
    let (status, body) = (reply.status, &reply.body);
    if let Some(text) = body["error_description"].as_str() {
        return format!("{status} {} `{}`", body["error"].as_str().unwrap(), cut(text));
    }
    if let Some(text) = body.pointer("/error/message").and_then(Value::as_str) {
        let inner = body.pointer("/error/innererror/code").and_then(Value::as_str);
        let inner = inner.map(|inner| format!(" / {inner}")).unwrap_or_default();
        return format!("{status} {}{inner} `{}`", body["error"]["code"].as_str().unwrap(), cut(text));
    }
    let parts = pointers.iter().map(|pointer| format!(", {pointer} `{}`", body.pointer(pointer).unwrap()));
    format!("{status}{}", parts.collect::<String>())
}
