//! A process whose lines are read as they come, and an API that goes away or refuses.

use std::time::Duration;

use serde_json::Value;
use testkit::leaks::check;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::watch;

/// The answer to a write of a caller without the right, as the API gives it.
const REFUSAL: &str =
    r#"{"status":403,"code":"HYPERFLEET-AUZ-001","detail":"no grant of the caller allows update on Cluster"}"#;

/// The longest that an event is waited for.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A process that prints JSON lines.
pub(super) struct Process {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    lines: Vec<Value>,
}

impl Process {
    pub(super) fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, stdout, lines: Vec::new() }
    }

    /// Reads until the lines satisfy the condition.
    pub(super) async fn until(&mut self, is_so: impl Fn(&[Value]) -> bool) {
        while !is_so(&self.lines) {
            assert!(self.read().await, "it has ended: {:?}", self.lines);
        }
    }

    async fn read(&mut self) -> bool {
        let line = tokio::time::timeout(TIMEOUT, self.stdout.next_line()).await.unwrap().unwrap();
        let Some(line) = line else { return false };
        check("a run", &line);
        self.lines.push(serde_json::from_str(&line).unwrap());
        true
    }

    pub(super) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// The exit code and all lines.
    pub(super) async fn end(mut self) -> (Option<i32>, Vec<Value>) {
        while self.read().await {}
        let output = self.child.wait_with_output().await.unwrap();
        check("a run", &String::from_utf8(output.stderr).unwrap());
        (output.status.code(), self.lines)
    }
}

/// The behaviour of a [`Gate`].
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Mode {
    Open,
    /// Every connection breaks.
    Away,
    /// A PATCH is answered with 403.
    RefusesWrites,
    /// A PATCH waits for another mode.
    HoldsWrites,
}

/// A proxy before the API.
pub(super) struct Gate {
    pub(super) address: String,
    mode: watch::Sender<Mode>,
    holds: watch::Receiver<bool>,
}

impl Gate {
    pub(super) async fn before(api: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let ((mode, present), (hold, holds)) = (watch::channel(Mode::Open), watch::channel(false));
        let target = api.trim_start_matches("http://").to_owned();
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                tokio::spawn(pass(client, target.clone(), present.clone(), hold.clone()));
            }
        });
        Self { address, mode, holds }
    }

    pub(super) fn set(&self, mode: Mode) {
        self.mode.send(mode).unwrap();
    }

    /// Waits until a PATCH waits.
    pub(super) async fn until_it_holds(&mut self) {
        let holds = self.holds.wait_for(|holds| *holds);
        drop(tokio::time::timeout(TIMEOUT, holds).await.unwrap().unwrap());
    }
}

/// Passes requests on while the mode allows it; each chunk from the client is a request, or more of one.
async fn pass(client: TcpStream, target: String, mut mode: watch::Receiver<Mode>, hold: watch::Sender<bool>) {
    let server = TcpStream::connect(target).await.unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (refuse, refused) = tokio::sync::oneshot::channel();
    let requests = async move {
        let mut buffer = vec![0; 65_536];
        while let Ok(length @ 1..) = from_client.read(&mut buffer).await {
            let (now, writes) = (*mode.borrow(), buffer.starts_with(b"PATCH "));
            if now == Mode::HoldsWrites && writes {
                hold.send(true).unwrap();
                drop(mode.wait_for(|mode| *mode != Mode::HoldsWrites).await.unwrap());
            }
            if now == Mode::RefusesWrites && writes {
                refuse.send(()).unwrap();
                // The rest of the request is read, so that the answer is not lost in a reset.
                while let Ok(1..) = from_client.read(&mut buffer).await {}
                return;
            }
            if now == Mode::Away || to_server.write_all(&buffer[..length]).await.is_err() {
                return;
            }
        }
    };
    let answers = async move {
        tokio::select! {
            _end = copy(&mut from_server, &mut to_client) => {}
            Ok(()) = refused => {
                let head = "HTTP/1.1 403 Forbidden\r\ncontent-type: application/problem+json\r\nconnection: close";
                let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{REFUSAL}", REFUSAL.len());
                to_client.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    };
    tokio::join!(
        async {
            requests.await;
        },
        answers
    );
}
