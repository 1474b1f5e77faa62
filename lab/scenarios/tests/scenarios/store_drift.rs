//! Changes in the secret store behind the adapter's back: found and repaired, without an event.

use std::time::Duration;

use hyperfleet_client::Resource;
use rstest::rstest;
use secret_store::{
    GoogleSecretManager, Metadata, NewVersion, SecretId, SecretStore as _, VersionNumber, VersionState,
};

use testkit::fleet::{PROJECT, Up, condition, document, folder, is_available, run};
use testkit::program;

const ID: &str = "cls-1";

/// An act on the stored secret behind the adapter's back.
#[derive(Clone, Copy)]
enum Act {
    Delete,
    Destroy,
    Disable,
    AddAnother,
    LoseTheRecord,
}

/// A cluster with a stored pull secret.
struct World {
    up: Up,
    store: GoogleSecretManager,
    secret: SecretId,
}

impl World {
    async fn in_folder(folder: &std::path::Path) -> Self {
        let up = Up::in_folder(folder).await;
        up.player.create(ID, &document("a")).await;
        up.player.make_ready(&up.cluster().await, ID, 1).await;
        up.player.until(ID, |cluster| is_available(cluster, 1)).await;
        let (store, secret) = (up.store(PROJECT).await, format!("hyperfleet-{ID}-pull-secret").parse().unwrap());
        Self { up, store, secret }
    }

    async fn metadata(&self) -> Metadata {
        self.store.find(&self.secret).await.unwrap().unwrap().metadata
    }

    async fn act(&self, act: Act) {
        match act {
            Act::Delete => {
                let etag = self.metadata().await.etag;
                assert!(self.store.delete(&self.secret, &etag).await.unwrap());
            }
            Act::Destroy => self.store.destroy_version(&self.secret, VersionNumber::FIRST).await.unwrap(),
            Act::Disable => self.disable().await,
            Act::AddAnother => {
                let another = document("another").into_bytes().into();
                let new = NewVersion::without_record(VersionNumber::FIRST, &another);
                self.store.add_version(&self.secret, &new).await.unwrap();
            }
            Act::LoseTheRecord => {
                let lost = Metadata { annotations: [].into(), ..self.metadata().await };
                self.store.update(&self.secret, &lost).await.unwrap();
            }
        }
    }

    async fn disable(&self) {
        let token = std::fs::read_to_string(self.up.ready["secret_manager_token_file"].as_str().unwrap()).unwrap();
        let address = self.up.place("secret_manager").trim_start_matches("http://").parse().unwrap();
        let path = format!("/v1/{}/versions/1:disable", self.store.path(&self.secret));
        let headers = format!("content-type: application/json\r\nauthorization: Bearer {}\r\n", token.trim());
        let reply = testkit::http::exchange(address, "POST", &path, "{}", &headers).await.unwrap();
        reply.expect(200);
    }

    /// Waits until a later Job than the first has stored another version.
    async fn repaired(&self) -> Resource {
        self.up.player.until(ID, |cluster| is_available(cluster, 1) && version(cluster) != Some(1)).await
    }
}

fn version(cluster: &Resource) -> Option<u64> {
    testkit::fleet::view(cluster)["data"]["secretVersion"].as_u64()
}

#[rstest]
#[case::destroyed(Act::Destroy, 2)]
#[case::disabled(Act::Disable, 2)]
#[case::another_content_on_top(Act::AddAnother, 3)]
#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_repaired(#[case] act: Act, #[case] number: u64) {
    let folder = folder();
    let world = World::in_folder(folder.path()).await;
    world.act(act).await;
    let repaired = world.repaired().await;
    assert_eq!(version(&repaired), Some(number));
    let newest = world.store.newest_version(&world.secret).await.unwrap().unwrap();
    assert_eq!((newest.number.get(), newest.state), (number, VersionState::Live));
    assert_eq!(world.up.versions(ID).await[0], document("a"));
    assert_eq!(world.up.applied_secret(ID).await, Some(document("a")));
    let output = world.up.output();
    assert!(output.contains("a stored pull secret is not as reported"), "{output}");
}

#[rstest]
#[case::deleted(Act::Delete, "does not exist any more")]
#[case::record_lost(Act::LoseTheRecord, "hyperfleet-generation, hyperfleet-incarnation, hyperfleet-version")]
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_repaired(#[case] act: Act, #[case] finding: &str) {
    let folder = folder();
    let world = World::in_folder(folder.path()).await;
    let before = world.metadata().await;
    let stored = world.up.player.until(ID, |cluster| is_available(cluster, 1)).await;
    world.act(act).await;
    world.up.player.until_repaired(&stored, finding).await;
    let after = world.metadata().await;
    // The list of versions that may be pruned cannot be recovered; those are kept.
    let kept = |metadata: &Metadata| {
        let mut annotations = metadata.annotations.clone();
        annotations.remove("hyperfleet-added");
        (metadata.labels.clone(), annotations)
    };
    assert_eq!(kept(&after), kept(&before));
    assert_eq!(world.up.versions(ID).await, [document("a")]);
    let explained = async {
        loop {
            let (code, page, _) = run(&mut explain(&world.up)).await;
            assert!(page.contains("SECRET STORE") && page.contains("last checked"), "{page}");
            if code == Some(0) && page.contains(&format!("ago): secret {}", world.secret)) && page.contains(finding) {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_mins(1), explained).await.unwrap();
}

/// A run that repairs obeys the same rules as every other: what is not this cluster's is named, never changed.
#[rstest]
#[case::unmanaged("labels", "managed-by", "terraform", "NameConflict")]
#[case::of_an_earlier_cluster("annotations", "hyperfleet-incarnation", "2025-01-01T00:00:00Z", "DifferentIncarnation")]
#[tokio::test(flavor = "multi_thread")]
async fn the_secret_of_another_owner_is_named_and_not_changed(
    #[case] member: &str,
    #[case] key: &str,
    #[case] value: &str,
    #[case] reason: &str,
) {
    let folder = folder();
    let world = World::in_folder(folder.path()).await;
    let mut theirs = world.metadata().await;
    let texts = if member == "labels" { &mut theirs.labels } else { &mut theirs.annotations };
    texts.insert(key.to_owned(), value.to_owned());
    let etag = world.store.update(&world.secret, &theirs).await.unwrap();
    world.up.player.until(ID, |cluster| condition(cluster, "Available")["reason"] == reason).await;
    assert_eq!(world.metadata().await, Metadata { etag, ..theirs });
    assert_eq!(world.up.versions(ID).await, [document("a")]);
}

fn explain(up: &Up) -> tokio::process::Command {
    let mut command = program::pull_secret(&["explain", "cluster", ID, "--api", up.place("api")]);
    command.env("KUBECONFIG", up.place("kubeconfig"));
    command
}
