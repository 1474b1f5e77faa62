//! Many readers of the change stream: the time in which a change reaches each of them, and what they cost the server.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::client::CLUSTERS;
use crate::database::Database;
use crate::{ServerUnderLoad, fleet, variable};

/// Changes per second.
const RATE: u64 = 20;
/// Number of streams that read the present state at the same time.
const STATES: usize = 50;
/// Far more than a change takes.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Measures `LOAD_STREAMS` readers (1,000 unless given) of changes that are made at a steady pace for that time.
pub(crate) async fn measure(database: &Database, count: u64, time: Duration) {
    let readers = variable("LOAD_STREAMS").map_or(1000, |readers| readers.parse::<usize>().unwrap());
    let under = ServerUnderLoad::start(database).await;
    fleet(&under, database, count).await;
    let print = |text: String| println!("{:<10} {count:>8}  {readers} streams: {text}", database.name());
    let version = newest(&under).await;
    let (idle, _) = under.memory();
    let query = format!("&resource_version={version}");
    let mut streams = Vec::new();
    for _ in 0..readers {
        streams.push(open(&under, &query).await);
    }
    let changes = usize::try_from(time.as_secs() * RATE).unwrap();
    let mut reading = JoinSet::new();
    for stream in streams {
        reading.spawn(timeout(TIMEOUT, arrivals(stream, changes)));
    }
    let mut client = under.connect().await;
    let before = under.stream_reads().await;
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    let mut tick = interval(Duration::from_secs(1) / u32::try_from(RATE).unwrap());
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for change in 0..u64::try_from(changes).unwrap() {
        tick.tick().await;
        asked.push(Instant::now());
        client.report(&format!("c-{}", change * 7919 % count), "dns", change + 1).await;
        answered.push(Instant::now());
    }
    let reads = f64::from(u32::try_from(under.stream_reads().await - before).unwrap());
    let (mut since_asked, mut since_answered) = (Vec::new(), Vec::new());
    let mut last = asked.clone();
    let mut open = Vec::new();
    while let Some(read) = reading.join_next().await {
        let (stream, times) = read.unwrap().unwrap();
        for (change, time) in times.into_iter().enumerate() {
            since_asked.push(time - asked[change]);
            since_answered.push(time.saturating_duration_since(answered[change]));
            last[change] = last[change].max(time);
        }
        open.push(stream);
    }
    let mut all: Vec<Duration> =
        last.iter().zip(&answered).map(|(last, at)| last.saturating_duration_since(*at)).collect();
    for (name, times) in [
        ("from the request to each reader", &mut since_asked),
        ("from the answer to each reader", &mut since_answered),
        ("from the answer to the last reader", &mut all),
    ] {
        times.sort_unstable();
        let percentile = |percent: usize| times[times.len() * percent / 100].as_secs_f64() * 1e3;
        print(format!("{name}: p50 {:.1} ms, p99 {:.1} ms", percentile(50), percentile(99)));
    }
    print(format!("{:.1} reads of the stream for each change", reads / f64::from(u32::try_from(changes).unwrap())));
    let (now, most) = under.memory();
    print(format!("memory: {idle} MiB before, {now} MiB now, at most {most} MiB"));
    drop(open);
    states(&under, print).await;
}

/// Reads the present state by many streams at the same time.
async fn states(under: &ServerUnderLoad, print: impl Fn(String)) {
    let began = Instant::now();
    let mut reading = JoinSet::new();
    for _ in 0..STATES {
        let stream = open(under, "").await;
        reading.spawn(timeout(TIMEOUT, until_bookmark(stream)));
    }
    while let Some(read) = reading.join_next().await {
        read.unwrap().unwrap();
    }
    let (now, most) = under.memory();
    let seconds = began.elapsed().as_secs_f64();
    print(format!("then {STATES} read the present state in {seconds:.1} s; memory: {now} MiB, at most {most} MiB"));
}

/// Opens a stream with further parameters; returns behind the head of its response.
async fn open(under: &ServerUnderLoad, query: &str) -> TcpStream {
    let host = &under.api;
    let mut stream = TcpStream::connect(host).await.unwrap();
    let head = format!("GET {CLUSTERS}?watch=true{query} HTTP/1.1\r\nhost: {host}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    stream
}

/// The version of the newest change.
async fn newest(under: &ServerUnderLoad) -> String {
    let stream = open(under, "&search=id%3D%27none%27").await;
    let line = until_bookmark(stream).await;
    let (_, rest) = line.split_once("\"resource_version\":\"").unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

/// Reads until the bookmark behind the present state; returns the last bytes.
async fn until_bookmark(mut stream: TcpStream) -> String {
    let (mut bytes, mut end) = (vec![0; 65_536], Vec::new());
    while !end.windows(10).any(|window| window == b"\"BOOKMARK\"") || !end.ends_with(b"\n\r\n") {
        let read = stream.read(&mut bytes).await.unwrap();
        assert!(read > 0, "the stream has ended");
        end.extend_from_slice(&bytes[..read]);
        end.drain(..end.len().saturating_sub(512));
    }
    String::from_utf8_lossy(&end).into_owned()
}

/// The times at which so many lines arrive. A line is not parsed: it ends with the end of an object.
async fn arrivals(mut stream: TcpStream, lines: usize) -> (TcpStream, Vec<Instant>) {
    let (mut bytes, mut times, mut last) = (vec![0; 16_384], Vec::with_capacity(lines), 0);
    while times.len() < lines {
        let read = stream.read(&mut bytes).await.unwrap();
        assert!(read > 0, "the stream has ended");
        let now = Instant::now();
        for byte in &bytes[..read] {
            if last == b'}' && *byte == b'\n' {
                times.push(now);
            }
            last = *byte;
        }
    }
    (stream, times)
}
