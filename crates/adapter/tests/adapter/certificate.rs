//! The end of the certificate by which an adapter identifies itself to Kubernetes is shown before it comes.

use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use crate::environment::{Environment, Kind};
use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_of_a_kubeconfig_is_on_the_metrics() {
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.not_after = date_time_ymd(2060, 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    let environment = Environment::new(Kind::Emulator).await.unwrap();
    let world = World::at(environment.with_certificate(&certificate.pem(), &key.serialize_pem())).await;
    let adapter = world.adapter("").await;
    let metrics = adapter.metrics().await;
    let series: Vec<&str> = metrics.lines().filter(|line| line.starts_with("hyperfleet_certificate")).collect();
    let expected = "hyperfleet_certificate_expiry_timestamp_seconds{certificate=\"kubeconfig\"} 2840140800";
    assert_eq!(series, [expected]);
    adapter.stop().await;
    world.end().await;
}
