//! Answers that Quay's own code gave, as conversations: one file a fact, and one test a file.
//!
//! `fact` says it in a sentence. Each of `steps` is a call (method and path) with `body`, `bearer` or `basic` (`none` for
//! neither; the API's token if nothing is said), and what is known of its answer: `status`, `answer` (the whole document),
//! `matches` (regular expressions, by pointer), `equals` (by pointer), `keys` (of the document), `absent` (pointers), `lifetime`
//! (of the token that is answered, in seconds) and `head` (a part of the headers, in lower case). A step can also `advance` the server's clock by seconds, or make a `cluster` token. `save` keeps
//! parts of the answer for later steps, which write them `${name}`. The parts of a JSON Web Token that is answered as `token`
//! are in the answer as `header` and `claims`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use emulators::quay::{ApiToken, Settings};
use regex::Regex;
use rstest::rstest;
use serde::Deserialize;
use serde_json::{Value, json};
use testkit::quay::{Server, basic, bearer, part_of_token};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Golden {
    #[serde(rename = "fact")]
    _fact: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    #[serde(default)]
    call: String,
    #[serde(default)]
    body: Value,
    /// A body as it is, which may be no JSON.
    text: Option<String>,
    bearer: Option<String>,
    basic: Option<String>,
    advance: Option<u64>,
    cluster: Option<Cluster>,
    status: Option<u16>,
    answer: Option<Value>,
    #[serde(default)]
    matches: BTreeMap<String, String>,
    #[serde(default)]
    equals: BTreeMap<String, Value>,
    keys: Option<Vec<String>>,
    head: Option<String>,
    #[serde(default)]
    absent: Vec<String>,
    lifetime: Option<i64>,
    #[serde(default)]
    save: BTreeMap<String, String>,
}

/// A token of a cluster's issuer, which is kept as `cluster`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cluster {
    issuer: String,
    subject: String,
    audience: String,
}

/// Texts that steps have saved, by name.
type Saved = BTreeMap<String, String>;

#[rstest]
#[tokio::test]
async fn answers_as_quay_did(#[files("tests/quay/golden/*.yaml")] path: PathBuf) {
    let golden: Golden = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let narrow = ApiToken { secret: "narrow".to_owned(), admin: false, ..ApiToken::admin() };
    let short = ApiToken { secret: "short".to_owned(), lifetime: Duration::from_mins(1), ..ApiToken::admin() };
    let settings = Settings { tokens: vec![ApiToken::admin(), narrow, short], ..Settings::default() };
    let server = Server::start(settings).await;
    let mut saved = Saved::from([("long".to_owned(), "x".repeat(256)), ("url".to_owned(), server.quay.url())]);
    for (index, step) in golden.steps.iter().enumerate() {
        step.play(index, &server, &mut saved).await;
    }
}

impl Step {
    async fn play(&self, index: usize, server: &Server, saved: &mut Saved) {
        server.quay.advance_clock(Duration::from_secs(self.advance.unwrap_or_default()));
        if let Some(Cluster { issuer, subject, audience }) = &self.cluster {
            saved.insert("cluster".to_owned(), server.quay.subject_token(issuer, subject, audience));
        }
        let Some((method, path)) = self.call.split_once(' ') else { return };
        let (body, credentials) = (self.body_text(), self.credentials(server, saved));
        let reply = server.raw(method, &filled(path, saved), &filled(&body, saved), &credentials).await.unwrap();
        let mut answer = reply.body;
        if let Some(token) = answer["token"].as_str().map(str::to_owned)
            && let Some(claims) = part_of_token(&token, 1)
        {
            answer["header"] = part_of_token(&token, 0).unwrap();
            answer["claims"] = claims;
        }
        let context = format!("step {index}, {}: {} {answer:#}", self.call, reply.status);
        assert_eq!(reply.status, self.status.unwrap_or(200), "{context}");
        if let Some(head) = &self.head {
            assert!(reply.head.contains(&filled(head, saved)), "{head}: {}", reply.head);
        }
        self.check(&answer, saved, &context);
        for (name, pointer) in &self.save {
            let found = answer.pointer(pointer).unwrap_or(&json!(null));
            saved.insert(name.clone(), found.as_str().map_or_else(|| found.to_string(), str::to_owned));
        }
    }

    fn body_text(&self) -> String {
        self.text.clone().unwrap_or_else(|| match &self.body {
            Value::Null => String::new(),
            body => body.to_string(),
        })
    }

    /// The header with them.
    fn credentials(&self, server: &Server, saved: &Saved) -> String {
        match (&self.bearer, &self.basic) {
            (Some(token), _) if token == "none" => String::new(),
            (Some(token), _) => bearer(&filled(token, saved)),
            (None, Some(pair)) => {
                let pair = filled(pair, saved);
                let (user, password) = pair.split_once(':').unwrap();
                basic(user, password)
            }
            (None, None) => bearer(server.quay.token()),
        }
    }

    fn check(&self, answer: &Value, saved: &Saved, context: &str) {
        if let Some(expected) = &self.answer {
            let expected: Value = serde_json::from_str(&filled(&expected.to_string(), saved)).unwrap();
            assert_eq!(*answer, expected, "{context}");
        }
        for (pointer, pattern) in &self.matches {
            let found = answer.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let pattern = Regex::new(&format!("^(?:{})$", filled(pattern, saved))).unwrap();
            assert!(pattern.is_match(found), "{pointer} is no {pattern}; {context}");
        }
        for (pointer, expected) in &self.equals {
            let expected: Value = serde_json::from_str(&filled(&expected.to_string(), saved)).unwrap();
            assert_eq!(answer.pointer(pointer), Some(&expected), "{pointer}; {context}");
        }
        if let Some(keys) = &self.keys {
            assert_eq!(
                answer.as_object().unwrap().keys().collect::<Vec<_>>(),
                keys.iter().collect::<Vec<_>>(),
                "{context}"
            );
        }
        for pointer in &self.absent {
            assert_eq!(answer.pointer(pointer), None, "{context}");
        }
        if let Some(seconds) = self.lifetime {
            let time = |name: &str| answer["claims"][name].as_i64().unwrap();
            assert_eq!((time("exp") - time("iat"), time("nbf")), (seconds, time("iat")), "{context}");
        }
    }
}

/// The text with what was saved in it.
fn filled(text: &str, saved: &Saved) -> String {
    saved.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}
