//! Both copies of a mirrored pull secret, as a page compares them.

use adapter::store_check::record::{Record, RecordedFinding};

use super::*;
use crate::copies::{Copies, ParityReason};
use crate::page::text;

const STORED: &str = "2026-01-01T00:09:00Z";
const LATER: &str = "2026-01-01T00:15:00Z";
const EARLIER: &str = "2026-01-01T00:05:00Z";

/// A cluster that is stored at Google and mirrored in Vault, where that is in the report.
fn mirrored(available: &str, mirror: &Value) -> Facts {
    let mut report = report(2, available, "SecretStored", "stored");
    report["conditions"][0]["last_transition_time"] = json!(STORED);
    report["data"] = json!({
        "gcpProject": "p-1", "secretName": "s-1", "secretVersion": 7, "generation": "2", "digest": "hmac-sha256:a",
        "copies": [
            {"kind": "secret", "project": "p-1", "name": "s-1"},
            {"kind": "vaultSecret", "server": "https://v:8200", "mount": "kv", "folder": "f", "name": "s-1"},
        ],
        "mirror": {"vaultAddress": "https://v:8200", "secretPath": "kv/f/s-1", "secretName": "s-1"},
    });
    report["data"]["mirror"].as_object_mut().unwrap().extend(mirror.as_object().unwrap().clone());
    facts("True", report)
}

fn same() -> Value {
    json!({"secretVersion": 3, "generation": "2", "digest": "hmac-sha256:a"})
}

#[rstest]
#[case::same(same(), ParityReason::SameContent, "mirror holds the same content")]
#[case::other(
    json!({"secretVersion": 3, "generation": "2", "digest": "hmac-sha256:b"}),
    ParityReason::OtherContent,
    "mirror holds other content: hmac-sha256:b, first store hmac-sha256:a"
)]
#[case::older(
    json!({"secretVersion": 2, "generation": "1", "digest": "hmac-sha256:0"}),
    ParityReason::OtherGeneration,
    "mirror holds generation 1, first store 2"
)]
#[case::newer(json!({"generation": "5"}), ParityReason::OtherGeneration, "mirror holds generation 5, first store 2")]
#[case::nothing(json!({}), ParityReason::NotMirrored, "mirror holds nothing that was read back yet")]
fn parity_follows_from_the_report(#[case] mirror: Value, #[case] reason: ParityReason, #[case] message: &str) {
    let page = page(&mirrored("False", &mirror));
    let parity = page.copies.as_ref().map(|copies| (copies.parity.reason, copies.parity.message.as_str()));
    assert_eq!(parity, Some((reason, message)));
}

#[test]
fn a_page_shows_both_copies_and_one_line_of_parity() {
    let page = page(&mirrored("True", &same()));
    let text = text(&page, NOW.parse().unwrap(), None);
    let section = text.split("\nCOPIES\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let lines: Vec<String> =
        section.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        "ROLE STORE VERSION GENERATION DIGEST SECRET",
        "first store google 7 2 hmac-sha256:a secret s-1 of project p-1",
        "mirror vault 3 2 hmac-sha256:a secret kv/f/s-1 at https://v:8200",
        "mirror holds the same content",
    ];
    assert_eq!(lines, expected, "{text}");
    assert!(!text.contains("\"vaultAddress\""), "{text}");
    let copies = &serde_json::to_value(&page).unwrap()["copies"];
    assert_eq!(copies["parity"], json!({"reason": "SameContent", "message": "mirror holds the same content"}));
    assert_eq!((&copies["mirror"]["store"], &copies["mirror"]["version"]), (&json!("vault"), &json!(3)));
}

#[test]
fn a_pull_secret_without_a_mirror_has_no_copies_to_compare() {
    let mut facts = mirrored("True", &same());
    facts.report.as_mut().unwrap().data.remove("mirror");
    assert_eq!(page(&facts).copies, None::<Copies>);
}

/// A run has read back both stores, so a check before it is outdated.
#[rstest]
#[case::another_place(LATER, &["kv/g at https://v:8200"], None, ParityReason::SameContent, "mirror holds the same content")]
#[case::the_mirror_s_place(
    LATER,
    &["kv/f at https://v:8200"],
    None,
    ParityReason::MirrorUnread,
    "mirror could not be read: no route"
)]
#[case::the_first_store_s(LATER, &["p-1"], None, ParityReason::FirstStoreUnread, "first store could not be read: no route")]
#[case::before_the_run(EARLIER, &["kv/f at https://v:8200"], None, ParityReason::SameContent, "mirror holds the same content")]
#[case::a_finding(
    LATER,
    &[],
    Some("secret kv/f/s-1 at https://v:8200 does not exist any more"),
    ParityReason::Changed,
    "changed since: secret kv/f/s-1 at https://v:8200 does not exist any more"
)]
#[case::a_finding_before_the_run(
    EARLIER,
    &[],
    Some("secret kv/f/s-1 at https://v:8200 does not exist any more"),
    ParityReason::SameContent,
    "mirror holds the same content"
)]
fn the_last_check_of_the_stores_counts_if_it_is_newer_than_the_run(
    #[case] time: &str,
    #[case] failures: &[&str],
    #[case] finding: Option<&str>,
    #[case] reason: ParityReason,
    #[case] message: &str,
) {
    let mut facts = mirrored("True", &same());
    let time = time.parse().unwrap();
    let found =
        |message: &str| RecordedFinding { cluster: "cls-1".to_owned(), found: time, message: message.to_owned() };
    facts.store_check = Observation::Found(Some(Record {
        finished: Some(time),
        failures: failures.iter().map(|place| ((*place).to_owned(), "no route".to_owned())).collect(),
        findings: finding.into_iter().map(found).collect(),
        ..Record::default()
    }));
    let parity = page(&facts).copies.unwrap().parity;
    assert_eq!((parity.reason, parity.message.as_str()), (reason, message));
}

/// The next step is about the store that has failed.
#[rstest]
#[case::the_mirror(
    "Failed to mirror the pull secret, which the first store and the Kubernetes Secret hold: Failed to x",
    "bao "
)]
#[case::the_first_store("Failed to create/update secret: denied", "gcloud ")]
#[case::kubernetes("Failed to create/update Kubernetes secret: denied", "kubectl ")]
fn the_next_step_is_at_the_store_that_has_failed(#[case] message: &str, #[case] command: &str) {
    let mut facts = mirrored("False", &json!({}));
    let available = &mut facts.report.as_mut().unwrap().conditions[0];
    (available.reason, available.message) = (Some("PermissionDenied".to_owned()), Some(message.to_owned()));
    let verdict = page(&facts).verdict;
    assert!(verdict.next[0].starts_with(command), "{verdict:?}");
}
