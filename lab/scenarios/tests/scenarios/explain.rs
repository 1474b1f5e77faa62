//! `explain cluster` in each state that a cluster's pull secret can be in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use emulators::kubernetes::Kubernetes;
use hyperfleet_client::Status;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::DeleteParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use kubernetes::lease::{LeaseCandidate, LeaseClaim, Now};
use kubernetes::{AppliedSecret, Form, SecretKey};
use rstest::rstest;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Child;

use testkit::api;
use testkit::fleet::{self, BEFORE, Player, Up, condition, document, folder, is_available, run, up};
use testkit::program;
use testkit::rig::Rig;

const ID: &str = "cls-1";

/// An API alone, and a player of all adapters.
struct World {
    player: Player,
    address: String,
    _api: Child,
    _folder: TempDir,
}

impl World {
    async fn new() -> Self {
        let folder = folder();
        let (api, address) = api::server(folder.path()).await;
        let address = format!("http://{address}");
        Self { player: Player::of(&address), address, _api: api, _folder: folder }
    }

    /// Code and page, which is the same for people and programs.
    async fn explain(&self) -> (Option<i32>, Value, String) {
        explained(&["--api", &self.address], None).await
    }
}

async fn explained(flags: &[&str], kubeconfig: Option<&str>) -> (Option<i32>, Value, String) {
    let ask = async |output: &str| {
        let mut command = program::pull_secret(&[&["explain", "cluster", ID, "--output", output], flags].concat());
        command.envs(kubeconfig.map(|path| ("KUBECONFIG", path)));
        run(&mut command).await
    };
    let (code, json, _) = ask("json").await;
    let (same, text, _) = ask("table").await;
    assert_eq!(code, same);
    (code, serde_json::from_str(&json).unwrap_or_default(), text)
}

async fn ready(world: &World) {
    world.player.create(ID, &document("a")).await;
    for adapter in BEFORE {
        world.player.play(adapter, ID, 1).await;
    }
}

/// The conditions of a report: type, status, reason.
type Said = [(&'static str, Status, &'static str); 3];

const RUNNING: Said = [
    ("Applied", Status::True, "ResourcesCreated"),
    ("Available", Status::False, "WorkloadInProgress"),
    ("Health", Status::True, "NoErrors"),
];
const DENIED: Said = [
    ("Applied", Status::True, "ResourcesExist"),
    ("Available", Status::False, "PermissionDenied"),
    ("Health", Status::True, "NoErrors"),
];
const WAITING: Said = [
    ("Applied", Status::False, "PreconditionsNotMet"),
    ("Available", Status::False, "PreconditionsNotMet"),
    ("Health", Status::True, "NoErrors"),
];
const STORED: Said = [
    ("Applied", Status::True, "ResourcesExist"),
    ("Available", Status::True, "SecretStored"),
    ("Health", Status::True, "NoErrors"),
];

#[rstest]
#[case::running(RUNNING, 1, "running", "WorkloadInProgress is so")]
#[case::failed(DENIED, 1, "failed", "hint: The identity lacks the permission that the message names")]
#[case::available(STORED, 0, "available", "AVAILABLE\n  SecretStored: SecretStored is so")]
#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_explained(#[case] said: Said, #[case] code: i32, #[case] state: &str, #[case] words: &str) {
    let world = World::new().await;
    ready(&world).await;
    world.player.report(("pullsecret", ID), 1, &said, json!({"secretVersion": 7})).await;
    let (exit, page, text) = world.explain().await;
    assert_eq!((exit, page["state"].as_str()), (Some(code), Some(state)), "{text}");
    assert!(text.contains(words), "{text}");
    assert!(text.contains("secretVersion") && text.contains("HISTORY"), "{text}");
    assert_eq!(page["preconditions"].as_array().unwrap().iter().filter(|asked| asked["verdict"] == "met").count(), 6);
    assert!(text.contains(r#"`status.adapters[dns].available`: "True""#), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_waited_for_is_named_with_its_value() {
    let world = World::new().await;
    world.player.create(ID, &document("a")).await;
    world.player.play("validation", ID, 1).await;
    let (code, page, text) = world.explain().await;
    assert_eq!((code, page["state"].as_str()), (Some(1), Some("waiting")), "{text}");
    let verdicts: Vec<_> = page["preconditions"].as_array().unwrap().iter().map(|asked| &asked["verdict"]).collect();
    assert_eq!(verdicts, ["met", "met", "met", "met", "not met", "not met"]);
    assert!(text.contains("\n  waiting for dns: not reported yet at generation 1\n"), "{text}");
    assert!(text.contains("dns adapter has not reported") && !text.contains("waiting for validation"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_goes_and_one_that_is_not_there_are_distinguished() {
    let world = World::new().await;
    let (code, page, text) = world.explain().await;
    assert_eq!((code, page["state"].as_str()), (Some(1), Some("absent")), "{text}");
    ready(&world).await;
    world.player.report(("pullsecret", ID), 1, &STORED, json!({})).await;
    world.player.delete(ID).await;
    let (code, page, text) = world.explain().await;
    assert_eq!((code, page["state"].as_str()), (Some(1), Some("deleting")), "{text}");
    assert!(text.contains("deletion requested: "), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_about_an_older_generation_is_not_enough() {
    let world = World::new().await;
    ready(&world).await;
    world.player.report(("pullsecret", ID), 1, &STORED, json!({})).await;
    world.player.rotate(ID, &document("b")).await;
    let (code, page, text) = world.explain().await;
    assert_eq!(code, Some(1), "{text}");
    assert_ne!(page["state"], "available", "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_be_reached_and_what_is_no_address_have_codes_of_their_own() {
    let (code, _, _) = explained(&["--api", "http://127.0.0.1:1"], None).await;
    assert_eq!(code, Some(75));
    let (code, _, stderr) = run(&mut program::pull_secret(&["status", "--api", "http://127.0.0.1:1"])).await;
    assert_eq!(code, Some(75));
    assert!(stderr.contains("cannot be reached"), "{stderr}");
    let password = testkit::leaks::PASSWORD;
    for arguments in [["explain", "cluster", ID], ["status", "--output", "json"]] {
        let (code, _, stderr) =
            run(program::pull_secret(&arguments).args(["--api", &format!("ftp://{password}")])).await;
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains("--api"), "{stderr}");
    }
    assert_eq!(run(&mut program::pull_secret(&["explain", "cluster"])).await.0, Some(2));
}

/// The whole thing, looked at from both sides: the API's and the cluster's.
#[tokio::test(flavor = "multi_thread")]
async fn job_pods_and_secret_are_looked_at_where_the_cluster_is_known() {
    let folder = folder();
    let up = Up::in_folder(folder.path()).await;
    let cluster = up.cluster().await;
    up.player.create(ID, &document("a")).await;
    up.player.make_ready(&cluster, ID, 1).await;
    up.player.until(ID, |cluster| is_available(cluster, 1)).await;
    let kubeconfig = up.place("kubeconfig").to_owned();
    let flags = ["--api", up.place("api")];
    let (code, page, text) = explained(&flags, Some(&kubeconfig)).await;
    assert_eq!((code, page["state"].as_str()), (Some(0), Some("available")), "{text}");
    assert_eq!(
        (&page["job"]["state"], &page["job"]["pods"][0]["exit_code"]),
        (&json!("complete"), &json!(0)),
        "{text}"
    );
    assert_eq!(page["kubernetes_secret"]["state"], "exists");
    let annotations = &page["kubernetes_secret"]["annotations"];
    assert_eq!(annotations["hyperfleet.io/gcp-secret-version"], "1");
    assert_eq!(annotations["hyperfleet.io/digest"], page["desired_digest"]);
    assert_eq!(page["stored"]["digest"], page["desired_digest"]);
    let (code, page, text) = explained(&flags, Some("/nowhere")).await;
    assert_eq!(code, Some(0), "what cannot be seen is no contradiction: {text}");
    assert!(page["job"]["state"].as_str().unwrap().contains("cannot be read"), "{text}");
    up.output();
}

/// An adapter that is dead, or never started: the API alone, and what it knows.
#[rstest]
#[case::never_reported(false, "has never reported about this cluster")]
#[case::reported_before(true, "has not reported for ")]
#[tokio::test(flavor = "multi_thread")]
async fn an_adapter_that_does_not_report_is_named_instead_of_its_last_report(
    #[case] has_reported: bool,
    #[case] words: &str,
) {
    let world = World::new().await;
    world.player.create(ID, &document("a")).await;
    if has_reported {
        world.player.report(("pullsecret", ID), 1, &WAITING, json!({})).await;
    }
    for adapter in BEFORE {
        world.player.play(adapter, ID, 1).await;
    }
    let flags = ["--api", &world.address, "--stale-after", "0"];
    let (code, page, text) = explained(&flags, None).await;
    assert_eq!((code, page["state"].as_str()), (Some(1), Some("stalled")), "{text}");
    let line = format!("all preconditions of generation 1 are met, but the adapter {words}");
    assert!(text.contains(&line) && text.contains("logs deployment/pullsecret-adapter"), "{text}");
    let adapters: Vec<_> = page["adapters"].as_array().unwrap().iter().map(|adapter| &adapter["adapter"]).collect();
    assert!(adapters.contains(&&json!("pullsecret")) && adapters.contains(&&json!("placement")), "{text}");
    let (_, table, _) = run(program::pull_secret(&["status"]).args(flags)).await;
    assert!(table.contains("(stale: all preconditions are met for ") && table.contains(" 1 stalled, "), "{table}");
    let (_, lines, _) = run(program::pull_secret(&["status", "--output", "json"]).args(flags)).await;
    let row: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert!(row["stalled_since"].is_string(), "{lines}");
    let (_, page, text) = world.explain().await;
    assert_eq!(page["state"], "running", "within the time that it has: {text}");
}

/// A replica that was killed has left a Lease that is not renewed.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_not_renewed_shows_that_no_adapter_runs() {
    let world = World::new().await;
    ready(&world).await;
    let folder = folder();
    let (server, path) = kubernetes_in(folder.path()).await;
    let cluster = fleet::cluster(&path).await;
    cluster.ensure_namespace("hyperfleet-pull-secret").await.unwrap();
    let claim = LeaseClaim {
        namespace: "hyperfleet-pull-secret".to_owned(),
        name: "pullsecret-adapter".to_owned(),
        holder: "killed-1".to_owned(),
        duration: Duration::from_secs(15),
    };
    let an_hour_ago = Timestamp::now() - SignedDuration::from_hours(1);
    let now = Now { wall: an_hour_ago, ..Now::read() };
    LeaseCandidate::new(cluster, claim).try_acquire(now).await.unwrap();
    let flags = ["--api", &world.address, "--stale-after", "0"];
    let (_, page, text) = explained(&flags, path.to_str()).await;
    assert_eq!(page["state"], "stalled", "{text}");
    assert!(text.contains("no replica of the adapter runs: killed-1 has renewed Lease"), "{text}");
    assert!(text.contains("hint: see why the adapter does not run\n  next: kubectl "), "{text}");
    assert_eq!(page["lease"]["holder"], "killed-1", "{text}");
    drop(server);
    let (_, page, text) = explained(&flags, path.to_str()).await;
    assert_eq!(page["state"], "stalled", "{text}");
    assert!(text.contains("\n  Kubernetes cannot be read: "), "{text}");
}

/// The whole fleet plane, whose namespace of Jobs is deleted: what the adapter cannot do is named by both.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_namespace_of_jobs_is_named_with_the_command_that_creates_it() {
    let folder = folder();
    let up = Up::in_folder(folder.path()).await;
    let kubeconfig = up.place("kubeconfig").to_owned();
    let cluster = up.cluster().await;
    let file = Kubeconfig::read_from(&kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(Client::try_from(config).unwrap());
    namespaces.delete("hyperfleet-pull-secret", &DeleteParams::default()).await.unwrap();
    while cluster.namespace_exists("hyperfleet-pull-secret").await.unwrap() == Some(true) {
        tokio::task::yield_now().await;
    }
    up.player.create(ID, &document("a")).await;
    up.player.make_ready(&cluster, ID, 1).await;
    let flags = ["--api", up.place("api"), "--stale-after", "0"];
    let (code, _, text) = explained(&flags, Some(&kubeconfig)).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("\n  namespace hyperfleet-pull-secret, in which Jobs run, does not exist\n"), "{text}");
    assert!(text.contains("\n  next: kubectl create namespace hyperfleet-pull-secret\n"), "{text}");
    // The adapter's own word: after three passes that have failed.
    up.player.until(ID, |cluster| condition(cluster, "Health")["status"] == "False").await;
    let (_, page, text) = explained(&flags, Some(&kubeconfig)).await;
    assert_eq!(page["state"], "failed", "{text}");
    assert!(text.contains("\n  the adapter reports that it cannot work: "), "{text}");
    assert!(text.contains("\n  next: kubectl create namespace hyperfleet-pull-secret\n"), "{text}");
    cluster.ensure_namespace("hyperfleet-pull-secret").await.unwrap();
    up.player.until(ID, |cluster| condition(cluster, "Health")["status"] == "True").await;
    up.output();
}

/// An emulator of Kubernetes, and its kubeconfig in the folder.
async fn kubernetes_in(folder: &Path) -> (Kubernetes, PathBuf) {
    let server = Kubernetes::start(emulators::kubernetes::Settings::default()).await.unwrap();
    let path = folder.join("kubeconfig");
    daemon::file::replace(&path, server.kubeconfig().as_bytes()).unwrap();
    (server, path)
}

/// The report says that all is well; the cluster says something else.
#[tokio::test(flavor = "multi_thread")]
async fn a_kubernetes_secret_that_disagrees_with_the_report_is_reported() {
    let world = World::new().await;
    ready(&world).await;
    let data = json!({"secretVersion": 3, "namespace": "default", "k8sSecretName": "cls-1-pull-secret"});
    world.player.report(("pullsecret", ID), 1, &STORED, data).await;
    let folder = folder();
    let (_server, path) = kubernetes_in(folder.path()).await;
    let cluster = fleet::cluster(&path).await;
    let key = SecretKey { namespace: "default".to_owned(), name: "cls-1-pull-secret".to_owned() };
    let ask = async || explained(&["--api", &world.address], path.to_str()).await;
    let (code, page, text) = ask().await;
    assert_eq!((code, page["state"].as_str()), (Some(1), Some("contradicted")), "{text}");
    assert!(text.contains("the Kubernetes Secret does not exist"), "{text}");
    for (version, code, words) in [("2", 1, "of version 2, the report says 3"), ("3", 0, "AVAILABLE\n")] {
        let annotations = BTreeMap::from([("hyperfleet.io/gcp-secret-version".to_owned(), version.to_owned())]);
        let content = document("a").into_bytes().into();
        let labels = BTreeMap::new();
        let secret = AppliedSecret { labels, annotations, content, form: Form::DockerConfigJson, owner: None };
        match cluster.find_secret(&key).await.unwrap() {
            None => cluster.create_secret(&key, &secret, false).await.unwrap(),
            Some(seen) => cluster.apply_secret(&key, &secret, &seen, false).await.unwrap(),
        }
        let (exit, _, text) = ask().await;
        assert_eq!(exit, Some(code), "{text}");
        assert!(text.contains(words), "{text}");
    }
}

/// A failure of the real Job, against a store that does not let it: the reason goes all the way to the page.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_permission_is_named_from_the_store_to_the_page() {
    let settings = emulators::secret_manager::Settings {
        denied_permissions: ["secretmanager.versions.add".to_owned()].into(),
        ..emulators::secret_manager::Settings::default()
    };
    let (rig, folder) = (Rig::with(settings).await, folder());
    let mut command = up(folder.path());
    command.arg("--secret-manager").arg(rig.emulator.address().to_string());
    let up = Up::start(command).await;
    up.player.create(ID, &document("a")).await;
    up.player.make_ready(&up.cluster().await, ID, 1).await;
    up.player.until(ID, |cluster| condition(cluster, "Available")["reason"] == "PermissionDenied").await;
    let kubeconfig = up.place("kubeconfig").to_owned();
    let (code, page, text) = explained(&["--api", up.place("api")], Some(&kubeconfig)).await;
    assert_eq!((code, page["state"].as_str()), (Some(1), Some("failed")), "{text}");
    assert!(text.contains("secretmanager.versions.add"), "{text}");
    assert!(text.contains("\n  hint: grant the Job's service account secretmanager.versions.add"), "{text}");
    assert_eq!(page["job"]["pods"][0]["exit_code"], 4, "{text}");
    up.output();
}
