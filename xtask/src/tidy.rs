//! The rules of the code that the compiler does not check.

use std::path::Path;

use anyhow::{Context as _, bail};

use crate::circles;
use crate::language;
use crate::signatures;
use crate::tree::{self, SourceFile};

const LONGEST_FILE: usize = 400;
const LONGEST_MAIN: usize = 60;

/// The crates of this workspace that each crate may depend on, apart from its tests. A crate that is not listed may depend
/// on none. Components see contracts; only binaries name concrete providers.
const DIRECTION: &[(&str, &[&str])] = &[
    ("fleet-model", &[]),
    ("docker-config", &[]),
    ("daemon", &["fleet-model"]),
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
            "secret-store",
        ],
    ),
    ("sentinel", &["daemon", "fleet-model", "hyperfleet-client", "kubernetes", "message-broker", "precondition"]),
    ("accounts-mgmt", &["daemon", "fleet-model"]),
    ("registry-account", &["daemon", "fleet-model"]),
    ("global-pull-secret", &["daemon", "docker-config", "fleet-model", "kubernetes", "registry-account"]),
    ("sync-global-pullsecret", &["daemon", "docker-config", "fleet-model"]),
    ("keyless-credential-provider", &["fleet-model"]),
    ("database", &["daemon"]),
    ("hyperfleet-api", &["daemon", "database", "docker-config", "fleet-model"]),
    ("pull-secret-job", &["daemon", "docker-config", "fleet-model", "kubernetes", "secret-store"]),
    (
        "pull-secret",
        &[
            "accounts-mgmt",
            "adapter",
            "credentials",
            "daemon",
            "database",
            "diagnosis",
            "docker-config",
            "fleet-model",
            "hyperfleet-api",
            "hyperfleet-client",
            "kubernetes",
            "message-broker",
            "precondition",
            "pull-secret-job",
            "registry-account",
            "rotation",
            "secret-store",
            "sentinel",
        ],
    ),
    (
        "credentials",
        &[
            "accounts-mgmt",
            "daemon",
            "database",
            "docker-config",
            "fleet-model",
            "hyperfleet-client",
            "kubernetes",
            "registry-account",
        ],
    ),
    ("rotation", &["daemon", "diagnosis", "docker-config", "fleet-model", "hyperfleet-client", "kubernetes"]),
    (
        "diagnosis",
        &[
            "adapter",
            "credentials",
            "daemon",
            "fleet-model",
            "hyperfleet-client",
            "kubernetes",
            "message-broker",
            "precondition",
            "registry-account",
            "secret-store",
        ],
    ),
    (
        "xtask",
        &[
            "adapter",
            "credentials",
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

/// The crates of the lab: development and tests. Only xtask may depend on them, for the pages that it writes.
const LAB: &[&str] = &["bench", "chaos", "damage", "emulators", "pull-secret-local", "scenarios", "testkit"];

/// Text that a decision must not contain, as it is a function of facts and a timestamp.
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
    "std::thread",
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
        let found = text(file).into_iter().chain(language::breaches(file)).chain(citations(root, file));
        breaches.extend(found.map(|breach| format!("{}: {breach}", file.path)));
    }
    breaches.extend(architecture(root, &texts)?);
    breaches.extend(circles::check(&sources)?);
    breaches.extend(signatures::check(&sources)?);
    if breaches.is_empty() {
        tree::eprint(format_args!("tidy: {} source files keep the rules", sources.len()));
        return Ok(());
    }
    bail!("{} breaches of the rules\n{}", breaches.len(), breaches.join("\n"))
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
    let ours = dependencies.map(|(dependency, _)| dependency).filter(|dependency| {
        DIRECTION.iter().any(|(name, _)| name == dependency) || LAB.contains(&dependency.as_str())
    });
    let against = ours.filter(|dependency| !allowed.contains(&dependency.as_str()));
    Ok(against.map(|dependency| format!("{name} must not depend on {dependency}")).collect())
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

/// Comments and documents cite only files of this repository.
fn citations(root: &Path, file: &SourceFile) -> Vec<String> {
    const FOLDERS: [&str; 8] = ["charts/", "crates/", "deploy/", "docs/", "examples/", "hack/", "lab/", "xtask/"];
    let is_comment = |line: &&str| file.is("md") || line.trim_start().starts_with("//");
    if !file.is("rs") && !file.is("md") || file.path == "CHANGELOG.md" {
        return Vec::new();
    }
    let cited = file
        .text
        .lines()
        .filter(is_comment)
        .flat_map(|line| line.split(|char: char| !(char.is_alphanumeric() || "/._-".contains(char))));
    let paths = cited
        .map(|path| path.trim_end_matches(['.', '/']))
        .filter(|path| FOLDERS.iter().any(|folder| path.starts_with(folder)) && path.contains('.'));
    paths.filter(|path| !root.join(path).exists()).map(|path| format!("cites {path}, which does not exist")).collect()
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
    breaches.extend(out_of_order(&map.text));
    Ok(breaches)
}

/// The crates of the code map that stand above one that they depend on.
fn out_of_order(map: &str) -> Vec<String> {
    let row = |name: &str| map.lines().position(|line| line.starts_with(&format!("| `{name}` |")));
    let mut breaches = Vec::new();
    for (name, dependencies) in DIRECTION {
        let is_above = |dependency: &&&str| row(name).is_some_and(|row_of_name| row(dependency) > Some(row_of_name));
        for dependency in dependencies.iter().filter(is_above) {
            breaches.push(format!("ARCHITECTURE.md: `{name}` stands above `{dependency}`, which it depends on"));
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use std::process::Command;

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
    fn a_crate_above_its_dependency_is_found() {
        let ordered = "| `daemon` | ... |\n| `database` | ... |\n";
        assert_eq!(out_of_order(ordered), Vec::<String>::new());
        let reversed = "| `database` | ... |\n| `daemon` | ... |\n";
        assert_eq!(out_of_order(reversed), ["ARCHITECTURE.md: `database` stands above `daemon`, which it depends on"]);
    }

    #[test]
    fn a_dependency_upwards_is_found() {
        let manifest = |text: &str| direction(&file("crates/a/Cargo.toml", text)).unwrap();
        let upwards = "[package]\nname = \"docker-config\"\n[dependencies]\ndaemon = { workspace = true }\n";
        assert_eq!(manifest(upwards), ["docker-config must not depend on daemon"]);
        let for_tests = "[package]\nname = \"docker-config\"\n[dev-dependencies]\ndaemon = { workspace = true }\n";
        assert_eq!(manifest(for_tests), Vec::<String>::new());
        assert_eq!(manifest("[package]\nname = \"new\"\n").len(), 1);
        let lab = "[package]\nname = \"kubernetes\"\n[dependencies]\nemulators = { workspace = true }\n";
        assert_eq!(manifest(lab), ["kubernetes must not depend on emulators"]);
    }

    #[test]
    fn no_image_contains_the_lab() {
        let root = tree::root();
        let containerfile = std::fs::read_to_string(root.join("Containerfile")).unwrap();
        let words: Vec<_> = containerfile.split_whitespace().collect();
        let packages: Vec<_> = words.windows(2).filter(|pair| pair[0] == "--package").map(|pair| pair[1]).collect();
        assert_eq!(
            packages,
            ["pull-secret", "global-pull-secret", "sync-global-pullsecret", "keyless-credential-provider"]
        );
        for package in packages {
            let arguments =
                ["tree", "--offline", "--locked", "--edges", "normal,build", "--prefix", "none", "--package"];
            let output = Command::new(env!("CARGO")).args(arguments).arg(package).current_dir(&root).output().unwrap();
            let graph = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && graph.starts_with(package), "{output:?}");
            let lab = root.join("lab").display().to_string();
            assert!(!graph.lines().any(|line| line.contains(&lab)), "{package} contains the lab:\n{graph}");
        }
    }
}
