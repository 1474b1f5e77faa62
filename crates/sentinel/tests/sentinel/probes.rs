//! Probes and metrics of the Sentinel, and its sweeps.

use sentinel::leader::Election;

use crate::changes::QUIET;
use crate::rig::{broker, received, reconcile, start_sentinel};
use testkit::hyperfleet::HyperFleetApi;

#[tokio::test(flavor = "multi_thread")]
async fn a_sentinel_is_ready_once_it_has_read_the_fleet() {
    let api = HyperFleetApi::start().await;
    let (to, _events) = broker().await;
    let sentinel = start_sentinel(&api, QUIET, to, Election::Alone).await.complete().await;
    assert_eq!(sentinel.probe("/healthz").await.0, 200);
    sentinel.until_readyz(200).await;
    let metrics = sentinel.metrics().await;
    for name in [
        "hyperfleet_sentinel_pending_resources{",
        "hyperfleet_sentinel_known_resources{",
        "hyperfleet_sentinel_last_successful_poll_timestamp_seconds{",
        "hyperfleet_sentinel_poll_duration_seconds_count{",
        "hyperfleet_sentinel_leader{",
    ] {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
    sentinel.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_publishes_nothing_that_the_stream_has_delivered() {
    let api = HyperFleetApi::start().await;
    let (to, mut events) = broker().await;
    for number in 0..120 {
        api.create(&format!("cls-{number}")).await;
    }
    let settings = format!("{QUIET}, sweep_interval: 10s");
    let mut sentinel = start_sentinel(&api, &settings, to, Election::Alone).await;
    assert_eq!(received(&mut events, 120).await.len(), 120);
    sentinel.until(|progress| progress.sweeps > 0).await;
    let metrics = sentinel.metrics().await;
    assert!(metrics.lines().any(|line| line.contains("known_resources{") && line.ends_with(" 120")), "{metrics}");
    api.create("cls-last").await;
    assert_eq!(received(&mut events, 1).await, [reconcile("cls-last", 1)], "nothing was published twice");
    sentinel.stop().await;
}
