//! What is decided about the Kubernetes Secret, as a table.

use rstest::rstest;

use super::*;

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn wanted() -> Wanted {
    Wanted {
        cluster: "cls-1".parse().unwrap(),
        labels: map(&[("managed-by", "hyperfleet"), ("cluster-id", "cls-1"), ("cluster-name", "prod")]),
        annotations: map(&[("hyperfleet.io/generation", "5"), ("hyperfleet.io/gcp-secret-version", "7")]),
        content: Digest::of_bytes(b"wanted"),
        generation: Generation::new(5),
        adopt: false,
    }
}

fn right() -> Seen {
    let mut annotations = wanted().annotations;
    annotations.insert("hyperfleet.io/created-at".to_owned(), "2026-01-01T00:00:00Z".to_owned());
    Seen {
        kind: DOCKER_CONFIG_JSON.to_owned(),
        labels: wanted().labels,
        annotations,
        content: Some(wanted().content),
        is_immutable: false,
        is_terminating: false,
    }
}

fn label(key: &'static str, value: &'static str) -> impl Fn(&mut Seen) {
    move |seen| drop(seen.labels.insert(key.to_owned(), value.to_owned()))
}

#[rstest]
#[case::right(|_: &mut Seen| {}, "SecretUnchanged: change nothing: the Kubernetes Secret is as it should be")]
#[case::a_label_of_others(
    label("team", "images"),
    "SecretUnchanged: change nothing: the Kubernetes Secret is as it should be"
)]
#[case::immutable_and_right(
    |seen: &mut Seen| seen.is_immutable = true,
    "SecretUnchanged: change nothing: the Kubernetes Secret is as it should be"
)]
#[case::edited_by_hand(
    |seen: &mut Seen| seen.content = Some(Digest::of_bytes(b"edited")),
    "KubernetesSecretApplied: apply the Kubernetes Secret over the one that is there: the Kubernetes Secret holds other content"
)]
#[case::without_its_key(
    |seen: &mut Seen| seen.content = None,
    "KubernetesSecretApplied: apply the Kubernetes Secret over the one that is there: the Kubernetes Secret holds other content"
)]
#[case::another_name(
    label("cluster-name", "old"),
    "KubernetesSecretApplied: apply the Kubernetes Secret over the one that is there: these labels differ: cluster-name"
)]
#[case::an_older_generation(
    |seen: &mut Seen| { seen.annotations.insert("hyperfleet.io/generation".to_owned(), "4".to_owned()); },
    "KubernetesSecretApplied: apply the Kubernetes Secret over the one that is there: these annotations differ: hyperfleet.io/generation"
)]
#[case::a_newer_generation(
    |seen: &mut Seen| { seen.annotations.insert("hyperfleet.io/generation".to_owned(), "6".to_owned()); },
    "Superseded: change nothing: generation 6, a newer one, has written the Kubernetes Secret"
)]
#[case::another_type(
    |seen: &mut Seen| seen.kind = "Opaque".to_owned(),
    "KubernetesSecretApplied: delete the Kubernetes Secret and create it anew: the Kubernetes Secret has the type \"Opaque\""
)]
#[case::immutable(
    |seen: &mut Seen| { seen.is_immutable = true; seen.content = None; },
    "SecretImmutable: change nothing: the Kubernetes Secret holds other content and is immutable"
)]
#[case::going(
    |seen: &mut Seen| seen.is_terminating = true,
    "KubernetesSecretApplied: wait until the Kubernetes Secret has gone: the Kubernetes Secret is being deleted and waits for a finalizer"
)]
#[case::of_another_cluster(
    label("cluster-id", "cls-2"),
    "NameConflict: change nothing: the Kubernetes Secret is not this cluster's: it has \"hyperfleet\" as label \
     `managed-by` and \"cls-2\" as label `cluster-id`"
)]
#[case::of_nobody(
    |seen: &mut Seen| seen.labels.clear(),
    "NameConflict: change nothing: the Kubernetes Secret is not this cluster's: it has no as label `managed-by` and no \
     as label `cluster-id`"
)]
fn what_is_seen_decides(#[case] change: impl Fn(&mut Seen), #[case] expected: &str) {
    let mut seen = right();
    change(&mut seen);
    let plan = decide(&wanted(), Some(&seen));
    assert_eq!(format!("{}: {}: {}", plan.reason, plan.step, plan.why()), expected);
}

#[test]
fn a_missing_secret_is_created() {
    let plan = decide(&wanted(), None);
    assert_eq!((plan.step, plan.reason), (Step::Create, Reason::KubernetesSecretApplied));
}

#[test]
fn a_foreign_secret_is_taken_over_only_when_that_is_asked() {
    let mut seen = right();
    seen.labels.clear();
    let plan = decide(&Wanted { adopt: true, ..wanted() }, Some(&seen));
    assert_eq!((plan.step, plan.reason), (Step::Apply, Reason::KubernetesSecretApplied));
}

#[test]
fn only_what_is_ours_is_taken_back() {
    let cluster = wanted().cluster;
    let take = |generation, seen: Option<&Seen>| {
        let plan = remove(&cluster, Generation::new(generation), seen);
        (plan.step, plan.reason)
    };
    assert_eq!(take(5, None), (Step::Nothing, Reason::SecretAbsent));
    assert_eq!(take(5, Some(&right())), (Step::Delete, Reason::SecretDeleted));
    assert_eq!(take(4, Some(&right())), (Step::Nothing, Reason::Superseded));
    assert_eq!(take(5, Some(&Seen { is_terminating: true, ..right() })), (Step::Wait, Reason::SecretDeleted));
    assert_eq!(take(5, Some(&Seen { labels: BTreeMap::new(), ..right() })), (Step::Nothing, Reason::NameConflict));
}
