//! Chromium with a profile of its own, which a test drives by its `DevTools` protocol: JSON that ends with a zero byte, on pipes.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::environment::{missing, variable};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// The longest that a page is waited for, on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Chromium reads commands from descriptor 3 and writes answers to descriptor 4.
const AS_PIPES: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null"#;

pub(super) struct Browser {
    _process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    session: Option<String>,
    count: u64,
}

/// The program; `None`, with a line that gives the reason, where there is none. In CI that is a failure.
pub(super) fn chromium() -> Option<String> {
    let advice = "REAL_CHROMIUM is not set: no browser; get it: eval \"$(hack/real-parts/chromium.sh get)\"";
    variable("REAL_CHROMIUM").or_else(|| missing(advice))
}

impl Browser {
    pub(super) async fn start(program: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", AS_PIPES, "sh", program, "--remote-debugging-pipe", "--ignore-certificate-errors"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let (commands, answers) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let answers = BufReader::new(answers);
        let mut browser = Self { _process: process, commands, answers, session: None, count: 0 };
        let page = browser.call("Target.createTarget", json!({"url": "about:blank"})).await;
        let attach = json!({"targetId": page["result"]["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach).await;
        browser.session = Some(attached["result"]["sessionId"].as_str().unwrap().to_owned());
        browser
    }

    /// The answer to a command; events on the way are left out.
    async fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.count += 1;
        let mut command = json!({"id": self.count, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        self.commands.write_all(format!("{command}\0").as_bytes()).await.unwrap();
        loop {
            let mut message = Vec::new();
            let read = tokio::time::timeout(TIMEOUT, self.answers.read_until(0, &mut message)).await;
            assert!(read.unwrap().unwrap() > 0, "the browser has ended before its answer to {method}");
            let message: Value = serde_json::from_slice(message.strip_suffix(&[0]).unwrap()).unwrap();
            if message["id"] == self.count {
                return message;
            }
        }
    }

    /// The value of an expression in the page; null while a page takes the place of another.
    async fn evaluate(&mut self, expression: &str) -> Value {
        let mut answer = self.call("Runtime.evaluate", json!({"expression": expression, "returnByValue": true})).await;
        answer["result"]["result"]["value"].take()
    }

    pub(super) async fn open(&mut self, url: &str) {
        drop(self.call("Page.navigate", json!({"url": url})).await);
    }

    /// Waits until the page shows this text; returns its address and all that it shows.
    pub(super) async fn shows(&mut self, text: &str) -> (String, String) {
        let mut last = Value::Null;
        let shown = async {
            loop {
                let expression = "document.readyState === 'complete' && [location.href, document.title + '\\n' + document.body.innerText]";
                last = self.evaluate(expression).await;
                if let (Some(address), Some(shown)) = (last[0].as_str(), last[1].as_str())
                    && shown.contains(text)
                {
                    return (address.to_owned(), shown.to_owned());
                }
            }
        };
        let shown = tokio::time::timeout(TIMEOUT, shown).await;
        shown.unwrap_or_else(|_elapsed| panic!("{text:?} is not on the page: {last}"))
    }

    /// Fills the page's form and sends it, as a person does.
    pub(super) async fn send_form(&mut self, field: Option<(&str, &str)>) {
        if let Some((name, value)) = field {
            drop(self.evaluate(&format!("document.forms[0].elements['{name}'].value = '{value}'")).await);
        }
        drop(self.evaluate("document.forms[0].submit()").await);
    }

    /// The header `Cookie` that the browser sends to an address.
    pub(super) async fn cookie(&mut self, url: &str) -> String {
        let answer = self.call("Network.getCookies", json!({"urls": [url]})).await;
        let cookies = answer["result"]["cookies"].as_array().unwrap().iter();
        let pair =
            |cookie: &Value| format!("{}={}", cookie["name"].as_str().unwrap(), cookie["value"].as_str().unwrap());
        format!("Cookie: {}", cookies.map(pair).collect::<Vec<_>>().join("; "))
    }
}
