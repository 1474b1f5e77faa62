//! `pull-secret credentials` as its operators use it, with a real API and an emulated Quay.

mod answering;
mod leaving;
mod operated;
mod red_hat;
mod tokens;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emulators::quay::Settings as QuaySettings;
use hyperfleet_client::{Settings, TokenSettings};
use registry_account::{IdentitySecret, QuayRegistry};
use rstest::rstest;
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tempfile::TempDir;
use testkit::api;
use testkit::api_server::until;
use testkit::broker::fetch;
use testkit::fleet::{Player, document};
use testkit::program;
use testkit::quay::Server;
use testkit::rig::{Signal, signal};
use tokio::process::{Child, Command};

/// An API, a Quay, and the settings of a service between them.
struct Rig {
    folder: TempDir,
    quay: Server,
    _api: Child,
    address: String,
    player: Player,
    /// Variables of the service beside those of every one.
    variables: Vec<(&'static str, PathBuf)>,
}

/// A running service.
struct Serving {
    child: Child,
    health: String,
    metrics: String,
}

/// The exit of a command.
struct Done {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

// === impl Done ===

impl Done {
    fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.stdout);
        assert!(parsed.is_ok(), "{}{}", self.stdout, self.stderr);
        parsed.unwrap()
    }
}

// === impl Rig ===

impl Rig {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        daemon::file::replace(&path("reader"), b"readers-token").unwrap();
        let variables = [("HYPERFLEET_PULL_SECRET_READER_TOKEN_FILE", path("reader").to_string_lossy().into_owned())];
        let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let (api, address) = api::server_with(folder.path(), &variables).await;
        let quay = Server::start(QuaySettings { repositories: BTreeSet::new(), ..QuaySettings::default() }).await;
        daemon::file::replace(&path("token"), quay.quay.token().as_bytes()).unwrap();
        prepare(&quay).await;
        let config = format!(
            "clusters: {{resync: 10s}}\nregistries:\n- {{name: quay, type: quay, url: '{}', organization: hyperfleet, team: pullers, \
             token_file: '{}', image: hyperfleet/release, pool: 1, calls_per_minute: 6000}}\n",
            quay.quay.url(),
            path("token").display(),
        );
        daemon::file::replace(&path("credentials.yaml"), config.as_bytes()).unwrap();
        let mut settings = Settings::new(format!("http://{address}").parse().unwrap());
        settings.token = Some(TokenSettings { path: path("reader"), cache_ttl: Duration::from_secs(30) });
        Self { quay, _api: api, address, player: Player::with(settings), folder, variables: Vec::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program::pull_secret(&["credentials"]);
        command.args(arguments).current_dir(self.folder.path());
        command.env("HYPERFLEET_CREDENTIALS_CONFIG", self.path("credentials.yaml"));
        command.env("HYPERFLEET_API_BASE_URL", format!("http://{}", self.address));
        command.env("HYPERFLEET_API_AUTH_TOKEN_PATH", self.path("reader"));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    async fn run(&self, arguments: &[&str]) -> Done {
        let output = self.command(arguments).output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let done = Done { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
        self.check_leaks(&arguments.join(" "), &format!("{}{}", done.stdout, done.stderr));
        done
    }

    /// Starts the service and waits until it listens. Its output is kept in files.
    async fn serve(&self, name: &str) -> Serving {
        let mut command = self.command(&["serve", "--health-port=0", "--metrics-port=0", "--log-level=debug"]);
        let file = |kind: &str| File::create(self.path(&format!("{name}.{kind}"))).unwrap();
        let child = command.stdout(Stdio::from(file("log"))).stderr(Stdio::from(file("notes"))).spawn().unwrap();
        let notes = self.path(&format!("{name}.notes"));
        let line = until("the service listens", async || {
            let text = std::fs::read_to_string(&notes).unwrap();
            text.contains("Ctrl-C").then_some(text)
        })
        .await;
        let address = |after: &str| line.split(after).nth(1).unwrap().split([',', ' ']).next().unwrap().to_owned();
        let metrics = address("metrics on ").trim_end_matches('.').to_owned();
        Serving { child, health: address("probes on "), metrics }
    }

    /// Fails if a text holds the password of a robot, of the cluster's pull secret, or a token.
    fn check_leaks(&self, source: &str, text: &str) {
        testkit::leaks::check(source, text);
        assert!(!text.contains(self.quay.quay.token()), "{source} holds the token of Quay");
        for robot in self.quay.quay.robots() {
            let pair = STANDARD.encode(format!("hyperfleet+{}:{}", robot.name, robot.password));
            for secret in [robot.password.as_str(), &pair[..pair.len() - 4]] {
                assert!(!text.contains(secret), "{source} holds the password of {}: {text}", robot.name);
            }
        }
    }

    fn robots(&self) -> BTreeSet<String> {
        self.quay.quay.robots().into_iter().map(|robot| robot.name).collect()
    }

    /// The pull secret that the API has.
    async fn pull_secret(&self, id: &str) -> Value {
        let budget = testkit::hyperfleet::budget();
        let found = self.player.client.within(&budget).get_with_pull_secret("clusters", id).await.unwrap().unwrap();
        serde_json::from_str(found.pull_secret.unwrap().expose_secret()).unwrap()
    }

    /// Waits until the pull secret of a cluster names a robot with its password; returns the robot.
    async fn named(&self, id: &str) -> String {
        let host = self.quay.quay.address().to_string();
        until("the pull secret names a robot", async || {
            let document = self.pull_secret(id).await;
            let auth = document["auths"][&host]["auth"].as_str()?.to_owned();
            let pair = String::from_utf8(STANDARD.decode(auth).unwrap()).unwrap();
            let (user, password) = pair.split_once(':').unwrap();
            let robots = self.quay.quay.robots();
            let robot = robots.iter().find(|robot| format!("hyperfleet+{}", robot.name) == user).unwrap();
            assert!(robot.password == password && robot.teams.contains("pullers"), "{robot:?}");
            Some(robot.name.clone())
        })
        .await
    }

    /// Waits until a credential is listed in a state; returns it.
    async fn listed(&self, arguments: &[&str], state: &str) -> Value {
        until(state, async || {
            let all = [&["list", "--output=json"], arguments].concat();
            let listed = self.run(&all).await.json();
            listed.as_array().unwrap().iter().find(|credential| credential["state"] == state).cloned()
        })
        .await
    }
}

/// Sets up what robots share.
async fn prepare(server: &Server) {
    let settings = registry_account::QuaySettings {
        address: server.quay.url().parse().unwrap(),
        host: None,
        organization: "hyperfleet".parse().unwrap(),
        team: "pullers".parse().unwrap(),
        token: IdentitySecret::Value(server.quay.token().into()),
        ca_file: None,
        call_timeout: Duration::from_mins(1),
        calls_per_minute: 60,
        calls: None,
    };
    QuayRegistry::connect(settings).unwrap().prepare().await.unwrap();
    server.quay.add_repository("release");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_gets_a_robot_and_people_can_take_it_away() {
    let rig = Rig::new().await;
    let early = rig.run(&["list"]).await;
    assert!(early.code == Some(2) && early.stderr.contains("there is no ledger credentials.db"), "{}", early.stderr);
    rig.player.create("cls-1", &document("one")).await;
    let mut serving = rig.serve("first").await;
    let robot = rig.named("cls-1").await;
    // The other entries stay.
    let mut document_now = rig.pull_secret("cls-1").await;
    document_now["auths"].as_object_mut().unwrap().remove(&rig.quay.quay.address().to_string()).unwrap();
    assert_eq!(document_now, serde_json::from_str::<Value>(&document("one")).unwrap());

    let credential = rig.listed(&["--cluster=cls-1"], "Published").await;
    let id = credential["id"].as_str().unwrap();
    assert_eq!((&credential["account"], &credential["needsAPerson"]), (&robot.clone().into(), &false.into()));
    let pooled = rig.listed(&["--registry=quay"], "Pooled").await;
    look_at_everything(&rig, &serving, id, &robot).await;

    // Killed and started again: the same robots, and the pooled one is the next cluster's.
    serving.child.kill().await.unwrap();
    let robots = rig.robots();
    rig.player.create("cls-2", &document("two")).await;
    serving = rig.serve("second").await;
    assert_eq!(rig.named("cls-2").await, pooled["account"].as_str().unwrap());
    assert_eq!(rig.named("cls-1").await, robot);
    assert!(robots.is_subset(&rig.robots()));
    let refilled = rig.listed(&["--state=Pooled"], "Pooled").await;
    assert_eq!(rig.robots().len(), 3, "one for each cluster, one for the pool: {:?}", rig.robots());

    take_away(&rig, id, &robot, &refilled).await;
    replace(&rig).await;
    rotate(&rig).await;
    signal(&serving.child, Signal::TERM);
    assert_eq!(serving.child.wait().await.unwrap().code(), Some(0));
    for name in ["first.log", "first.notes", "second.log", "second.notes"] {
        let text = std::fs::read_to_string(rig.path(name)).unwrap();
        rig.check_leaks(name, &text);
    }
}

/// Probes, metrics and pages say what there is.
async fn look_at_everything(rig: &Rig, serving: &Serving, id: &str, robot: &str) {
    until("the service is ready", async || {
        fetch(&format!("http://{}/readyz", serving.health)).await.filter(|text| text.contains("\"ok\""))
    })
    .await;
    let metrics = until("the metrics show the ledger", async || {
        let text = fetch(&format!("http://{}/metrics", serving.metrics)).await?;
        text.contains("hyperfleet_credentials{registry=\"quay\",state=\"Published\"} 1").then_some(text)
    })
    .await;
    rig.check_leaks("metrics", &metrics);
    for series in [
        "hyperfleet_credentials_pool_target{registry=\"quay\"} 1",
        "hyperfleet_credentials_registry_calls_total{registry=\"quay\",operation=\"create\",outcome=\"success\"}",
        "hyperfleet_credentials_registry_calls_total{registry=\"quay\",operation=\"probe\",outcome=\"pulls\"}",
        "hyperfleet_credentials_last_resync_timestamp_seconds{registry=\"quay\"}",
    ] {
        assert!(metrics.contains(series), "{series}: {metrics}");
    }
    look_at_entries(rig, serving, id).await;
    let list = rig.run(&["list", "--cluster", "cls-1"]).await;
    assert!(
        list.code == Some(0) && list.stdout.contains(robot) && list.stdout.contains("Published"),
        "{}",
        list.stdout
    );
    let show = rig.run(&["show", id]).await;
    let shows = ["CLUSTER     cls-1, generation 2 names it", "EVIDENCE    report: none", "STATE       Published: "];
    assert!(shows.iter().all(|line| show.stdout.contains(line)), "{}", show.stdout);
    let events = rig.run(&["events", id, "--output=json"]).await.json();
    let actions: BTreeSet<&str> =
        events.as_array().unwrap().iter().filter_map(|event| event["action"].as_str()).collect();
    assert!(actions.is_superset(&["Create", "Permit", "Probe", "Publish"].into()), "{events}");
    verify_events(rig).await;
    let nothing = rig.run(&["list", "--older-than=720h", "--output=json"]).await;
    assert_eq!(nothing.json(), Value::Array(Vec::new()));
    let dump = rig.run(&["config-dump"]).await;
    assert!(dump.code == Some(0) && dump.stdout.contains("registries"), "{}{}", dump.stdout, dump.stderr);
}

/// The service has made a link; one that is only claimed is missing.
async fn verify_events(rig: &Rig) {
    let link = until("the service has made a link", async || {
        let verified = rig.run(&["audit", "verify", "--output=json"]).await;
        assert_eq!(verified.code, Some(0), "{}{}", verified.stdout, verified.stderr);
        let newest = verified.json()["newest"].clone();
        newest.is_object().then(|| format!("{}:{}", newest["number"], newest["hash"].as_str().unwrap()))
    })
    .await;
    let kept = rig.run(&["audit", "verify", "--link", &link]).await;
    assert!(kept.code == Some(0) && kept.stdout.contains("unbroken"), "{}{}", kept.stdout, kept.stderr);
    let claimed = format!("99999:hmac-sha256:{}", "0".repeat(64));
    let missing = rig.run(&["audit", "verify", "--link", &claimed]).await;
    assert!(missing.code == Some(1) && missing.stdout.contains("link 99999 is missing"), "{}", missing.stdout);
    let malformed = rig.run(&["audit", "verify", "--link", "99999"]).await;
    assert!(malformed.code == Some(2) && malformed.stderr.contains("NUMBER:HASH"), "{}", malformed.stderr);
}

/// The entry that the service has made, and those that it has not.
async fn look_at_entries(rig: &Rig, serving: &Serving, id: &str) {
    let entries = until("the entry of the service is known", async || {
        let found = rig.run(&["entries", "--cluster=cls-1", "--output=json"]).await.json();
        found.as_array().unwrap().iter().any(|entry| entry["credential"] == id).then_some(found)
    })
    .await;
    let made_elsewhere = entries.as_array().unwrap().iter().filter(|entry| entry["credential"].is_null());
    assert!(made_elsewhere.clone().count() > 0 && made_elsewhere.clone().all(|entry| entry["sinceIsKnown"] == false));
    let table = rig.run(&["entries", "--made-elsewhere"]).await;
    assert!(table.stdout.contains("or earlier") && !table.stdout.contains(id), "{}", table.stdout);
    let none = rig.run(&["entries", "--expiring=720h", "--output=json"]).await;
    assert_eq!(none.json(), Value::Array(Vec::new()));
    until("the metrics count the entries", async || {
        let text = fetch(&format!("http://{}/metrics", serving.metrics)).await?;
        text.contains("hyperfleet_credentials_entries{maker=\"service\"} 1").then_some(())
    })
    .await;
}

/// Orders of people, each with its person and reason.
async fn take_away(rig: &Rig, id: &str, robot: &str, pooled: &Value) {
    let gone = async |robot: &str| {
        until("the robot is gone", async || (!rig.robots().contains(robot)).then_some(())).await;
    };
    let order = ["--reason", "the token was shown", "--as", "jane"];
    let (spare, account) = (pooled["id"].as_str().unwrap(), pooled["account"].as_str().unwrap());
    let anonymous = rig.run(&["retire", spare, "--reason", "x"]).await;
    assert!(anonymous.code == Some(2) && anonymous.stderr.contains("give --as"), "{}", anonymous.stderr);
    let retired = rig.run(&[&["retire", spare], &order[..]].concat()).await;
    assert_eq!(retired.code, Some(0), "{}", retired.stderr);
    gone(account).await;

    // What a cluster uses is not retired by an order alone.
    let attested = rig.run(&[&["attest", id, "--part=nodes"], &order[..]].concat()).await;
    assert_eq!(attested.code, Some(0), "{}", attested.stderr);
    let show = rig.run(&["show", id]).await;
    assert!(show.stdout.contains("attested by jane: the token was shown"), "{}", show.stdout);

    refuses_what_no_service_carries_out(rig, id).await;
    let dry = rig.run(&[&["revoke", "--cluster=cls-1"], &order[..]].concat()).await;
    assert!(dry.code == Some(0) && dry.stdout.contains(robot), "{}{}", dry.stdout, dry.stderr);
    assert!(dry.stderr.contains("nothing was changed") && rig.robots().contains(robot), "{}", dry.stderr);
    let revoked = rig.run(&[&["revoke", "--cluster=cls-1", "--yes", "--output=json"], &order[..]].concat()).await;
    assert!(revoked.json()[0]["tokensGoodUntil"].is_string(), "{}", revoked.stdout);
    gone(robot).await;
    let events = rig.run(&["events", id]).await;
    assert!(events.stdout.contains("OrderRevocation") && events.stdout.contains("jane"), "{}", events.stdout);
    let swept = rig.run(&["sweep"]).await;
    assert_eq!(swept.code, Some(0), "{}{}", swept.stdout, swept.stderr);
    let lost = "hf-aaaaaaaaaaaaaaaaaaaaaaaaaa";
    rig.quay.robot(lost).await;
    rig.quay.robot("hf-eu-aaaaaaaaaaaaaaaaaaaaaaaaaa").await;
    let stray = rig.run(&["sweep", "--output=json"]).await;
    let named = stray.json();
    assert_eq!(
        (stray.code, &named[0]["account"], &named[1]),
        (Some(1), &lost.into(), &Value::Null),
        "{}",
        stray.stdout
    );
    assert!(rig.robots().contains(lost));
}

/// The settings lack the registry of the credential.
async fn refuses_what_no_service_carries_out(rig: &Rig, id: &str) {
    let settings = std::fs::read_to_string(rig.path("credentials.yaml")).unwrap();
    daemon::file::replace(&rig.path("other.yaml"), settings.replace("name: quay", "name: other").as_bytes()).unwrap();
    for command in [&["revoke", "--cluster=cls-1", "--yes"][..], &["retire", id], &["put-back", id]] {
        let order = ["--reason", "x", "--as", "jane", "--config=other.yaml"];
        let refused = rig.run(&[command, &order].concat()).await;
        let expected = "registry quay is not configured: add it to `registries`";
        assert!(refused.code != Some(0) && refused.stderr.contains(expected), "{command:?}: {}", refused.stderr);
    }
    let events = rig.run(&["events", id]).await;
    assert!(!events.stdout.contains("OrderRe"), "{}", events.stdout);
}

/// Another robot takes the place of a cluster's, which stays until nodes use the new one.
async fn replace(rig: &Rig) {
    let old = rig.listed(&["--cluster=cls-2"], "Published").await;
    let (id, robot) = (old["id"].as_str().unwrap(), old["account"].as_str().unwrap());
    let order = ["replace", id, "--reason", "yearly", "--as", "jane", "--output=json"];
    let new = rig.run(&order).await.json();
    assert_eq!(rig.run(&order).await.json()[0]["id"], new[0]["id"]);
    until("the pull secret names another robot", async || (rig.named("cls-2").await != robot).then_some(())).await;
    assert!(rig.robots().contains(robot), "nodes still use {robot}");
    let show = rig.run(&["show", id]).await;
    assert!(show.stdout.contains("REPLACED BY"), "{}", show.stdout);
}

/// A rotation begins with the cluster whose credential is in use; its abortion puts that one back.
async fn rotate(rig: &Rig) {
    let person = ["--reason", "monthly", "--as", "jane"];
    let run = async |arguments: &[&str]| rig.run(&[arguments, &person[..]].concat()).await;
    let current = rig.listed(&["--cluster=cls-2", "--state=Published"], "Published").await;
    let newest = rig.named("cls-2").await;
    let all = rig.run(&["list", "--cluster=cls-2", "--output=json"]).await.json();
    let newest_id = all.as_array().unwrap().iter().find(|one| one["account"] == newest.as_str()).unwrap();
    let newest_id = newest_id["id"].as_str().unwrap();
    assert!(current["id"].is_string());
    for part in ["report", "nodes", "first-pull"] {
        let attested = run(&["attest", newest_id, &format!("--part={part}")]).await;
        assert_eq!(attested.code, Some(0), "{}", attested.stderr);
    }
    rig.listed(&["--cluster=cls-2", "--state=Adopted"], "Adopted").await;
    let start = ["rotation", "start", "monthly", "--registry=quay", "--first=name = 'cls-2'", "--min-success-time=1s"];
    let dry = run(&start).await;
    assert!(dry.code == Some(0) && dry.stderr.contains("nothing was changed: add --yes"), "{}", dry.stderr);
    for line in ["CALLS       9 of the registry", "name = 'cls-2'  1", "the rest        0"] {
        assert!(dry.stdout.contains(line), "{}", dry.stdout);
    }
    let none = rig.run(&["rotation", "status", "--output=json"]).await.json();
    assert_eq!(none, Value::Array(Vec::new()));
    let started = run(&[&start[..], &["--yes", "--output=json"]].concat()).await;
    assert_eq!(started.json()["groups"][0]["clusters"]["waiting"], 1, "{}", started.stdout);
    until("the rotation gives it another robot", async || (rig.named("cls-2").await != newest).then_some(())).await;
    let status = rig.run(&["rotation", "status", "monthly"]).await;
    assert!(status.stdout.contains("PHASE       Running") && status.stdout.contains("by jane"), "{}", status.stdout);
    let paused = run(&["rotation", "pause", "monthly", "--output=json"]).await.json();
    assert_eq!((&paused["phase"], &paused["reason"]), (&"Paused".into(), &"Requested".into()));
    let aborted = run(&["rotation", "abort", "monthly", "--put-back", "--output=json"]).await.json();
    assert_eq!((&aborted["phase"], &aborted["groups"][0]["clusters"]["skipped"]), (&"Aborted".into(), &1.into()));
    until("it has the old robot back", async || (rig.named("cls-2").await == newest).then_some(())).await;
    let nothing = run(&["put-back", newest_id]).await;
    assert!(nothing.stderr.contains("nothing replaces this one"), "{}", nothing.stderr);
    let over = run(&["rotation", "resume", "monthly"]).await;
    assert!(over.stderr.contains("rotation monthly is over (Aborted)"), "{}", over.stderr);
    let rekeyed = rig.run(&["rekey", "--output=json"]).await.json();
    assert_eq!((&rekeyed["encryptedAnew"], rekeyed["keys"].as_object().unwrap().len()), (&0.into(), 1));
    let known = run(&["rekey", "--remove-lost-key", rekeyed["keys"].as_object().unwrap().keys().next().unwrap()]).await;
    assert!(known.stderr.contains("is in `keys`, and what it seals can be read"), "{}", known.stderr);
}

#[rstest]
#[case::nothing("{}", &["clients.hyperfleet_api.base_url: missing", "registries: must name one or more"])]
#[case::unknown("{registry: 1}", &["registry: unknown key"])]
#[case::registry(
    "registries: [{name: Quay, type: quay, url: 'http://quay.example.com', organization: o, team: '1', token_file: t, image: A}]",
    &["registries[0].name: ", "registries[0].url: ", "registries[0].organization: ", "registries[0].team: ", "registries[0].image: "]
)]
#[tokio::test]
async fn a_wrong_configuration_ends_at_once_and_names_everything(#[case] file: &str, #[case] expected: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("credentials.yaml");
    daemon::file::replace(&path, file.as_bytes()).unwrap();
    for command in [&["serve"][..], &["config-dump"], &["list"]] {
        let arguments = [&["credentials"], command, &["--config", path.to_str().unwrap()]].concat();
        let output = program::pull_secret(&arguments).current_dir(folder.path()).output().await.unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(expected.iter().all(|fault| text.contains(fault)), "{command:?}: {text}");
    }
}
