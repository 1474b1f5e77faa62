//! The laws of the house that the compiler does not check.

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::tree::{self, SourceFile};

const LONGEST_FILE: usize = 400;
const LONGEST_MAIN: usize = 60;

/// What each crate may use of this workspace, besides for its tests. A crate that is not listed may use nothing.
///
/// Components see promises; only binaries name concrete parts.
const DIRECTION: &[(&str, &[&str])] = &[
    ("fleet-model", &[]),
    ("docker-config", &[]),
    ("daemon", &[]),
    ("secret-store", &["daemon"]),
    ("hyperfleet-client", &["daemon", "fleet-model"]),
    ("kubernetes", &["daemon", "fleet-model"]),
    ("precondition", &[]),
    ("message-broker", &["daemon", "fleet-model"]),
    (
        "adapter",
        &[
            "daemon",
            "docker-config",
            "fleet-model",
            "hyperfleet-client",
            "kubernetes",
            "message-broker",
            "precondition",
        ],
    ),
    ("sentinel", &["daemon", "fleet-model", "hyperfleet-client", "kubernetes", "message-broker", "precondition"]),
    ("global-pull-secret", &["daemon", "docker-config", "fleet-model", "kubernetes"]),
    ("sync-global-pullsecret", &["daemon", "docker-config"]),
    ("hyperfleet-api", &["daemon", "docker-config", "fleet-model"]),
    ("pull-secret-job", &["daemon", "docker-config", "fleet-model", "kubernetes", "secret-store"]),
    (
        "pull-secret",
        &[
            "adapter",
            "daemon",
            "diagnosis",
            "docker-config",
            "fleet-model",
            "hyperfleet-api",
            "hyperfleet-client",
            "kubernetes",
            "message-broker",
            "precondition",
            "pull-secret-job",
            "secret-store",
            "sentinel",
        ],
    ),
    ("diagnosis", &["adapter", "daemon", "fleet-model", "hyperfleet-client", "kubernetes", "precondition"]),
    (
        "xtask",
        &[
            "adapter",
            "daemon",
            "fleet-model",
            "global-pull-secret",
            "hyperfleet-api",
            "pull-secret",
            "pull-secret-job",
            "pull-secret-local",
            "sentinel",
            "sync-global-pullsecret",
        ],
    ),
];

/// What a decision must not contain: it is a function of facts and a timestamp.
const IMPURE: &[&str] = &[
    "tokio",
    "async ",
    ".await",
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::io",
    "Instant::now",
    "Timestamp::now",
    "SystemTime",
    "rand::",
    "tracing::",
];

/// Fails with every breach, one a line.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let mut breaches = Vec::new();
    let sources = tree::files(root, &[".rs"])?;
    for file in &sources {
        breaches.extend(source(file).into_iter().map(|breach| format!("{}: {breach}", file.path)));
    }
    for file in tree::files(root, &["Cargo.toml"])?.iter().filter(|file| !file.path.starts_with("lab/")) {
        breaches.extend(direction(file)?.into_iter().map(|breach| format!("{}: {breach}", file.path)));
    }
    let texts =
        tree::files(root, &[".rs", ".md", ".toml", ".sh", ".py", ".mjs", ".yaml", "Makefile", "Containerfile"])?;
    for file in &texts {
        breaches.extend(text(file).into_iter().map(|breach| format!("{}: {breach}", file.path)));
    }
    breaches.extend(architecture(root, &texts)?);
    if breaches.is_empty() {
        tree::tell(format_args!("tidy: {} source files keep the laws", sources.len()));
        return Ok(());
    }
    bail!("{} breaches of the house's laws\n{}", breaches.len(), breaches.join("\n"))
}

fn source(file: &SourceFile) -> Vec<String> {
    let mut breaches = Vec::new();
    let lines = file.text.lines().count();
    let (longest, what) =
        if file.path.ends_with("/main.rs") { (LONGEST_MAIN, "a main.rs") } else { (LONGEST_FILE, "a file") };
    if !file.text.starts_with("//! ") {
        breaches.push("the first line does not say what the file is (`//! …`)".to_owned());
    }
    if lines > longest && !is_test(&file.path) {
        breaches.push(format!("{lines} lines, more than the {longest} of {what}"));
    }
    if is_decision(&file.path) {
        let code = || file.text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let found = IMPURE.iter().filter(|impure| code().any(|line| line.contains(**impure)));
        breaches.extend(found.map(|impure| format!("a decision is pure, but this has `{}`", impure.trim())));
    }
    breaches
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("tests.rs") || path.contains("/benches/")
}

fn is_decision(path: &str) -> bool {
    !is_test(path) && (path.ends_with("/decide.rs") || path.contains("/decide/"))
}

fn direction(manifest: &SourceFile) -> anyhow::Result<Vec<String>> {
    let parsed: toml::Table = manifest.text.parse().with_context(|| format!("cannot parse {}", manifest.path))?;
    let Some(name) = parsed.get("package").and_then(|package| package.get("name")).and_then(toml::Value::as_str) else {
        return Ok(Vec::new());
    };
    let Some((_, allowed)) = DIRECTION.iter().find(|(crate_name, _)| *crate_name == name) else {
        return Ok(vec![format!("xtask/src/tidy.rs does not say what {name} may depend on")]);
    };
    let dependencies = parsed.get("dependencies").and_then(toml::Value::as_table).into_iter().flatten();
    let ours = dependencies
        .map(|(dependency, _)| dependency)
        .filter(|dependency| DIRECTION.iter().any(|(crate_name, _)| crate_name == dependency));
    let against = ours.filter(|dependency| !allowed.contains(&dependency.as_str()));
    Ok(against.map(|dependency| format!("{name} must not know {dependency}")).collect())
}

fn text(file: &SourceFile) -> Vec<String> {
    let mut breaches = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        if line.ends_with([' ', '\t']) {
            breaches.push(format!("line {}: white space at the end", number + 1));
        }
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        breaches.push("the last line does not end".to_owned());
    }
    breaches
}

/// ARCHITECTURE.md knows every crate.
fn architecture(root: &Path, texts: &[SourceFile]) -> anyhow::Result<Vec<String>> {
    let map = texts.iter().find(|file| file.path == "ARCHITECTURE.md").context("ARCHITECTURE.md is missing")?;
    let mut breaches = Vec::new();
    for folder in ["crates", "lab"] {
        for entry in std::fs::read_dir(root.join(folder)).with_context(|| format!("cannot list {folder}/"))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !map.text.contains(&format!("`{name}`")) {
                breaches.push(format!("ARCHITECTURE.md: does not know `{name}`"));
            }
        }
    }
    Ok(breaches)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_decision_that_looks_at_the_clock_is_found() {
        let pure = "//! Decides.\nfn decide(now: Timestamp) {}\n";
        let impure = "//! Decides.\nfn decide() { let now = Timestamp::now(); }\n";
        assert_eq!(source(&file("crates/a/src/decide.rs", pure)), Vec::<String>::new());
        assert_eq!(source(&file("crates/a/src/decide/plan.rs", impure)).len(), 1);
        assert_eq!(source(&file("crates/a/src/run.rs", impure)).len(), 0);
    }

    #[test]
    fn long_files_and_silent_files_are_found() {
        assert_eq!(source(&file("crates/a/src/b.rs", "fn a() {}\n")).len(), 1);
        let long = "//! Long.\n".repeat(401);
        assert_eq!(source(&file("crates/a/src/b.rs", &long)).len(), 1);
        assert_eq!(source(&file("crates/a/tests/b.rs", &long)).len(), 0);
        assert_eq!(source(&file("crates/a/src/main.rs", &"//! Long.\n".repeat(61))).len(), 1);
    }

    #[test]
    fn a_dependency_upwards_is_found() {
        let manifest = |text: &str| direction(&file("crates/a/Cargo.toml", text)).unwrap();
        let upwards = "[package]\nname = \"docker-config\"\n[dependencies]\ndaemon = { workspace = true }\n";
        assert_eq!(manifest(upwards), ["docker-config must not know daemon"]);
        let for_tests = "[package]\nname = \"docker-config\"\n[dev-dependencies]\ndaemon = { workspace = true }\n";
        assert_eq!(manifest(for_tests), Vec::<String>::new());
        assert_eq!(manifest("[package]\nname = \"new\"\n").len(), 1);
    }
}
