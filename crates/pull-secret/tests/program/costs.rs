//! The requests that each run sends to its store, counted on the way there: they are those of `docs/reference/stores.md`.

use std::sync::{Arc, Mutex};

use emulators::key_vault::{KeyVault, Operation, Settings as KeyVaultSettings};
use testkit::environment::{missing, variable};
use testkit::rig::{Rig, STORE_WRITES, calls, pull_secret};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

use crate::stores::at_key_vault;

const PAGE: &str = include_str!("../../../../docs/reference/stores.md");

/// Name and generation of the content of each run. The last one destroys the oldest version.
const RUNS: [(&str, u64); 5] = [("a", 1), ("a", 1), ("b", 2), ("c", 3), ("d", 4)];

/// The requests of a run.
#[derive(Clone, Copy, Default)]
struct Requests {
    all: usize,
    /// Number of those that wait: the same as the one before. It depends on the time, and is not on the page.
    repeated: usize,
    writes: usize,
}

/// Forwards connections to an address, and keeps what is sent there.
struct Proxy {
    address: String,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Proxy {
    async fn start(target: &str) -> Self {
        let target = target.strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let sent = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let kept = Arc::clone(&sent);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&target).await.unwrap();
                let index = {
                    let mut kept = kept.lock().unwrap();
                    kept.push(Vec::new());
                    kept.len() - 1
                };
                tokio::spawn(forward(client, server, index, Arc::clone(&kept)));
            }
        });
        Self { address, sent }
    }

    /// Takes the heads of the requests so far.
    fn take(&self) -> Vec<String> {
        let sent = std::mem::take(&mut *self.sent.lock().unwrap());
        sent.iter().flat_map(|bytes| heads(bytes)).collect()
    }
}

async fn forward(client: TcpStream, server: TcpStream, index: usize, kept: Arc<Mutex<Vec<Vec<u8>>>>) {
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let requests = async {
        let mut buffer = vec![0; 65_536];
        while let Ok(length @ 1..) = from_client.read(&mut buffer).await {
            kept.lock().unwrap()[index].extend_from_slice(&buffer[..length]);
            if to_server.write_all(&buffer[..length]).await.is_err() {
                break;
            }
        }
        drop(to_server.shutdown().await);
    };
    tokio::join!(requests, async { drop(tokio::io::copy(&mut from_server, &mut to_client).await) });
}

/// The heads of the requests that follow each other on one connection, in lower case.
fn heads(mut bytes: &[u8]) -> Vec<String> {
    let mut heads = Vec::new();
    while let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        assert!(!head.contains("transfer-encoding"), "{head}");
        let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
        bytes = &bytes[end + 4 + length..];
        heads.push(head);
    }
    heads
}

/// Runs the Job for each of [`RUNS`], then its deletion, and compares its requests with the page.
async fn assert_costs(store: &str, job: impl Fn(&str, u64) -> Command, take: impl Fn() -> Requests) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result.json");
    let deletion = ("d", 4);
    let mut costs = Vec::new();
    for (number, (name, generation)) in RUNS.into_iter().chain([deletion]).enumerate() {
        let mut job = job(name, generation);
        job.env("RESULTS_PATH", &path);
        if number == RUNS.len() {
            job.arg("--delete");
        }
        let output = job.output().await.unwrap();
        assert!(output.status.success(), "{output:?}");
        let mut result = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        // Azure answers the first request of a client with the place to log in at.
        let is_login = |call: &&String| call.ends_with(" 401");
        let calls = calls(&mut result, "apiCalls");
        let listed: usize = calls.iter().filter(|call| !is_login(call)).map(|call| count(call)).sum();
        let requests = take();
        assert_eq!(listed, requests.all, "the result of {name} counts all requests: {result}");
        costs.push(format!("{} ({})", requests.all - requests.repeated, requests.writes));
    }
    // The third version is added as the second was.
    assert_eq!(costs.remove(3), costs[2]);
    let row = format!("| {store} | {} |", costs.join(" | "));
    assert!(PAGE.contains(&row), "docs/reference/stores.md must have the row\n{row}");
}

fn count(call: &str) -> usize {
    call.split(' ').next().unwrap().parse().unwrap()
}

/// Returns a Job of the cluster.
fn job(name: &str, generation: u64) -> Command {
    let mut job = testkit::program::pull_secret(&["run-job", "pull-secret"]);
    job.env("CLUSTER_ID", "cls-123")
        .env("GENERATION", generation.to_string())
        .env("PULL_SECRET_DATA", pull_secret(name));
    job
}

/// A name of this test run alone.
fn unique() -> String {
    format!("costs-{}", std::process::id())
}

#[tokio::test(flavor = "multi_thread")]
async fn at_google() {
    let rig = Rig::new().await;
    let seen = Mutex::new(0);
    let take = || {
        let mut seen = seen.lock().unwrap();
        let methods = rig.methods_since(*seen);
        *seen += methods.len();
        let writes = methods.iter().filter(|method| STORE_WRITES.contains(method)).count();
        Requests { all: methods.len(), repeated: 0, writes }
    };
    let job = |name: &str, generation: u64| {
        let mut job = rig.job(&pull_secret(name));
        job.env("GENERATION", generation.to_string());
        job
    };
    assert_costs("Google Secret Manager", job, take).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_openbao() {
    let Some(address) = variable("REAL_OPENBAO_ADDR") else {
        return missing("REAL_OPENBAO_ADDR is not set: no OpenBao; `make real-parts` starts one").unwrap_or_default();
    };
    let proxy = Proxy::start(&address).await;
    let token = variable("REAL_OPENBAO_TOKEN_FILE").unwrap();
    let job = |name: &str, generation: u64| {
        let mut job = job(name, generation);
        job.env("SECRET_STORE", "vault").env("VAULT_ADDR", &proxy.address).env("VAULT_FOLDER", unique());
        job.env("VAULT_AUTH", "token").env("VAULT_TOKEN_FILE", &token);
        job
    };
    let take = || {
        let heads = proxy.take();
        let is_write = |head: &&String| !head.starts_with("get ") && !head.starts_with("list ");
        Requests { all: heads.len(), repeated: 0, writes: heads.iter().filter(is_write).count() }
    };
    assert_costs("OpenBao, Vault", job, take).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_aws() {
    let Some(address) = variable("REAL_MOTO_ADDR") else {
        return missing("REAL_MOTO_ADDR is not set: no AWS; `make real-parts` starts a stand-in").unwrap_or_default();
    };
    let proxy = Proxy::start(&address).await;
    let job = |name: &str, generation: u64| {
        let mut job = job(name, generation);
        job.env("SECRET_STORE", "aws").env("AWS_REGION", "eu-central-1").env("AWS_FOLDER", unique());
        job.env("AWS_ENDPOINT_URL_SECRETS_MANAGER", &proxy.address).env("AWS_EC2_METADATA_DISABLED", "true");
        job.env("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE");
        job.env("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY");
        job
    };
    let take = || {
        let heads = proxy.take();
        let reads = ["describesecret", "getsecretvalue", "listsecretversionids", "listsecrets"];
        let is_read = |head: &str| reads.iter().any(|read| head.contains(&format!("secretsmanager.{read}\r\n")));
        Requests { all: heads.len(), repeated: 0, writes: heads.iter().filter(|head| !is_read(head)).count() }
    };
    assert_costs("AWS Secrets Manager", job, take).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_azure() {
    let (server, files) = (KeyVault::start(KeyVaultSettings::default()).await.unwrap(), tempfile::tempdir().unwrap());
    let variables = at_key_vault(&server, files.path());
    let job = |name: &str, generation: u64| {
        let mut job = job(name, generation);
        job.env("SECRET_STORE", "azure").envs(&variables);
        job
    };
    let seen = Mutex::new(0);
    let take = || {
        let mut seen = seen.lock().unwrap();
        let calls = server.calls();
        let operations = calls[*seen..].iter().map(|call| call.operation).filter(|it| *it != Operation::RequestToken);
        let operations: Vec<_> = operations.collect();
        *seen = calls.len();
        let is_repeated = |pair: &&[Operation]| pair[0] == pair[1] && is_read(pair[0]);
        Requests {
            all: operations.len(),
            repeated: operations.windows(2).filter(is_repeated).count(),
            writes: operations.iter().filter(|operation| !is_read(**operation)).count(),
        }
    };
    assert_costs("Azure Key Vault", job, take).await;
}

fn is_read(operation: Operation) -> bool {
    use Operation::{GetDeletedSecret, GetDeletedSecrets, GetSecret, GetSecretVersions, GetSecrets};
    matches!(operation, GetSecret | GetSecrets | GetSecretVersions | GetDeletedSecret | GetDeletedSecrets)
}
