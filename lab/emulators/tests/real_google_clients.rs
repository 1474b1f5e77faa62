//! Google's own clients against the Secret Manager emulator: whatever they rely on, it has.
//!
//! `make real-parts` (here: `hack/real-parts/google-clients.sh` and `go-clients.sh`) gets the libraries. A missing one is printed
//! in a line and lets its test pass, unless `CI=true`; only gcloud may be missing there too, because no package registry has it.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests that may have to say which part is missing")]

use std::path::{Path, PathBuf};
use std::process::Output;

use emulators::secret_manager::{Method, SecretManager, Settings};
use rstest::rstest;
use tokio::process::Command;

/// The requirements of the scripts.
fn settings() -> Settings {
    Settings {
        denied_permissions: ["secretmanager.secrets.setIamPolicy".to_owned()].into(),
        faults: ["deleteSecret:unavailable(retry-after=3s)", "getVersion:cut@2"]
            .map(|fault| fault.parse().unwrap())
            .into(),
        ..Settings::default()
    }
}

#[rstest]
#[case("grpc")]
#[case("rest")]
#[tokio::test]
async fn python(#[case] transport: &str) {
    let interpreter = variable("REAL_PARTS_PYTHON").map_or_else(|| parts().join("python/bin/python"), PathBuf::from);
    if !interpreter.exists() {
        return missing(&format!("{}, Google's Python client", interpreter.display()), true);
    }
    let server = SecretManager::start(settings()).await.unwrap();
    let mut command = Command::new(interpreter);
    command.arg(script("secret_manager.py")).arg(server.address().to_string()).arg(transport);
    check(server, command).await;
}

#[rstest]
#[case("grpc")]
#[case("rest")]
#[tokio::test]
async fn node(#[case] transport: &str) {
    let modules = parts().join("node/node_modules");
    if !modules.join("@google-cloud/secret-manager").exists() || !on_path("node") {
        return missing(&format!("node or {}, Google's Node client", modules.display()), true);
    }
    let server = SecretManager::start(settings()).await.unwrap();
    let mut command = Command::new("node");
    command.arg(script("secret_manager.mjs")).arg(server.address().to_string()).arg(transport).arg(modules);
    command.env("METADATA_SERVER_DETECTION", "none");
    check(server, command).await;
}

#[rstest]
#[case("grpc")]
#[case("rest")]
#[tokio::test]
async fn go(#[case] transport: &str) {
    let Some(mut command) = testkit::go::command("secretmanager") else { return };
    let server = SecretManager::start(settings()).await.unwrap();
    command.arg(server.address().to_string()).arg(transport);
    check(server, command).await;
}

#[tokio::test]
async fn gcloud() {
    if !on_path("gcloud") {
        return missing("gcloud (optional: it comes from https://cloud.google.com/sdk, no registry has it)", false);
    }
    let folder = tempfile::tempdir().unwrap();
    let server = SecretManager::start(Settings { faults: Vec::new(), ..settings() }).await.unwrap();
    let mut command = Command::new("bash");
    command.arg(script("gcloud.sh")).arg(server.address().to_string()).arg(folder.path());
    check(server, command).await;
}

/// Runs a script to its end, which must be a good one.
async fn check(server: SecretManager, mut command: Command) {
    let Output { status, stdout, stderr } = command.kill_on_drop(true).output().await.unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{stdout}\n{stderr}");
    let accessed = server.calls().iter().filter(|call| call.method == Method::AccessVersion).count();
    assert!(accessed > 4, "the calls went elsewhere");
    server.shutdown().await;
}

/// Says which part is missing; in CI a missing part is a failure.
fn missing(part: &str, required: bool) {
    let ci = variable("CI").is_some_and(|value| value == "true");
    assert!(!(required && ci), "{part} is missing; `make real-parts` gets it");
    let hint = if required { "; `make real-parts` gets it" } else { "" };
    eprintln!("skipped: {part} is missing{hint}");
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

fn parts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/real-parts")
}

fn on_path(program: &str) -> bool {
    let path = variable("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[expect(clippy::disallowed_methods, reason = "the test's own switches, not a setting of the product")]
fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}
