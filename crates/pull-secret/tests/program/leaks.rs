//! No credential, and no piece of one, is ever printed, logged or reported.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emulators::secret_manager::Settings;
use tokio::io::AsyncWriteExt as _;

use testkit::leaks::{KEY, PASSWORD, TOKEN, check, documents};
use testkit::program;
use testkit::rig::{Outcome, Rig};

fn check_outcome(what: &str, outcome: &Outcome) {
    check(what, &outcome.stdout);
    check(what, &outcome.stderr);
    check(what, &outcome.result.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_job_prints_no_credential_however_it_ends() {
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
async fn a_stored_unmanaged_document_is_not_printed_either() {
    use secrecy::SecretSlice;
    use secret_store::{NewVersion, SecretStore as _, VersionNumber};
    let rig = Rig::new().await;
    rig.unmanaged(&[("managed-by", "hyperfleet"), ("cluster-id", "cls-123")]).await;
    let content = SecretSlice::from(format!("not a document: {PASSWORD}").into_bytes());
    let new = NewVersion::without_record(VersionNumber::FIRST, &content);
    rig.store.add_version(&testkit::rig::secret(), &new).await.unwrap();
    let outcome = rig.run(rig.job(&documents()[0].1).env("LOG_LEVEL", "debug")).await;
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    check_outcome("a stored document", &outcome);
}

#[tokio::test(flavor = "multi_thread")]
async fn validate_prints_no_credential() {
    for (name, document) in documents() {
        for output in ["table", "json"] {
            let mut command = program::pull_secret(&["validate", "-", "--output", output]);
            let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(document.as_bytes()).await.unwrap();
            let output = child.wait_with_output().await.unwrap();
            check(name, &String::from_utf8_lossy(&output.stdout));
            check(name, &String::from_utf8_lossy(&output.stderr));
        }
    }
}

/// The likeliest mistake: the document, or a key, where a path or a name belongs.
#[tokio::test(flavor = "multi_thread")]
async fn a_credential_in_the_wrong_place_is_not_printed() {
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
            let output = program::pull_secret(&arguments).output().await.unwrap();
            check(name, &String::from_utf8_lossy(&output.stdout));
            check(name, &String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_credentials_file_holds_is_not_printed() {
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
async fn what_a_kubeconfig_holds_is_not_printed() {
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
async fn applying_the_kubernetes_secret_prints_no_credential() {
    use testkit::cluster::{Kind, Place};
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
