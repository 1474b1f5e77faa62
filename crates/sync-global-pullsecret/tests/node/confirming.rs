//! Confirmations of applied revisions, through an API server with scripted responses; and readiness without a source.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};
use sync_global_pullsecret::UnmanagedEntries;
use sync_global_pullsecret::confirm::{self, ConfirmSettings};
use sync_global_pullsecret::decide::{Delays, Rules};
use sync_global_pullsecret::kubelet_file::KubeletFile;
use sync_global_pullsecret::run::{Inputs, RevisionRule, Syncer};
use sync_global_pullsecret::source::{ApiSettings, CredentialsReader, SourceEvent};
use sync_global_pullsecret::status::{SharedStatus, Status};
use sync_global_pullsecret::units::{UnitError, Units};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

/// A server that takes patches, and a syncer's confirmations to it.
struct Setup {
    status: SharedStatus,
    patches: mpsc::Receiver<(String, Value)>,
    _token: TempDir,
}

impl Setup {
    /// The server answers with these codes in turn, then with 200.
    async fn new(codes: &'static [u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, patches) = mpsc::channel(16);
        drop(tokio::spawn(async move {
            for code in codes.iter().copied().chain(std::iter::repeat(200)) {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = read(&mut stream).await;
                let answer = format!("HTTP/1.1 {code} x\r\nContent-Length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.unwrap();
                if sender.send(request).await.is_err() {
                    return;
                }
            }
        }));
        let token = tempfile::tempdir().unwrap();
        daemon::file::replace(&token.path().join("token"), b"t0ken\n").unwrap();
        let api = ApiSettings {
            secret: "kube-system/global-pull-secret".parse().unwrap(),
            host: "127.0.0.1".to_owned(),
            port,
            authority: None,
            token: token.path().join("token"),
        };
        let config_map = "kube-system/global-pull-secret-nodes".parse().unwrap();
        let settings = ConfirmSettings { config_map, node: "node-a.example".to_owned(), pod: "pod-x".to_owned() };
        let status = SharedStatus::new(Status::new(None, Timestamp::UNIX_EPOCH));
        drop(tokio::spawn(confirm::run(settings, api, status.clone())));
        Self { status, patches, _token: token }
    }

    fn apply(&self, revision: &str) {
        self.status.update(|status| status.revision = Some(revision.to_owned()));
    }

    async fn confirmed(&mut self) -> Value {
        let (line, patch) = self.patches.recv().await.unwrap();
        let path = "/api/v1/namespaces/kube-system/configmaps/global-pull-secret-nodes";
        assert!(line.starts_with(&format!("PATCH {path}?")), "{line}");
        patch
    }
}

/// The first line of a request, and its body.
async fn read(stream: &mut tokio::net::TcpStream) -> (String, Value) {
    let mut text = Vec::new();
    loop {
        assert_ne!(stream.read_buf(&mut text).await.unwrap(), 0);
        let read = String::from_utf8(text.clone()).unwrap();
        let Some((head, body)) = read.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        assert!(
            head.contains("authorization: bearer t0ken") && head.contains("application/merge-patch+json"),
            "{head}"
        );
        if let Ok(patch) = serde_json::from_str(body) {
            return (read.lines().next().unwrap().to_owned(), patch);
        }
    }
}

fn confirmation(revision: &str) -> Value {
    json!({"data": {"node-a.example": format!("{revision} pod-x")}})
}

#[tokio::test]
async fn each_applied_revision_is_confirmed_once() {
    let mut setup = Setup::new(&[]).await;
    setup.apply("1");
    assert_eq!(setup.confirmed().await, confirmation("1"));
    setup.status.update(|status| status.ready = false);
    setup.apply("2");
    assert_eq!(setup.confirmed().await, confirmation("2"));
    assert!(setup.patches.try_recv().is_err());
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn a_refused_confirmation_is_repeated(#[values(403, 404, 409, 500, 503)] code: u16) {
    let codes: &'static [u16] = vec![code; 3].leak();
    let mut setup = Setup::new(codes).await;
    setup.apply("1");
    for _ in 0..4 {
        assert_eq!(setup.confirmed().await, confirmation("1"));
    }
}

/// The controller may have created the ConfigMap anew.
#[tokio::test(start_paused = true)]
async fn a_confirmation_is_repeated_in_the_course_of_time() {
    let mut setup = Setup::new(&[]).await;
    setup.apply("1");
    for _ in 0..3 {
        assert_eq!(setup.confirmed().await, confirmation("1"));
    }
}

/// No unit is restarted here.
#[derive(Clone)]
struct NoUnit;

impl Units for NoUnit {
    async fn restart(&self) -> Result<(), UnitError> {
        Ok(())
    }

    async fn verify(&self) -> Result<(), UnitError> {
        Ok(())
    }
}

/// Readiness and the applied revision after each of these events.
async fn states(expected: Option<&str>, events: Vec<SourceEvent>) -> Vec<(bool, Option<String>)> {
    let disk = crate::memory_disk::MemoryDisk::default();
    let file = KubeletFile::open(disk, Path::new("/var/lib/kubelet/config.json"), UnmanagedEntries::Keep).unwrap();
    let rules = Rules { restart: false, delays: Delays { failed_content: Duration::from_mins(10) } };
    let reader = CredentialsReader::new(file.key().clone());
    let revision = RevisionRule { expected: expected.map(str::to_owned), only: false };
    let status = SharedStatus::new(Status::new(None, Timestamp::UNIX_EPOCH));
    let (sender, source_events) = mpsc::channel(4);
    let stop = CancellationToken::new();
    let syncer = Syncer::new(file, NoUnit, rules, revision, status.clone());
    let text = br#"{"auths":{"a.io":{"auth":"YTph"}}}"#;
    let first = reader.read(Zeroizing::new(text.to_vec()), Some("1".to_owned()));
    let states = async {
        let mut states = Vec::new();
        for event in std::iter::once(first).chain(events) {
            sender.send(event).await.unwrap();
            // The paused clock advances only while no task can run.
            tokio::time::sleep(Duration::from_secs(1)).await;
            let status = status.read();
            states.push((status.ready, status.revision));
        }
        stop.cancel();
        states
    };
    let inputs = Inputs { source_events, file_events: None, stop: stop.clone() };
    let ((), states) = tokio::join!(syncer.run(inputs), states);
    states
}

/// Without its source it does not know whether a newer revision exists, unless it is for one.
#[rstest]
#[case::for_any_revision(None, false)]
#[case::for_one(Some("1"), true)]
#[tokio::test(start_paused = true)]
async fn without_its_source_it_is_not_ready_for_a_new_revision(#[case] expected: Option<&str>, #[case] is_ready: bool) {
    let events = vec![SourceEvent::Unavailable("no connection".to_owned()), SourceEvent::Available];
    let applied = Some("1".to_owned());
    let states = states(expected, events).await;
    assert_eq!(states, [(true, applied.clone()), (is_ready, applied.clone()), (true, applied)]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_used_is_not_applied() {
    let states = states(None, vec![SourceEvent::Invalid("no JSON".to_owned())]).await;
    assert_eq!(states, [(true, Some("1".to_owned())), (false, Some("1".to_owned()))]);
}
