//! The end of the certificate by which the controller identifies itself is seen before it comes.

use std::collections::BTreeMap;

use global_pull_secret::server::Server;
use global_pull_secret::settings::Checked;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::faults::ask;
use crate::rig::encode;

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_of_a_kubeconfig_is_on_the_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.not_after = date_time_ymd(2060, 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    let [certificate, key] = [certificate.pem(), key.serialize_pem()].map(|pem| encode(pem.as_bytes()));
    let kubeconfig = |name: &str, user: serde_json::Value| {
        let path = folder.path().join(name);
        let content = json!({
            "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "users": [{"name": "u", "user": user}],
        });
        daemon::file::replace(&path, content.to_string().as_bytes()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let hosted = json!({"client-certificate-data": certificate, "client-key-data": key});
    let flags = BTreeMap::from([
        ("kubeconfig", kubeconfig("management", json!({"token": "t"}))),
        ("hosted-kubeconfig", kubeconfig("hosted", hosted)),
        ("control-plane-namespace", "clusters-a".to_owned()),
        ("syncer-image", "registry.example/syncer:1".to_owned()),
        ("health-port", "0".to_owned()),
        ("metrics-port", "0".to_owned()),
    ]);
    let environment: BTreeMap<&str, &str> = BTreeMap::new();
    let server = Server::prepare(Checked::load(flags, &environment).unwrap()).await.unwrap();
    let address = server.metrics_address();
    let _running = AbortOnDropHandle::new(tokio::spawn(server.run(CancellationToken::new())));
    let metrics = ask(address, "/metrics").await;
    let series: Vec<&str> = metrics.lines().filter(|line| line.starts_with("hyperfleet_certificate")).collect();
    let expected = "hyperfleet_certificate_expiry_timestamp_seconds{certificate=\"hosted_kubeconfig\"} 2840140800";
    assert_eq!(series, [expected]);
}
