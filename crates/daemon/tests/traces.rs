//! An outage of the collector, in a process of its own, whose log and traces it takes.
#![cfg(feature = "traces")]
#![expect(clippy::unwrap_used, reason = "in a test that is the right way to fail")]

#[path = "../src/log/buffer.rs"]
mod buffer;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use buffer::Buffer;
use daemon::log::{Format, SPANS, Settings};
use daemon::settings::traces::{Export, Sampler};
use daemon::traces::{self, Program, ProgramExport};
use tracing::level_filters::LevelFilter;

/// Reads a request and answers it; returns the request's body.
fn answer(mut stream: &TcpStream, status: &str) -> Vec<u8> {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        assert_eq!(stream.read(&mut byte).unwrap(), 1);
        request.push(byte[0]);
    }
    let head = String::from_utf8(request).unwrap().to_ascii_lowercase();
    assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
    assert!(head.contains("x-key: hunter2") && head.contains("content-type: application/x-protobuf"), "{head}");
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split('\r').next()).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
    body
}

#[test]
fn an_outage_is_logged_once_and_the_batch_is_sent_when_it_is_over() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let export = Export {
        url: format!("http://{}/v1/traces", collector.local_addr().unwrap()).parse().unwrap(),
        headers: vec![("x-key".parse().unwrap(), "hunter2".parse().unwrap())],
        certificate: None,
        timeout: Duration::from_secs(10),
        sampler: Sampler::AlwaysOn,
        share: 1.0,
        service_name: None,
    };
    let log = Buffer::default();
    let settings = Settings { format: Format::Json, level: LevelFilter::INFO, crates: &["daemon"] };
    let program = Program { name: "a-program", version: "1" };
    let export = Some(ProgramExport { export, program });
    let exported = traces::start_for(&[], settings, log.clone(), export).unwrap();
    drop(tracing::info_span!(target: SPANS, "one"));
    let bodies = ["503 Service Unavailable", "429 Too Many Requests", "200 OK"].map(|status| {
        let (stream, _) = collector.accept().unwrap();
        answer(&stream, status)
    });
    assert!(bodies.iter().all(|body| *body == bodies[0]), "the batch is the same");
    drop(exported);
    let text = log.text();
    let messages: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [failed, again] = messages.as_slice() else { panic!("two lines, not {text}") };
    assert_eq!((failed["level"].as_str(), failed["operation"].as_str()), (Some("warn"), Some("export-traces")));
    assert_eq!(failed["error"], "it answers 503 Service Unavailable");
    assert_eq!(again["message"], "traces are exported again");
    assert!(!text.contains("hunter2"));
}
