//! The tables of permissions in the providers' guides: the permissions of a column suffice for its name, and without any one of
//! them it fails with a message that names the permission.

mod limited;

use std::collections::{BTreeMap, BTreeSet};

use fleet_model::names;
use pull_secret_job::sweep;
use rstest::rstest;
use secret_store::{AnyStore, NewSecret, Replication, SecretId, SecretStore as _, StoreError};
use serde_json::Value;
use testkit::rig::pull_secret;

use self::limited::Limits;
use crate::stores::{CLUSTER, Fleet, SECRET};

/// The columns of the tables.
const COLUMNS: [&str; 6] = ["Jobs", "deletion", "adapter's check", "`prune`", "`sweep`", "`doctor`"];

/// A cluster whose Job was killed after it had created the secret.
const HALF_CREATED: &str = "cls-half-created";

/// Returns a provider's guide.
fn guide(store: &str) -> &'static str {
    match store {
        "vault" => include_str!("../../../../docs/guides/providers/openbao.md"),
        "aws" => include_str!("../../../../docs/guides/providers/aws.md"),
        _ => include_str!("../../../../docs/guides/providers/azure.md"),
    }
}

/// The permissions of a column, as the table has them.
fn permissions(store: &str, column: &str) -> BTreeSet<String> {
    let head = format!("| permission | {} |\n", COLUMNS.join(" | "));
    let table = guide(store).split_once(&head).map(|(_, table)| table);
    assert!(table.is_some(), "{store} has no table with {head}");
    let table = table.unwrap_or_default();
    let index = COLUMNS.iter().position(|name| *name == column).unwrap();
    let mut permissions = BTreeSet::new();
    for row in table.lines().skip(1).take_while(|line| line.starts_with('|')) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        if cells[index + 2].starts_with("yes") {
            permissions.insert(cells[1].replace('`', ""));
        }
    }
    permissions
}

/// Does the work of a column with these permissions; returns what was said if it fails, and `None` if there is no store.
async fn work(store: &'static str, column: &str, granted: &BTreeSet<String>) -> Option<Result<(), String>> {
    let mut fleet = Fleet::at(store).await?;
    for (name, generation) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
        fleet.job(name, generation, 8).await;
    }
    fill(&fleet.client().await).await;
    leave_half_created(&fleet.client().await).await;
    if column == "`prune`" {
        fleet.api.create(CLUSTER).await;
    }
    let _limits = Limits::new(&mut fleet, granted).await;
    Some(match column {
        "Jobs" => {
            jobs(&fleet, &[(CLUSTER, "e", 5), (HALF_CREATED, "a", 1), ("cls-new", "a", 1)], "--retain-versions=2").await
        }
        "deletion" => jobs(&fleet, &[(CLUSTER, "d", 4), (HALF_CREATED, "a", 1)], "--delete").await,
        "adapter's check" => check(&fleet).await.map_err(|error| error.to_string()),
        "`prune`" => command(&fleet, "prune", &["--yes", "--retain-versions", "1", "--rate", "60000"]).await,
        "`sweep`" => command(&fleet, "sweep", &["--unknown"]).await,
        _ => command(&fleet, "doctor", &[]).await,
    })
}

/// Adds an annotation of people, with which all are a little longer than one tag of AWS's: they take one tag less when versions
/// are destroyed.
async fn fill(client: &AnyStore) {
    let secret: SecretId = SECRET.parse().unwrap();
    let mut metadata = client.find(&secret).await.unwrap().unwrap().metadata;
    let escaped = |text: &str| text.len() + 2 * text.matches(',').count();
    let lengths = metadata.annotations.iter().map(|(key, value)| key.len() + escaped(value) + "/@".len());
    let length = 258 - "note@".len() - lengths.sum::<usize>();
    metadata.annotations.insert("note".to_owned(), "n".repeat(length));
    client.update(&secret, &metadata).await.unwrap();
}

/// Leaves what a Job does that is killed after it has created the secret.
async fn leave_half_created(client: &AnyStore) {
    let labels = [
        (names::LABEL_MANAGED_BY, names::MANAGED_BY),
        (names::LABEL_ADAPTER, names::ADAPTER),
        (names::LABEL_CLUSTER_ID, HALF_CREATED),
    ];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let new = NewSecret { labels, annotations: BTreeMap::new(), replication: Replication::Automatic { kms_key: None } };
    let secret = names::secret_name(&HALF_CREATED.parse().unwrap()).parse().unwrap();
    client.create(&secret, &new).await.unwrap();
}

/// Runs the Jobs of these clusters, contents and generations; returns what the first one says that fails.
async fn jobs(fleet: &Fleet, runs: &[(&str, &str, u64)], argument: &str) -> Result<(), String> {
    for (cluster, name, generation) in runs {
        let mut job =
            fleet.command(&["run-job", "pull-secret", "--cluster-id", cluster, "--secret-store", fleet.store]);
        job.args([argument, "--generation", &generation.to_string()]).env("PULL_SECRET_DATA", pull_secret(name));
        let output = job.output().await.unwrap();
        if !output.status.success() {
            return Err(String::from_utf8([output.stdout, output.stderr].concat()).unwrap());
        }
    }
    Ok(())
}

/// The calls of the adapter's `StoreView`.
async fn check(fleet: &Fleet) -> Result<(), StoreError> {
    let (client, secret) = (fleet.client().await, SECRET.parse::<SecretId>().unwrap());
    client.list(&sweep::LABELS, None).await?;
    client.find(&secret).await?;
    client.newest_version(&secret).await.map(drop)
}

async fn command(fleet: &Fleet, command: &str, arguments: &[&str]) -> Result<(), String> {
    let printed = fleet.run(command, arguments).await;
    let failed = |line: &&Value| line["group"] == "secret_store" && line["state"] == "failed";
    let failures: Vec<_> = printed.lines.iter().filter(failed).collect();
    let succeeded = if command == "doctor" { failures.is_empty() } else { printed.code == Some(0) };
    if succeeded { Ok(()) } else { Err(format!("{:?}\n{}", printed.lines, printed.notes)) }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn each_permission_of_the_guide_is_needed_and_together_they_suffice(
    #[values("vault", "aws", "azure")] store: &'static str,
    #[values("Jobs", "deletion", "adapter's check", "`prune`", "`sweep`", "`doctor`")] column: &str,
) {
    let all = permissions(store, column);
    assert!(!all.is_empty());
    let Some(done) = work(store, column, &all).await else { return };
    assert_eq!(done, Ok(()), "{store}, {column}: what the guide grants suffices");
    for permission in &all {
        let granted = all.iter().filter(|granted| *granted != permission).cloned().collect();
        let Err(said) = work(store, column, &granted).await.unwrap() else {
            panic!("{store}, {column}: {permission} is superfluous");
        };
        let named = limited::in_messages(permission);
        assert!(said.contains(&named), "{store}, {column}: without {permission}, {named} is not named: {said}");
    }
}

/// The policy to copy has the permissions of Jobs, and of their deletions.
#[rstest]
#[case("vault", "```hcl\n")]
#[case("aws", "```json\n")]
#[case("azure", "```json\n")]
fn the_guides_policy_is_that_of_jobs(#[case] store: &str, #[case] begin: &str) {
    let policy = guide(store).split_once(begin).unwrap().1.split_once("```").unwrap().0;
    let wanted: BTreeSet<_> = ["Jobs", "deletion"].iter().flat_map(|column| permissions(store, column)).collect();
    let wanted = wanted.into_iter().filter(|permission| !permission.ends_with("/purge/action")).collect();
    assert_eq!(limited::of_policy(store, policy), wanted);
}
