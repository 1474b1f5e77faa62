//! Several Sentinels share a fleet.

use std::collections::BTreeSet;

use sentinel::leader::Election;

use crate::changes::QUIET;
use crate::rig::{broker, create_labelled, received, reconcile, start_sentinel};
use testkit::hyperfleet::HyperFleetApi;

#[tokio::test(flavor = "multi_thread")]
async fn two_shards_cover_everything_exactly_once() {
    let api = HyperFleetApi::start().await;
    let (to, mut events) = broker().await;
    let mut sentinels = Vec::new();
    for shard in ["1/2", "2/2"] {
        let settings = format!("{QUIET}, shard: {shard}");
        sentinels.push(start_sentinel(&api, &settings, to.clone(), Election::Alone).await.complete().await);
    }
    let expect: BTreeSet<String> = (0..40).map(|number| reconcile(&format!("cls-{number}"), 1)).collect();
    for number in 0..40 {
        api.create(&format!("cls-{number}")).await;
    }
    let published: Vec<String> = received(&mut events, 40).await;
    assert_eq!(published.into_iter().collect::<BTreeSet<_>>(), expect);
    for (index, sentinel) in sentinels.iter().enumerate() {
        let metrics = sentinel.metrics().await;
        assert!(metrics.contains(&format!(r#"shard="{}/2",reason="OtherShard"}}"#, index + 1)), "{metrics}");
    }
    for sentinel in sentinels {
        sentinel.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selector_selects_resources_by_label() {
    let api = HyperFleetApi::start().await;
    let (to, mut events) = broker().await;
    let settings = format!("{QUIET}, resource_selector: [{{label: hyperfleet.io/region, value: eu-west}}]");
    let sentinel = start_sentinel(&api, &settings, to, Election::Alone).await.complete().await;
    create_labelled(&api, "cls-us", &[("hyperfleet.io/region", "us-east")]).await;
    create_labelled(&api, "cls-eu", &[("hyperfleet.io/region", "eu-west")]).await;
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-eu", 1)]);
    let metrics = sentinel.metrics().await;
    assert!(metrics.contains(r#"resource_selector="hyperfleet.io/region:eu-west""#), "{metrics}");
    sentinel.stop().await;
}
