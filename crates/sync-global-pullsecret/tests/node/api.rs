//! The Secret watched through an API server that answers as it is told to.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rstest::rstest;
use sync_global_pullsecret::source::{ApiSettings, Reader, Said, SecretName, SourceSettings};
use tempfile::TempDir;
use tokio::sync::mpsc;
use zeroize::Zeroizing;

/// How one request is answered.
enum Answer {
    /// With this status and body, at once.
    Whole(u16, String),
    /// With these pieces of a stream, chunk by chunk, and then as long as the sender lives.
    Stream(Vec<String>, Receiver<String>),
    /// By closing the connection.
    Nothing,
}

struct Server {
    port: u16,
    asked: Receiver<String>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    token: TempDir,
}

impl Server {
    fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
        let (sender, asked) = channel();
        let queue = Arc::clone(&answers);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let answer = queue.lock().unwrap().pop_front();
                serve(stream, answer, &sender);
            }
        });
        let token = tempfile::tempdir().unwrap();
        daemon::file::replace(&token.path().join("token"), b"t0ken\n").unwrap();
        Self { port, asked, answers, token }
    }

    fn follow(&self) -> mpsc::Receiver<Said> {
        let settings = SourceSettings::Api(ApiSettings {
            secret: "kube-system/global-pull-secret".parse::<SecretName>().unwrap(),
            host: "127.0.0.1".to_owned(),
            port: self.port,
            authority: None,
            token: self.token.path().join("token"),
        });
        let (sender, sayings) = mpsc::channel(4);
        let reader = Reader::new(Zeroizing::new([7; 32]));
        drop(tokio::spawn(settings.run(reader, sender)));
        sayings
    }

    fn asked(&self) -> Vec<String> {
        self.asked.try_iter().collect()
    }
}

fn serve(mut stream: TcpStream, answer: Option<Answer>, asked: &Sender<String>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let headers: Vec<_> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    assert!(headers.contains(&"Authorization: Bearer t0ken".to_owned()), "{headers:?}");
    let target = first.split(' ').nth(1).unwrap().to_owned();
    let _nobody_listens = asked.send(target.replace("/api/v1/namespaces/kube-system/secrets?fieldSelector=", ""));
    match answer {
        None | Some(Answer::Nothing) => {}
        Some(Answer::Whole(status, body)) => {
            let head = format!("HTTP/1.1 {status} x\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).unwrap();
        }
        Some(Answer::Stream(first, later)) => {
            // Each on a thread of its own, so that others can ask meanwhile.
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

fn list(version: u32, items: &[String]) -> Answer {
    let items = items.join(",");
    Answer::Whole(200, format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"items":[{items}]}}"#))
}

fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

/// What was said, in a word: the revision of content, which the tests name as its registry.
async fn next(sayings: &mut mpsc::Receiver<Said>) -> String {
    match sayings.recv().await.unwrap() {
        Said::Missing => "missing".to_owned(),
        Said::Invalid(_) => "invalid".to_owned(),
        Said::Away(Some(why)) => why,
        Said::Away(None) => "back".to_owned(),
        Said::Content(content) => content.revision().unwrap().to_owned(),
    }
}

/// A stream that stays open for as long as its sender is kept.
fn open(first: Vec<String>) -> (Sender<String>, Answer) {
    let (sender, later) = channel();
    (sender, Answer::Stream(first, later))
}

fn closed(first: Vec<String>) -> Answer {
    open(first).1
}

const WATCH: &str = "&watch=true&allowWatchBookmarks=true&timeoutSeconds=600&resourceVersion=";

fn watch(version: u32) -> String {
    format!("metadata.name%3Dglobal-pull-secret{WATCH}{version}")
}

const LIST: &str = "metadata.name%3Dglobal-pull-secret";

#[tokio::test]
async fn a_secret_is_followed_through_change_deletion_and_return() {
    let (later, stream) = open(vec![event("MODIFIED", &secret(6, "b.io"))]);
    let server = Server::start(vec![list(5, &[secret(4, "a.io")]), stream]);
    let mut sayings = server.follow();
    assert_eq!(next(&mut sayings).await, "a.io");
    assert_eq!(next(&mut sayings).await, "b.io");
    // One event in two pieces, and two events in one.
    let event_text = event("DELETED", &secret(7, "b.io"));
    let (half, other_half) = event_text.split_at(40);
    later.send(half.to_owned()).unwrap();
    let bookmark = event("BOOKMARK", r#"{"metadata":{"resourceVersion":"8"}}"#);
    later.send(format!("{other_half}{bookmark}")).unwrap();
    assert_eq!(next(&mut sayings).await, "missing");
    later.send(event("ADDED", &secret(9, "c.io"))).unwrap();
    assert_eq!(next(&mut sayings).await, "c.io");
    assert_eq!(server.asked(), [LIST.to_owned(), watch(5)]);
}

#[tokio::test]
async fn a_watch_that_ends_goes_on_from_where_it_was() {
    let bookmark = event("BOOKMARK", r#"{"metadata":{"resourceVersion":"8"}}"#);
    let (_later, stream) = open(vec![event("MODIFIED", &secret(9, "b.io"))]);
    let server = Server::start(vec![list(5, &[secret(4, "a.io")]), closed(vec![bookmark]), Answer::Nothing, stream]);
    let mut sayings = server.follow();
    assert_eq!(next(&mut sayings).await, "a.io");
    assert!(next(&mut sayings).await.starts_with("the API server cannot be asked"));
    assert_eq!(next(&mut sayings).await, "back");
    assert_eq!(next(&mut sayings).await, "b.io");
    assert_eq!(server.asked(), [LIST.to_owned(), watch(5), watch(8), watch(8)]);
}

#[rstest]
#[case::as_an_event(closed(vec![event("ERROR", r#"{"kind":"Status","code":410}"#)]))]
#[case::as_an_answer(Answer::Whole(410, "{}".to_owned()))]
#[tokio::test]
async fn a_version_that_is_too_old_leads_to_a_new_listing(#[case] gone: Answer) {
    let (_later, stream) = open(Vec::new());
    let server = Server::start(vec![list(5, &[secret(4, "a.io")]), gone, list(90, &[secret(80, "b.io")]), stream]);
    let mut sayings = server.follow();
    assert_eq!(next(&mut sayings).await, "a.io");
    assert_eq!(next(&mut sayings).await, "b.io");
    assert_eq!(server.asked()[..3], [LIST.to_owned(), watch(5), LIST.to_owned()]);
}

#[rstest]
#[case::no_right(Answer::Whole(403, "{}".to_owned()), "may not list and watch the Secret (403)")]
#[case::no_token(Answer::Whole(401, "{}".to_owned()), "does not take the token (401)")]
#[case::overloaded(Answer::Whole(429, "{}".to_owned()), "answers 429")]
#[case::broken(Answer::Whole(500, "{}".to_owned()), "answers 500")]
#[case::not_json(Answer::Whole(200, "s3cr3t".to_owned()), "is not understood")]
#[case::cut_off(Answer::Nothing, "cannot be asked")]
#[tokio::test]
async fn an_outage_is_told_once_and_survived(#[case] outage: Answer, #[case] told: &str) {
    let (_later, stream) = open(Vec::new());
    let server = Server::start(vec![outage, Answer::Whole(503, String::new()), list(5, &[]), stream]);
    let mut sayings = server.follow();
    let why = next(&mut sayings).await;
    assert!(why.contains(told) && !why.contains("s3cr3t"), "{why}");
    let mut said = Vec::new();
    while said.last().map(String::as_str) != Some("missing") {
        said.push(next(&mut sayings).await);
    }
    assert!(said.contains(&"back".to_owned()), "{said:?}");
    assert!(server.answers.lock().unwrap().len() <= 1);
}

#[rstest]
#[case::no_data(r#"{"metadata":{}}"#, "missing")]
#[case::no_key(r#"{"metadata":{},"data":{}}"#, "missing")]
#[case::empty(r#"{"metadata":{},"data":{".dockerconfigjson":""}}"#, "missing")]
#[case::no_base64(r#"{"metadata":{},"data":{".dockerconfigjson":"%"}}"#, "invalid")]
#[case::no_document(r#"{"metadata":{},"data":{".dockerconfigjson":"e30="}}"#, "invalid")]
#[tokio::test]
async fn strange_secrets(#[case] object: &str, #[case] said: &str) {
    let (_later, stream) = open(Vec::new());
    let server = Server::start(vec![list(5, &[object.to_owned()]), stream]);
    assert_eq!(next(&mut server.follow()).await, said);
}
