//! `pull-secret credentials serve` at Red Hat's registry, which has accounts but neither a list nor a log of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emulators::red_hat::{Account, RedHat, Settings};
use testkit::api_server::until;
use testkit::broker::fetch;
use testkit::fleet;

use super::Rig;

/// Starts an emulator, and configures the service for it alone.
async fn configured(rig: &Rig) -> RedHat {
    let server = RedHat::start(Settings::default()).await.unwrap();
    let write = |name: &str, content: &str| {
        daemon::file::replace(&rig.path(name), content.as_bytes()).unwrap();
    };
    write("red-hat-ca.crt", server.authority());
    write("red-hat.crt", server.client_certificate());
    write("red-hat.key", server.client_key());
    let file = |name: &str| rig.path(name).display().to_string();
    let settings = format!(
        "clusters: {{resync: 10s}}\nregistries:\n- {{name: red-hat, type: red_hat, url: '{}', host: '{}', partner: {}, cert_file: '{}', key_file: '{}', \
         ca_file: '{}', image: 'ubi9/ubi-minimal', calls_per_minute: 6000, policy: {{nodes: renounced}}}}\n",
        server.url(),
        server.registry(),
        server.partner(),
        file("red-hat.crt"),
        file("red-hat.key"),
        file("red-hat-ca.crt"),
    );
    write("credentials.yaml", &settings);
    server
}

/// Waits until the pull secret of the cluster has the login of an account; returns it.
async fn published(rig: &Rig, server: &RedHat) -> Account {
    until("the account is in the pull secret", async || {
        let found = rig.pull_secret("cls-1").await;
        let auth = found["auths"][server.registry().to_string()]["auth"].as_str()?.to_owned();
        let accounts = server.accounts();
        let is_shown = |account: &&Account| auth == STANDARD.encode(format!("|{}:{}", account.name, account.password));
        accounts.iter().find(is_shown).cloned()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_gets_a_service_account_that_is_revoked() {
    let rig = Rig::new().await;
    let server = configured(&rig).await;
    rig.player.create("cls-1", &fleet::document("one")).await;
    let mut serving = rig.serve("first").await;
    let first = published(&rig, &server).await;
    assert!(first.description.contains(" [hyperfleet credential "), "{first:?}");
    let listed = rig.run(&["list", "--output=json"]).await.json();
    assert_eq!(listed[0]["login"], format!("|{}", first.name));

    let metrics = fetch(&format!("http://{}/metrics", serving.metrics)).await.unwrap();
    let expiry = "hyperfleet_certificate_expiry_timestamp_seconds{certificate=\"registries.red-hat.cert_file\"} ";
    assert!(metrics.contains(expiry), "{metrics}");
    let swept = rig.run(&["sweep"]).await;
    assert_eq!(swept.code, Some(0), "{}", swept.stderr);
    assert!(swept.stderr.contains("registry red-hat has no list of accounts"), "{}", swept.stderr);

    // The registry proves no pull, so that a person takes the first one back.
    let id = listed[0]["id"].as_str().unwrap();
    let order = ["--reason=the password was shown", "--as=jane"];
    let replaced = rig.run(&[&["replace", id], &order[..]].concat()).await;
    assert_eq!(replaced.code, Some(0), "{}", replaced.stderr);
    let second = until("the pull secret has another account", async || {
        Some(published(&rig, &server).await).filter(|account| account.name != first.name)
    })
    .await;
    let revoked = rig.run(&[&["revoke", "--credential", id, "--yes"], &order[..]].concat()).await;
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    until("the first account is deleted", async || (server.accounts() == [second.clone()]).then_some(())).await;

    serving.child.kill().await.unwrap();
    for name in ["first.log", "first.notes"] {
        let text = std::fs::read_to_string(rig.path(name)).unwrap();
        let secrets = [&first.password, &second.password, server.client_key()].map(str::trim);
        assert!(!secrets.iter().any(|secret| text.contains(secret)), "{name} holds a password or the key");
    }
}
