//! The Job as a Kubernetes Job object: the manifest of `examples/`, run by the emulator's Job controller as a process.
//!
//! Not on the real server of `hack/real-parts`, which has no kubelet to run pods.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use emulators::kubernetes::{Kubernetes, Settings};
use k8s_openapi::api::batch::v1::Job;
use kubernetes::job::{JobEnd, Termination};
use kubernetes::{Cluster, SecretKey};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use testkit::api_server::until;
use testkit::rig::{Rig, pull_secret};

const NAMESPACE: &str = "hyperfleet-pull-secret";
const JOB: &str = "pullsecret-cls-123-gen1";
const CONTAINER: &str = "pull-secret";

/// An API server that runs the image as this program, and a store.
struct World {
    rig: Rig,
    server: Kubernetes,
    cluster: Cluster,
}

impl World {
    async fn new() -> Self {
        let image = "quay.io/openshift-hyperfleet/pull-secret:0.1.0".to_owned();
        let settings = Settings {
            namespaces: vec![NAMESPACE.to_owned(), "clusters-cls-123".to_owned()],
            run_pods: BTreeMap::from([(image, testkit::program::path("pull-secret"))]),
            back_off: Duration::from_millis(100),
            ..Settings::default()
        };
        let (rig, server) = (Rig::new().await, Kubernetes::start(settings).await.unwrap());
        let path = rig.path("kubeconfig");
        daemon::file::replace(&path, server.kubeconfig().as_bytes()).unwrap();
        let settings = kubernetes::Settings { kubeconfig: Some(path), ..kubernetes::Settings::default() };
        let cluster = Cluster::connect(&settings).await.unwrap();
        Self { rig, server, cluster }
    }

    async fn create(&self, path: &str, body: &Value) {
        let body = body.to_string();
        let mut stream = TcpStream::connect(self.server.address()).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n"
        );
        stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }

    /// Creates what the adapter would, runs the Job to its end, and returns how it ended and what its pods said.
    async fn run(&self, pull_secret: &str, environment: &[(&str, &str)]) -> (JobEnd, Vec<Termination>) {
        let secrets = format!("/api/v1/namespaces/{NAMESPACE}/secrets");
        let account = json!({"metadata": {"name": "pullsecret-adapter-job"}});
        self.create(&format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"), &account).await;
        let input = json!({"metadata": {"name": "cluster-cls-123-pullsecret-data"}, "stringData": {"pull-secret.json": pull_secret}});
        self.create(&secrets, &input).await;
        let access =
            json!({"metadata": {"name": "management"}, "stringData": {"kubeconfig": self.server.kubeconfig()}});
        self.create(&secrets, &access).await;
        let mut manifest = manifest();
        let address = self.rig.emulator.address().to_string();
        let given =
            [("SECRET_MANAGER_EMULATOR_HOST", address.as_str()), ("MANAGEMENT_KUBECONFIG", "/management/kubeconfig")];
        let container = &mut manifest["spec"]["template"]["spec"]["containers"][0];
        for (name, value) in given.iter().chain(environment) {
            container["env"].as_array_mut().unwrap().push(json!({"name": name, "value": value}));
        }
        let mount = json!({"name": "management", "mountPath": "/management", "readOnly": true});
        container["volumeMounts"].as_array_mut().unwrap().push(mount);
        let volume = json!({"name": "management", "secret": {"secretName": "management"}});
        manifest["spec"]["template"]["spec"]["volumes"].as_array_mut().unwrap().push(volume);
        let job: Job = serde_json::from_value(manifest).unwrap();
        assert!(self.cluster.create_job_once(NAMESPACE, &job).await.unwrap().is_some());
        let ended = async || self.cluster.find_job(NAMESPACE, JOB).await.unwrap().and_then(|job| job.end);
        let end = until("the Job ends", ended).await;
        (end, self.cluster.terminations(NAMESPACE, JOB, CONTAINER).await.unwrap())
    }
}

fn manifest() -> Value {
    serde_saphyr::from_str(include_str!("../../../../examples/pull-secret-job.yaml")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_completes_and_says_what_it_has_stored() {
    let world = World::new().await;
    let (end, terminations) = world.run(&pull_secret("a"), &[]).await;
    assert_eq!(end, JobEnd::Complete, "{terminations:#?}");
    let [termination] = terminations.as_slice() else { panic!("{terminations:#?}") };
    let result: Value = serde_json::from_str(&termination.message).unwrap();
    assert_eq!((termination.exit_code, &result["reason"]), (0, &json!("SecretStored")));
    assert_eq!(result["details"]["secretVersion"], 1);
    let key = SecretKey { namespace: "clusters-cls-123".to_owned(), name: "cls-123-pull-secret".to_owned() };
    assert!(world.cluster.find_secret(&key).await.unwrap().is_some());
    assert!(
        world.cluster.create_job_once(NAMESPACE, &serde_json::from_value(manifest()).unwrap()).await.unwrap().is_none()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_worth_another_try_gets_one() {
    let world = World::new().await;
    world.rig.emulator.inject("getSecret:hang".parse().unwrap());
    let (end, terminations) = world.run(&pull_secret("a"), &[("RUN_TIMEOUT", "4s")]).await;
    assert_eq!(end, JobEnd::Complete, "{terminations:#?}");
    // Both may have ended within the same second, the resolution of Kubernetes' times.
    let codes: BTreeSet<_> = terminations.iter().map(|termination| termination.exit_code).collect();
    assert_eq!((terminations.len(), codes), (2, BTreeSet::from([0, 75])));
}

#[rstest]
#[case::an_invalid_pull_secret(3, "{}", None, false)]
#[case::a_denied_permission(4, "", Some("createSecret:permission-denied*0"), false)]
#[case::a_foreign_secret(5, "", None, true)]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_permanent_fails_at_once(
    #[case] code: i32,
    #[case] document: &str,
    #[case] fault: Option<&str>,
    #[case] is_foreign: bool,
) {
    let world = World::new().await;
    if let Some(fault) = fault {
        world.rig.emulator.inject(fault.parse().unwrap());
    }
    if is_foreign {
        world.rig.unmanaged(&[]).await;
    }
    let document = if document.is_empty() { pull_secret("a") } else { document.to_owned() };
    let (end, terminations) = world.run(&document, &[("GCP_PROJECT_ID", testkit::rig::PROJECT)]).await;
    assert!(matches!(&end, JobEnd::Failed { reason, .. } if reason == "PodFailurePolicy"), "{end:?} {terminations:#?}");
    let codes: Vec<_> = terminations.iter().map(|termination| termination.exit_code).collect();
    assert_eq!(codes, [code], "{terminations:#?}");
}
