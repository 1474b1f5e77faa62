//! The program, started with a request on its standard input.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use testkit::leaks;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_keyless-credential-provider");
pub(crate) const REGISTRY: &str = "quay.example.com";
pub(crate) const ROBOT: &str = "hyperfleet+puller";
pub(crate) const ANNOTATION: &str = "hyperfleet.io/registry-robot";

/// The outcome of a run.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

// === impl Run ===

impl Run {
    /// The response, and nothing else.
    #[track_caller]
    pub(crate) fn response(&self) -> Value {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""));
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// Asserts that it has failed with this code, and with this in its one line.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, expected: &str) {
        assert_eq!((self.code, self.stdout.as_str(), self.stderr.lines().count()), (code, "", 1), "{}", self.stderr);
        assert!(self.stderr.starts_with("error: ") && self.stderr.contains(expected), "{}", self.stderr);
    }
}

/// A token of a service account that the program can read and no issuer has signed.
pub(crate) fn unsigned_token() -> String {
    let part = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({"iss": "https://issuer.example.com", "sub": "system:serviceaccount:pulls:puller"});
    format!("{}.{}.{}", part(json!({"alg": "none"})), part(claims), BASE64_URL_SAFE_NO_PAD.encode(leaks::PASSWORD))
}

/// A request as the kubelet writes it.
pub(crate) fn request(token: &str) -> Value {
    json!({
        "kind": "CredentialProviderRequest",
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "image": format!("{REGISTRY}/hyperfleet/release"),
        "serviceAccountToken": token,
        "serviceAccountAnnotations": {ANNOTATION: ROBOT},
    })
}

/// The flags for a federation at this address.
pub(crate) fn at(address: SocketAddr) -> Vec<String> {
    let url = format!("http://{address}/oauth2/federation/robot/token");
    ["--registry", REGISTRY, "--federation-url", &url].map(str::to_owned).to_vec()
}

/// Runs the program. Neither the token of the request nor a test credential is in its messages.
pub(crate) async fn run(program: &Path, flags: &[String], request: &Value) -> Run {
    let mut command = Command::new(program);
    command.args(flags).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that refuses its arguments does not read.
    let _unread = stdin.write_all(request.to_string().as_bytes()).await;
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let run = Run { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) };
    leaks::check("stderr", &run.stderr);
    let token = request["serviceAccountToken"].as_str().unwrap_or_default();
    for secret in token.split('.').filter(|part| part.len() > 8).chain([&*BASE64_STANDARD.encode(token)]) {
        assert!(secret.is_empty() || !run.stderr.contains(secret), "the token is in {}", run.stderr);
    }
    run
}

pub(crate) async fn provide(flags: &[String], request: &Value) -> Run {
    run(Path::new(PROGRAM), flags, request).await
}
