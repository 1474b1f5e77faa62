//! Microsoft's own clients against the Key Vault emulator: whatever they rely on, it has.
//!
//! `make real-parts` (here: `hack/real-parts/azure-clients.sh`) gets the libraries. A missing one is printed in a line and lets
//! its test pass, unless `CI=true`.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what is missing fails the test that looks for it")]

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use emulators::key_vault::{Identity, KeyVault, Operation, Permission, Settings};
use testkit::clients;
use tokio::process::Command;

/// The client id of the identity that may only get secrets.
const READER: &str = "reader";

/// The requirements of the scripts.
fn settings() -> Settings {
    let reader = Identity { client_id: READER.to_owned(), permissions: [Permission::Get].into(), ..Identity::admin() };
    Settings {
        identities: vec![Identity::admin(), reader],
        faults: ["getSecret in throttled:throttled(retry-after=1s)*2", "setSecret in lost:commit-then-cut"]
            .map(|fault| fault.parse().unwrap())
            .into(),
        transition: Duration::from_millis(300),
        ..Settings::default()
    }
}

#[tokio::test]
async fn python() {
    let Some(command) = clients::python("azure") else { return };
    check(command, "key_vault.py", None).await;
}

#[tokio::test]
async fn node() {
    let Some(modules) = clients::node_modules("azure", "@azure/keyvault-secrets") else { return };
    check(clients::node(), "key_vault.mjs", Some(modules)).await;
}

/// Runs a script to its end, which must be a good one. It finds the server by the variables that Microsoft's clients know.
async fn check(mut command: Command, script: &str, modules: Option<PathBuf>) {
    let settings = settings();
    let server = KeyVault::start(settings.clone()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [authority, assertion] = ["ca.pem", "assertion"].map(|name| folder.path().join(name));
    let admin = &settings.identities[0];
    daemon::file::replace(&authority, server.authority().as_bytes()).unwrap();
    let subject = admin.subject.as_deref().unwrap();
    daemon::file::replace(&assertion, server.assertion(subject).as_bytes()).unwrap();
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(script));
    command.args([&server.url(), READER]).args(modules);
    command.env("AZURE_TENANT_ID", &settings.tenant).env("AZURE_CLIENT_ID", &admin.client_id);
    command.env("AZURE_FEDERATED_TOKEN_FILE", &assertion).env("AZURE_AUTHORITY_HOST", server.url());
    command.env("REQUESTS_CA_BUNDLE", &authority).env("NODE_EXTRA_CA_CERTS", &authority);

    let Output { status, stdout, stderr } = command.output().await.unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{script}: {status}\n{stdout}\n{stderr}");
    let outcomes = |operation: Operation| {
        let calls = server.calls().into_iter().filter(|call| call.operation == operation);
        calls.map(|call| call.outcome).collect::<Vec<_>>()
    };
    assert!(
        outcomes(Operation::RequestToken).contains(&Some(401))
            && outcomes(Operation::PurgeDeletedSecret).contains(&Some(204))
    );
    assert_eq!(outcomes(Operation::GetSecret).iter().filter(|outcome| **outcome == Some(429)).count(), 2);
    assert!(outcomes(Operation::SetSecret).contains(&None), "the answer that was lost");
    server.shutdown().await;
}
