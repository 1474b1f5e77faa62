//! Fuzzing with schemathesis: the server accepts whatever the document allows and refuses whatever it forbids.

use std::path::Path;
use std::process::Command;

use crate::contract::Contract;
use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn schemathesis_finds_nothing() {
    let Some(executable) = executable() else { return };
    let rig = Rig::start().await;
    rig.create(5).await;
    // All but the one that serves the document, which schemathesis leaves out.
    let operations = Contract(rig.document().await).operations().count() - 1;
    let url = rig.url("/api/hyperfleet/v1/openapi");
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openapi");
    let scratch = tempfile::tempdir().unwrap();
    let mut command = Command::new(executable);
    command
        .arg("--config-file")
        .arg(here.join("schemathesis.toml"))
        .args(["run", "--no-color", &url])
        .current_dir(scratch.path())
        .env("PYTHONPATH", &here)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SCHEMATHESIS_HOOKS", "hooks");
    let done = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let (output, failed) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{output}\n{failed}");
    // A run that tests nothing also finds nothing.
    let all = [format!("Selected: {operations}/{operations}"), format!("Tested: {operations}")];
    assert!(operations > 0 && all.iter().all(|line| output.contains(line)), "{output}\n{failed}");
    rig.end().await;
}

fn executable() -> Option<String> {
    let found = variable("REAL_SCHEMATHESIS");
    if found.is_none() {
        let missing = "REAL_SCHEMATHESIS is not set: no schemathesis; `make real-parts` gets it";
        assert_ne!(variable("CI").as_deref(), Some("true"), "{missing}");
        eprintln!("{missing}");
    }
    found
}

#[expect(clippy::disallowed_methods, reason = "the environment says which schemathesis to run")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
