//! The served document equals the committed one and lists every path and method.

use std::collections::BTreeSet;

use http::{Method, header};

use crate::contract::{Contract, METHODS};
use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn the_served_document_is_the_committed_one() {
    let rig = Rig::start().await;
    let committed = include_str!("../../../../docs/reference/openapi.json");
    let served = format!("{:#}\n", rig.document().await);
    assert_eq!(served, committed, "run: cargo xtask gen");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_path_is_documented() {
    let rig = Rig::start().await;
    let document = rig.document().await;
    let documented: BTreeSet<String> =
        document["paths"].as_object().unwrap().keys().map(|path| anonymous(path)).collect();
    let mut expected = BTreeSet::from([
        "/api/hyperfleet".to_owned(),
        "/api/hyperfleet/v1/openapi".to_owned(),
        "/api/hyperfleet/v1/openapi.html".to_owned(),
    ]);
    for collection in [
        "clusters",
        "nodepools",
        "clusters/{}/nodepools",
        "channels",
        "versions",
        "channels/{}/versions",
        "wifconfigs",
        "resources",
    ] {
        for rest in ["", "/{}", "/{}/force-delete", "/{}/statuses", "/{}/statuses/history"] {
            expected.insert(format!("/api/hyperfleet/v1/{collection}{rest}"));
        }
    }
    for kind in ["clusters", "nodepools", "channels", "versions", "wifconfigs"] {
        expected.insert(format!("/api/hyperfleet/v1/tombstones/{kind}"));
        expected.insert(format!("/api/hyperfleet/v1/tombstones/{kind}/{{}}/swept"));
    }
    // Only kinds with required adapters have causes.
    for kind in ["clusters", "nodepools"] {
        expected.insert(format!("/api/hyperfleet/v1/causes/{kind}"));
    }
    assert_eq!(documented, expected);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_path_supports_exactly_the_documented_methods() {
    let rig = Rig::start().await;
    let contract = Contract(rig.document().await);
    for (path, item) in contract.0["paths"].as_object().unwrap() {
        let answer = rig.ask(Method::OPTIONS, &anonymous(path).replace("{}", "x"), None).await;
        assert_eq!(answer.status, 405, "{path}");
        let allowed = answer.headers[header::ALLOW].to_str().unwrap().to_lowercase();
        let mut allowed: BTreeSet<&str> = allowed.split(", ").collect();
        assert_eq!(allowed.remove("head"), allowed.contains("get"), "{path}");
        let documented = METHODS.iter().copied().filter(|method| item.get(method).is_some()).collect();
        assert_eq!(allowed, documented, "{path}");
    }
    rig.end().await;
}

/// A path whose parameters have no names.
fn anonymous(path: &str) -> String {
    let segments = path.split('/').map(|segment| if segment.starts_with('{') { "{}" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}
