//! `pull-secret credentials` in the hands of its operators: `doctor` about it, and a lost ledger.

use std::collections::BTreeMap;

use testkit::api_server::until;
use testkit::fleet::document;
use testkit::program;

use super::Rig;

/// Runs `doctor`; returns the state and the message of each of its checks of the service.
async fn doctor(rig: &Rig, variables: &[(&str, &str)]) -> BTreeMap<String, (String, String)> {
    let mut command = program::pull_secret(&["doctor", "--output=json", "--credentials-config=credentials.yaml"]);
    command.args(["--api", &format!("http://{}", rig.address)]).current_dir(rig.folder.path());
    command.env("HYPERFLEET_API_BASE_URL", format!("http://{}", rig.address));
    command.env("HYPERFLEET_API_AUTH_TOKEN_PATH", rig.path("reader")).envs(variables.iter().copied());
    let output = command.output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    rig.check_leaks("doctor", &text);
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let word = |line: &serde_json::Value, member: &str| line[member].as_str().unwrap().to_owned();
    let own = lines.filter(|line| line["group"] == "credentials");
    own.map(|line| (word(&line, "check"), (word(&line, "state"), word(&line, "message")))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_checks_ledger_keys_registry_and_api_and_makes_nothing() {
    let rig = Rig::new().await;
    let failed = |lines: &BTreeMap<String, (String, String)>| {
        let failed = lines.iter().filter(|(_, (state, _))| state == "failed");
        failed.map(|(check, (_, message))| format!("{check}: {message}")).collect::<Vec<_>>()
    };
    assert_eq!(
        failed(&doctor(&rig, &[]).await),
        ["ledger: there is no ledger credentials.db: `pull-secret credentials serve` makes it"]
    );
    for name in ["credentials.db", "credentials.db.key"] {
        assert!(!rig.path(name).exists(), "doctor has made {name}");
    }
    rig.player.create("cls-1", &document("one")).await;
    let mut serving = rig.serve("first").await;
    rig.named("cls-1").await;
    serving.child.kill().await.unwrap();
    let sound = doctor(&rig, &[]).await;
    assert!(sound.len() == 6 && sound.values().all(|(state, _)| state == "ok"), "{sound:?}");

    daemon::file::replace(&rig.path("token"), b"withdrawn").unwrap();
    daemon::file::replace(&rig.path("credentials.db.key"), &[7; 32]).unwrap();
    let found = failed(&doctor(&rig, &[("HYPERFLEET_API_AUTH_TOKEN_PATH", "token")]).await);
    let parts = ["keys: passwords are sealed with keys", "read pull secrets: ", "registry quay: "];
    assert_eq!(found.len(), parts.len(), "{found:?}");
    assert!(found.iter().zip(parts).all(|(line, part)| line.starts_with(part)), "{found:?}");
    let stopped = doctor(&rig, &[("HYPERFLEET_API_BASE_URL", "http://127.0.0.1:1")]).await;
    assert!(failed(&stopped).iter().any(|line| line.starts_with("update clusters: ")), "{stopped:?}");
}

/// Runs `explain` about a cluster, with the ledger.
async fn explain(rig: &Rig, cluster: &str, output: &str) -> String {
    let mut command = program::pull_secret(&["explain", "cluster", cluster, "--credentials-config=credentials.yaml"]);
    command.args(["--api", &format!("http://{}", rig.address), "--output", output]).current_dir(rig.folder.path());
    command.env("HYPERFLEET_API_BASE_URL", format!("http://{}", rig.address));
    let output = command.output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    rig.check_leaks("explain", &text);
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_shows_the_accounts_of_a_cluster() {
    let rig = Rig::new().await;
    rig.player.create("cls-1", &document("one")).await;
    rig.player.create("cls-2", &document("two")).await;
    let absent = explain(&rig, "cls-1", "table").await;
    assert!(absent.contains("the ledger could not be read: there is no ledger credentials.db"), "{absent}");
    let mut serving = rig.serve("first").await;
    let robot = rig.named("cls-1").await;
    until("the credential awaits its report", async || {
        let published = rig.listed(&["--cluster=cls-1", "--state=Published"], "Published").await;
        (published["reason"] == "AwaitingReport").then_some(())
    })
    .await;
    let page = explain(&rig, "cls-1", "table").await;
    let account = format!("\nREGISTRY CREDENTIALS\n  quay, account hyperfleet+{robot}: Published, AwaitingReport: ");
    assert!(page.contains(&account) && page.contains("\n    published   20"), "{page}");
    let json: serde_json::Value = serde_json::from_str(&explain(&rig, "cls-1", "json").await).unwrap();
    let own = &json["registry_credentials"]["credentials"];
    assert_eq!((own[0]["account"].as_str(), own.as_array().unwrap().len()), (Some(&*format!("hyperfleet+{robot}")), 1));
    let without = explain(&rig, "cls-3", "table").await;
    assert!(without.contains("the ledger has none of this cluster"), "{without}");
    serving.child.kill().await.unwrap();
    std::fs::remove_file(rig.path("credentials.db.key")).unwrap();
    let keyless = explain(&rig, "cls-1", "table").await;
    assert!(keyless.contains("the key credentials.db.key of the ledger does not exist"), "{keyless}");
    assert!(!rig.path("credentials.db.key").exists(), "explain has made a key");
}

/// As docs/operations/backup.md has it: another robot for the cluster, and the former one is named and stays.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_lost_ledger_each_cluster_gets_another_robot() {
    let rig = Rig::new().await;
    rig.player.create("cls-1", &document("one")).await;
    let mut serving = rig.serve("first").await;
    let former = rig.named("cls-1").await;
    rig.listed(&["--state=Pooled"], "Pooled").await;
    serving.child.kill().await.unwrap();
    let before = rig.robots();
    for entry in std::fs::read_dir(rig.folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("credentials.db") {
            std::fs::remove_file(path).unwrap();
        }
    }
    serving = rig.serve("second").await;
    let robot = until("another robot", async || Some(rig.named("cls-1").await).filter(|robot| *robot != former)).await;
    assert!(!before.contains(&robot), "{robot} is of before");
    rig.listed(&["--state=Published"], "Published").await;
    let swept = rig.run(&["sweep", "--output=json"]).await.json();
    let named = swept.as_array().unwrap().iter().map(|stray| stray["account"].as_str().unwrap().to_owned());
    assert_eq!(named.collect::<std::collections::BTreeSet<_>>(), before);
    assert!(rig.robots().is_superset(&before));
    serving.child.kill().await.unwrap();
}
