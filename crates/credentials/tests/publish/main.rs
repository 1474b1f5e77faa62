//! The clusters of a real HyperFleet API: one entry is written, the rest stays, and what is lost on the way is found again.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use credentials::ams::PullSecrets as _;
use credentials::credential::ClusterRef;
use credentials::entries::{EntryDigests, Validity};
use credentials::publish::{ApiClusters, ApiPullSecrets};
use credentials::run::{ClusterErrorKind, Clusters as _, Document, Entry, ObserveRequest, Observed};
use daemon::retry::Budget;
use fleet_model::{Generation, names};
use hyperfleet_client::{Client, NewResource, Settings, Status};
use jiff::Timestamp;
use registry_account::Login;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use testkit::hyperfleet::{HyperFleetApi, cluster, report};
use tokio::join;
use tokio_util::sync::CancellationToken;

const HOST: &str = "quay.io";
const OLD: &str = r#"{"auths":{"quay.io":{"auth":"b2xkOm9sZA=="},"registry.example.com":{"auth":"YTpi"}}}"#;
const NEW: &str = r#"{"auths":{"quay.io":{"auth":"b3JnK2E6aHVudGVyMg=="},"registry.example.com":{"auth":"YTpi"}}}"#;

struct Rig {
    api: HyperFleetApi,
    clusters: ApiClusters,
    client: Client,
}

// === impl Rig ===

impl Rig {
    async fn new() -> Self {
        let api = HyperFleetApi::start().await;
        let mut settings = Settings::new(format!("http://{}", api.address).parse().unwrap());
        settings.token = Some(api.token());
        let client = Client::new(settings).unwrap();
        let clusters = ApiClusters::new(client.clone(), Duration::from_secs(30), CancellationToken::new());
        Self { api, clusters, client }
    }

    async fn create(&self, id: &str, spec: Value) -> ClusterRef {
        let Value::Object(spec) = spec else { panic!("a spec is an object") };
        let created = self.api.create_cluster(&NewResource { spec, ..cluster(id) }).await;
        ClusterRef { id: id.to_owned(), incarnation: created.created_time.unwrap().as_microsecond() }
    }

    async fn observe(&self, cluster: &ClusterRef, generation: u32) -> Document {
        match self.clusters.observe(&request(cluster, generation, &login())).await.unwrap() {
            Observed::Found(document) => document,
            Observed::Gone => panic!("it is there"),
        }
    }

    async fn pull_secret(&self, id: &str) -> String {
        let budget = Budget::new(Duration::from_secs(30), CancellationToken::new());
        let found = self.client.within(&budget).get_with_pull_secret("clusters", id).await.unwrap().unwrap();
        found.pull_secret.unwrap().expose_secret().to_owned()
    }
}

fn login() -> Login {
    Login { username: "org+a".to_owned(), password: "hunter2".to_owned().into() }
}

fn request<'a>(cluster: &'a ClusterRef, generation: u32, login: &'a Login) -> ObserveRequest<'a> {
    ObserveRequest { cluster, host: HOST, login, generation: generation.into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_entry_is_written_and_its_report_is_the_evidence() {
    let rig = Rig::new().await;
    let spec = json!({"provider": "gcp", "pullSecret": {"data": OLD}});
    let cluster = rig.create("cls-1", spec).await;
    let before = rig.observe(&cluster, 1).await;
    assert_eq!((before.generation, before.user.as_deref()), (Generation::FIRST, Some("old")));
    assert!(!before.is_same && before.report.is_none() && before.nodes.is_none());

    let login = login();
    let entry = Entry { host: HOST, login: &login };
    let generation = rig.clusters.publish(&cluster, &entry, before.generation).await.unwrap();
    assert_eq!(generation, 2.into());
    assert_eq!(rig.pull_secret("cls-1").await, NEW);
    assert_eq!(rig.api.get("cls-1").await.unwrap().spec.pointer("/provider"), Some(&json!("gcp")));
    // As after an answer that was lost: the same entry is found, and the generation that has it.
    let after = rig.observe(&cluster, 2).await;
    assert_eq!((after.generation, after.user.as_deref(), after.is_same), (generation, Some("org+a"), true));
    assert!(after.report.is_none());

    // A write for a generation that has passed changes nothing.
    let late = rig.clusters.publish(&cluster, &entry, before.generation).await.unwrap_err();
    assert_eq!(late.kind, ClusterErrorKind::Changed);

    rig.api.report("cls-1", &report(names::ADAPTER, 1, Status::True)).await;
    assert!(rig.observe(&cluster, 2).await.report.is_none(), "that report is about the generation before");
    rig.api.report("cls-1", &report(names::ADAPTER, 2, Status::False)).await;
    assert!(rig.observe(&cluster, 2).await.report.is_none(), "it is not available");
    rig.api.report("cls-1", &report(names::ADAPTER, 2, Status::True)).await;
    let proof = rig.observe(&cluster, 2).await.report.unwrap();
    assert_eq!(proof.source, "report of adapter pullsecret about generation 2");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_writers_of_a_generation_one_wins() {
    let rig = Rig::new().await;
    let cluster = rig.create("cls-1", json!({"pullSecret": {"data": OLD}})).await;
    let (host, other) = ("registry.example.com", login());
    let login = login();
    let (one, two) = (Entry { host: HOST, login: &login }, Entry { host, login: &other });
    let publish = async |entry| rig.clusters.publish(&cluster, entry, Generation::FIRST).await;
    let (first, second) = join!(publish(&one), publish(&two));
    let won = [&first, &second].iter().filter(|result| result.is_ok()).count();
    let lost: Vec<_> = [first, second].into_iter().filter_map(Result::err).map(|error| error.kind).collect();
    assert_eq!((won, lost), (1, vec![ClusterErrorKind::Changed]));
    assert_eq!(rig.observe(&cluster, 1).await.generation, 2.into());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_a_pull_secret_gets_one() {
    let rig = Rig::new().await;
    let cluster = rig.create("cls-1", json!({})).await;
    let before = rig.observe(&cluster, 1).await;
    assert_eq!(before.user, None);
    let (login, host) = (login(), HOST);
    rig.clusters.publish(&cluster, &Entry { host, login: &login }, before.generation).await.unwrap();
    assert_eq!(rig.pull_secret("cls-1").await, r#"{"auths":{"quay.io":{"auth":"b3JnK2E6aHVudGVyMg=="}}}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_incarnation_is_not_the_cluster() {
    let rig = Rig::new().await;
    let cluster = rig.create("cls-1", json!({"pullSecret": {"data": OLD}})).await;
    let earlier = ClusterRef { incarnation: cluster.incarnation - 1, ..cluster };
    let absent = ClusterRef { id: "cls-2".to_owned(), incarnation: 1 };
    let (login, host) = (login(), HOST);
    for gone in [earlier, absent] {
        assert_eq!(rig.clusters.observe(&request(&gone, 1, &login)).await.unwrap(), Observed::Gone);
        let refused = rig.clusters.publish(&gone, &Entry { host, login: &login }, Generation::FIRST).await.unwrap_err();
        assert_eq!(refused.kind, ClusterErrorKind::Changed);
    }
    assert_eq!(rig.pull_secret("cls-1").await, OLD);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_exists_though_a_search_does_not_find_it() {
    let rig = Rig::new().await;
    rig.create("cls-1", json!({"pullSecret": {"data": OLD}})).await;
    let secrets = ApiPullSecrets::new(rig.client.clone(), Some("name = 'another'".to_owned()));
    assert_eq!(secrets.clusters().await.unwrap(), []);
    assert!(secrets.exists("cls-1").await.unwrap());
    assert!(!secrets.exists("cls-2").await.unwrap());
    rig.api.delete("cls-1").await;
    assert!(secrets.exists("cls-1").await.unwrap(), "its nodes may live while it is terminating");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_secret_by_reference_or_hidden_is_left_alone() {
    let rig = Rig::new().await;
    let by_reference = json!({"pullSecret": {"secretRef": {"namespace": "a", "name": "b"}}});
    let (login, host) = (login(), HOST);
    let refers = rig.create("cls-1", by_reference).await;
    let inline = rig.create("cls-2", json!({"pullSecret": {"data": OLD}})).await;
    let blind = ApiClusters::new(rig.api.client(), Duration::from_secs(30), CancellationToken::new());
    for (clusters, cluster) in [(&rig.clusters, &refers), (&blind, &inline)] {
        let error = clusters.observe(&request(cluster, 1, &login)).await.unwrap_err();
        let refused = clusters.publish(cluster, &Entry { host, login: &login }, Generation::FIRST).await.unwrap_err();
        for error in [error, refused] {
            assert!(matches!(error.kind, ClusterErrorKind::NotWritable | ClusterErrorKind::Denied), "{error:?}");
            assert!(!format!("{error} {error:?}").contains("b2xkOm9sZA"));
        }
    }
    assert_eq!(rig.pull_secret("cls-2").await, OLD);
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_seen_without_their_content() {
    let rig = Rig::new().await;
    let claims = URL_SAFE_NO_PAD.encode(r#"{"iat":1700000000,"exp":1700003600}"#);
    let document = json!({"auths": {
        "quay.io": {"auth": STANDARD.encode("org+a:hunter2")},
        "registry.example.com": {"auth": STANDARD.encode(format!("token:e30.{claims}.c2ln"))},
        "eu.example.com": {"identitytoken": format!("e30.{claims}.c2ln")},
    }});
    let cluster = rig.create("cls-1", json!({"pullSecret": {"data": document.to_string()}})).await;
    let digests = |key: u8| EntryDigests::new(vec![key; 32].into());
    let observed = rig.clusters.entries("cls-1", &digests(1)).await.unwrap().unwrap();
    assert_eq!((&observed.cluster, observed.generation), (&cluster, Generation::FIRST));
    let entries = observed.entries.clone().unwrap();
    let described = entries.iter().map(|entry| {
        let Validity { issued, expires } = entry.validity;
        let seconds = [issued, expires].map(|time| time.map_or(0, Timestamp::as_second));
        format!("{} {} {seconds:?}", entry.host, entry.user.as_deref().unwrap_or("-"))
    });
    let expected = [
        "eu.example.com - [1700000000, 1700003600]",
        "quay.io org+a [0, 0]",
        "registry.example.com token [1700000000, 1700003600]",
    ];
    assert_eq!(described.collect::<Vec<_>>(), expected);
    let printed = format!("{observed:?} {:?}", digests(1));
    for secret in ["hunter2", &claims, &STANDARD.encode("org+a:hunter2")] {
        assert!(!printed.contains(secret), "{printed}");
    }
    // The digest is of the credential, and can be compared under the same key only.
    let other =
        rig.create("cls-2", json!({"pullSecret": {"data": OLD.replace("b2xkOm9sZA==", "b3JnK2E6aHVudGVyMg==")}})).await;
    let entries_of = async |id: &str, key: u8| rig.clusters.entries(id, &digests(key)).await.unwrap().unwrap();
    let same = entries_of(&other.id, 1).await.entries.unwrap();
    assert_eq!(same.iter().find(|entry| entry.host == "quay.io").unwrap().digest, entries[1].digest);
    let under_other_key = entries_of("cls-1", 2).await.entries.unwrap();
    assert!(under_other_key[1].digest != entries[1].digest && under_other_key[1].digest.may_be(&entries[1].digest));
    let by_reference = rig.create("cls-3", json!({"pullSecret": {"secretRef": {"namespace": "a", "name": "b"}}})).await;
    assert_eq!(entries_of(&by_reference.id, 1).await.entries, None);
    rig.create("cls-4", json!({})).await;
    assert_eq!(entries_of("cls-4", 1).await.entries, Some(Vec::new()));
    assert!(rig.clusters.entries("cls-5", &digests(1)).await.unwrap().is_none());
}
