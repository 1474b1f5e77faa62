//! Tables of stored secrets and what is found about them.

use std::collections::BTreeMap;

use rstest::rstest;
use serde_json::json;

use super::*;

const CREATED: &str = "2026-01-01T00:00:00Z";

fn resource() -> Value {
    json!({
        "id": "cls-1", "kind": "Cluster", "name": "one", "generation": 3, "created_time": CREATED, "spec": {},
        "status": {"conditions": [], "adapters": {"pullsecret": {
            "available": "True", "observed_generation": 3,
            "conditions": [{"type": "Available", "status": "True", "last_transition_time": "2026-01-01T11:00:00Z"}],
            "data": {
                "gcpProject": "project-1", "secretName": "s-1", "secretVersion": 7, "digest": "hmac-sha256:1",
                "copies": [{"kind": "secret", "project": "project-1", "location": "europe-west3", "name": "s-1"}],
            },
        }}},
    })
}

fn reported_at(resource: &Value, now: &str) -> Option<Reported> {
    let resource = serde_json::from_value(resource.clone()).unwrap();
    Reported::of(&resource, "pullsecret", now.parse().unwrap(), SignedDuration::from_mins(10)).into_iter().next()
}

fn reported() -> Reported {
    reported_at(&resource(), "2026-01-01T12:00:00Z").unwrap()
}

fn metadata(labels: &[(&str, &str)], annotations: &[(&str, &str)]) -> Metadata {
    let with = |base: &[(&str, &str)], changes: &[(&str, &str)]| {
        let all = base.iter().chain(changes).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let all: BTreeMap<String, String> = all.collect();
        all.into_iter().filter(|(_, value)| value != "-").collect()
    };
    let owner = [("managed-by", "hyperfleet"), ("adapter", "pullsecret"), ("cluster-id", "cls-1")];
    let record = [
        ("hyperfleet-generation", "3"),
        ("hyperfleet-incarnation", CREATED),
        ("hyperfleet-version", "7"),
        ("hyperfleet-digest", "hmac-sha256:1"),
    ];
    Metadata { labels: with(&owner, labels), annotations: with(&record, annotations), etag: "e".to_owned() }
}

#[test]
fn a_report_describes_one_secret() {
    let reported = reported();
    assert_eq!((reported.secret.as_str(), reported.version.get()), ("s-1", 7));
    assert_eq!(reported.copy.to_string(), "secret s-1 of project project-1 in europe-west3");
}

#[test]
fn a_report_describes_the_mirror_too() {
    let mut with_mirror = resource();
    let data = &mut with_mirror["status"]["adapters"]["pullsecret"]["data"];
    data["mirror"] =
        json!({"awsRegion": "eu-west-1", "secretPath": "f/s-1", "secretVersion": 2, "digest": "hmac-sha256:1"});
    data["copies"]
        .as_array_mut()
        .unwrap()
        .push(json!({"kind": "awsSecret", "region": "eu-west-1", "folder": "f", "name": "s-1"}));
    let read = |resource: &Value| {
        let resource = serde_json::from_value(resource.clone()).unwrap();
        Reported::of(&resource, "pullsecret", "2026-01-01T12:00:00Z".parse().unwrap(), SignedDuration::ZERO)
    };
    let both = read(&with_mirror);
    let shown: Vec<_> = both.iter().map(|one| format!("{}: {} {}", one.key(), one.copy, one.version)).collect();
    let first = "cls-1: secret s-1 of project project-1 in europe-west3 7";
    assert_eq!(shown, [first, "cls-1/mirror: secret f/s-1 of AWS in eu-west-1 2"]);
    let found = metadata(&[], &[("hyperfleet-version", "2")]);
    assert_eq!(both[1].compare(Some(&found)), None);
    assert_eq!(both[1].compare(Some(&metadata(&[], &[]))).unwrap().kind, FindingKind::SecretChanged);
    assert_eq!(both[1].compare(None).unwrap().message, "secret f/s-1 of AWS in eu-west-1 does not exist any more");
    // One that was never read back is not checked.
    with_mirror["status"]["adapters"]["pullsecret"]["data"]["mirror"].as_object_mut().unwrap().remove("secretVersion");
    assert_eq!(read(&with_mirror), both[..1]);
}

#[rstest]
#[case::vault(
    json!({"vaultAddress": "https://v:8200", "secretPath": "kv/f/s-1"}),
    json!({"kind": "vaultSecret", "server": "https://v:8200", "mount": "kv", "folder": "f", "name": "s-1"}),
    "secret kv/f/s-1 at https://v:8200"
)]
#[case::aws(
    json!({"awsRegion": "eu-west-1", "secretPath": "f/s-1"}),
    json!({"kind": "awsSecret", "region": "eu-west-1", "folder": "f", "name": "s-1"}),
    "secret f/s-1 of AWS in eu-west-1"
)]
fn a_report_describes_a_secret_in_another_store(#[case] data: Value, #[case] copy: Value, #[case] expected: &str) {
    let mut resource = resource();
    let reported = &mut resource["status"]["adapters"]["pullsecret"]["data"];
    reported.as_object_mut().unwrap().remove("gcpProject");
    reported.as_object_mut().unwrap().extend(data.as_object().unwrap().clone());
    let former = json!({"kind": "secret", "project": "project-1", "name": "s-1"});
    reported["copies"] = json!([former, copy]);
    let found = reported_at(&resource, "2026-01-01T12:00:00Z").unwrap();
    assert_eq!((found.copy.to_string().as_str(), found.secret.as_str()), (expected, "s-1"));
    resource["status"]["adapters"]["pullsecret"]["data"]["copies"] = json!([former]);
    assert_eq!(reported_at(&resource, "2026-01-01T12:00:00Z"), None, "it is not known which copy it is");
}

#[rstest]
#[case::just_stored("2026-01-01T11:09:59Z", "", json!(null))]
#[case::unavailable("2026-01-01T12:00:00Z", "/status/adapters/pullsecret/available", json!("False"))]
#[case::older_generation("2026-01-01T12:00:00Z", "/generation", json!(4))]
#[case::without_a_version("2026-01-01T12:00:00Z", "/status/adapters/pullsecret/data/secretVersion", json!(null))]
#[case::hostile_project("2026-01-01T12:00:00Z", "/status/adapters/pullsecret/data/gcpProject", json!("../p"))]
#[case::hostile_name("2026-01-01T12:00:00Z", "/status/adapters/pullsecret/data/secretName", json!("a/b"))]
fn what_is_not_stored_or_may_lag_is_not_checked(#[case] now: &str, #[case] path: &str, #[case] value: Value) {
    let mut resource = resource();
    if let Some(member) = resource.pointer_mut(path).filter(|_| !path.is_empty()) {
        *member = value;
    }
    assert_eq!(reported_at(&resource, now), None);
}

#[test]
fn a_cluster_that_is_terminating_is_not_checked() {
    let mut resource = resource();
    resource["deleted_time"] = json!("2026-01-01T11:59:00Z");
    assert_eq!(reported_at(&resource, "2026-01-01T12:00:00Z"), None);
}

#[rstest]
#[case::as_reported(&[], &[], None)]
#[case::more_labels(&[("team", "x")], &[("note", "y")], None)]
#[case::a_newer_generation(&[], &[("hyperfleet-generation", "4"), ("hyperfleet-version", "9")], None)]
#[case::another_owner(&[("managed-by", "terraform")], &[], Some((FindingKind::Unmanaged, "managed-by=terraform")))]
#[case::another_cluster(&[("cluster-id", "cls-2")], &[], Some((FindingKind::Unmanaged, "cluster-id=cls-2")))]
#[case::an_earlier_cluster(
    &[],
    &[("hyperfleet-incarnation", "2025-01-01T00:00:00Z")],
    Some((FindingKind::Unmanaged, "earlier cluster"))
)]
#[case::label_lost(&[("adapter", "-")], &[], Some((FindingKind::SecretChanged, "other program: adapter")))]
#[case::version_changed(&[], &[("hyperfleet-version", "6")], Some((FindingKind::SecretChanged, "hyperfleet-version")))]
#[case::digest_changed(&[], &[("hyperfleet-digest", "x")], Some((FindingKind::SecretChanged, "hyperfleet-digest")))]
#[case::digest_lost(&[], &[("hyperfleet-digest", "-")], None)]
#[case::incarnation_lost(
    &[],
    &[("hyperfleet-incarnation", "-")],
    Some((FindingKind::SecretChanged, "hyperfleet-incarnation"))
)]
#[case::record_lost(
    &[],
    &[("hyperfleet-generation", "-"), ("hyperfleet-version", "-")],
    Some((FindingKind::SecretChanged, "hyperfleet-generation, hyperfleet-version"))
)]
fn metadata_is_compared(
    #[case] labels: &[(&str, &str)],
    #[case] annotations: &[(&str, &str)],
    #[case] expected: Option<(FindingKind, &str)>,
) {
    let found = reported().compare(Some(&metadata(labels, annotations)));
    assert_eq!(found.as_ref().map(|found| found.kind), expected.map(|(kind, _)| kind));
    if let (Some(found), Some((_, part))) = (found, expected) {
        assert!(found.message.contains(part), "{}", found.message);
    }
}

#[test]
fn a_missing_secret_is_found() {
    assert_eq!(reported().compare(None).map(|found| found.kind), Some(FindingKind::SecretMissing));
}

#[rstest]
#[case(Some((7, VersionState::Live)), None)]
#[case(Some((7, VersionState::Disabled)), Some(FindingKind::VersionDisabled))]
#[case(Some((7, VersionState::Destroyed)), Some(FindingKind::VersionDestroyed))]
#[case(Some((8, VersionState::Live)), Some(FindingKind::VersionDiffers))]
#[case(Some((1, VersionState::Live)), Some(FindingKind::VersionDiffers))]
#[case(Some((8, VersionState::Disabled)), Some(FindingKind::VersionDisabled))]
#[case(None, Some(FindingKind::VersionMissing))]
fn versions_are_compared(#[case] newest: Option<(u64, VersionState)>, #[case] expected: Option<FindingKind>) {
    let newest = newest.map(|(number, state)| VersionSummary { number: VersionNumber::new(number).unwrap(), state });
    assert_eq!(reported().compare_version(newest.as_ref()).map(|found| found.kind), expected);
}
