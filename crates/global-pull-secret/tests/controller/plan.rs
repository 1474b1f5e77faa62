//! `plan` as people run it, and the condition in which a running controller says the same.

use fleet_model::names;
use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, Role, RoleBinding};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use rstest::rstest;
use serde_json::{Value, json};

use crate::cluster::{ADDITIONAL, GLOBAL, Kind, SYSTEM, until};
use crate::commands::{file, run};
use crate::rig::{CANARY, Rig, document};

const IMAGES: &str = "q.io/team/app:1\nq.io/team/app:2\nr.io/app@sha256:00\nnginx\nq.io/base\n";

#[test]
fn images_lose_keys_offline() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| file(folder.path(), name, text);
    let (original, images) = (at("o", &document("q.io=1")), at("i", IMAGES));
    let (present, proposed) = (at("p", &document("q.io/team=2 r.io=2")), at("a", &document("r.io=3 docker.io=3")));
    let mut arguments = vec!["plan", "--images", &images, "--original", &original, "--present", &present];
    arguments.extend(["--additional", &proposed]);
    let (code, out, error) = run(&arguments);
    let expected = "loses: q.io/team/app (2 Pods): q.io/team from additional-pull-secret -> q.io from the original\n\
                    replaced: r.io/app (1 Pod): r.io from additional-pull-secret -> r.io from additional-pull-secret\n\
                    gains: docker.io/library/nginx (1 Pod): no key -> docker.io from additional-pull-secret\n\
                    unchanged: q.io/base (1 Pod): q.io from the original\n\
                    Pods: 5, images: 4; loses 1, replaced 1, gains 1, unchanged 1\n\
                    refused: keep the keys of these images, or confirm with --allow REPOSITORY\n";
    assert_eq!((code, out.as_str()), (3, expected), "{error}");
    let (code, out, _) = run(&[&arguments[..], &["--allow", "q.io/team"]].concat());
    assert!(code == 0 && out.starts_with("loses (allowed): q.io/team/app"), "{out}");
    assert_eq!(run(&[&arguments[..], &["--allow", "q.io/tea"]].concat()).0, 3);
    let (code, out, _) = run(&[&arguments[..], &["--output", "json"]].concat());
    let parsed: Value = serde_json::from_str(&out).unwrap();
    let team = json!({
        "image": "q.io/team/app", "pods": 2, "namespaces": [], "effect": "loses", "allowed": false,
        "before": {"key": "q.io/team", "from": ADDITIONAL}, "after": {"key": "q.io", "from": "the original"},
    });
    assert_eq!((code, &parsed["refused"], &parsed["images"][0]), (3, &true.into(), &team));
    assert!(!out.contains(CANARY));
}

/// A change that is none, a part that comes first, and one credential in place of another's.
#[test]
fn policies_decide_what_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| file(folder.path(), name, text);
    let (original, images) = (at("o", &document("q.io=1")), at("i", "q.io/team/app"));
    let plan = |entries: &str, more: &[&str]| {
        let proposed = at("a", &document(entries));
        let arguments = ["plan", "--images", &images, "--original", &original, "--additional", &proposed];
        let (code, out, error) = run(&[&arguments[..], more].concat());
        (code, out.lines().next().map_or(error, str::to_owned))
    };
    let part = "replaced: q.io/team/app (1 Pod): q.io from the original -> q.io/team from additional-pull-secret, then q.io from the original";
    assert_eq!(plan("q.io/team=2", &[]), (0, part.to_owned()));
    let same = "unchanged: q.io/team/app (1 Pod): q.io from the original".to_owned();
    assert_eq!(plan("q.io=1", &[]), (0, same.clone()));
    let lost = "loses: q.io/team/app (1 Pod): q.io from the original -> q.io from additional-pull-secret";
    assert_eq!(plan("q.io=2", &[]), (3, lost.to_owned()));
    assert_eq!(plan("q.io=2", &["--conflict-policy", "original-wins"]), (0, same.clone()));
    assert_eq!(plan("q.io=2 q.io/team=2", &["--protected-prefix", "q.io"]), (0, same));
}

#[test]
fn what_cannot_be_planned_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| file(folder.path(), name, text);
    let (original, images) = (at("o", &document("q.io=1")), at("i", "q.io/team/app\nc4n4ry c4n4ry"));
    let bad = at("a", r#"{"auths": {"r.io": {"auth": "c4n4ry!"}, "s.io": {"auth": "YTpi"}}}"#);
    let arguments = ["plan", "--images", &images, "--original", &original, "--additional", &bad];
    let (code, out, _) = run(&arguments);
    let expected = "note: images left out, as they are no names of images: 1\n\
                    problem: additional-pull-secret: auths[\"r.io\"].auth: not base64 (line 1, column 29)\n\
                    refused: correct the Secret\n";
    assert_eq!((code, out.as_str()), (3, expected));
    let (code, out, _) = run(&[&arguments[..], &["--invalid-entries", "skip"]].concat());
    assert!(code == 0 && out.contains("note: additional-pull-secret: left out: auths[\"r.io\"]"), "{out}");
    let nothing = ["plan", "--images", &images, "--original", "/nowhere/c4n4ry", "--removed"];
    let (code, _, error) = run(&nothing);
    assert!(code == 1 && error.contains("cannot read the file of the original") && !error.contains("c4n4ry"));
    assert_eq!(run(&["plan", "--images", &images]).0, 2, "it needs the original");
    let (code, _, error) = run(&["plan", "--hosted-kubeconfig", "/nowhere/kubeconfig"]);
    assert!(code == 1 && error.contains("kubeconfig /nowhere/kubeconfig"), "{error}");
}

impl Rig {
    /// Creates a Pod that no kubelet starts, once its namespace takes Pods; it is the cluster's to delete.
    async fn pod(&self, name: &str, image: &str) {
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": image}]}});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let pods = self.cluster.server.api::<Pod>(&self.cluster.namespace);
        let create = async || pods.create(&PostParams::default(), &pod).await.ok().map(drop);
        until("the Pod is created", create).await;
    }

    /// Takes the `ClusterRole` from the controller.
    pub(crate) async fn may_not_list_all_pods(&self) {
        let bindings: Api<ClusterRoleBinding> = Api::all(self.cluster.server.client.clone());
        drop(bindings.delete(GLOBAL, &DeleteParams::default()).await.unwrap());
    }

    async fn delete_pod(&self, name: &str) {
        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        drop(self.cluster.server.api::<Pod>(&self.cluster.namespace).delete(name, &at_once).await.unwrap());
    }
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn an_admin_gets_the_same_answer_from_plan_and_from_the_status(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind, &[]).await else { return };
    let namespace = rig.cluster.namespace.clone();
    for (name, image) in [("one", "l.io/team/app:1"), ("two", "l.io/team/app:2"), ("three", "q.io/base")] {
        rig.pod(name, image).await;
    }
    rig.add("l.io/team=2").await;
    rig.shows("RolledOut=True/RolledOut").await;
    rig.shows("KeysKept=True/KeysKept").await;
    let kubeconfig = rig.cluster.kubeconfig().to_str().unwrap().to_owned();
    let proposed = file(rig.cluster.folder.path(), "proposed", &document("m.io=2"));
    let mut arguments = vec!["plan", "--hosted-kubeconfig", &kubeconfig, "--control-plane-namespace", &namespace];
    // Without a change: the effect of what is there.
    let (code, out, error) = run(&arguments);
    let pods = format!("(2 Pods in {namespace})");
    let line = format!("gains: l.io/team/app {pods}: no key -> l.io/team from additional-pull-secret\n");
    assert!(code == 0 && out.contains(&line), "{out}{error}");
    for change in [&["--additional", &proposed][..], &["--removed"]] {
        let (code, out, error) = run(&[&arguments[..], change].concat());
        let line = format!("loses: l.io/team/app {pods}: l.io/team from additional-pull-secret -> no key\n");
        assert!(code == 3 && out.contains(&line), "{out}{error}");
        let line = format!("unchanged: q.io/base (1 Pod in {namespace}): q.io from the original\n");
        assert!(out.contains(&line) && !out.contains("note:"), "{out}");
        assert!(!out.contains(CANARY));
    }
    // The change is made all the same: it is rolled out and reported.
    rig.add("m.io=2").await;
    let lost = rig.shows("KeysKept=False/KeysLost").await;
    assert_eq!(
        lost,
        "images of running Pods have lost their key: \
         l.io/team/app (had l.io/team from additional-pull-secret, has no key)"
    );
    rig.shows("RolledOut=True/RolledOut").await;
    rig.deploys("m.io=2 q.io=1").await;
    until("its Event", async || rig.events().await.contains(&"KeysLost".to_owned()).then_some(())).await;
    rig.add("m.io=2 l.io=2").await;
    rig.shows("KeysKept=True/KeysKept").await;
    for name in ["one", "two", "three"] {
        rig.delete_pod(name).await;
    }
    // HyperShift's copy of the original, and its absence.
    arguments.truncate(3);
    let (code, _, error) = run(&arguments);
    assert!(
        code == 1 && error.contains("there is no secret openshift-config/pull-secret") && error.contains("--original"),
        "{error}"
    );
    if !rig.cluster.server.is_real() {
        rig.cluster.server.create_namespace("openshift-config").await;
        rig.cluster.put_secret("openshift-config", "pull-secret", &document("q.io=1")).await;
        assert_eq!(run(&arguments).0, 0);
    }
}

/// The controller's policy counts, unless another one is given.
#[tokio::test(flavor = "multi_thread")]
async fn the_controllers_policy_is_that_of_the_plan() {
    let rig = Rig::new(Kind::Emulator, &[("protected-prefix", "q.io/base")]).await.unwrap();
    rig.pod("one", "q.io/base/image").await;
    let kubeconfig = rig.cluster.kubeconfig().to_str().unwrap().to_owned();
    let proposed = file(rig.cluster.folder.path(), "proposed", &document("q.io/base=2"));
    let namespace = rig.cluster.namespace.clone();
    let mut arguments = vec!["plan", "--hosted-kubeconfig", &kubeconfig, "--control-plane-namespace", &namespace];
    arguments.extend(["--additional", &proposed]);
    let (code, out, error) = run(&arguments);
    assert!(
        code == 0 && out.starts_with("replaced: q.io/base/image") && out.contains("note: there is no"),
        "{out}{error}"
    );
    rig.add("r.io=2").await;
    rig.shows("RolledOut=True/RolledOut").await;
    let (code, out, error) = run(&arguments);
    assert!(code == 0 && out.contains("unchanged: q.io/base/image") && !out.contains("note:"), "{out}{error}");
}

/// A labelled Secret without a key among the deployed ones could get one by the change.
#[tokio::test(flavor = "multi_thread")]
async fn labelled_secrets_that_are_not_considered_are_named() {
    let rig = Rig::new(Kind::Emulator, &[]).await.unwrap();
    rig.pod("one", "q.io/base").await;
    let label = json!({names::LABEL_ADDITIONAL: "true"});
    for name in ["team-a", ADDITIONAL] {
        let secret = json!({
            "metadata": {"name": name, "labels": label},
            "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": document("r.io=2")},
        });
        drop(rig.cluster.server.create::<Secret>(SYSTEM, secret).await);
    }
    rig.shows("RolledOut=True/RolledOut").await;
    let original = file(rig.cluster.folder.path(), "original", &document("q.io=1"));
    let plan = |kubeconfig: &std::path::Path| {
        run(&["plan", "--hosted-kubeconfig", kubeconfig.to_str().unwrap(), "--original", &original])
    };
    let (code, out, error) = plan(&rig.cluster.kubeconfig());
    let note = "note: Secrets with the label of additional ones that contribute no key now are not considered: ";
    assert!(code == 0 && out.contains(&format!("{note}team-a\n")), "{out}{error}");
    let rules = json!([{"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["get"]}]);
    drop(rig.cluster.server.create::<Role>(SYSTEM, json!({"metadata": {"name": "get"}, "rules": rules})).await);
    let binding = json!({
        "metadata": {"name": "get"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "get"},
        "subjects": [{"kind": "ServiceAccount", "name": GLOBAL, "namespace": SYSTEM}],
    });
    drop(rig.cluster.server.create::<RoleBinding>(SYSTEM, binding).await);
    let (code, out, error) = plan(&rig.cluster.kubeconfig_of(SYSTEM).await);
    assert!(code == 0 && out.contains(&format!("{note}cannot list secret kube-system/")), "{out}{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_to_list_pods_everything_else_goes_on() {
    let mut rig = Rig::new(Kind::Emulator, &[]).await.unwrap();
    rig.add("q.io=2").await;
    rig.shows("KeysKept=True/KeysKept").await;
    rig.may_not_list_all_pods().await;
    rig.restart().await;
    rig.add("r.io=2").await;
    until("the missing right is named", async || {
        let unknown = rig.shows("KeysKept=Unknown/ImagesUnknown").await;
        unknown.starts_with("cannot list pods of all namespaces: permission denied").then_some(())
    })
    .await;
    rig.shows("Degraded=False/AsExpected").await;
    rig.deploys("q.io=1 r.io=2").await;
    let kubeconfig = rig.cluster.kubeconfig_of(SYSTEM).await;
    let original = file(rig.cluster.folder.path(), "original", &document("q.io=1"));
    let arguments = ["plan", "--hosted-kubeconfig", kubeconfig.to_str().unwrap(), "--original", &original];
    let (code, _, error) = run(&arguments);
    assert!(code == 1 && error.contains("hosted cluster at http") && error.contains("permission denied"), "{error}");
    assert!(rig.cluster.get::<Secret>(GLOBAL).await.is_some());
}
