//! The Pull Secret Job at AWS, for which moto stands in: its runs, generations, copies at once, kills, refusals, identities.

use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use secret_store::{
    AwsIdentity, AwsKeys, AwsSettings, AwsStore, SecretId, SecretStore as _, Version, VersionNumber, VersionState,
    VersionSummary,
};
use serde_json::Value;
use tempfile::TempDir;
use testkit::environment::{missing, variable};
use testkit::program;
use testkit::rig::pull_secret;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

pub(crate) const KEY_ID: &str = "AKIAIOSFODNN7EXAMPLE";
pub(crate) const SECRET_KEY: &str = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY";

/// A folder of its own in the server.
struct Aws {
    address: String,
    store: AwsStore,
    folder: String,
    files: TempDir,
}

/// The result of a run.
#[derive(Debug)]
struct Run {
    code: Option<i32>,
    reason: String,
    version: Option<u64>,
    text: String,
}

fn secret() -> SecretId {
    "hyperfleet-cls-123-pull-secret".parse().unwrap()
}

impl Aws {
    /// `None` after a line that says why there is none.
    async fn new() -> Option<Self> {
        let Some(address) = variable("REAL_MOTO_ADDR") else {
            return missing("REAL_MOTO_ADDR is not set: no AWS; `make real-parts` starts a stand-in");
        };
        let files = tempfile::tempdir().unwrap();
        // The name of a folder of this machine is no other test's either.
        let unique = files.path().file_name().unwrap().to_string_lossy().trim_matches('.').to_owned();
        let folder = format!("job-{}-{unique}", std::process::id());
        let settings = AwsSettings {
            region: "eu-central-1".parse().unwrap(),
            endpoint: Some(address.parse().unwrap()),
            folder: folder.parse().unwrap(),
            identity: AwsIdentity::Keys(AwsKeys { id: KEY_ID.to_owned(), secret: SECRET_KEY.into() }),
            recovery_days: None,
            call_timeout: Duration::from_mins(1),
            calls: None,
        };
        let store = AwsStore::connect(&settings).await.unwrap();
        Some(Self { address, store, folder, files })
    }

    /// A run without an identity.
    fn job_without_identity(&self, name: &str, generation: u64) -> Command {
        let mut job = program::pull_secret(&["run-job", "pull-secret"]);
        job.env("CLUSTER_ID", "cls-123")
            .env("GENERATION", generation.to_string())
            .env("PULL_SECRET_DATA", pull_secret(name))
            .env("SECRET_STORE", "aws")
            .env("AWS_REGION", "eu-central-1")
            .env("AWS_FOLDER", &self.folder)
            .env("AWS_ENDPOINT_URL_SECRETS_MANAGER", &self.address)
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("LOG_LEVEL", "debug")
            .env("RESULTS_PATH", self.result(name, generation));
        job
    }

    fn job(&self, name: &str, generation: u64) -> Command {
        let mut job = self.job_without_identity(name, generation);
        job.env("AWS_ACCESS_KEY_ID", KEY_ID).env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
        job
    }

    fn result(&self, name: &str, generation: u64) -> PathBuf {
        self.files.path().join(format!("{name}-{generation}.json"))
    }

    async fn run(&self, name: &str, generation: u64) -> Run {
        self.finish(self.job(name, generation).spawn().unwrap(), name, generation).await
    }

    /// No run shows the pull secret or the key.
    async fn finish(&self, job: Child, name: &str, generation: u64) -> Run {
        let Output { status, stdout, stderr } = job.wait_with_output().await.unwrap();
        let result = std::fs::read(self.result(name, generation)).unwrap_or_default();
        let text = [stdout, stderr, result.clone()].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        let document: Value = serde_json::from_str(&pull_secret(name)).unwrap();
        let credential = document["auths"]["quay.io"]["auth"].as_str().unwrap();
        assert!(!text.contains(credential) && !text.contains(SECRET_KEY), "{text}");
        let result: Value = serde_json::from_slice(&result).unwrap_or_default();
        let reason = result["reason"].as_str().unwrap_or_default().to_owned();
        Run { code: status.code(), reason, version: result["details"]["secretVersion"].as_u64(), text }
    }

    /// The stored pull secret, as a reader gets it: an older run that lost may have put a version aside above the current one.
    async fn stored(&self) -> Option<String> {
        self.store.newest_version(&secret()).await.unwrap()?;
        let current = VersionNumber::new(*self.live().await.last()?)?;
        match self.store.read_version(&secret(), current).await.unwrap() {
            Version::Live(live) => Some(String::from_utf8(live.content.expose_secret().to_vec()).unwrap()),
            _ => None,
        }
    }

    /// The numbers of the readable versions.
    async fn live(&self) -> Vec<u64> {
        let versions = self.store.list_versions(&secret()).await.unwrap();
        let is_live = |version: &&VersionSummary| version.state == VersionState::Live;
        let mut live: Vec<_> = versions.iter().filter(is_live).map(|version| version.number.get()).collect();
        live.sort_unstable();
        live
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_secret_lives_in_aws() {
    let Some(aws) = Aws::new().await else { return };
    let steps = [
        ("a", 1, "SecretStored", Some(1), &[1][..]),
        ("a", 1, "SecretUnchanged", Some(1), &[1]),
        ("b", 2, "SecretStored", Some(2), &[1, 2]),
        ("c", 1, "Superseded", None, &[1, 2]),
        // The newer generation is recorded, and the older copy of the same content goes.
        ("b", 3, "SecretStored", Some(3), &[1, 3]),
        ("c", 4, "SecretStored", Some(4), &[1, 3, 4]),
        ("d", 5, "SecretStored", Some(5), &[3, 4, 5]),
    ];
    for (name, generation, reason, version, live) in steps {
        let run = aws.run(name, generation).await;
        assert_eq!((run.code, run.reason.as_str(), run.version), (Some(0), reason, version), "{}", run.text);
        assert_eq!(aws.live().await, live, "after {name} of generation {generation}");
        if reason != "Superseded" {
            assert_eq!(aws.stored().await, Some(pull_secret(name)));
        }
    }
    for (generation, reason) in [(4, "Superseded"), (5, "SecretDeleted"), (5, "SecretAbsent")] {
        let job = aws.job("d", generation).arg("--delete").spawn().unwrap();
        let run = aws.finish(job, "d", generation).await;
        assert_eq!((run.code, run.reason.as_str()), (Some(0), reason), "{}", run.text);
    }
    assert_eq!(aws.stored().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_generations_at_once_the_newer_one_stays() {
    let Some(aws) = Aws::new().await else { return };
    for round in 1..=8 {
        let (older, newer) = (2 * round, 2 * round + 1);
        let names = [format!("older-{round}"), format!("newer-{round}")];
        let jobs = [(&names[0], older), (&names[1], newer)];
        let [first, second] = jobs.map(|(name, generation)| aws.job(name, generation).spawn().unwrap());
        let (first, second) =
            tokio::join!(aws.finish(first, jobs[0].0, jobs[0].1), aws.finish(second, jobs[1].0, jobs[1].1));
        assert_eq!((first.code, second.code), (Some(0), Some(0)), "{}\n{}", first.text, second.text);
        assert_eq!(second.reason, "SecretStored", "{}", second.text);
        assert_eq!(aws.stored().await, Some(pull_secret(&names[1])), "{}\n{}", first.text, second.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_killed_anywhere_is_completed_by_the_next() {
    let Some(aws) = Aws::new().await else { return };
    // Killed after each of the lines that it logs, as one follows each call that changes something.
    for round in 1..=14_u64 {
        let name = format!("round-{round}");
        let mut job = aws.job(&name, round).spawn().unwrap();
        let mut lines = BufReader::new(job.stdout.take().unwrap()).lines();
        for _ in 0..round {
            let _ended = lines.next_line().await.unwrap();
        }
        job.kill().await.unwrap();
        let run = aws.run(&name, round).await;
        assert_eq!(run.code, Some(0), "{}", run.text);
        assert_eq!(aws.stored().await, Some(pull_secret(&name)), "{}", run.text);
        assert!(aws.live().await.len() <= 3, "{:?} after {}", aws.live().await, run.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_secret_is_named_as_such_until_it_is_restored_or_gone() {
    let Some(aws) = Aws::new().await else { return };
    assert_eq!(aws.run("a", 1).await.code, Some(0));
    let job = aws.job("a", 1).arg("--delete").env("AWS_RECOVERY_WINDOW_DAYS", "7").spawn().unwrap();
    let run = aws.finish(job, "a", 1).await;
    assert_eq!((run.code, run.reason.as_str()), (Some(0), "SecretDeleted"), "{}", run.text);
    let job = aws.job("a", 1).arg("--delete").env("AWS_RECOVERY_WINDOW_DAYS", "7").spawn().unwrap();
    let run = aws.finish(job, "a", 1).await;
    assert_eq!((run.code, run.reason.as_str()), (Some(0), "SecretAbsent"), "{}", run.text);
}

/// As in a Pod: a projected token is exchanged for keys that expire.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_identifies_itself_by_a_projected_token() {
    const TOKEN: &str = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJqb2IifQ.c2lnbmF0dXJlLW9mLWEtdG9rZW4";
    let Some(aws) = Aws::new().await else { return };
    let token_file = aws.files.path().join("token");
    daemon::file::replace(&token_file, TOKEN.as_bytes()).unwrap();
    let mut job = aws.job_without_identity("a", 1);
    job.env("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/pull-secret-job")
        .env("AWS_WEB_IDENTITY_TOKEN_FILE", &token_file)
        .env("AWS_ENDPOINT_URL_STS", &aws.address);
    let run = aws.finish(job.spawn().unwrap(), "a", 1).await;
    assert_eq!((run.code, run.reason.as_str()), (Some(0), "SecretStored"), "{}", run.text);
    assert!(run.text.contains("\"awsRegion\":\"eu-central-1\"") && !run.text.contains(TOKEN), "{}", run.text);
    std::fs::remove_file(&token_file).unwrap();
    let run = aws.finish(job.spawn().unwrap(), "a", 1).await;
    assert_eq!((run.code, run.reason.as_str()), (Some(4), "Unauthenticated"), "{}", run.text);
}

/// A token service gets the token of the workload.
#[tokio::test(flavor = "multi_thread")]
async fn no_token_is_sent_over_plain_http_to_another_machine() {
    let Some(aws) = Aws::new().await else { return };
    for name in ["AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"] {
        let job = aws.job("a", 1).env(name, "http://192.0.2.1:4566").spawn().unwrap();
        let run = aws.finish(job, "a", 1).await;
        let expected = format!("the environment's {name} is neither https nor of this machine");
        assert!(run.code == Some(2) && run.text.contains(&expected), "{}", run.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_an_identity_says_so() {
    let Some(aws) = Aws::new().await else { return };
    let run = aws.finish(aws.job_without_identity("a", 1).spawn().unwrap(), "a", 1).await;
    assert_eq!((run.code, run.reason.as_str()), (Some(4), "Unauthenticated"), "{}", run.text);
    assert!(run.text.contains("the environment has no credentials"), "{}", run.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_says_which_permissions_it_could_not_check() {
    let Some(aws) = Aws::new().await else { return };
    assert_eq!(aws.run("a", 1).await.code, Some(0));
    let run = aws.finish(aws.job("b", 2).arg("--dry-run").spawn().unwrap(), "b", 2).await;
    assert_eq!((run.code, run.reason.as_str()), (Some(0), "DryRunPassed"), "{}", run.text);
    assert!(
        run.text.contains("Permission secretsmanager:PutSecretValue: not checkable without writing"),
        "{}",
        run.text
    );
    assert_eq!(aws.live().await, [1]);
}
