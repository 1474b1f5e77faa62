//! The record of a rotation on an API server, the emulator's and a real one's, with the Role of the guide.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test that is the right way to fail")]

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kubernetes::leadership::Leadership;
use kubernetes::{Cluster, ErrorKind, Settings};
use rotation::plan::{Options, Plan};
use rotation::record::{RecordError, Records, state_name};
use rotation::state::{Phase, Request, State};
use rstest::rstest;
use serde_json::{Value, json};
use testkit::api_server::{ApiServer, Kind, until};

const GUIDE: &str = include_str!("../../../docs/operations/rotate.md");

/// The records as an operator with the guide's Role sees them, and as another caller does.
struct World {
    server: ApiServer,
    namespace: String,
    operator: Records,
    stranger: Records,
}

impl World {
    async fn new(kind: Kind, test: &str) -> Option<Self> {
        let server = ApiServer::start(kind).await?;
        let namespace = format!("rotation-{test}-{}", std::process::id());
        server.create_namespace(&namespace).await;
        let yaml = GUIDE.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
        let mut role: Value = serde_saphyr::from_str(yaml).unwrap();
        role["metadata"]["namespace"] = json!(namespace);
        let name = role["metadata"]["name"].clone();
        drop(server.create::<Role>(&namespace, role).await);
        for account in ["operator", "stranger"] {
            let account = json!({"metadata": {"name": account}});
            drop(server.create::<ServiceAccount>(&namespace, account).await);
        }
        let binding = json!({
            "metadata": {"name": "operator"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": namespace}],
        });
        drop(server.create::<RoleBinding>(&namespace, binding).await);
        let operator = records(&server, &namespace, "operator").await;
        // A real server's authorizer learns of the role a little later.
        until("the role is in force", async || operator.names().await.ok()).await;
        let stranger = records(&server, &namespace, "stranger").await;
        Some(Self { server, namespace, operator, stranger })
    }
}

async fn records(server: &ApiServer, namespace: &str, account: &str) -> Records {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let kubeconfig = server.kubeconfig_of(namespace, account).await;
    daemon::file::replace(&path, serde_json::to_string(&kubeconfig).unwrap().as_bytes()).unwrap();
    let settings = Settings { kubeconfig: Some(path), ..Settings::default() };
    Records::new(Cluster::connect(&settings).await.unwrap(), namespace)
}

fn plan(selection: &str) -> Plan {
    Plan {
        planned: jiff::Timestamp::UNIX_EPOCH,
        selection: selection.to_owned(),
        options: Options { first_wave: 1, wave_size: 2, per_minute: 75, max_failures: 0, wave_timeout: 900 },
        waves: vec![vec![format!("cls-1 3 {}", "0a".repeat(16)).parse().unwrap()]],
        skipped: Vec::new(),
        projects: [("p".to_owned(), 1)].into(),
    }
}

fn state() -> State {
    State::new("jane", jiff::Timestamp::UNIX_EPOCH)
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_written_once_and_changed_by_all(#[case] kind: Kind) {
    let Some(World { server, namespace, operator, stranger }) = World::new(kind, "all").await else { return };
    assert!(matches!(operator.find("r").await, Err(RecordError::NotFound(_))));
    operator.create("r", &plan("all"), &state()).await.unwrap();
    assert!(matches!(operator.check_absent("r").await, Err(RecordError::Exists(_))));
    assert_eq!(operator.names().await.unwrap(), ["r"]);
    let recorded = operator.find("r").await.unwrap();
    assert_eq!((recorded.plan, recorded.state.phase, recorded.holder), (plan("all").recorded(), Phase::Running, None));

    // Several change it at once, and no change is lost.
    let change = |id: &'static str| {
        operator.change("r", move |state| {
            state.left.insert(id.to_owned(), String::new());
            Ok::<(), RecordError>(())
        })
    };
    let (one, two, three) = tokio::join!(change("a"), change("b"), change("c"));
    drop((one.unwrap(), two.unwrap(), three.unwrap()));
    let refuse = |state: &mut State| {
        state.request = Some(Request::Abort);
        Err(RecordError::InvalidName)
    };
    assert!(matches!(operator.change("r", refuse).await, Err(RecordError::InvalidName)));
    assert_eq!(operator.state("r").await.unwrap().request, None);
    let pause = |state: &mut State| {
        state.request = Some(Request::Pause);
        Ok::<(), RecordError>(())
    };
    operator.change("r", pause).await.unwrap();
    let found = operator.state("r").await.unwrap();
    assert_eq!((found.left.len(), found.request), (3, Some(Request::Pause)));

    // The plan cannot be changed, and a caller without the Role gets an error that says what is missing.
    let plans = server.api::<ConfigMap>(&namespace);
    let found = plans.get("pull-secret-rotation-r.plan").await.unwrap();
    assert_eq!(found.immutable, Some(true));
    let refused = stranger.find("r").await.unwrap_err();
    assert!(matches!(&refused, RecordError::Kubernetes(error) if error.kind == ErrorKind::Forbidden), "{refused}");
    assert!(refused.to_string().contains("allow the identity that this program runs with to get it"), "{refused}");
    for name in ["", "a.plan", "../r", "A"] {
        assert!(matches!(operator.find(name).await, Err(RecordError::InvalidName)), "{name}");
    }
    server.delete_namespace(&namespace).await;
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_start_has_left_is_replaced_and_what_is_too_large_is_refused(#[case] kind: Kind) {
    let Some(World { server, namespace, operator, .. }) = World::new(kind, "left").await else { return };
    let refused = operator.create("r", &plan(&"x".repeat(1_100_000)), &state()).await.unwrap_err();
    assert!(matches!(refused, RecordError::TooLarge(1_100_000..)), "{refused}");
    assert_eq!(operator.names().await.unwrap(), [""; 0]);
    operator.create("r", &plan("first"), &state()).await.unwrap();
    let objects = server.api::<ConfigMap>(&namespace);
    drop(objects.delete(&state_name("r"), &kube::api::DeleteParams::default()).await.unwrap());
    operator.check_absent("r").await.unwrap();
    operator.create("r", &plan("second"), &state()).await.unwrap();
    assert_eq!(operator.find("r").await.unwrap().plan.selection, "second");
    server.delete_namespace(&namespace).await;
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn one_process_works_on_a_rotation(#[case] kind: Kind) {
    let Some(World { server, namespace, operator, .. }) = World::new(kind, "one").await else { return };
    operator.create("r", &plan("all"), &state()).await.unwrap();
    operator.claim("r", "first").await.unwrap();
    let cluster = operator.cluster().clone();
    let mut first = Leadership::new(cluster, namespace.clone(), state_name("r"), "first".to_owned());
    let refused = tokio::select! {
        claimed = operator.claim("r", "second") => claimed.unwrap_err(),
        () = first.renew_until_lost() => panic!("it is renewed"),
    };
    assert!(matches!(&refused, RecordError::Held { holder, .. } if holder == "first"), "{refused}");
    assert_eq!(operator.find("r").await.unwrap().holder.as_deref(), Some("first"));
    // Without renewal, as after a kill, it is taken over.
    operator.claim("r", "second").await.unwrap();
    assert_eq!(operator.find("r").await.unwrap().holder.as_deref(), Some("second"));
    server.delete_namespace(&namespace).await;
}

#[rstest]
#[case::of_a_clock_a_little_ahead(5, true)]
#[case::of_a_killed_process(-60, false)]
#[case::of_a_clock_far_ahead(3_600, false)]
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_is_live_while_its_renewal_is_near(#[case] seconds: i64, #[case] expect: bool) {
    let Some(World { server, namespace, operator, .. }) = World::new(Kind::Emulator, "live").await else { return };
    operator.create("r", &plan("all"), &state()).await.unwrap();
    let renewed = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
    let spec = json!({"holderIdentity": "first", "renewTime": MicroTime(renewed), "leaseDurationSeconds": 10});
    drop(server.create::<Lease>(&namespace, json!({"metadata": {"name": state_name("r")}, "spec": spec})).await);
    assert_eq!(operator.find("r").await.unwrap().holder.is_some(), expect);
}

#[rstest]
#[case::running(Phase::Running, None, true, true)]
#[case::stopped(Phase::Stopped, None, true, true)]
#[case::to_be_paused(Phase::Running, Some(Request::Pause), true, true)]
#[case::to_be_aborted(Phase::Running, Some(Request::Abort), true, false)]
#[case::stopped_before_it_was_aborted(Phase::Stopped, Some(Request::Abort), true, false)]
#[case::aborted(Phase::Aborted, Some(Request::Abort), false, false)]
#[case::done(Phase::Done, None, false, false)]
fn a_requested_abortion_can_be_requested_again(
    #[case] phase: Phase,
    #[case] request: Option<Request>,
    #[case] abort: bool,
    #[case] resume: bool,
) {
    let state = State { phase, request, ..state() };
    assert_eq!((state.check_not_over("r").is_ok(), state.check_unfinished("r").is_ok()), (abort, resume));
}
