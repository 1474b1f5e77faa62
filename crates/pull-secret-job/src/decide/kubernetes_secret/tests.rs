//! The steps for the Kubernetes Secret, as a table.

use rstest::rstest;

use super::*;

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn identity(generation: u64) -> Identity {
    Identity { cluster: "cls-1".parse().unwrap(), incarnation: None, generation: Generation::new(generation) }
}

fn desired() -> Desired {
    Desired {
        identity: identity(5),
        labels: map(&[("managed-by", "hyperfleet"), ("cluster-id", "cls-1"), ("cluster-name", "prod")]),
        annotations: map(&[("hyperfleet.io/generation", "5"), ("hyperfleet.io/gcp-secret-version", "7")]),
        content: Digest::of_bytes(b"desired"),
        adopt: false,
    }
}

fn up_to_date() -> Observed {
    let mut annotations = desired().annotations;
    annotations.insert("hyperfleet.io/created-at".to_owned(), "2026-01-01T00:00:00Z".to_owned());
    Observed {
        kind: DOCKER_CONFIG_JSON.to_owned(),
        labels: desired().labels,
        annotations,
        content: Some(desired().content),
        is_immutable: false,
        is_terminating: false,
    }
}

fn label(key: &'static str, value: &'static str) -> impl Fn(&mut Observed) {
    move |observed| drop(observed.labels.insert(key.to_owned(), value.to_owned()))
}

#[rstest]
#[case::up_to_date(|_: &mut Observed| {}, "SecretUnchanged: change nothing: the Kubernetes Secret is up to date")]
#[case::a_label_of_others(
    label("team", "images"),
    "SecretUnchanged: change nothing: the Kubernetes Secret is up to date"
)]
#[case::immutable_and_up_to_date(
    |observed: &mut Observed| observed.is_immutable = true,
    "SecretUnchanged: change nothing: the Kubernetes Secret is up to date"
)]
#[case::edited_by_hand(
    |observed: &mut Observed| observed.content = Some(Digest::of_bytes(b"edited")),
    "KubernetesSecretApplied: apply the Kubernetes Secret: the Kubernetes Secret holds other content"
)]
#[case::without_its_key(
    |observed: &mut Observed| observed.content = None,
    "KubernetesSecretApplied: apply the Kubernetes Secret: the Kubernetes Secret holds other content"
)]
#[case::another_name(
    label("cluster-name", "old"),
    "KubernetesSecretApplied: apply the Kubernetes Secret: these labels differ: cluster-name"
)]
#[case::an_older_generation(
    |observed: &mut Observed| { observed.annotations.insert("hyperfleet.io/generation".to_owned(), "4".to_owned()); },
    "KubernetesSecretApplied: apply the Kubernetes Secret: these annotations differ: hyperfleet.io/generation"
)]
#[case::a_newer_generation(
    |observed: &mut Observed| { observed.annotations.insert("hyperfleet.io/generation".to_owned(), "6".to_owned()); },
    "Superseded: change nothing: generation 6, a newer one, has written the Kubernetes Secret"
)]
#[case::another_type(
    |observed: &mut Observed| observed.kind = "Opaque".to_owned(),
    "KubernetesSecretApplied: delete the Kubernetes Secret and create it again: the Kubernetes Secret has the type \"Opaque\""
)]
#[case::immutable(
    |observed: &mut Observed| { observed.is_immutable = true; observed.content = None; },
    "SecretImmutable: change nothing: the Kubernetes Secret holds other content and is immutable"
)]
#[case::terminating(
    |observed: &mut Observed| observed.is_terminating = true,
    "KubernetesSecretApplied: wait until the Kubernetes Secret is deleted: the Kubernetes Secret is terminating and waits for a finalizer"
)]
#[case::of_another_cluster(
    label("cluster-id", "cls-2"),
    "NameConflict: change nothing: the Kubernetes Secret is not managed for this cluster: it has the label \
     `managed-by=hyperfleet` and the label `cluster-id=cls-2`"
)]
#[case::without_owner(
    |observed: &mut Observed| observed.labels.clear(),
    "NameConflict: change nothing: the Kubernetes Secret is not managed for this cluster: it has no label `managed-by` and no \
     label `cluster-id`"
)]
fn each_observation_has_its_step(#[case] change: impl Fn(&mut Observed), #[case] expected: &str) {
    let mut observed = up_to_date();
    change(&mut observed);
    let plan = decide(&desired(), Some(&observed));
    assert_eq!(format!("{}: {}: {}", plan.reason, plan.step, plan.why()), expected);
}

#[test]
fn a_missing_secret_is_created() {
    let plan = decide(&desired(), None);
    assert_eq!((plan.step, plan.reason), (Step::Create, Reason::KubernetesSecretApplied));
}

#[test]
fn an_unmanaged_secret_is_adopted_only_on_request() {
    let mut observed = up_to_date();
    observed.labels.clear();
    let plan = decide(&Desired { adopt: true, ..desired() }, Some(&observed));
    assert_eq!((plan.step, plan.reason), (Step::Apply, Reason::KubernetesSecretApplied));
}

/// The identity of a cluster that was created at this time.
fn created_at(time: &str, generation: u64) -> Identity {
    Identity { incarnation: Some(time.parse().unwrap()), ..identity(generation) }
}

#[test]
fn a_secret_of_an_earlier_cluster_with_the_id_is_adopted_only_on_request() {
    let mut earlier = up_to_date();
    earlier.annotations.insert("hyperfleet.io/incarnation".to_owned(), "2026-01-01T00:00:00Z".to_owned());
    // The earlier cluster's generation does not count.
    earlier.annotations.insert("hyperfleet.io/generation".to_owned(), "9".to_owned());
    let recreated = Desired { identity: created_at("2026-02-01T00:00:00Z", 1), ..desired() };
    let plan = decide(&recreated, Some(&earlier));
    assert_eq!((plan.step, plan.reason), (Step::Nothing, Reason::DifferentIncarnation));
    let plan = decide(&Desired { adopt: true, ..recreated.clone() }, Some(&earlier));
    assert_eq!((plan.step, plan.reason), (Step::Apply, Reason::KubernetesSecretApplied));
    let plan = remove(&recreated.identity, Some(&earlier));
    assert_eq!((plan.step, plan.reason), (Step::Nothing, Reason::UnmanagedSecretKept));
}

#[test]
fn only_a_managed_secret_is_deleted() {
    let take = |generation, observed: Option<&Observed>| {
        let plan = remove(&identity(generation), observed);
        (plan.step, plan.reason)
    };
    assert_eq!(take(5, None), (Step::Nothing, Reason::SecretAbsent));
    assert_eq!(take(5, Some(&up_to_date())), (Step::Delete, Reason::SecretDeleted));
    assert_eq!(take(4, Some(&up_to_date())), (Step::Nothing, Reason::Superseded));
    assert_eq!(take(5, Some(&Observed { is_terminating: true, ..up_to_date() })), (Step::Wait, Reason::SecretDeleted));
    assert_eq!(
        take(5, Some(&Observed { labels: BTreeMap::new(), ..up_to_date() })),
        (Step::Nothing, Reason::UnmanagedSecretKept)
    );
}
