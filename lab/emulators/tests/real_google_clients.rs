//! Google's own clients against the Secret Manager emulator: whatever they rely on, it has.
//!
//! `make real-parts` (here: `hack/real-parts/google-clients.sh` and `go-clients.sh`) gets the libraries. A missing one is printed
//! in a line and lets its test pass, unless `CI=true`; only gcloud may be missing there too, because no package registry has it.

#![expect(clippy::unwrap_used, reason = "what is missing fails the test that looks for it")]

use std::path::{Path, PathBuf};
use std::process::Output;

use emulators::secret_manager::{Method, SecretManager, Settings};
use rstest::rstest;
use testkit::clients;
use testkit::environment::absent;
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
    let Some(mut command) = clients::python("") else { return };
    let server = SecretManager::start(settings()).await.unwrap();
    command.arg(script("secret_manager.py")).arg(server.address().to_string()).arg(transport);
    check(server, command).await;
}

#[rstest]
#[case("grpc")]
#[case("rest")]
#[tokio::test]
async fn node(#[case] transport: &str) {
    let Some(modules) = clients::node_modules("", "@google-cloud/secret-manager") else { return };
    let server = SecretManager::start(settings()).await.unwrap();
    let mut command = clients::node();
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
    if !clients::on_path("gcloud") {
        return absent("gcloud", "it comes from https://cloud.google.com/sdk, no registry has it").unwrap_or_default();
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

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}
