//! The Quay emulator's differences and guesses, as `quay.yaml` has them, and its answers to the guesses.

use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use testkit::http::Reply;
use testkit::quay::{Server, basic, bearer};

use crate::page::cut;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    differences: Vec<Difference>,
    guesses: Vec<Guess>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    behaviour: String,
    quay: String,
    emulator: String,
}

/// A behaviour that was not seen of Quay.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Guess {
    #[serde(rename = "guess")]
    title: String,
    steps: Vec<Step>,
    /// Pointers into the body of an answer that is no error.
    #[serde(default)]
    show: Vec<String>,
    why: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// Method and path; one without a slash at its begin is of the organization.
    call: String,
    #[serde(default)]
    body: Value,
    /// Name and password.
    basic: Option<String>,
}

/// The page's section.
pub(crate) async fn section() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differences/quay.yaml");
    let page: Page = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut section =
        "\n## Known differences of the Quay emulator\n\nIt is held to the answers that Quay's own code gave once \
         (`lab/emulators/tests/quay/golden`): no build of Quay can be had for the tests.\n\n\
         | behaviour | Quay | emulator |\n|---|---|---|\n"
            .to_owned();
    for Difference { behaviour, quay, emulator } in &page.differences {
        // Writing to a String cannot fail, here and below.
        let _infallible = writeln!(section, "| {behaviour} | {quay} | {emulator} |");
    }
    section += "\n### Guesses\n\n| behaviour | answer of the emulator | why it is not known |\n|---|---|---|\n";
    for guess in &page.guesses {
        let _infallible = writeln!(section, "| {} | {} | {} |", guess.title, guess.play().await, guess.why);
    }
    section
}

impl Guess {
    /// The last answer, as a cell.
    async fn play(&self) -> String {
        let server = Server::plain().await;
        let password = server.robot("a1").await;
        let mut last = None;
        for Step { call, body, basic: credentials } in &self.steps {
            let (method, path) = call.split_once(' ').unwrap();
            let whole = path.starts_with('/');
            let path = if whole { path.to_owned() } else { format!("/api/v1/organization/hyperfleet/{path}") };
            let header = credentials.as_ref().map_or_else(
                || bearer(server.quay.token()),
                |pair| {
                    let (user, shown) = pair.split_once(':').unwrap();
                    basic(user, &shown.replace("${password}", &password))
                },
            );
            let body = if body.is_null() { String::new() } else { body.to_string() };
            last = server.raw(method, &path, &body, &header).await;
        }
        shown(&last.unwrap(), &self.show)
    }
}

/// An error by status, code and text; another answer by the parts that are shown.
fn shown(reply: &Reply, pointers: &[String]) -> String {
    let (status, body) = (reply.status, &reply.body);
    let code = ["/error_type", "/errors/0/code"].iter().find_map(|pointer| body.pointer(pointer)?.as_str());
    let text = ["/detail", "/message", "/errors/0/message"].iter().find_map(|pointer| body.pointer(pointer)?.as_str());
    if let Some(text) = text {
        let code = code.map(|code| format!(" {code}")).unwrap_or_default();
        return format!("{status}{code} `{}`", cut(text));
    }
    let parts = pointers.iter().map(|pointer| format!(", {pointer} `{}`", body.pointer(pointer).unwrap()));
    format!("{status}{}", parts.collect::<String>())
}
