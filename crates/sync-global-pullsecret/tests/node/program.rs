//! The process: settings, lock, signals, health, and that it tells no credential.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output};

use rstest::rstest;
use tempfile::TempDir;

use crate::real::{Mounted, Syncer};

const CREDENTIAL: &str = "dXNlcjpzM2NyM3Q=";

struct Place {
    kubelet: TempDir,
    source: Mounted,
}

impl Place {
    fn new() -> Self {
        Self { kubelet: tempfile::tempdir().unwrap(), source: Mounted::new() }
    }

    fn file(&self) -> std::path::PathBuf {
        self.kubelet.path().join("config.json")
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.file()).unwrap()
    }

    fn command(&self, further: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sync-global-pullsecret"));
        command.args(["--restart-policy", "never", "--kubelet-file"]).arg(self.file());
        command.arg("--from-files").arg(self.source.path()).args(further);
        command
    }

    fn sync(&self, further: &[&str]) -> Syncer {
        Syncer::start(self.command(further))
    }

    fn ask(&self, path: &str) -> String {
        let mut stream = UnixStream::connect(self.kubelet.path().join("global-pull-secret/socket")).unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sync-global-pullsecret"));
        command.args(words).arg("--kubelet-file").arg(self.file()).output().unwrap()
    }
}

fn document(registry: &str) -> String {
    format!(r#"{{"auths":{{"{registry}":{{"auth":"{CREDENTIAL}"}}}}}}"#)
}

#[test]
fn health_status_and_metrics_are_told() {
    let place = Place::new();
    place.source.publish("global", Some(&document("a.io")), Some("r2"));
    let mut syncer = place.sync(&["--revision", "r2"]);
    syncer.until("Applied");
    assert!(place.ask("/healthz").starts_with("HTTP/1.1 200 "));
    assert!(place.ask("/readyz").starts_with("HTTP/1.1 200 "));
    assert!(place.ask("/other").starts_with("HTTP/1.1 404 "));
    let metrics = place.ask("/metrics");
    for line in ["sync_global_pullsecret_ready 1", "sync_global_pullsecret_reason{reason=\"Applied\"} 1"] {
        assert!(metrics.contains(line), "{metrics}");
    }
    assert!(place.run(&["ready"]).status.success());
    let status = place.run(&["status", "--output", "json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!((&status["ready"], &status["revision"]), (&true.into(), &"r2".into()));
    let text = String::from_utf8(place.run(&["status"]).stdout).unwrap();
    assert!(text.starts_with("Applied: ") && text.contains("expected revision"), "{text}");
    assert_eq!(std::fs::metadata(place.file()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_pod_is_ready_with_its_own_revision_only() {
    let place = Place::new();
    place.source.publish("global", Some(&document("a.io")), Some("r1"));
    let mut syncer = place.sync(&["--revision", "r2", "--only-this-revision", "true"]);
    syncer.until("OtherRevision");
    assert!(place.ask("/readyz").starts_with("HTTP/1.1 503 "));
    assert!(!place.file().exists(), "another revision is left to the pods that are for it");
    assert_eq!(place.run(&["ready"]).status.code(), Some(1));
    place.source.publish("global", Some(&document("b.io")), Some("r2"));
    syncer.until("Applied");
    assert!(place.run(&["ready"]).status.success());
    assert!(place.text().contains("b.io"));
}

#[test]
fn the_original_counts_while_the_global_one_has_no_content() {
    let place = Place::new();
    place.source.publish("original", Some(&document("original.io")), None);
    let mut syncer = place.sync(&[]);
    syncer.until("Applied");
    assert_eq!(place.text(), document("original.io"));
    place.source.publish("global", Some(&document("global.io")), None);
    syncer.until_line("is replaced");
    syncer.until("Applied");
    assert_eq!(place.text(), document("global.io"));
    place.source.publish("global", Some(""), None);
    syncer.until_line("is replaced");
    syncer.until("Applied");
    assert_eq!(place.text(), document("original.io"));
}

#[rstest]
#[case::malformed("{")]
#[case::an_entry_that_spoils_the_file(r#"{"auths":{"a.io":{"auth":"s3cr3t but no base64"}}}"#)]
#[case::foreign("<html>s3cr3t</html>")]
fn content_that_cannot_be_used_changes_nothing(#[case] text: &str) {
    let place = Place::new();
    place.source.publish("global", Some(&document("a.io")), None);
    let mut syncer = place.sync(&[]);
    syncer.until("Applied");
    place.source.publish("global", Some(text), None);
    syncer.until("SourceInvalid");
    assert_eq!(place.text(), document("a.io"));
    assert!(!place.run(&["ready"]).status.success());
    place.source.publish("global", Some(&document("b.io")), None);
    syncer.until("Applied");
    let told = syncer.log.join("\n") + &String::from_utf8(place.run(&["status"]).stdout).unwrap();
    assert!(!told.contains("s3cr3t"), "{told}");
}

/// A Secret's content may be 1 MiB.
#[test]
fn a_large_document_is_applied() {
    let place = Place::new();
    let entries: Vec<_> =
        (0..10_000).map(|number| format!(r#""r{number}.example.com":{{"auth":"{CREDENTIAL}"}}"#)).collect();
    let text = format!(r#"{{"auths":{{{}}}}}"#, entries.join(","));
    place.source.publish("global", Some(&text), None);
    let mut syncer = place.sync(&[]);
    syncer.until("Applied");
    assert_eq!(place.text(), text);
}

#[test]
fn what_others_write_stays_and_what_they_remove_comes_back() {
    let place = Place::new();
    place.source.publish("global", Some(&document("a.io")), None);
    let mut syncer = place.sync(&[]);
    syncer.until("Applied");
    daemon::file::replace(&place.file(), document("ecr.example.com").as_bytes()).unwrap();
    syncer.until_line("is replaced");
    syncer.until("Applied");
    assert!(place.text().contains("a.io") && place.text().contains("ecr.example.com"), "{}", place.text());
    place.source.publish("global", Some(&document("b.io")), None);
    syncer.until_line("is replaced");
    syncer.until("Applied");
    assert!(!place.text().contains("a.io"), "what was ours and is no longer wanted goes: {}", place.text());
    assert!(place.text().contains("b.io") && place.text().contains("ecr.example.com"), "{}", place.text());
}

#[test]
fn owner_and_mode_are_kept_safe() {
    let place = Place::new();
    daemon::file::replace_for(daemon::file::Readers::All, &place.file(), document("old.io").as_bytes()).unwrap();
    let owned_by_another = std::os::unix::fs::chown(place.file(), Some(1234), Some(2345)).is_ok();
    place.source.publish("global", Some(&document("a.io")), None);
    let mut syncer = place.sync(&[]);
    syncer.until("Applied");
    let meta = std::fs::metadata(place.file()).unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    if owned_by_another {
        assert_eq!((meta.uid(), meta.gid()), (1234, 2345));
    }
}

#[test]
fn a_second_copy_is_refused_and_leftovers_are_removed() {
    let place = Place::new();
    daemon::file::replace(&place.kubelet.path().join(".config.json.global-pull-secret"), b"half a cred").unwrap();
    place.source.publish("global", Some(&document("a.io")), None);
    let mut first = place.sync(&[]);
    first.until("Applied");
    let mut second = place.sync(&[]);
    second.until_line("another syncer works on this node");
    assert_eq!(second.wait().code(), Some(5));
    assert!(first.terminate().success());
    let names: Vec<_> =
        std::fs::read_dir(place.kubelet.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let mut third = place.sync(&[]);
    third.until("Applied");
}

#[rstest]
#[case::missing_folder("no/such/folder/config.json", "cannot make the folder of the state")]
fn a_folder_that_is_not_there_is_waited_for(#[case] file: &str, #[case] told: &str) {
    let place = Place::new();
    place.source.publish("global", Some(&document("a.io")), None);
    let file = place.kubelet.path().join(file);
    let mut command = Command::new(env!("CARGO_BIN_EXE_sync-global-pullsecret"));
    command.args(["--restart-policy", "never", "--from-files"]).arg(place.source.path());
    command.arg("--kubelet-file").arg(&file);
    let mut syncer = Syncer::start(command);
    syncer.until_line(told);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    syncer.until("Applied");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), document("a.io"));
}

/// A directory or a link in the file's place is left as it is, and named.
#[rstest]
#[case::a_folder(true, "something else than a file")]
#[case::a_link(false, "a symbolic link")]
fn what_is_no_file_is_left_alone(#[case] folder: bool, #[case] told: &str) {
    let place = Place::new();
    if folder {
        std::fs::create_dir(place.file()).unwrap();
    } else {
        std::os::unix::fs::symlink("/nowhere", place.file()).unwrap();
    }
    place.source.publish("global", Some(&document("a.io")), None);
    let mut syncer = place.sync(&[]);
    syncer.until_line(told);
    syncer.until("DiskFault");
    assert!(std::fs::symlink_metadata(place.file()).unwrap().is_dir() == folder);
    if folder { std::fs::remove_dir(place.file()) } else { std::fs::remove_file(place.file()) }.unwrap();
    syncer.until("Applied");
}

#[rstest]
#[case::without_effect(&["--only-this-revision", "true"], "--only-this-revision: has no effect without --revision")]
#[case::no_time(&["--stable-for", "soon"], "--stable-for: must be a duration from 1ms to 2400h, such as 500ms, 5s or 1m30s")]
#[case::not_loopback(&["--listen", "0.0.0.0:1"], "--listen: must be a loopback address")]
#[case::both_sources(&["--secret", "a/b"], "--secret: has no effect beside --from-files")]
fn wrong_settings_are_named(#[case] further: &[&str], #[case] told: &str) {
    let place = Place::new();
    let output = place.command(further).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let log = String::from_utf8(output.stdout).unwrap();
    assert!(log.contains(told), "{log}");
}

#[test]
fn no_credential_is_told_anywhere() {
    let place = Place::new();
    place.source.publish("global", Some(&document("a.io")), None);
    let termination = place.kubelet.path().join("termination-log");
    daemon::file::replace(&termination, b"").unwrap();
    let mut syncer = place.sync(&["--log-level", "debug", "--termination-log", termination.to_str().unwrap()]);
    syncer.until("Applied");
    let mut told = ["/status", "/metrics", "/readyz"].map(|path| place.ask(path)).join("\n");
    told += &String::from_utf8(place.run(&["status"]).stdout).unwrap();
    told += &syncer.log.join("\n");
    assert!(syncer.terminate().success());
    told += &std::fs::read_to_string(&termination).unwrap();
    told += &std::fs::read_to_string(place.kubelet.path().join("global-pull-secret/state.json")).unwrap();
    assert!(told.contains("Stopping") && told.contains("a.io"), "{told}");
    for secret in [CREDENTIAL, "s3cr3t", "user"] {
        assert!(!told.contains(secret), "{told}");
    }
    assert!(Path::new(&termination).exists());
}
