//! Drift is repaired, unmanaged objects are left alone, and nodes that do not follow are named.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, EnvVar, LocalObjectReference, PodSecurityContext, PodSpec, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use rstest::rstest;
use serde_json::{Value, json};

use super::world::{ADDITIONAL, World, document, message, reported};
use crate::policy::Rollout;
use fleet_model::names;

fn deployed() -> World {
    let mut world = World::new("q.io=O");
    world.additional("r.io=V");
    world.settle_nodes();
    world.take_done();
    world
}

#[rstest]
#[case::secret_deleted(|world: &mut World| world.facts.global = None, "apply secret")]
#[case::account_deleted(|world: &mut World| world.facts.service_account = None, "apply serviceaccount")]
#[case::account_changed(|world: &mut World| Arc::make_mut(world.facts.service_account.as_mut().unwrap()).automount_service_account_token = None, "apply serviceaccount")]
#[case::confirmations_deleted(|world: &mut World| world.facts.confirmations = None, "apply configmap")]
#[case::role_deleted(|world: &mut World| world.facts.role = None, "apply role")]
#[case::role_widened(|world: &mut World| Arc::make_mut(world.facts.role.as_mut().unwrap()).rules.as_mut().unwrap()[0].resource_names = None, "apply role")]
#[case::binding_widened(|world: &mut World| {
    let subjects = &mut Arc::make_mut(world.facts.role_binding.as_mut().unwrap()).subjects;
    let first = subjects.as_ref().unwrap()[0].clone();
    subjects.as_mut().unwrap().push(first);
}, "apply rolebinding")]
#[case::set_deleted(|world: &mut World| world.facts.daemon_set = None, "apply daemonset")]
#[case::image_changed(|world: &mut World| container(world).image = Some("evil".to_owned()), "apply daemonset")]
#[case::environment_added(|world: &mut World| {
    container(world).env = Some(vec![EnvVar::default()]);
    another_manager(world, &json!({"f:containers": {r#"k:{"name":"global-pull-secret-syncer"}"#: {"f:env": {}}}}));
}, "apply daemonset")]
#[case::selector_added(|world: &mut World| {
    pod(world).node_selector = Some([("a".to_owned(), "b".to_owned())].into());
    another_manager(world, &json!({"f:nodeSelector": {".": {}, "f:a": {}}}));
}, "apply daemonset")]
#[case::host_namespace_added(|world: &mut World| {
    pod(world).host_pid = Some(true);
    another_manager(world, &json!({"f:hostPID": {}}));
}, "apply daemonset")]
#[case::init_container_added(|world: &mut World| {
    pod(world).init_containers = Some(vec![Container::default()]);
    another_manager(world, &json!({"f:initContainers": {}}));
}, "apply daemonset")]
#[case::container_added(|world: &mut World| pod(world).containers.push(Container::default()), "apply daemonset")]
#[case::volume_added(|world: &mut World| pod(world).volumes.as_mut().unwrap().push(Volume::default()), "apply daemonset")]
fn drift_is_repaired(#[case] break_it: impl Fn(&mut World), #[case] expected: &str) {
    let mut world = deployed();
    break_it(&mut world);
    world.settle();
    assert_eq!(world.take_done()[0], expected);
    world.settle();
    let again: Vec<String> = world.take_done().into_iter().filter(|done| done == expected).collect();
    assert!(again.is_empty());
}

fn pod(world: &mut World) -> &mut PodSpec {
    let set = Arc::make_mut(world.facts.daemon_set.as_mut().unwrap());
    set.spec.as_mut().unwrap().template.spec.as_mut().unwrap()
}

fn container(world: &mut World) -> &mut Container {
    &mut pod(world).containers[0]
}

/// Another manager has set these fields of the DaemonSet's Pods.
fn another_manager(world: &mut World, fields: &Value) {
    let fields = json!({"f:spec": {"f:template": {"f:spec": fields}}});
    let entry = ManagedFieldsEntry {
        manager: Some("kubectl-edit".to_owned()),
        operation: Some("Update".to_owned()),
        fields_v1: Some(FieldsV1(fields)),
        ..ManagedFieldsEntry::default()
    };
    Arc::make_mut(world.facts.daemon_set.as_mut().unwrap()).metadata.managed_fields = Some(vec![entry]);
}

#[test]
fn changed_content_is_restored_with_a_new_revision() {
    let mut world = deployed();
    let revision = world.record().revision;
    let observed = world.facts.global.as_ref().unwrap();
    let (metadata, seen_revision) = (observed.metadata.clone(), observed.revision.clone());
    let changed = world.secret("x", Some(&document("evil.io=V")));
    let mut changed = Arc::into_inner(changed).unwrap();
    changed.metadata = metadata;
    changed.revision = seen_revision;
    changed.kind = "kubernetes.io/dockerconfigjson".to_owned();
    world.facts.global = Some(changed.into());
    world.settle();
    assert_eq!(world.deployed(), "q.io O r.io V");
    assert!(world.record().revision > revision);
}

#[test]
fn server_defaults_are_no_drift() {
    let mut world = deployed();
    let container = container(&mut world);
    container.termination_message_path = Some("/dev/termination-log".to_owned());
    let set = Arc::make_mut(world.facts.daemon_set.as_mut().unwrap());
    let spec = set.spec.as_mut().unwrap();
    spec.revision_history_limit = Some(10);
    let pod = spec.template.spec.as_mut().unwrap();
    pod.dns_policy = Some("ClusterFirst".to_owned());
    pod.scheduler_name = Some("default-scheduler".to_owned());
    pod.service_account = Some("global-pull-secret-syncer".to_owned());
    pod.security_context = Some(PodSecurityContext::default());
    world.settle();
    assert!(world.take_done().is_empty());
}

/// OpenShift adds pull secrets and tokens to every ServiceAccount, and `kubectl rollout restart` an annotation to the Pods.
#[test]
fn fields_of_other_managers_are_left_alone() {
    let mut world = deployed();
    let account = Arc::make_mut(world.facts.service_account.as_mut().unwrap());
    account.image_pull_secrets = Some(vec![LocalObjectReference { name: "syncer-dockercfg".to_owned() }]);
    account.metadata.labels.as_mut().unwrap().insert("theirs".to_owned(), "x".to_owned());
    account.metadata.finalizers = Some(vec!["theirs/f".to_owned()]);
    let set = Arc::make_mut(world.facts.daemon_set.as_mut().unwrap());
    let template = set.spec.as_mut().unwrap().template.metadata.as_mut().unwrap();
    template.annotations = Some([("kubectl.kubernetes.io/restartedAt".to_owned(), "now".to_owned())].into());
    world.settle();
    assert_eq!(world.take_done(), [""; 0]);
}

/// Without it the live object still contains everything that is desired: only its digest differs.
#[test]
fn a_setting_that_is_taken_back_is_applied() {
    let mut world = deployed();
    let selector: std::collections::BTreeMap<_, _> = [("pool".to_owned(), "a".to_owned())].into();
    for node_selector in [selector, std::collections::BTreeMap::new()] {
        world.policy.syncer.node_selector = node_selector;
        world.settle();
        assert_eq!(world.take_done()[0], "apply daemonset");
    }
}

#[test]
fn unmanaged_objects_are_left_alone_and_named() {
    let mut world = World::new("q.io=O");
    world.facts.global = Some(world.secret(names::GLOBAL_PULL_SECRET, Some(&document("z.io=W"))));
    world.additional("r.io=V");
    let plan = world.settle();
    assert_eq!(world.take_done(), ["apply configmap"]);
    assert_eq!((world.deployed().as_str(), reported(&plan)[3].as_str()), ("z.io W", "Degraded=True/UnmanagedObject"));
    assert_eq!(message(&plan, "Degraded"), "unmanaged, left alone: secret global-pull-secret");
    let mut world = deployed();
    Arc::make_mut(world.facts.role.as_mut().unwrap()).metadata.labels = None;
    let plan = world.settle();
    assert_eq!(message(&plan, "Degraded"), "unmanaged, left alone: role global-pull-secret-syncer");
    world.delete(ADDITIONAL);
    world.settle_nodes();
    world.end_pods();
    world.settle();
    assert!(world.facts.role.is_some() && world.facts.global.is_none(), "{:?}", world.done);
}

#[test]
fn a_node_that_does_not_follow_is_named_after_its_time() {
    let mut world = deployed();
    world.additional("r.io=W");
    world.settle();
    world.fail("node-b", "CrashLoopBackOff");
    let plan = world.settle_nodes();
    assert_eq!(
        (reported(&plan)[2].as_str(), message(&plan, "RolledOut")),
        ("RolledOut=False/RollingOut", "1/2 nodes have the content")
    );
    assert_eq!(reported(&plan)[3], "Degraded=False/AsExpected");
    let wait = plan.next.unwrap().duration_since(world.now).as_secs();
    world.wait(wait);
    let plan = world.settle();
    assert_eq!(reported(&plan)[3], "Degraded=True/NodesNotInSync");
    assert_eq!(message(&plan, "Degraded"), "1 of 2 nodes have not confirmed the content: node-b (CrashLoopBackOff)");
    world.roll(&["node-b"]);
    world.confirm(&["node-b"]);
    assert_eq!(reported(&world.settle())[2..], ["RolledOut=True/RolledOut", "Degraded=False/AsExpected"]);
}

/// As a real API server does where the priority class does not exist; the DaemonSet's controller then reports nothing.
#[test]
fn nodes_without_a_pod_refer_to_the_daemon_set() {
    let mut world = deployed();
    world.facts.pods.clear();
    Arc::make_mut(world.facts.daemon_set.as_mut().unwrap()).status = None;
    world.additional("r.io=W");
    let plan = world.settle_nodes();
    assert_eq!(reported(&plan)[2..], ["RolledOut=False/RollingOut", "Degraded=False/AsExpected"]);
    world.wait(600);
    let plan = world.settle();
    assert_eq!(reported(&plan)[3], "Degraded=True/NodesNotInSync");
    assert_eq!(
        message(&plan, "Degraded"),
        "1 of 1 nodes have not confirmed the content: no Pod there; `kubectl describe daemonset global-pull-secret-syncer -n kube-system` shows the cause"
    );
}

#[test]
fn rolling_means_new_pods_for_a_revision_one_after_the_other() {
    let mut world = World::new("q.io=O");
    world.policy.rollout = Rollout::Rolling;
    world.additional("r.io=V");
    assert_eq!(reported(&world.settle_nodes())[2], "RolledOut=True/RolledOut");
    world.take_done();
    world.additional("r.io=W");
    let plan = world.settle();
    assert_eq!(world.take_done(), ["apply secret", "apply daemonset", "apply configmap"]);
    assert_eq!(message(&plan, "RolledOut"), "0/2 nodes have the content");
    world.wait(3);
    world.confirm(&["node-a", "node-b"]);
    assert_eq!(
        message(&world.settle(), "RolledOut"),
        "0/2 nodes have the content",
        "Pods of the earlier revision apply none"
    );
    world.roll(&["node-a"]);
    world.confirm(&["node-a"]);
    assert_eq!(message(&world.settle(), "RolledOut"), "1/2 nodes have the content");
    world.wait(3);
    world.roll(&["node-b"]);
    world.confirm(&["node-b"]);
    assert_eq!(reported(&world.settle())[2], "RolledOut=True/RolledOut");
}

#[test]
fn a_failed_write_is_reported() {
    let mut world = deployed();
    world.facts.refused = Some("cannot create daemonset: permission denied".to_owned());
    let plan = world.settle();
    assert_eq!(reported(&plan)[3], "Degraded=True/ApiServerError");
    world.facts.refused = None;
    assert_eq!(reported(&world.settle())[3], "Degraded=False/AsExpected");
}
