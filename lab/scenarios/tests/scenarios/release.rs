//! `hack/release.py`: the tree and the dependencies that it refuses, and the release that it makes, with stand-ins for the
//! programs that build, push and sign.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rstest::rstest;
use serde_json::Value;
use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const BINARIES: [&str; 4] =
    ["pull-secret", "global-pull-secret", "sync-global-pullsecret", "keyless-credential-provider"];

/// Each logs its call; `fail` names those that fail.
const STAND_IN: &str = r#"#!/bin/sh
name=$(basename "$0")
echo "$name $*" >> "$CALLS"
case " $FAIL " in *" $name-$1 "*) exit 1;; esac
case "$name $1" in
  "make build") mkdir -p target/release target/node
    for binary in pull-secret global-pull-secret; do echo "$binary" > target/release/$binary; done
    for binary in sync-global-pullsecret keyless-credential-provider; do echo "$binary" > target/node/$binary; done;;
  "cargo cyclonedx") for binary in pull-secret global-pull-secret sync-global-pullsecret keyless-credential-provider; do
      echo '{"bomFormat": "CycloneDX"}' > crates/$binary/${binary}_bin.cdx.json; done;;
  "podman push") printf 'sha256:%064d' "$(grep -c 'podman push' "$CALLS")" > "$3";;
esac
"#;

/// A checkout of the project at the tag of version 1.2.3, whose base images are named by digest.
struct Checkout {
    folder: TempDir,
}

impl Checkout {
    fn new() -> Self {
        let checkout = Self { folder: tempfile::tempdir().unwrap() };
        for folder in ["hack", "deploy", "deploy/global-pull-secret"] {
            checkout.copy(folder);
        }
        let pinned = |line: &str| match line.split_once(" AS ") {
            Some((image, stage)) if image.contains('/') => format!("{image}@sha256:00 AS {stage}"),
            None if line.starts_with("FROM ") => format!("{line}@sha256:00"),
            _ => line.to_owned(),
        };
        let containerfile = fs::read_to_string(Path::new(ROOT).join("Containerfile")).unwrap();
        checkout.write("Containerfile", &containerfile.lines().map(pinned).collect::<Vec<_>>().join("\n"));
        checkout.write("Cargo.toml", "[workspace.package]\nedition = \"2024\"\nversion = \"1.2.3\"\n");
        checkout.write("Cargo.lock", "");
        checkout.write(".gitignore", &fs::read_to_string(Path::new(ROOT).join(".gitignore")).unwrap());
        for binary in BINARIES {
            checkout.write(&format!("crates/{binary}/Cargo.toml"), "");
        }
        for program in ["make", "cargo", "cargo-deny", "cargo-cyclonedx", "podman", "cosign"] {
            let path = checkout.write(&format!("bin/{program}"), STAND_IN);
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        checkout.git(&["init", "--quiet"]);
        checkout.tag();
        checkout
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::File::create(&path).unwrap().write_all(text.as_bytes()).unwrap();
        path
    }

    fn copy(&self, folder: &str) {
        for entry in fs::read_dir(Path::new(ROOT).join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let name = path.file_name().unwrap().to_str().unwrap();
                self.write(&format!("{folder}/{name}"), &fs::read_to_string(&path).unwrap());
            }
        }
    }

    fn git(&self, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=test", "-c", "user.email=test@example.com"]).args(arguments);
        assert!(command.current_dir(self.folder.path()).status().unwrap().success());
    }

    /// Commits everything, and moves the tag there.
    fn tag(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "Release 1.2.3"]);
        self.git(&["tag", "--force", "v1.2.3"]);
    }

    fn release(&self, version: &str, failing: &str) -> Output {
        let mut command = Command::new("sh");
        command.args(["-c", r#"PATH="$1:$PATH" exec python3 "$2" "$3""#, "sh"]);
        command.arg(self.path("bin")).arg(self.path("hack/release.py")).arg(version);
        // The calls are logged outside of the tree, which must stay clean.
        command.env("CALLS", self.path(".git/calls")).env("FAIL", failing).output().unwrap()
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.path(".git/calls")).unwrap_or_default()
    }

    fn released(&self, name: &str) -> String {
        fs::read_to_string(self.path("dist").join(name)).unwrap()
    }
}

#[test]
fn a_release_has_binaries_sboms_manifests_by_digest_provenance_and_signatures() {
    let checkout = Checkout::new();
    let output = checkout.release("1.2.3", "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for binary in BINARIES {
        assert!(checkout.released("SHA256SUMS").contains(&format!("  {binary}\n")));
        assert!(checkout.released(&format!("{binary}.cdx.json")).contains("CycloneDX"));
    }
    let folders =
        ["dist/deploy", "dist/deploy/global-pull-secret"].map(|folder| fs::read_dir(checkout.path(folder)).unwrap());
    let manifests = folders.into_iter().flatten().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    for manifest in manifests {
        let text = fs::read_to_string(manifest).unwrap();
        let images = text.lines().filter(|line| line.contains("image: ") || line.contains("-image="));
        images.for_each(|image| assert!(image.contains("@sha256:0000"), "{image}"));
    }
    let provenance: Value = serde_json::from_str(&checkout.released("provenance.json")).unwrap();
    let subjects = provenance["subject"].as_array().unwrap();
    assert_eq!(subjects.len(), 8, "binaries and images: {subjects:?}");
    assert!(subjects.iter().all(|subject| subject["digest"]["sha256"].as_str().unwrap().len() == 64));
    let calls = checkout.calls();
    let count = |call: &str| calls.lines().filter(|line| line.starts_with(call)).count();
    let counts = ["podman push", "cosign sign ", "cosign attest ", "cosign sign-blob "].map(count);
    assert_eq!(counts, [4, 4, 8, 1], "{calls}");
    assert!(calls.starts_with("cargo deny"), "{calls}");
}

#[rstest]
#[case::version("1.2", "1.2 is no semantic version")]
#[case::other_version("1.2.4", "HEAD is not tagged v1.2.4")]
#[tokio::test]
async fn another_version_is_refused(#[case] version: &str, #[case] expected: &str) {
    refuses(&Checkout::new(), version, "", expected);
}

#[rstest]
#[case::dirty("README.md", "changed", "the tree is not clean")]
#[case::base_image(
    "Containerfile",
    "FROM registry.example.com/base AS builder\n",
    "Containerfile:1: registry.example.com/base is not named by digest"
)]
#[case::version("Cargo.toml", "[workspace.package]\nversion = \"1.2.2\"\n", "Cargo.toml says version 1.2.2, not 1.2.3")]
#[case::image("deploy/x.yaml", "image: quay.io/others/thing:1\n", "deploy/x.yaml:1: image: quay.io/others/thing:1")]
fn a_tree_that_cannot_be_released_is_refused(#[case] file: &str, #[case] content: &str, #[case] expected: &str) {
    let checkout = Checkout::new();
    checkout.write(file, content);
    if file != "README.md" {
        checkout.tag();
    }
    refuses(&checkout, "1.2.3", "", expected);
}

#[rstest]
#[case::advisory("cargo-deny", "`cargo deny` ended with 1")]
#[case::build("make-build", "`make build` ended with 1")]
#[case::push("podman-push", "`podman push` ended with 1")]
fn a_step_that_fails_leaves_no_release(#[case] failing: &str, #[case] expected: &str) {
    let checkout = Checkout::new();
    assert!(checkout.release("1.2.3", "").status.success());
    refuses(&checkout, "1.2.3", failing, expected);
}

#[track_caller]
fn refuses(checkout: &Checkout, version: &str, failing: &str, expected: &str) {
    let output = checkout.release(version, failing);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains(&format!("error: {expected}")), "{stderr}");
    assert!(!checkout.path("dist/provenance.json").exists(), "no release is left");
}
