//! After a restore of the API's database everything follows the restored database, although newer state was applied.

use std::path::Path;

use testkit::fleet::{Up, condition, document, folder, is_available, run};
use testkit::program;

const ID: &str = "cls-1";

/// The files of the API's database.
const FILES: [&str; 3] = ["hyperfleet.db", "hyperfleet.db-wal", "hyperfleet.db-shm"];

/// Replaces the database in one folder by that in another.
fn copy_database(from: &Path, to: &Path) {
    for file in FILES {
        let _absent = std::fs::remove_file(to.join(file));
        if from.join(file).exists() {
            std::fs::copy(from.join(file), to.join(file)).unwrap();
        }
    }
}

async fn applied(up: &Up, content: &str, generation: u32) {
    up.player.make_ready(&up.cluster().await, ID, generation).await;
    up.player.until(ID, |cluster| is_available(cluster, generation)).await;
    assert_eq!(up.versions(ID).await.first(), Some(&document(content)));
    assert_eq!(up.applied_secret(ID).await, Some(document(content)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_database_is_applied_over_what_is_newer() {
    let (folder, backup) = (folder(), folder());
    let up = Up::in_folder(folder.path()).await;
    up.player.create(ID, &document("a")).await;
    applied(&up, "a", 1).await;
    up.interrupt().await;
    copy_database(folder.path(), backup.path());
    let up = Up::in_folder(folder.path()).await;
    for (content, generation) in [("b", 2), ("c", 3)] {
        up.player.rotate(ID, &document(content)).await;
        applied(&up, content, generation).await;
    }
    up.interrupt().await;
    copy_database(backup.path(), folder.path());
    let mut command = program::pull_secret(&["api", "restored", "--config"]);
    command.arg(folder.path().join("api.yaml"));
    let (code, printed, errors) = run(&mut command).await;
    assert_eq!(code, Some(0), "{errors}");
    assert!(printed.starts_with("generations of 1 resources raised by 1000000;"), "{printed}");
    let up = Up::in_folder(folder.path()).await;
    applied(&up, "a", 1_000_001).await;
    // What follows is a new generation, for which no Job of before the restore has run.
    up.player.rotate(ID, &document("d")).await;
    applied(&up, "d", 1_000_002).await;
    up.interrupt().await;
}

/// A database that was restored without `pull-secret api restored` is older than what is stored: a deletion must not count as
/// done while it deletes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_in_an_older_database_waits_for_the_command() {
    let (folder, backup) = (folder(), folder());
    let up = Up::in_folder(folder.path()).await;
    up.player.create(ID, &document("a")).await;
    applied(&up, "a", 1).await;
    up.interrupt().await;
    copy_database(folder.path(), backup.path());
    let up = Up::in_folder(folder.path()).await;
    for (content, generation) in [("b", 2), ("c", 3)] {
        up.player.rotate(ID, &document(content)).await;
        applied(&up, content, generation).await;
    }
    up.interrupt().await;
    copy_database(backup.path(), folder.path());
    let up = Up::in_folder(folder.path()).await;
    let terminating = up.player.delete(ID).await;
    up.player.finalize(ID, terminating.generation).await;
    let held = up.player.until(ID, |cluster| condition(cluster, "Available")["reason"] == "Superseded").await;
    assert_eq!(condition(&held, "Finalized")["status"], "False", "{held:?}");
    let message = condition(&held, "Available")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("has deleted nothing") && message.contains("`pull-secret api restored`"), "{message}");
    assert_eq!(up.versions(ID).await.first(), Some(&document("c")));
    up.interrupt().await;
    let mut command = program::pull_secret(&["api", "restored", "--config"]);
    command.arg(folder.path().join("api.yaml"));
    let (code, _, errors) = run(&mut command).await;
    assert_eq!(code, Some(0), "{errors}");
    let up = Up::in_folder(folder.path()).await;
    let raised = up.player.get(ID).await.unwrap();
    up.player.finalize(ID, raised.generation).await;
    up.player.until_gone(ID).await;
    assert_eq!((up.versions(ID).await, up.applied_secret(ID).await), (vec![], None));
    up.interrupt().await;
}
