//! schemathesis finds nothing: whatever the document allows is taken, whatever it forbids is refused, as it says.

use std::path::Path;
use std::process::Command;

use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn schemathesis_finds_nothing() {
    let Some(executable) = executable() else { return };
    let rig = Rig::start().await;
    rig.create(5).await;
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
    let (told, failed) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{told}\n{failed}");
    // Nothing found where nothing was asked is no result.
    assert!(told.contains("Selected: 82/82") && told.contains("Tested: 82"), "{told}\n{failed}");
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

#[expect(clippy::disallowed_methods, reason = "it tells where the real part is")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
