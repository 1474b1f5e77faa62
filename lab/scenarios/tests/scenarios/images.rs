//! `hack/image-archives.sh`: equal archives under every umask, and files of Debian that are not too old. Stand-ins for apt and
//! dpkg give it this machine's libraries.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use rstest::rstest;
use tempfile::TempDir;

use crate::helm::{ROOT, text};

/// Log their calls, and the sources that apt has.
const STAND_IN: &str = r#"#!/bin/sh
name=$(basename "$0")
echo "$name $*" >> "$CALLS"
case "$name $*" in
  "apt-get indextargets "*)
    echo "http://mirror.example.com bookworm main"
    echo "http://security.example.com oldstable-security main";;
  "apt-get "*" update") cat "$(dirname "$APT_CONFIG")/sources.list" >> "$CALLS";;
  "apt-get "*" download "*) touch libc6.deb;;
  "dpkg-deb "*)
    mkdir -p "$3/lib" "$3/usr/lib" "$3/usr/share/ca-certificates/mozilla"
    cp $LIBRARIES "$3/lib/"
    echo authority > "$3/usr/share/ca-certificates/mozilla/authority.crt";;
  "dpkg --print-architecture") echo amd64;;
esac
"#;

/// A folder with a program, stand-ins, and Debian's files once they are got.
struct Assembly(TempDir);

impl Assembly {
    fn new() -> Self {
        let assembly = Self(tempfile::tempdir().unwrap());
        for folder in ["bin", "programs"] {
            fs::create_dir(assembly.path(folder)).unwrap();
        }
        for name in ["apt-get", "apt-config", "dpkg", "dpkg-deb"] {
            let path = assembly.path("bin").join(name);
            daemon::file::replace(&path, STAND_IN.as_bytes()).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        // It needs libc alone, and answers --version.
        fs::copy("/bin/true", assembly.path("programs/sync-global-pullsecret")).unwrap();
        assembly
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The libraries of this process by their paths, among which are libc and the loader.
    fn libraries() -> String {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let files = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
        let mut libraries: Vec<_> = files.filter(|file| file.contains(".so")).collect();
        libraries.dedup();
        libraries.join(" ")
    }

    /// Assembles the image; returns its archive.
    fn assemble(&self, umask: &str, max_days: Option<&str>) -> Vec<u8> {
        let mut command = Command::new("bash");
        command
            .args(["-ec", r#"umask "$1"; PATH="$2:$PATH"; exec "$3" "$4/programs" "$4/out" 1 sync-global-pullsecret"#]);
        command
            .args(["bash", umask])
            .arg(self.path("bin"))
            .arg(format!("{ROOT}/hack/image-archives.sh"))
            .arg(self.0.path());
        command.env("CALLS", self.path("calls")).env("LIBRARIES", Self::libraries());
        command.env("REAL_PARTS_DIR", self.path("parts")).env("TMPDIR", self.0.path());
        command.envs(max_days.map(|days| ("IMAGE_BASE_MAX_DAYS", days)));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        fs::read(self.path("out/sync-global-pullsecret.tar")).unwrap()
    }

    /// Returns what was asked of apt since the last call, and the sources that it had.
    fn calls(&self) -> String {
        let calls = fs::read_to_string(self.path("calls")).unwrap_or_default();
        daemon::file::replace(&self.path("calls"), b"").unwrap();
        calls
    }
}

#[test]
fn an_archive_is_the_same_under_every_umask() {
    let (usual, strict) = (Assembly::new(), Assembly::new());
    // A folder whose files inherit its group.
    fs::set_permissions(strict.0.path(), fs::Permissions::from_mode(0o2700)).unwrap();
    assert!(usual.assemble("022", None) == strict.assemble("077", None), "the archives differ");
}

#[rstest]
#[case::new("6 days ago", None, false)]
#[case::old("8 days ago", None, true)]
#[case::at_once("now", Some("0"), true)]
#[case::kept("29 days ago", Some("30"), false)]
fn debians_files_are_got_anew_when_they_are_old(
    #[case] got: &str,
    #[case] max_days: Option<&str>,
    #[case] expect: bool,
) {
    let assembly = Assembly::new();
    assembly.assemble("022", None);
    let sources = assembly.calls();
    for suite in ["http://mirror.example.com bookworm main", "http://security.example.com bookworm-security main"] {
        assert!(sources.contains(suite), "{sources}");
    }
    let certificates = assembly.path("parts/image-base-debian-12/etc/ssl/certs/ca-certificates.crt");
    assert!(Command::new("touch").args(["-d", got]).arg(&certificates).status().unwrap().success());
    assembly.assemble("022", max_days);
    let calls = assembly.calls();
    assert_eq!(calls.contains(" download "), expect, "{calls}");
}
