//! `hack/attacks.py`: attacks on the programs that once succeeded.

use std::process::Command;

use testkit::program;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../hack/attacks.py");

#[test]
fn every_attack_is_repelled() {
    let programs = ["pull-secret", "pull-secret-local"].map(program::path);
    let output = Command::new("python3").arg(SCRIPT).arg(programs[0].parent().unwrap()).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && stdout.ends_with("every attack was repelled\n"), "{stdout}\n{stderr}");
}
