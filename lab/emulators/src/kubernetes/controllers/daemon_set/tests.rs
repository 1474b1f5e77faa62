//! Tables: a `DaemonSet`, nodes, Pods, and what is decided.

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::super::action::Action;
use super::super::model::{Pod, view};
use super::{Node, decide, hash};

const START: i64 = 1_700_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(START + seconds).unwrap()
}

fn set(spec: &Value) -> Value {
    let mut set = json!({
        "metadata": { "name": "syncer", "namespace": "kube-system", "uid": "d", "generation": 2 },
        "spec": { "template": { "metadata": {}, "spec": { "containers": [] } } },
    });
    for (name, value) in spec.as_object().unwrap() {
        set["spec"][name] = value.clone();
    }
    set
}

/// A node in one word: `NAME`, `NAME:KEY=VALUE` with a label, `NAME!EFFECT` with a taint, `NAME^` if it is cordoned.
fn node(text: &str) -> Node {
    let name: String = text.chars().take_while(|letter| letter.is_alphanumeric()).collect();
    let mut node = json!({ "metadata": { "name": name }, "spec": { "unschedulable": text.contains('^') } });
    if let Some((key, value)) = text.split_once(':').and_then(|(_, label)| label.split_once('=')) {
        node["metadata"]["labels"] = json!({ key: value });
    }
    if let Some((_, effect)) = text.split_once('!') {
        node["spec"]["taints"] = json!([{ "key": "dedicated", "value": "gpu", "effect": effect }]);
    }
    view(&node).unwrap()
}

/// A Pod in one word: `NAME@NODE`, `+` if it is ready (for 10 s), `o` behind a slash if its template is old, `!` if it is being
/// deleted, `x` behind a slash if it has failed.
fn pod(text: &str, hash: &str) -> Pod {
    let (name, rest) = text.split_once('@').unwrap();
    let (node, marks) = rest.split_once('/').unwrap_or((rest, ""));
    let old = marks.contains('o');
    let mut pod = json!({
        "metadata": { "name": name, "namespace": "kube-system", "uid": name,
            "labels": { "controller-revision-hash": if old { "old" } else { hash } } },
        "spec": { "nodeName": node },
        "status": { "phase": if marks.contains('x') { "Failed" } else { "Running" } },
    });
    if marks.contains('!') {
        pod["metadata"]["deletionTimestamp"] = json!(at(0).to_string());
    }
    if marks.contains('+') {
        pod["status"]["conditions"] =
            json!([{ "type": "Ready", "status": "True", "lastTransitionTime": at(0).to_string() }]);
    }
    view(&pod).unwrap()
}

fn render(action: &Action) -> String {
    match action {
        Action::CreatePod(pod) => {
            let pod: Pod = view(pod).unwrap();
            format!("create on {}", pod.node().unwrap())
        }
        Action::DeletePod { name, .. } => format!("delete {name}"),
        Action::RecordEvent { reason, .. } => format!("event {reason}"),
        Action::Wake(instant) => format!("wake {}", instant.as_second() - START),
        Action::UpdateStatus(status) => {
            let number = |name: &str| status[name].as_u64().unwrap_or(0);
            format!(
                "status desired={} current={} updated={} ready={} available={} misscheduled={}",
                number("desiredNumberScheduled"),
                number("currentNumberScheduled"),
                number("updatedNumberScheduled"),
                number("numberReady"),
                number("numberAvailable"),
                number("numberMisscheduled")
            )
        }
        other => format!("{other:?}"),
    }
}

fn decided(spec: &Value, nodes: &str, pods: &str) -> String {
    let set = set(spec);
    let hash = hash(&set["spec"]["template"]);
    let nodes: Vec<_> = nodes.split_whitespace().map(node).collect();
    let pods: Vec<_> = pods.split_whitespace().map(|text| pod(text, &hash)).collect();
    let actions = decide(&set, &nodes, &pods, at(10));
    actions.iter().map(render).collect::<Vec<_>>().join("; ")
}

#[rstest]
#[case::one_a_node(json!({}), "n1 n2", "",
    "create on n1; create on n2; status desired=2 current=0 updated=0 ready=0 available=0 misscheduled=0")]
#[case::only_where_one_is_missing(json!({}), "n1 n2", "a@n1/+",
    "create on n2; status desired=2 current=1 updated=1 ready=1 available=1 misscheduled=0")]
#[case::not_while_the_old_one_goes(json!({}), "n1", "a@n1/!",
    "status desired=1 current=1 updated=1 ready=0 available=0 misscheduled=0")]
#[case::one_too_many(json!({}), "n1", "a@n1/+ b@n1/+",
    "delete b; status desired=1 current=1 updated=1 ready=1 available=1 misscheduled=0")]
#[case::a_node_that_is_gone(json!({}), "", "a@n1/+",
    "delete a; status desired=0 current=0 updated=0 ready=0 available=0 misscheduled=0")]
#[case::a_failed_one_is_replaced(json!({}), "n1", "a@n1/x",
    "event FailedDaemonPod; delete a; status desired=1 current=1 updated=1 ready=0 available=0 misscheduled=0")]
#[case::nodes_by_label(
    json!({ "template": { "spec": { "nodeSelector": { "role": "edge" } } } }), "n1:role=edge n2:role=core", "",
    "create on n1; status desired=1 current=0 updated=0 ready=0 available=0 misscheduled=0")]
#[case::a_label_that_is_gone(
    json!({ "template": { "spec": { "nodeSelector": { "role": "edge" } } } }), "n1", "a@n1/+",
    "delete a; status desired=0 current=0 updated=0 ready=0 available=0 misscheduled=1")]
#[case::a_taint_keeps_new_ones_away(json!({}), "n1!NoSchedule", "",
    "status desired=0 current=0 updated=0 ready=0 available=0 misscheduled=0")]
#[case::a_taint_lets_old_ones_stay(json!({}), "n1!NoSchedule", "a@n1/+",
    "status desired=0 current=0 updated=0 ready=0 available=0 misscheduled=1")]
#[case::unless_it_drives_out(json!({}), "n1!NoExecute", "a@n1/+",
    "delete a; status desired=0 current=0 updated=0 ready=0 available=0 misscheduled=1")]
#[case::a_taint_that_is_borne(
    json!({ "template": { "spec": { "tolerations": [{ "operator": "Exists" }] } } }), "n1!NoExecute", "",
    "create on n1; status desired=1 current=0 updated=0 ready=0 available=0 misscheduled=0")]
#[case::a_taint_borne_by_value(
    json!({ "template": { "spec": { "tolerations": [{ "key": "dedicated", "value": "gpu", "effect": "NoSchedule" }] } } }),
    "n1!NoSchedule n2!NoExecute", "",
    "create on n1; status desired=1 current=0 updated=0 ready=0 available=0 misscheduled=0")]
#[case::cordons_do_not_concern_daemons(json!({}), "n1^", "",
    "create on n1; status desired=1 current=0 updated=0 ready=0 available=0 misscheduled=0")]
#[case::ready_but_not_for_long_enough(json!({ "minReadySeconds": 15 }), "n1", "a@n1/+",
    "wake 15; status desired=1 current=1 updated=1 ready=1 available=0 misscheduled=0")]
#[case::ready_for_long_enough(json!({ "minReadySeconds": 10 }), "n1", "a@n1/+",
    "status desired=1 current=1 updated=1 ready=1 available=1 misscheduled=0")]
fn a_daemon_set_has_its_pods(#[case] spec: Value, #[case] nodes: &str, #[case] pods: &str, #[case] expected: &str) {
    assert_eq!(decided(&spec, nodes, pods), expected);
}

#[rstest]
#[case::one_at_a_time(json!(null), "a@n1/+o b@n2/+o c@n3/+o", "delete a")]
#[case::as_many_as_allowed(json!(2), "a@n1/+o b@n2/+o c@n3/+o", "delete a; delete b")]
#[case::as_many_as_a_share_allows(json!("50%"), "a@n1/+o b@n2/+o c@n3/+o", "delete a; delete b")]
#[case::not_while_a_new_one_is_not_ready(json!(null), "a@n1 b@n2/+o c@n3/+o", "")]
#[case::not_while_an_old_one_goes(json!(null), "a@n1/+o! b@n2/+o c@n3/+o", "")]
#[case::a_broken_one_at_once(json!(null), "a@n1 b@n2/o c@n3/+o", "delete b")]
#[case::on_when_the_new_one_is_ready(json!(null), "a@n1/+ b@n2/+o c@n3/+o", "delete b")]
#[case::none_is_none_too_few_to_move(json!(0), "a@n1/+o b@n2/+o c@n3/+o", "delete a")]
#[case::nothing_left_to_do(json!(null), "a@n1/+ b@n2/+ c@n3/+", "")]
fn an_update_rolls(#[case] max_unavailable: Value, #[case] pods: &str, #[case] expected: &str) {
    let strategy = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": max_unavailable } });
    let rendered = decided(&json!({ "updateStrategy": strategy }), "n1 n2 n3", pods);
    let deletions: Vec<_> = rendered.split("; ").filter(|action| action.starts_with("delete")).collect();
    assert_eq!(deletions.join("; "), expected);
}

#[test]
fn an_update_waits_for_people_if_configured() {
    let rendered = decided(&json!({ "updateStrategy": { "type": "OnDelete" } }), "n1 n2", "a@n1/o b@n2/+o");
    assert_eq!(rendered, "status desired=2 current=2 updated=0 ready=1 available=1 misscheduled=0");
}

#[test]
fn pods_bear_the_templates_name_and_what_daemons_bear() {
    let set = set(&json!({}));
    let actions = decide(&set, &[node("n1")], &[], at(0));
    let Some(Action::CreatePod(pod)) = actions.first() else { panic!("{actions:?}") };
    let hash = hash(&set["spec"]["template"]);
    assert_eq!(pod["metadata"]["labels"], json!({ "controller-revision-hash": hash, "pod-template-generation": "2" }));
    assert_eq!(pod["spec"]["tolerations"].as_array().unwrap().len(), 6);
    assert_eq!(pod["metadata"]["ownerReferences"][0]["kind"], "DaemonSet");
}

#[test]
fn one_that_is_being_deleted_is_left_to_the_garbage_collector() {
    let mut set = set(&json!({}));
    set["metadata"]["deletionTimestamp"] = json!(at(0).to_string());
    assert_eq!(decide(&set, &[node("n1")], &[], at(0)), Vec::new());
}
