//! The Pull Secret Job against a real OpenBao: its runs, generations, copies at once, kills, refusals.

use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;
use testkit::environment::{missing, variable};
use testkit::program;
use testkit::rig::pull_secret;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// A folder of its own in the server.
pub(crate) struct Vault {
    address: String,
    pub(crate) folder: String,
    pub(crate) files: TempDir,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) reason: String,
    version: Option<u64>,
    pub(crate) text: String,
}

impl Vault {
    /// `None` after a line that says why there is none.
    pub(crate) fn new() -> Option<Self> {
        let Some(address) = variable("REAL_OPENBAO_ADDR") else {
            return missing("REAL_OPENBAO_ADDR is not set: no OpenBao; `make real-parts` starts one");
        };
        let files = tempfile::tempdir().unwrap();
        // The name of a folder of this machine is no other test's either.
        let unique = files.path().file_name().unwrap().to_string_lossy().trim_matches('.').to_owned();
        Some(Self { address, folder: format!("job-{}-{unique}", std::process::id()), files })
    }

    pub(crate) fn job(&self, name: &str, generation: u64) -> Command {
        let mut job = program::pull_secret(&["run-job", "pull-secret"]);
        job.env("CLUSTER_ID", "cls-123")
            .env("GENERATION", generation.to_string())
            .env("PULL_SECRET_DATA", pull_secret(name))
            .env("SECRET_STORE", "vault")
            .env("VAULT_ADDR", &self.address)
            .env("VAULT_FOLDER", &self.folder)
            .env("VAULT_AUTH", "token")
            .env("VAULT_TOKEN_FILE", variable("REAL_OPENBAO_TOKEN_FILE").unwrap())
            .env("RESULTS_PATH", self.result(name, generation));
        job
    }

    fn result(&self, name: &str, generation: u64) -> PathBuf {
        self.files.path().join(format!("{name}-{generation}.json"))
    }

    async fn run(&self, name: &str, generation: u64) -> Run {
        self.finish(self.job(name, generation).spawn().unwrap(), name, generation).await
    }

    pub(crate) async fn finish(&self, job: Child, name: &str, generation: u64) -> Run {
        let Output { status, stdout, stderr } = job.wait_with_output().await.unwrap();
        let result = std::fs::read(self.result(name, generation)).unwrap_or_default();
        let text = [stdout, stderr, result.clone()].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        let result: Value = serde_json::from_slice(&result).unwrap_or_default();
        let reason = result["reason"].as_str().unwrap_or_default().to_owned();
        Run { code: status.code(), reason, version: result["details"]["secretVersion"].as_u64(), text }
    }

    /// The answer of OpenBao's own command line, as JSON.
    async fn bao(&self, subcommand: &[&str]) -> Value {
        let path = format!("{}/hyperfleet-cls-123-pull-secret", self.folder);
        let mut command = Command::new(variable("REAL_OPENBAO_CLI").unwrap());
        let output = command.arg("kv").args(subcommand).args(["-format=json", "-mount=secret", &path]).output().await;
        serde_json::from_slice(&output.unwrap().stdout).unwrap_or_default()
    }

    /// The stored pull secret, as a reader of the newest version gets it.
    async fn stored(&self) -> Option<String> {
        self.bao(&["get"]).await["data"]["data"]["pull-secret"].as_str().map(str::to_owned)
    }

    /// The numbers of the readable versions.
    async fn live(&self) -> Vec<u64> {
        let metadata = self.bao(&["metadata", "get"]).await;
        let versions = metadata["data"]["versions"].as_object().unwrap().iter();
        let live = versions.filter(|(_, version)| version["destroyed"] == false);
        let mut live: Vec<u64> = live.map(|(number, _)| number.parse().unwrap()).collect();
        live.sort_unstable();
        live
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_secret_lives_in_openbao() {
    let Some(vault) = Vault::new() else { return };
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
        let run = vault.run(name, generation).await;
        assert_eq!((run.code, run.reason.as_str(), run.version), (Some(0), reason, version), "{}", run.text);
        assert_eq!(vault.live().await, live, "after {name} of generation {generation}");
        if reason != "Superseded" {
            assert_eq!(vault.stored().await, Some(pull_secret(name)));
        }
    }
    for (generation, reason) in [(4, "Superseded"), (5, "SecretDeleted"), (5, "SecretAbsent")] {
        let job = vault.job("d", generation).arg("--delete").spawn().unwrap();
        let run = vault.finish(job, "d", generation).await;
        assert_eq!((run.code, run.reason.as_str()), (Some(0), reason), "{}", run.text);
    }
    assert_eq!(vault.stored().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_generations_at_once_the_newer_one_stays() {
    let Some(vault) = Vault::new() else { return };
    for round in 1..=10 {
        let (older, newer) = (2 * round, 2 * round + 1);
        let names = [format!("older-{round}"), format!("newer-{round}")];
        let jobs = [(&names[0], older), (&names[1], newer)];
        let started = jobs.map(|(name, generation)| vault.job(name, generation).spawn().unwrap());
        let [first, second] = started;
        let (first, second) =
            tokio::join!(vault.finish(first, jobs[0].0, jobs[0].1), vault.finish(second, jobs[1].0, jobs[1].1));
        assert_eq!((first.code, second.code), (Some(0), Some(0)), "{}\n{}", first.text, second.text);
        assert_eq!(second.reason, "SecretStored", "{}", second.text);
        assert_eq!(vault.stored().await, Some(pull_secret(&names[1])), "{}\n{}", first.text, second.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_killed_anywhere_is_completed_by_the_next() {
    let Some(vault) = Vault::new() else { return };
    // Killed after each of the lines that it logs, as one follows each call that changes something.
    for round in 1..=14_u64 {
        let name = format!("round-{round}");
        let mut job = vault.job(&name, round).spawn().unwrap();
        let mut lines = BufReader::new(job.stdout.take().unwrap()).lines();
        for _ in 0..round {
            let _ended = lines.next_line().await.unwrap();
        }
        job.kill().await.unwrap();
        let run = vault.run(&name, round).await;
        assert_eq!(run.code, Some(0), "{}", run.text);
        assert_eq!(vault.stored().await, Some(pull_secret(&name)), "{}", run.text);
        assert!(vault.live().await.len() <= 3, "{:?} after {}", vault.live().await, run.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_run_may_not_do_is_named_and_no_secret_is_shown() {
    let Some(vault) = Vault::new() else { return };
    let token_file = vault.files.path().join("token");
    daemon::file::replace(&token_file, b"s.0123456789abcdefghij").unwrap();
    let job = vault.job("a", 1).env("VAULT_TOKEN_FILE", &token_file).env("LOG_LEVEL", "debug").spawn().unwrap();
    let run = vault.finish(job, "a", 1).await;
    assert_eq!((run.code, run.reason.as_str()), (Some(4), "Unauthenticated"), "{}", run.text);
    let stored = vault.job("a", 1).env("LOG_LEVEL", "debug").spawn().unwrap();
    let stored = vault.finish(stored, "a", 1).await;
    let root = std::fs::read_to_string(variable("REAL_OPENBAO_TOKEN_FILE").unwrap()).unwrap();
    let document: Value = serde_json::from_str(&pull_secret("a")).unwrap();
    let credential = document["auths"]["quay.io"]["auth"].as_str().unwrap();
    for text in [&run.text, &stored.text] {
        assert!(!text.contains("0123456789abcdefghij") && !text.contains(root.trim()) && !text.contains(credential));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_another_owner_is_left_alone() {
    let Some(vault) = Vault::new() else { return };
    let path = format!("{}/hyperfleet-cls-123-pull-secret", vault.folder);
    let mut command = Command::new(variable("REAL_OPENBAO_CLI").unwrap());
    let put = command.args(["kv", "put", "-mount=secret", &path, "theirs=1"]).output().await.unwrap();
    assert!(put.status.success(), "{put:?}");
    let run = vault.run("a", 1).await;
    assert_eq!((run.code, run.reason.as_str()), (Some(5), "NameConflict"), "{}", run.text);
    assert_eq!(vault.live().await, [1]);
    let job = vault.job("a", 1).arg("--delete").spawn().unwrap();
    let run = vault.finish(job, "a", 1).await;
    assert_eq!((run.code, run.reason.as_str()), (Some(0), "UnmanagedSecretKept"), "{}", run.text);
    assert_eq!(vault.live().await, [1]);
}
