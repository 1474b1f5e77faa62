//! The packages that the program is made of.

use std::process::Command;

/// The most packages, with this one. Another one has to be worth it on every node.
const MOST_PACKAGES: usize = 36;

#[test]
fn the_tree_has_no_runtime_and_stays_small() {
    let arguments = ["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none", "--no-dedupe"];
    let package = ["--package", "keyless-credential-provider"];
    let output = Command::new(env!("CARGO")).args(arguments).args(package).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let mut packages: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    packages.sort_unstable();
    packages.dedup();
    for unwanted in ["tokio", "hyper", "reqwest", "ring", "openssl", "clap", "daemon", "tracing"] {
        assert!(!packages.contains(&unwanted), "{unwanted}");
    }
    assert!(
        packages.contains(&"rustls") && packages.len() <= MOST_PACKAGES,
        "{} packages: {packages:?}",
        packages.len()
    );
}
