//! docs/operations/keys.md: its commands change the members of a Secret that they name, and no others.

use std::collections::BTreeMap;
use std::path::Path;

use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use serde_json::json;
use testkit::cluster::{Kind, Place};
use testkit::environment::{missing, variable};
use tokio::process::Command;

/// The Secret that the sections of the page share.
const KEYS: &str = "hyperfleet-api-keys";

/// The blocks of commands about the Secret, in the order of the page.
fn blocks() -> Vec<String> {
    let page = include_str!("../../../../docs/operations/keys.md");
    let blocks = page.split("\n\n").filter(|block| block.starts_with("    ") && block.contains(KEYS));
    blocks.map(str::to_owned).collect()
}

async fn run(block: &str, kubectl: &str, folder: &Path, place: &Place) {
    let script = block.replace("hyperfleet-system", &place.namespace);
    let script = script.replace("hyperfleet-pull-secret", &place.namespace).replace("kubectl ", &format!("{kubectl} "));
    let mut command = Command::new("bash");
    command.args(["-euc", &script]).current_dir(folder).env("KUBECONFIG", place.kubeconfig());
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// The members of a Secret.
async fn members(place: &Place, name: &str) -> BTreeMap<String, Vec<u8>> {
    let data = place.secrets().get(name).await.unwrap().data.unwrap();
    data.into_iter().map(|(member, bytes)| (member, bytes.0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_step_keeps_the_other_keys() {
    let Some(kubectl) =
        variable("REAL_KUBECTL").or_else(|| missing("REAL_KUBECTL is not set: no kubectl; `make real-parts` gets it"))
    else {
        return;
    };
    let (place, folder) = (Place::new(Kind::Guarded).await.unwrap(), tempfile::tempdir().unwrap());
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": KEYS},
        "stringData": {"2026-11": "the first key of thirty-two byte", "other": "of another section"},
    }))
    .unwrap();
    place.secrets().create(&PostParams::default(), &secret).await.unwrap();
    let mut expected = members(&place, KEYS).await;

    let blocks = blocks();
    let [added, withdrawn, digest] = blocks.as_slice() else { panic!("{blocks:?}") };
    run(added, &kubectl, folder.path(), &place).await;
    let key = std::fs::read(folder.path().join("2027-05")).unwrap();
    assert_eq!(key.len(), 32);
    expected.insert("2027-05".to_owned(), key);
    assert_eq!(members(&place, KEYS).await, expected);

    run(withdrawn, &kubectl, folder.path(), &place).await;
    expected.remove("2026-11").unwrap();
    assert_eq!(members(&place, KEYS).await, expected);

    run(digest, &kubectl, folder.path(), &place).await;
    let key = std::fs::read(folder.path().join("digest")).unwrap();
    assert_eq!(members(&place, "digest-key").await, BTreeMap::from([("digest".to_owned(), key.clone())]));
    expected.insert("digest".to_owned(), key);
    assert_eq!(members(&place, KEYS).await, expected);
    assert!(!folder.path().join("patch.json").exists());
}
