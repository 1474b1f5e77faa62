//! Law 5: whatever happens, no credential and no piece of one is told.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emulators::secret_manager::Settings;
use tokio::io::AsyncWriteExt as _;

use crate::rig::{Outcome, Rig};

pub(crate) const PASSWORD: &str = "Zq7wordThatMustNotShow";
const TOKEN: &str = "tok3nThatMustNotShow";
const KEY: &[u8] = b"k3yThatMustNotShow-32-bytes-long";

/// Everything that would be a leak, in the forms in which it could slip out.
fn marks() -> Vec<String> {
    let auth = STANDARD.encode(format!("user:{PASSWORD}"));
    let marks = [
        PASSWORD.to_owned(),
        TOKEN.to_owned(),
        String::from_utf8_lossy(KEY).into_owned(),
        STANDARD.encode(PASSWORD),
        auth.clone(),
        auth.trim_end_matches('=').to_owned(),
        STANDARD.encode(&auth),
    ];
    marks.into()
}

pub(crate) fn check(what: &str, text: &str) {
    for mark in marks() {
        for piece in [&mark[..], &mark[4..16]] {
            assert!(!text.contains(piece), "{what} tells a credential: {text}");
        }
    }
}

fn documents() -> Vec<(&'static str, String)> {
    let auth = STANDARD.encode(format!("user:{PASSWORD}"));
    vec![
        ("valid", format!(r#"{{"auths":{{"quay.io":{{"auth":"{auth}"}}}}}}"#)),
        ("user and password", format!(r#"{{"auths":{{"quay.io":{{"username":"user","password":"{PASSWORD}"}}}}}}"#)),
        ("a token", format!(r#"{{"auths":{{"quay.io":{{"auth":"{auth}","identitytoken":"{TOKEN}"}}}}}}"#)),
        ("not base64", format!(r#"{{"auths":{{"quay.io":{{"auth":"{PASSWORD}"}}}}}}"#)),
        ("a wrong type", format!(r#"{{"auths":{{"quay.io":"{auth}"}}}}"#)),
        ("a number", format!(r#"{{"auths":{{"quay.io":{{"auth":["{PASSWORD}"]}}}}}}"#)),
        ("as a key", format!(r#"{{"auths":{{"https://user:{PASSWORD}@quay.io":{{"auth":"{auth}"}}}}}}"#)),
        ("cut off", format!(r#"{{"auths":{{"quay.io":{{"auth":"{auth}"#)),
        ("no JSON", PASSWORD.to_owned()),
        ("bare entries", format!(r#"{{"quay.io":{{"auth":"{auth}"}}}}"#)),
        ("encoded", STANDARD.encode(format!(r#"{{"auths":{{"quay.io":{{"auth":"{auth}"}}}}}}"#))),
        ("twice", format!(r#"{{"auths":{{"quay.io":{{"auth":"{auth}","auth":"{auth}"}}}}}}"#)),
    ]
}

fn check_outcome(what: &str, outcome: &Outcome) {
    check(what, &outcome.stdout);
    check(what, &outcome.stderr);
    check(what, &outcome.result.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_job_tells_no_credential_however_it_ends() {
    let faults =
        ["none:none", "createSecret:commit-then-timeout", "addVersion:permission-denied", "accessVersion:internal*0"];
    for (name, document) in documents() {
        for fault in faults {
            let faults = fault.parse().into_iter().collect();
            let rig = Rig::with(Settings { faults, ..Settings::default() }).await;
            let key = rig.path("key");
            daemon::file::replace(&key, KEY).unwrap();
            let termination_log = rig.path("termination-log");
            daemon::file::replace(&termination_log, b"").unwrap();
            let mut job = rig.job(&document);
            job.env("LOG_LEVEL", "debug")
                .env("DIGEST_KEY_FILE", &key)
                .env("RUN_TIMEOUT", "3s")
                .env("RUST_BACKTRACE", "1")
                .env("RUST_LOG", "trace")
                .env("TERMINATION_LOG_PATH", &termination_log);
            for flags in [vec![], vec!["--dry-run"], vec!["--delete"]] {
                let outcome = rig.run(job.args(flags)).await;
                check_outcome(&format!("{name}, {fault}"), &outcome);
                check(name, &std::fs::read_to_string(&termination_log).unwrap());
            }
            check(name, &format!("{:?}", rig.emulator.calls()));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_document_of_others_is_not_told_either() {
    use secrecy::SecretSlice;
    use secret_store::SecretStore as _;
    let rig = Rig::new().await;
    rig.foreign(&[("managed-by", "hyperfleet"), ("cluster-id", "cls-123")]).await;
    let content = SecretSlice::from(format!("not a document: {PASSWORD}").into_bytes());
    rig.store.add_version(&crate::rig::secret(), &content).await.unwrap();
    let outcome = rig.run(rig.job(&documents()[0].1).env("LOG_LEVEL", "debug")).await;
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    check_outcome("a stored document", &outcome);
}

#[tokio::test(flavor = "multi_thread")]
async fn validate_tells_no_credential() {
    for (name, document) in documents() {
        for output in ["table", "json"] {
            let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_pull-secret"));
            command.args(["validate", "-", "--output", output]).env_clear();
            command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
            let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(document.as_bytes()).await.unwrap();
            let told = child.wait_with_output().await.unwrap();
            check(name, &String::from_utf8_lossy(&told.stdout));
            check(name, &String::from_utf8_lossy(&told.stderr));
        }
    }
}

/// The likeliest mistake: the document, or a key, where a path or a name belongs.
#[tokio::test(flavor = "multi_thread")]
async fn a_credential_in_the_wrong_place_is_not_told() {
    let rig = Rig::new().await;
    let key = String::from_utf8_lossy(KEY).into_owned();
    for (name, document) in documents() {
        for variable in
            ["PULL_SECRET_FILE", "DIGEST_KEY_FILE", "SECRET_LABELS", "CLUSTER_NAME", "RESULTS_PATH", "GENERATION"]
        {
            for value in [&document, &STANDARD.encode(&document), &format!("team={document}"), &key] {
                let mut job = rig.job("");
                job.env(variable, value);
                if variable != "PULL_SECRET_FILE" {
                    job.env("PULL_SECRET_DATA", &documents()[0].1);
                }
                let outcome = rig.run(job.arg("--dry-run")).await;
                if (variable, outcome.code) != ("SECRET_LABELS", Some(0))
                    && (variable, outcome.code) != ("CLUSTER_NAME", Some(0))
                {
                    check_outcome(&format!("{name} as {variable}"), &outcome);
                }
            }
        }
        for arguments in [vec!["validate", &document], vec!["run-job", "pull-secret", &document], vec![&document]] {
            let told =
                tokio::process::Command::new(env!("CARGO_BIN_EXE_pull-secret")).args(arguments).output().await.unwrap();
            check(name, &String::from_utf8_lossy(&told.stdout));
            check(name, &String::from_utf8_lossy(&told.stderr));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_credentials_file_holds_is_not_told() {
    let rig = Rig::new().await;
    let file = rig.path("credentials.json");
    for content in [
        format!(r#"{{"type":"{TOKEN}"}}"#),
        format!(r#"{{"type":"service_account","private_key":["{TOKEN}"]}}"#),
        format!(r#"{{"type":"service_account","universe_domain":["{TOKEN}"]}}"#),
        TOKEN.to_owned(),
    ] {
        daemon::file::replace(&file, content.as_bytes()).unwrap();
        let mut job = rig.job(&documents()[0].1);
        job.env_remove("SECRET_MANAGER_EMULATOR_HOST").env("GOOGLE_APPLICATION_CREDENTIALS", &file);
        job.env("GCP_SECRET_MANAGER_ENDPOINT", format!("http://{}", rig.emulator.address()));
        let outcome = rig.run(&mut job).await;
        assert_eq!(outcome.code, Some(4), "{outcome:#?}");
        check_outcome("credentials file", &outcome);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_kubeconfig_holds_is_not_told() {
    let rig = Rig::new().await;
    let file = rig.path("kubeconfig");
    for content in [
        TOKEN.to_owned(),
        format!("users:\n- name: x\n  user: {{token: {TOKEN}\n"),
        format!("apiVersion: v1\nkind: Config\nusers: [{{name: x, user: {{token: [{TOKEN}]}}}}]\n"),
        format!("apiVersion: v1\nkind: Config\ncurrent-context: x\nusers: [{{name: x, user: {{token: {TOKEN}}}}}]\n"),
    ] {
        daemon::file::replace(&file, content.as_bytes()).unwrap();
        let mut job = rig.job(&documents()[0].1);
        job.env("MANAGEMENT_KUBECONFIG", &file).env("MANAGEMENT_NAMESPACE", "clusters-1").env("CLUSTER_NAME", "x");
        let outcome = rig.run(&mut job).await;
        assert_eq!((outcome.code, outcome.reason()), (Some(2), "InvalidConfiguration"), "{outcome:#?}");
        assert_eq!(rig.calls(), 0, "nothing is written before both ways are known to be usable");
        check_outcome("kubeconfig", &outcome);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hand_over_tells_no_credential() {
    use crate::cluster::{Kind, Place};
    for fault in ["create/secrets:500*0", "get/secrets:403(message=no)", "create/secrets:422(message=invalid)", ""] {
        let place = Place::new(Kind::Emulator).await.unwrap();
        fault.parse().into_iter().for_each(|fault| place.emulator().inject(fault));
        for arguments in [vec!["--dry-run"], vec![], vec!["--delete"]] {
            let mut job = place.job("");
            job.env("PULL_SECRET_DATA", &documents()[0].1).env("LOG_LEVEL", "debug").env("RUN_TIMEOUT", "3s");
            let outcome = place.rig.run(job.args(arguments)).await;
            check_outcome(fault, &outcome);
        }
        check(fault, &format!("{:?}", place.emulator().calls()));
    }
}

/// A fleet plane that is given every document: logs at their most detailed, metrics, reports, pages, objects.
#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_plane_tells_no_credential() {
    use crate::fleet::{self, Up};
    let folder = fleet::folder();
    let up = Up::in_folder(folder.path()).await;
    let cluster = up.cluster().await;
    for (number, (name, document)) in documents().iter().enumerate() {
        let id = format!("cls-{number}");
        let refused = up.player.try_create(&id, document).await.err();
        check(name, &format!("{refused:?} {}", refused.as_ref().map(ToString::to_string).unwrap_or_default()));
        if refused.is_none() {
            up.player.make_ready(&cluster, &id, 1).await;
            let is_over =
                |reason: &serde_json::Value| reason != "WorkloadInProgress" && reason != "PreconditionsNotMet";
            let is_over = |cluster: &_| {
                let available = fleet::condition(cluster, "Available");
                !available.is_null() && is_over(&available["reason"])
            };
            let told = up.player.until(&id, is_over).await;
            check(name, &serde_json::to_string(&told).unwrap());
        }
        for arguments in [vec!["explain", "cluster", &id], vec!["explain", "cluster", &id, "--output", "json"]] {
            drop(
                fleet::run(
                    fleet::program(&arguments)
                        .args(["--api", up.place("api")])
                        .env("KUBECONFIG", up.place("kubeconfig")),
                )
                .await,
            );
        }
        check(name, &format!("{:?}", cluster.jobs("hyperfleet-system", "").await.unwrap()));
    }
    for output in ["table", "json"] {
        drop(fleet::run(&mut fleet::program(&["status", "--api", up.place("api"), "--output", output])).await);
    }
    for (name, address) in up.ready["listeners"].as_object().unwrap() {
        if name.ends_with("_metrics") {
            let url = format!("http://{}/metrics", address.as_str().unwrap());
            let mut curl = tokio::process::Command::new("curl");
            let (code, metrics, _) = fleet::run(curl.args(["-sS", "--fail", "--noproxy", "*", &url])).await;
            assert!(code == Some(0) && metrics.contains("# EOF"), "{name}: {metrics}");
        }
    }
    let (code, _) = up.interrupt().await;
    assert_eq!(code, Some(0));
}
