//! The process: settings, lock, signals, health, and that it prints no credential.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output};

use rstest::rstest;
use tempfile::TempDir;

use crate::real::{Mounted, Syncer};

const CREDENTIAL: &str = "dXNlcjpzM2NyM3Q=";

struct Setup {
    kubelet: TempDir,
    source: Mounted,
}

impl Setup {
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

    fn get(&self, path: &str) -> String {
        let mut stream = UnixStream::connect(self.kubelet.path().join("global-pull-secret/socket")).unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sync-global-pullsecret"));
        command.args(arguments).arg("--kubelet-file").arg(self.file()).output().unwrap()
    }
}

fn document(registry: &str) -> String {
    format!(r#"{{"auths":{{"{registry}":{{"auth":"{CREDENTIAL}"}}}}}}"#)
}

#[test]
fn health_status_and_metrics_are_served() {
    let setup = Setup::new();
    setup.source.publish("global", Some(&document("a.io")), Some("r2"));
    let mut syncer = setup.sync(&["--revision", "r2"]);
    syncer.until("Applied");
    assert!(setup.get("/healthz").starts_with("HTTP/1.1 200 "));
    assert!(setup.get("/readyz").starts_with("HTTP/1.1 200 "));
    assert!(setup.get("/other").starts_with("HTTP/1.1 404 "));
    let metrics = setup.get("/metrics");
    for line in ["sync_global_pullsecret_ready 1", "sync_global_pullsecret_reason{reason=\"Applied\"} 1"] {
        assert!(metrics.contains(line), "{metrics}");
    }
    assert!(setup.run(&["ready"]).status.success());
    let status = setup.run(&["status", "--output", "json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!((&status["ready"], &status["revision"]), (&true.into(), &"r2".into()));
    let ready: serde_json::Value = serde_json::from_slice(&setup.run(&["ready", "--output", "json"]).stdout).unwrap();
    assert_eq!(ready, status);
    let text = String::from_utf8(setup.run(&["status"]).stdout).unwrap();
    assert!(text.starts_with("Applied: ") && text.contains("expected revision"), "{text}");
    assert_eq!(std::fs::metadata(setup.file()).unwrap().permissions().mode() & 0o777, 0o600);
}

/// Prometheus finds every metric of the catalogue, and the network nothing else.
#[test]
fn the_network_is_served_metrics_only() {
    let setup = Setup::new();
    setup.source.publish("global", Some(&document("a.io")), None);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut syncer = setup.sync(&["--metrics-listen", &format!("127.0.0.1:{port}")]);
    syncer.until("Applied");
    let get = |path: &str| {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let metrics = get("/metrics");
    for metric in fleet_model::metrics::syncer::METRICS {
        let (series, kind) = (metric.series(), metric.kind.as_str());
        assert!(metrics.contains(&format!("# TYPE {series} {kind}\n{series}")), "{series}: {metrics}");
    }
    for path in ["/status", "/readyz", "/healthz"] {
        assert!(get(path).starts_with("HTTP/1.1 404 "), "{path}");
    }
}

#[test]
fn a_pod_is_ready_with_its_own_revision_only() {
    let setup = Setup::new();
    setup.source.publish("global", Some(&document("a.io")), Some("r1"));
    let mut syncer = setup.sync(&["--revision", "r2", "--only-this-revision", "true"]);
    syncer.until("OtherRevision");
    assert!(setup.get("/readyz").starts_with("HTTP/1.1 503 "));
    assert!(!setup.file().exists(), "another revision is left to the pods that are for it");
    assert_eq!(setup.run(&["ready"]).status.code(), Some(1));
    setup.source.publish("global", Some(&document("b.io")), Some("r2"));
    syncer.until("Applied");
    assert!(setup.run(&["ready"]).status.success());
    assert!(setup.text().contains("b.io"));
}

#[test]
fn the_original_counts_while_the_global_one_has_no_content() {
    let setup = Setup::new();
    setup.source.publish("original", Some(&document("original.io")), None);
    let mut syncer = setup.sync(&[]);
    syncer.until("Applied");
    assert_eq!(setup.text(), document("original.io"));
    setup.source.publish("global", Some(&document("global.io")), None);
    syncer.until_line("is replaced");
    syncer.until("Applied");
    assert_eq!(setup.text(), document("global.io"));
    setup.source.publish("global", Some(""), None);
    syncer.until_line("is replaced");
    syncer.until("Applied");
    assert_eq!(setup.text(), document("original.io"));
}

#[rstest]
#[case::malformed("{")]
#[case::an_entry_that_invalidates_the_file(r#"{"auths":{"a.io":{"auth":"s3cr3t but no base64"}}}"#)]
#[case::html("<html>s3cr3t</html>")]
fn content_that_cannot_be_used_changes_nothing(#[case] text: &str) {
    let setup = Setup::new();
    setup.source.publish("global", Some(&document("a.io")), None);
    let mut syncer = setup.sync(&[]);
    syncer.until("Applied");
    setup.source.publish("global", Some(text), None);
    syncer.until("SourceInvalid");
    assert_eq!(setup.text(), document("a.io"));
    assert!(!setup.run(&["ready"]).status.success());
    setup.source.publish("global", Some(&document("b.io")), None);
    syncer.until("Applied");
    let output = syncer.log.join("\n") + &String::from_utf8(setup.run(&["status"]).stdout).unwrap();
    assert!(!output.contains("s3cr3t"), "{output}");
}

/// A Secret's content may be 1 MiB.
#[test]
fn a_large_document_is_applied() {
    let setup = Setup::new();
    let entries: Vec<_> =
        (0..10_000).map(|number| format!(r#""r{number}.example.com":{{"auth":"{CREDENTIAL}"}}"#)).collect();
    let text = format!(r#"{{"auths":{{{}}}}}"#, entries.join(","));
    setup.source.publish("global", Some(&text), None);
    let mut syncer = setup.sync(&[]);
    syncer.until("Applied");
    assert_eq!(setup.text(), text);
}

#[test]
fn entries_that_others_write_stay_and_those_they_remove_come_back() {
    let setup = Setup::new();
    setup.source.publish("global", Some(&document("a.io")), None);
    let mut syncer = setup.sync(&[]);
    syncer.until("Applied");
    daemon::file::replace(&setup.file(), document("ecr.example.com").as_bytes()).unwrap();
    syncer.until_line("is replaced");
    syncer.until("Applied");
    assert!(setup.text().contains("a.io") && setup.text().contains("ecr.example.com"), "{}", setup.text());
    setup.source.publish("global", Some(&document("b.io")), None);
    syncer.until_line("is replaced");
    syncer.until("Applied");
    assert!(!setup.text().contains("a.io"), "managed entries that are no longer desired go: {}", setup.text());
    assert!(setup.text().contains("b.io") && setup.text().contains("ecr.example.com"), "{}", setup.text());
}

#[test]
fn owner_and_mode_are_kept_safe() {
    let setup = Setup::new();
    daemon::file::replace_for(daemon::file::Readers::All, &setup.file(), document("old.io").as_bytes()).unwrap();
    let owned_by_another = std::os::unix::fs::chown(setup.file(), Some(1234), Some(2345)).is_ok();
    setup.source.publish("global", Some(&document("a.io")), None);
    let mut syncer = setup.sync(&[]);
    syncer.until("Applied");
    let meta = std::fs::metadata(setup.file()).unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    if owned_by_another {
        assert_eq!((meta.uid(), meta.gid()), (1234, 2345));
    }
}

#[test]
fn a_second_copy_is_refused_and_leftovers_are_removed() {
    let setup = Setup::new();
    daemon::file::replace(&setup.kubelet.path().join(".config.json.global-pull-secret"), b"half a cred").unwrap();
    setup.source.publish("global", Some(&document("a.io")), None);
    let mut first = setup.sync(&[]);
    first.until("Applied");
    let mut second = setup.sync(&[]);
    second.until_line("another syncer works on this node");
    assert_eq!(second.wait().code(), Some(5));
    assert!(first.terminate().success());
    let names: Vec<_> =
        std::fs::read_dir(setup.kubelet.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let mut third = setup.sync(&[]);
    third.until("Applied");
}

#[rstest]
#[case::missing_folder("no/such/folder/config.json", "cannot create the state folder")]
fn a_missing_folder_is_retried(#[case] file: &str, #[case] reported: &str) {
    let setup = Setup::new();
    setup.source.publish("global", Some(&document("a.io")), None);
    let file = setup.kubelet.path().join(file);
    let mut command = Command::new(env!("CARGO_BIN_EXE_sync-global-pullsecret"));
    command.args(["--restart-policy", "never", "--from-files"]).arg(setup.source.path());
    command.arg("--kubelet-file").arg(&file);
    let mut syncer = Syncer::start(command);
    syncer.until_line(reported);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    syncer.until("Applied");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), document("a.io"));
}

/// A directory or a link in place of the file is left as it is, and reported.
#[rstest]
#[case::a_folder(true, "something else than a file")]
#[case::a_link(false, "a symbolic link")]
fn anything_but_a_regular_file_is_left_alone(#[case] folder: bool, #[case] reported: &str) {
    let setup = Setup::new();
    if folder {
        std::fs::create_dir(setup.file()).unwrap();
    } else {
        std::os::unix::fs::symlink("/nowhere", setup.file()).unwrap();
    }
    setup.source.publish("global", Some(&document("a.io")), None);
    let mut syncer = setup.sync(&[]);
    syncer.until_line(reported);
    syncer.until("DiskFault");
    assert!(std::fs::symlink_metadata(setup.file()).unwrap().is_dir() == folder);
    if folder { std::fs::remove_dir(setup.file()) } else { std::fs::remove_file(setup.file()) }.unwrap();
    syncer.until("Applied");
}

#[rstest]
#[case::without_effect(&["--only-this-revision", "true"], "--only-this-revision: has no effect without --revision")]
#[case::no_time(&["--stable-for", "soon"], "--stable-for: must be a duration from 1ms to 2400h, such as 500ms, 5s or 1m30s")]
#[case::no_address(&["--metrics-listen", "localhost:1"], "--metrics-listen: must be an IP address")]
#[case::not_loopback(&["--listen", "0.0.0.0:1"], "--listen: must be a loopback address")]
#[case::both_sources(&["--secret", "a/b"], "--secret: has no effect beside --from-files")]
fn invalid_settings_are_reported(#[case] further: &[&str], #[case] reported: &str) {
    let setup = Setup::new();
    let output = setup.command(further).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let log = String::from_utf8(output.stdout).unwrap();
    assert!(log.contains(reported), "{log}");
}

#[test]
fn no_credential_is_printed_anywhere() {
    let setup = Setup::new();
    setup.source.publish("global", Some(&document("a.io")), None);
    let termination = setup.kubelet.path().join("termination-log");
    daemon::file::replace(&termination, b"").unwrap();
    let mut syncer = setup.sync(&["--log-level", "debug", "--termination-log", termination.to_str().unwrap()]);
    syncer.until("Applied");
    let mut output = ["/status", "/metrics", "/readyz"].map(|path| setup.get(path)).join("\n");
    output += &String::from_utf8(setup.run(&["status"]).stdout).unwrap();
    output += &syncer.log.join("\n");
    assert!(syncer.terminate().success());
    output += &std::fs::read_to_string(&termination).unwrap();
    output += &std::fs::read_to_string(setup.kubelet.path().join("global-pull-secret/state.json")).unwrap();
    assert!(output.contains("Stopping") && output.contains("a.io"), "{output}");
    for secret in [CREDENTIAL, "s3cr3t", "user"] {
        assert!(!output.contains(secret), "{output}");
    }
    assert!(Path::new(&termination).exists());
}

#[test]
fn the_version_is_printed_for_people_and_for_programs() {
    let print = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_sync-global-pullsecret")).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let text = print(&["version"]);
    let json: serde_json::Value = serde_json::from_str(&print(&["version", "--output", "json"])).unwrap();
    assert_eq!(json["program"], "sync-global-pullsecret");
    for member in ["version", "commit", "buildDate"] {
        assert!(text.contains(json[member].as_str().unwrap()), "{member}: {text}");
    }
}

#[test]
fn a_missing_syncer_is_reported_to_programs_too() {
    let setup = Setup::new();
    let output = setup.run(&["ready", "--output", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &json["ready"]), (Some(1), &false.into()), "{json}");
    assert!(json["message"].as_str().unwrap().contains("is it running on this node?"), "{json}");
}
