//! Cost of one run of the Job: calls, writes, time and memory, compared with the sequence of calls of the MVP.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails where it cannot measure")]

use std::process::Stdio;
use std::time::Duration;

use emulators::secret_manager::{SecretManager, Settings};
use secrecy::SecretSlice;
use secret_store::{
    Endpoint, GoogleSecretManager, NewSecret, NewVersion, Replication, SecretId, SecretStore, VersionNumber,
};
use tokio::process::Command;
use tokio::time::Instant;

const ROUNDS: u32 = 20;
const WRITES: [&str; 4] = ["createSecret", "updateSecret", "addVersion", "destroyVersion"];
/// The MVP's manual says less than 50 MB.
const MVP_KIB: f64 = 50.0 * 1024.0;

/// The cost of a run.
struct Cost {
    calls: usize,
    writes: usize,
    time: Duration,
}

#[tokio::main]
async fn main() {
    println!(
        "{:<10}  {:>5}  {:>6}  {:>9}  MVP's sequence, one process: calls, writes, time; ratio of times",
        "run", "calls", "writes", "time"
    );
    for (name, before, content) in [("first", None, "a"), ("unchanged", Some("a"), "a"), ("changed", Some("a"), "b")] {
        let job = average(ROUNDS, async || job_cost(before, content).await).await;
        let mvp = average(ROUNDS, async || mvp_cost(before, content).await).await;
        println!(
            "{name:<10}  {:>5}  {:>6}  {:>6.1} ms  {}, {}, {:.1} ms; {:.1}",
            job.calls,
            job.writes,
            job.time.as_secs_f64() * 1e3,
            mvp.calls,
            mvp.writes,
            mvp.time.as_secs_f64() * 1e3,
            job.time.as_secs_f64() / mvp.time.as_secs_f64(),
        );
    }
    let kib = peak_memory().await;
    println!("peak memory of a first run: {kib} KiB, {:.2} of the MVP's published 50 MB", f64::from(kib) / MVP_KIB);
}

fn pull_secret(name: &str) -> String {
    // user:word-a and user:word-b
    let auth = if name == "a" { "dXNlcjp3b3JkLWE=" } else { "dXNlcjp3b3JkLWI=" };
    format!(r#"{{"auths":{{"quay.io":{{"auth":"{auth}"}}}}}}"#)
}

fn job(emulator: &SecretManager, content: &str) -> Command {
    let mut job = Command::new(testkit::program::path("pull-secret"));
    job.args(["run-job", "pull-secret", "--cluster-id=cls-1", "--gcp-project-id=my-project-1"])
        .env_clear()
        .env("PULL_SECRET_DATA", pull_secret(content))
        .env("SECRET_MANAGER_EMULATOR_HOST", emulator.address().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    job
}

async fn start() -> SecretManager {
    SecretManager::start(Settings::default()).await.unwrap()
}

/// A process, from its start to its end.
async fn job_cost(before: Option<&str>, content: &str) -> Cost {
    let emulator = start().await;
    if let Some(before) = before {
        assert!(job(&emulator, before).status().await.is_ok_and(|status| status.success()));
    }
    let calls = emulator.calls().len();
    let begin = Instant::now();
    assert!(job(&emulator, content).status().await.is_ok_and(|status| status.success()));
    cost(&emulator, calls, begin.elapsed())
}

/// The MVP's calls with the same client library, without a process of their own.
async fn mvp_cost(before: Option<&str>, content: &str) -> Cost {
    let emulator = start().await;
    let mut number = VersionNumber::FIRST;
    if let Some(before) = before {
        mvp_run(&emulator, before, number).await;
        number = number.next();
    }
    let calls = emulator.calls().len();
    let begin = Instant::now();
    mvp_run(&emulator, content, number).await;
    cost(&emulator, calls, begin.elapsed())
}

/// Look, create if absent, always add, read the latest.
async fn mvp_run(emulator: &SecretManager, content: &str, latest: VersionNumber) {
    let store = GoogleSecretManager::connect(&secret_store::Settings {
        project: "my-project-1".parse().unwrap(),
        location: None,
        endpoint: Endpoint::emulator(emulator.address().to_string()),
        call_timeout: Duration::from_secs(5),
        calls: None,
    })
    .await
    .unwrap();
    let secret: SecretId = "mvp".parse().unwrap();
    if store.find(&secret).await.unwrap().is_none() {
        let replication = Replication::Automatic { kms_key: None };
        let new = NewSecret { labels: [].into(), annotations: [].into(), replication };
        store.create(&secret, &new).await.unwrap();
    }
    let content = SecretSlice::from(pull_secret(content).into_bytes());
    store.add_version(&secret, &NewVersion::without_record(VersionNumber::FIRST, &content)).await.unwrap();
    drop(store.read_version(&secret, latest).await.unwrap());
}

fn cost(emulator: &SecretManager, before: usize, time: Duration) -> Cost {
    let calls = emulator.calls();
    let made = || calls.iter().skip(before);
    let writes = made().filter(|call| WRITES.contains(&call.method.name())).count();
    Cost { calls: made().count(), writes, time }
}

async fn average(rounds: u32, mut run: impl AsyncFnMut() -> Cost) -> Cost {
    let mut total = run().await;
    for _ in 1..rounds {
        total.time += run().await.time;
    }
    Cost { time: total.time / rounds, ..total }
}

/// The most memory that a first run has held when it waits for its last answer.
async fn peak_memory() -> u32 {
    let emulator = start().await;
    emulator.inject("accessVersion:hang".parse().unwrap());
    let mut job = job(&emulator, "a").spawn().unwrap();
    emulator.wait_for_calls(4).await;
    let path = format!("/proc/{}/status", job.id().unwrap_or_default());
    let status = std::fs::read_to_string(path).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    drop(job.kill().await);
    peak.and_then(|kib| kib.trim().parse().ok()).unwrap_or_default()
}
