//! `pull-secret sweep` on what Jobs have written, with a real API server too.

use hyperfleet_client::{NewReport, Status};
use k8s_openapi::api::core::v1::Secret;
use rstest::rstest;
use serde_json::{Value, json};
use testkit::cluster::{Kind, Place};
use testkit::hyperfleet::{self, HyperFleetApi};
use testkit::program;
use testkit::rig::PROJECT;

/// A place with a cluster of its own, as other tests use the same API server.
struct Swept {
    place: Place,
    id: String,
}

impl Swept {
    async fn new(kind: Kind) -> Option<Self> {
        let place = Place::new(kind).await?;
        let swept = Self { id: format!("{}-cls", place.namespace), place };
        swept.store().await;
        Some(swept)
    }

    /// Runs the cluster's Job.
    async fn store(&self) {
        let mut job = self.place.job("a");
        let outcome = self.place.rig.run(job.env("CLUSTER_ID", &self.id)).await;
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    }

    /// Sweeps by what this API knows; returns the states of the cluster's secrets that are not in use, and the summary.
    async fn sweep(&self, api: &HyperFleetApi, flags: &[&str]) -> (Vec<Value>, Value) {
        let mut command = program::pull_secret(&["sweep", "--project", PROJECT, "--output", "json"]);
        command.args(["--cluster", &self.id, "--api", &format!("http://{}", api.address)]).args(flags);
        command.arg("--kubeconfig").arg(self.place.kubeconfig());
        command.env("SECRET_MANAGER_EMULATOR_HOST", self.place.rig.emulator.address().to_string());
        let output = command.output().await.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let summary = lines.pop().unwrap()["summary"].clone();
        (lines.iter().map(|line| line["state"].clone()).collect(), summary)
    }

    /// True if the secret is in Secret Manager, and true if it is in Kubernetes.
    async fn is_there(&self) -> (bool, bool) {
        let secret = format!("hyperfleet-{}-pull-secret", self.id).parse().unwrap();
        let stored = secret_store::SecretStore::find(&self.place.rig.store, &secret).await.unwrap();
        let name = format!("{}-pull-secret", self.id);
        let applied = self.place.api::<Secret>().get_opt(&name).await.unwrap();
        (stored.is_some(), applied.is_some())
    }
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_cluster_has_left_is_deleted_in_both_places(#[case] kind: Kind) {
    let Some(swept) = Swept::new(kind).await else { return };
    let api = HyperFleetApi::start().await;
    let (states, summary) = swept.sweep(&api, &["--dry-run"]).await;
    assert_eq!((states, &summary["leftBehind"]), (vec![json!("unknown"); 2], &json!(2)));
    assert_eq!(swept.is_there().await, (true, true));
    let (_, summary) = swept.sweep(&api, &[]).await;
    assert_eq!(summary, json!({"listed": 2, "leftBehind": 2, "deleted": 2, "notDeleted": 0}));
    assert_eq!(swept.is_there().await, (false, false));
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_former_copy_of_a_living_cluster_is_deleted_on_request(#[case] kind: Kind) {
    let Some(swept) = Swept::new(kind).await else { return };
    let api = HyperFleetApi::start().await;
    api.create(&swept.id).await;
    let report = async |namespace: &str| {
        let copies = json!([
            {"kind": "secret", "project": PROJECT, "name": format!("hyperfleet-{}-pull-secret", swept.id)},
            {"kind": "kubernetesSecret", "namespace": namespace, "name": format!("{}-pull-secret", swept.id)},
        ]);
        let data = [("copies".to_owned(), copies)].into_iter().collect();
        let report = NewReport { data, ..hyperfleet::report("pullsecret", 1_u32, Status::True) };
        api.report(&swept.id, &report).await;
    };
    report(&swept.place.namespace).await;
    let (states, summary) = swept.sweep(&api, &["--not-listed"]).await;
    assert_eq!((states, &summary["deleted"]), (vec![], &json!(0)));
    report("elsewhere").await;
    let (states, _) = swept.sweep(&api, &[]).await;
    assert_eq!((states, swept.is_there().await), (vec![json!("notListed")], (true, true)));
    let (_, summary) = swept.sweep(&api, &["--not-listed"]).await;
    assert_eq!((&summary["deleted"], swept.is_there().await), (&json!(1), (true, false)));
}
