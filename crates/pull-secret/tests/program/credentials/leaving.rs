//! `pull-secret credentials ams`: two clusters leave an emulated AMS, one of them goes back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emulators::accounts_mgmt::{AccountsMgmt, Credential, Settings};
use serde_json::{Value, json};
use testkit::api_server::until;
use testkit::broker::fetch;

use super::{Done, Rig};

/// Beginning of AMS's tokens at a host that is not taken over.
const TOKEN: &str = "token-of-ams";
/// A person and their reason.
const PERSON: [&str; 4] = ["--reason", "leaving AMS", "--as", "jane"];

/// A fleet whose credentials AMS has made.
struct Leaving {
    rig: Rig,
    ams: AccountsMgmt,
}

// === impl Leaving ===

impl Leaving {
    async fn new() -> Self {
        let rig = Rig::new().await;
        let settings = Settings::default();
        daemon::file::replace(&rig.path("ams-secret"), settings.client_secret.as_bytes()).unwrap();
        let ams = AccountsMgmt::start(settings).await.unwrap();
        let path = rig.path("credentials.yaml");
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.replace("pool: 1,", "pool: 0, search: \"name = 'no-cluster'\",");
        let section = format!(
            "ams: {{url: '{}', token_url: '{}', client_id: pull-secret-service, client_secret_file: '{}', compare_for: 1s}}\n",
            ams.url(),
            ams.token_url(),
            rig.path("ams-secret").display()
        );
        daemon::file::replace(&path, format!("{text}{section}").as_bytes()).unwrap();
        Self { rig, ams }
    }

    /// A cluster with two credentials of AMS: a robot at Quay, and one of another registry.
    async fn add(&self, id: &str) -> String {
        let Self { rig, ams } = self;
        let robot = format!("ams-{id}");
        let password = rig.quay.robot(&robot).await;
        let user = format!("hyperfleet+{robot}");
        rig.quay.call("PUT", &format!("team/pullers/members/{user}"), Value::Null).await.expect(200);
        let host = rig.quay.quay.address().to_string();
        let auth = |user: &str, password: &str| json!({ "auth": STANDARD.encode(format!("{user}:{password}")) });
        let other = format!("{TOKEN}-{id}");
        let document = json!({ "auths": {
            host.as_str(): auth(&user, &password), "registry.redhat.io": auth("|ams", &other),
        }});
        rig.player.create(id, &document.to_string()).await;
        let credential = |username: &str, token: &str, registry: &str| Credential {
            username: username.to_owned(),
            token: token.to_owned(),
            registry: registry.to_owned(),
            account: id.to_owned(),
            resource: String::new(),
            created: 1_700_000_000,
        };
        ams.add(credential(&user, &password, "Quay_quay.io"));
        ams.add(credential("|ams", &other, "Redhat_registry.redhat.io"));
        robot
    }

    async fn run(&self, arguments: &[&str]) -> Done {
        let done = self.rig.run(&[&["ams"], arguments].concat()).await;
        assert!(!format!("{}{}", done.stdout, done.stderr).contains(TOKEN), "{}", done.stdout);
        done
    }

    async fn order(&self, arguments: &[&str]) -> Done {
        self.run(&[arguments, &PERSON[..]].concat()).await
    }

    /// Waits until a cluster is in a phase; returns its status.
    async fn until_phase(&self, id: &str, phase: &str) -> Value {
        until(phase, async || {
            let status = self.run(&["status", "--cluster", id, "--output=json"]).await.json();
            (status["clusters"][0]["phase"] == phase).then(|| status["clusters"][0].clone())
        })
        .await
    }

    /// Attests that a cluster has adopted its credential.
    async fn adopt(&self, id: &str) {
        let own = self.until_phase(id, "Moving").await["own"][0]["id"].as_str().unwrap().to_owned();
        self.rig.listed(&["--cluster", id], "Published").await;
        for part in ["report", "nodes", "first-pull"] {
            let attest = ["attest", &own, "--part", part];
            let attested = self.rig.run(&[&attest[..], &PERSON[..]].concat()).await;
            assert_eq!(attested.code, Some(0), "{}", attested.stderr);
        }
        self.until_phase(id, "Moved").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_leave_ams_and_one_goes_back() {
    let leaving = Leaving::new().await;
    let (first, second) = (leaving.add("cls-1").await, leaving.add("cls-2").await);
    let mut serving = leaving.rig.serve("first").await;
    until("the ledger is there", async || {
        let listed = leaving.rig.run(&["list"]).await;
        (listed.code == Some(0)).then_some(())
    })
    .await;

    let imported = leaving.run(&["import"]).await;
    assert_eq!(imported.code, Some(0), "{}{}", imported.stdout, imported.stderr);
    assert!(imported.stdout.contains("Quay_quay.io") && imported.stderr.contains("proven"), "{}", imported.stdout);
    until("they are compared for long enough", async || {
        let compared = leaving.run(&["shadow", "--output=json"]).await;
        assert_eq!((compared.code, &compared.json()["clusters"]), (Some(0), &2.into()), "{}", compared.stdout);
        let status = leaving.run(&["status", "--output=json"]).await.json();
        (status["phases"]["Compared"] == 2).then_some(())
    })
    .await;

    let dry = leaving.order(&["issue", "--registry=quay", "--output=json"]).await;
    assert!(dry.json()["ready"] == 2 && dry.stderr.contains("nothing was changed: add --yes"), "{}", dry.stdout);
    let issued = leaving.order(&["issue", "--registry=quay", "--yes", "--output=json"]).await.json();
    assert_eq!(issued["credentials"].as_array().unwrap().len(), 2);
    for id in ["cls-1", "cls-2"] {
        leaving.until_phase(id, "Issued").await;
    }
    assert_eq!((leaving.rig.named("cls-1").await, leaving.rig.named("cls-2").await), (first.clone(), second.clone()));

    let moved = leaving.order(&["move", "leave", "--registry=quay", "--min-success-time=1s", "--yes"]).await;
    assert_eq!(moved.code, Some(0), "{}", moved.stderr);
    for id in ["cls-1", "cls-2"] {
        leaving.adopt(id).await;
    }
    assert_ne!(leaving.rig.named("cls-1").await, first);
    let page = leaving.run(&["status"]).await;
    assert!(page.stdout.contains("Moved") && page.stdout.contains("IMPORT"), "{}", page.stdout);

    // One goes back, and then gives ours away.
    let back = leaving.order(&["back", "--cluster=cls-2", "--output=json"]).await;
    assert_eq!(back.json()["clusters"][0]["phase"], "Issued", "{}", back.stderr);
    assert_eq!(leaving.rig.named("cls-2").await, second);
    let refused = leaving.order(&["back", "--import"]).await;
    assert!(refused.code != Some(0) && refused.stderr.contains("take each back first"), "{}", refused.stderr);
    let given = leaving.order(&["back", "--cluster=cls-2", "--output=json"]).await;
    assert!(given.json()["clusters"][0]["own"].as_array().unwrap().is_empty(), "{}", given.stdout);

    retire(&leaving, &first).await;
    serving.child.kill().await.unwrap();
    for name in ["first.log", "first.notes"] {
        let text = std::fs::read_to_string(leaving.rig.path(name)).unwrap();
        leaving.rig.check_leaks(name, &text);
        assert!(!text.contains(TOKEN), "{name}");
    }
}

/// The time without a difference goes on while the service runs; nothing is compared before the first import.
#[tokio::test(flavor = "multi_thread")]
async fn the_service_compares_by_itself() {
    let leaving = Leaving::new().await;
    leaving.add("cls-1").await;
    let mut serving = leaving.rig.serve("before").await;
    // Else its first comparison might come after the import.
    until("the first attempt to compare is over", async || {
        let metrics = fetch(&format!("http://{}/metrics", serving.metrics)).await?;
        metrics.contains("hyperfleet_credentials_ams_clusters{").then_some(())
    })
    .await;
    assert_eq!(leaving.run(&["import"]).await.code, Some(0));
    serving.child.kill().await.unwrap();
    let log = |name: &str| std::fs::read_to_string(leaving.rig.path(&format!("{name}.log"))).unwrap();
    assert!(!log("before").contains("compared with AMS"), "{}", log("before"));

    serving = leaving.rig.serve("after").await;
    let shown = until("the phases are shown", async || {
        let metrics = fetch(&format!("http://{}/metrics", serving.metrics)).await?;
        let shown = metrics.lines().filter(|line| line.starts_with("hyperfleet_credentials_ams_clusters{"));
        Some(shown.map(str::to_owned).collect::<Vec<_>>()).filter(|shown| !shown.is_empty())
    })
    .await;
    assert!(log("after").contains("compared with AMS"), "{}", log("after"));
    let sum: u64 = shown.iter().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    assert!(sum == 1 && shown.len() == 6, "{shown:?}");
    serving.child.kill().await.unwrap();

    let clusters = async |arguments: &[&str]| {
        let done = leaving.order(&[&["back", "--import", "--output=json"], arguments].concat()).await;
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        (done.json()["clusters"].as_array().unwrap().len(), done.stderr.contains("nothing was changed"))
    };
    for (arguments, expected) in [(&[][..], (1, true)), (&["--yes"], (0, false)), (&[], (0, true))] {
        assert_eq!(clusters(arguments).await, expected, "{arguments:?}");
    }
}

/// Nothing is deleted without its proof and the words that were printed.
async fn retire(leaving: &Leaving, robot: &str) {
    let user = format!("hyperfleet+{robot}");
    let is_there = || leaving.ams.credentials().values().any(|row| row.username == user);
    let early = leaving.order(&["retire", "--cluster=cls-1", "--confirm=cls-1", "--output=json"]).await;
    assert_eq!((early.code, &early.json()[0]["obstacle"]), (Some(1), &"AwaitingQuiet".into()), "{}", early.stdout);
    let dry = leaving.order(&["retire", "--all", "--attest-quiet"]).await;
    assert!(dry.stdout.contains("can be deleted") && dry.stderr.contains("--confirm 'delete 1'"), "{}", dry.stderr);
    for wrong in ["yes", "cls-1", "delete 2"] {
        let refused = leaving.order(&["retire", "--all", "--attest-quiet", "--confirm", wrong]).await;
        assert!(refused.code != Some(0) && refused.stderr.contains("must be 'delete 1'"), "{}", refused.stderr);
    }
    assert!(is_there());
    let retire = ["retire", "--cluster=cls-1", "--attest-quiet", "--confirm=cls-1", "--output=json"];
    let retired = leaving.order(&retire).await;
    assert_eq!((retired.code, &retired.json()[0]["deleted"]), (Some(0), &true.into()), "{}", retired.stderr);
    assert!(!is_there() && leaving.ams.credentials().len() == 3);
    leaving.until_phase("cls-1", "Retired").await;
    let again = leaving.order(&retire).await;
    assert_eq!((again.code, &again.json()[0]["deleted"]), (Some(0), &true.into()));
    let gone = leaving.order(&["back", "--cluster=cls-1"]).await;
    assert!(gone.code != Some(0) && gone.stderr.contains("there is no way back"), "{}", gone.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_configuration_of_ams_is_named() {
    let rig = Rig::new().await;
    let without = rig.run(&["ams", "status"]).await;
    assert!(without.code != Some(0) && without.stderr.contains("ams.url: missing"), "{}", without.stderr);
    let path = rig.path("credentials.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    for (section, expected) in [
        (
            "ams: {url: 'ftp://ams'}",
            &["ams.url: must be an https://", "ams.client_id: missing", "ams.client_secret_file: missing"][..],
        ),
        ("ams: {client_id: a}", &["ams.client_id: has no effect without `ams.url`"]),
        ("ams: {uri: a}", &["ams.uri: unknown key"]),
    ] {
        daemon::file::replace(&path, format!("{text}{section}\n").as_bytes()).unwrap();
        let refused = rig.run(&["ams", "status"]).await;
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(expected.iter().all(|fault| refused.stderr.contains(fault)), "{section}: {}", refused.stderr);
    }
}
