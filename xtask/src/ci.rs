//! The checks of CI besides the tests.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};

use crate::{generate, tidy, tree};

/// The checks, in the order in which they are soonest done.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    step("tidy", || tidy::check(root))?;
    step("generated pages", || generate::pages(root, true))?;
    step("fmt", || cargo(root, &["fmt", "--all", "--check"], &[]))?;
    step("clippy", || {
        cargo(root, &["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"], &[])
    })?;
    step("clippy, one store alone", || one_store_alone(root))?;
    step("doc", || {
        let arguments = ["doc", "--workspace", "--no-deps", "--locked", "--document-private-items"];
        cargo(root, &arguments, &[("RUSTDOCFLAGS", "--deny warnings")])
    })?;
    step("deny", || deny(root))
}

/// Each secret store builds without the others, and the program without those that it can do without: what it uses of the library must
/// not belong to one store, which two programs with different stores show.
fn one_store_alone(root: &Path) -> anyhow::Result<()> {
    let alone = [
        ("secret-store", "aws"),
        ("secret-store", "azure"),
        ("secret-store", "google"),
        ("secret-store", "vault"),
        ("pull-secret", "google"),
        ("pull-secret", "vault"),
    ];
    for (package, store) in alone {
        let of_store = ["clippy", "--package", package, "--no-default-features", "--features", store];
        cargo(root, &[&of_store[..], &["--locked", "--", "--deny", "warnings"]].concat(), &[])?;
    }
    Ok(())
}

/// Says what begins and how long it took, since CI's time is spent here and in the tests.
fn step(name: &str, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "it is measured for people")]
    let begin = Instant::now();
    tree::eprint(format_args!("ci: {name}"));
    work().with_context(|| format!("{name} failed"))?;
    tree::eprint(format_args!("ci: {name}: {} s", begin.elapsed().as_secs()));
    Ok(())
}

/// The dependency tree keeps to deny.toml.
fn deny(root: &Path) -> anyhow::Result<()> {
    let tools = root.join("target/tools");
    let program = tools.join("bin/cargo-deny");
    if !program.exists() {
        let tools = tools.to_string_lossy().into_owned();
        let arguments =
            ["install", "cargo-deny@0.20.2", "--locked", "--no-default-features", "--root", &tools, "--profile", "dev"];
        cargo(root, &arguments, &[])?;
    }
    let mut command = Command::new(program);
    command.args(["--log-level", "warn", "check", "bans", "licenses", "sources"]);
    succeed(command.current_dir(root))
}

fn cargo(root: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> anyhow::Result<()> {
    succeed(Command::new("cargo").args(arguments).envs(environment.iter().copied()).current_dir(root))
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
