//! The Secret watched through an API server with scripted responses.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rstest::rstest;
use sync_global_pullsecret::source::{ApiSettings, CredentialsReader, ObjectName, SourceEvent, SourceSettings};
use tempfile::TempDir;
use tokio::sync::mpsc;
use zeroize::Zeroizing;

/// The response to one request.
enum Scripted {
    /// This status and body, at once.
    Whole(u16, String),
    /// These pieces of a stream, chunk by chunk; the stream ends when the sender is dropped.
    Stream(Vec<String>, Receiver<String>),
    /// No response: the connection is closed.
    Nothing,
}

struct Server {
    port: u16,
    requested: Receiver<String>,
    responses: Arc<Mutex<VecDeque<Scripted>>>,
    token: TempDir,
}

impl Server {
    fn start(responses: Vec<Scripted>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let responses = Arc::new(Mutex::new(VecDeque::from(responses)));
        let (sender, requested) = channel();
        let queue = Arc::clone(&responses);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let response = queue.lock().unwrap().pop_front();
                serve(stream, response, &sender);
            }
        });
        let token = tempfile::tempdir().unwrap();
        daemon::file::replace(&token.path().join("token"), b"t0ken\n").unwrap();
        Self { port, requested, responses, token }
    }

    fn follow(&self) -> mpsc::Receiver<SourceEvent> {
        let settings = SourceSettings::Api(ApiSettings {
            secret: "kube-system/global-pull-secret".parse::<ObjectName>().unwrap(),
            host: "127.0.0.1".to_owned(),
            port: self.port,
            authority: None,
            token: self.token.path().join("token"),
        });
        let (sender, events) = mpsc::channel(4);
        let reader = CredentialsReader::new(Zeroizing::new([7; 32]));
        drop(tokio::spawn(settings.run(reader, sender)));
        events
    }

    fn requested(&self) -> Vec<String> {
        self.requested.try_iter().collect()
    }
}

fn serve(mut stream: TcpStream, response: Option<Scripted>, requested: &Sender<String>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let headers: Vec<_> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    assert!(headers.contains(&"authorization: Bearer t0ken".to_owned()), "{headers:?}");
    let target = first.split(' ').nth(1).unwrap().to_owned();
    let _test_ended = requested.send(target.replace("/api/v1/namespaces/kube-system/secrets?fieldSelector=", ""));
    match response {
        None | Some(Scripted::Nothing) => {}
        Some(Scripted::Whole(status, body)) => {
            let head = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).unwrap();
        }
        Some(Scripted::Stream(first, later)) => {
            // On a thread of its own, so that other requests are served meanwhile.
            std::thread::spawn(move || {
                stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
                for piece in first.into_iter().chain(later) {
                    let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
                    if stream.write_all(chunk.as_bytes()).is_err() {
                        return;
                    }
                }
                let _gone = stream.write_all(b"0\r\n\r\n");
            });
        }
    }
}

fn secret(version: u32, registry: &str) -> String {
    let data = STANDARD.encode(format!(r#"{{"auths":{{"{registry}":{{"auth":"YTph"}}}}}}"#));
    let revision = STANDARD.encode(registry);
    format!(
        r#"{{"metadata":{{"name":"global-pull-secret","resourceVersion":"{version}"}},
        "data":{{".dockerconfigjson":"{data}","revision":"{revision}"}}}}"#
    )
    .replace('\n', "")
}

fn list(version: u32, items: &[String]) -> Scripted {
    let items = items.join(",");
    Scripted::Whole(200, format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"items":[{items}]}}"#))
}

fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

/// The next event in a word: of credentials their revision, which the tests name as the registry.
async fn next(events: &mut mpsc::Receiver<SourceEvent>) -> String {
    match events.recv().await.unwrap() {
        SourceEvent::Missing => "missing".to_owned(),
        SourceEvent::Invalid(_) => "invalid".to_owned(),
        SourceEvent::Unavailable(reason) => reason,
        SourceEvent::Available => "available".to_owned(),
        SourceEvent::Credentials(credentials) => credentials.revision().unwrap().to_owned(),
    }
}

/// A stream that stays open for as long as its sender is kept.
fn open(first: Vec<String>) -> (Sender<String>, Scripted) {
    let (sender, later) = channel();
    (sender, Scripted::Stream(first, later))
}

fn closed(first: Vec<String>) -> Scripted {
    open(first).1
}

const WATCH: &str = "&watch=true&allowWatchBookmarks=true&timeoutSeconds=290&resourceVersion=";

fn watch(version: u32) -> String {
    format!("metadata.name%3Dglobal-pull-secret{WATCH}{version}")
}

const LIST: &str = "metadata.name%3Dglobal-pull-secret";

#[tokio::test]
async fn a_secret_is_followed_through_change_deletion_and_return() {
    let (later, stream) = open(vec![event("MODIFIED", &secret(6, "b.io"))]);
    let server = Server::start(vec![list(5, &[secret(4, "a.io")]), stream]);
    let mut events = server.follow();
    assert_eq!(next(&mut events).await, "a.io");
    assert_eq!(next(&mut events).await, "b.io");
    // One event in two pieces, and two events in one.
    let event_text = event("DELETED", &secret(7, "b.io"));
    let (half, other_half) = event_text.split_at(40);
    later.send(half.to_owned()).unwrap();
    let bookmark = event("BOOKMARK", r#"{"metadata":{"resourceVersion":"8"}}"#);
    later.send(format!("{other_half}{bookmark}")).unwrap();
    assert_eq!(next(&mut events).await, "missing");
    later.send(event("ADDED", &secret(9, "c.io"))).unwrap();
    assert_eq!(next(&mut events).await, "c.io");
    assert_eq!(server.requested(), [LIST.to_owned(), watch(5)]);
}

#[tokio::test]
async fn a_watch_that_ends_is_resumed_at_its_resource_version() {
    let bookmark = event("BOOKMARK", r#"{"metadata":{"resourceVersion":"8"}}"#);
    let (_later, stream) = open(vec![event("MODIFIED", &secret(9, "b.io"))]);
    let server = Server::start(vec![list(5, &[secret(4, "a.io")]), closed(vec![bookmark]), Scripted::Nothing, stream]);
    let mut events = server.follow();
    assert_eq!(next(&mut events).await, "a.io");
    assert!(next(&mut events).await.starts_with("the API server cannot be reached"));
    assert_eq!(next(&mut events).await, "available");
    assert_eq!(next(&mut events).await, "b.io");
    assert_eq!(server.requested(), [LIST.to_owned(), watch(5), watch(8), watch(8)]);
}

/// A connection whose other end has vanished delivers nothing and never closes: the watch is resumed on a new one.
#[tokio::test]
async fn a_silent_watch_is_resumed_on_a_new_connection() {
    let (_silent, half_open) = open(vec![event("MODIFIED", &secret(6, "b.io"))]);
    let (_later, stream) = open(vec![event("MODIFIED", &secret(7, "c.io"))]);
    let server = Server::start(vec![list(5, &[secret(4, "a.io")]), half_open, stream]);
    let mut events = server.follow();
    assert_eq!(next(&mut events).await, "a.io");
    assert_eq!(next(&mut events).await, "b.io");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(100)).await;
    tokio::time::resume();
    assert_eq!(next(&mut events).await, "c.io");
    assert_eq!(server.requested(), [LIST.to_owned(), watch(5), watch(6)]);
}

#[rstest]
#[case::as_an_event(closed(vec![event("ERROR", r#"{"kind":"Status","code":410}"#)]))]
#[case::as_an_answer(Scripted::Whole(410, "{}".to_owned()))]
#[tokio::test]
async fn an_expired_resource_version_leads_to_a_new_list(#[case] gone: Scripted) {
    let (_later, stream) = open(Vec::new());
    let server = Server::start(vec![list(5, &[secret(4, "a.io")]), gone, list(90, &[secret(80, "b.io")]), stream]);
    let mut events = server.follow();
    assert_eq!(next(&mut events).await, "a.io");
    assert_eq!(next(&mut events).await, "b.io");
    assert_eq!(server.requested()[..3], [LIST.to_owned(), watch(5), LIST.to_owned()]);
}

#[rstest]
#[case::no_right(Scripted::Whole(403, "{}".to_owned()), "may not list and watch the Secret (403)")]
#[case::no_token(Scripted::Whole(401, "{}".to_owned()), "refuses the token (401)")]
#[case::overloaded(Scripted::Whole(429, "{}".to_owned()), "answers 429")]
#[case::broken(Scripted::Whole(500, "{}".to_owned()), "answers 500")]
#[case::not_json(Scripted::Whole(200, "s3cr3t".to_owned()), "is not understood")]
#[case::cut_off(Scripted::Nothing, "cannot be reached")]
#[tokio::test]
async fn an_outage_is_reported_once_and_survived(#[case] outage: Scripted, #[case] reported: &str) {
    let (_later, stream) = open(Vec::new());
    let server = Server::start(vec![outage, Scripted::Whole(503, String::new()), list(5, &[]), stream]);
    let mut events = server.follow();
    let reason = next(&mut events).await;
    assert!(reason.contains(reported) && !reason.contains("s3cr3t"), "{reason}");
    let mut later = Vec::new();
    while later.last().map(String::as_str) != Some("missing") {
        later.push(next(&mut events).await);
    }
    assert!(later.contains(&"available".to_owned()), "{later:?}");
    assert!(server.responses.lock().unwrap().len() <= 1);
}

#[rstest]
#[case::no_data(r#"{"metadata":{}}"#, "missing")]
#[case::no_key(r#"{"metadata":{},"data":{}}"#, "missing")]
#[case::empty(r#"{"metadata":{},"data":{".dockerconfigjson":""}}"#, "missing")]
#[case::no_base64(r#"{"metadata":{},"data":{".dockerconfigjson":"%"}}"#, "invalid")]
#[case::no_document(r#"{"metadata":{},"data":{".dockerconfigjson":"e30="}}"#, "invalid")]
#[tokio::test]
async fn strange_secrets(#[case] object: &str, #[case] event: &str) {
    let (_later, stream) = open(Vec::new());
    let server = Server::start(vec![list(5, &[object.to_owned()]), stream]);
    assert_eq!(next(&mut server.follow()).await, event);
}
