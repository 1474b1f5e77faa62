//! The policy in the guide: it suffices, and each capability in it is needed by the operation that names it.

use std::collections::BTreeSet;

use rstest::rstest;
use secret_store::{ErrorKind, Operation, Permission, Permissions, SecretStore as _, VaultLogin, VaultStore};

use super::server::OpenBao;
use crate::rig::{attempt, secret_id};

const GUIDE: &str = include_str!("../../../../../docs/guides/providers/openbao.md");

const PERMISSIONS: [Permission; 10] = [
    Permission::Create,
    Permission::Find,
    Permission::List,
    Permission::Update,
    Permission::Delete,
    Permission::AddVersion,
    Permission::ReadVersion,
    Permission::FindVersion,
    Permission::ListVersions,
    Permission::DestroyVersion,
];

/// The guide's policy, with that of lists, for the folder of a test.
fn policy(server: &OpenBao) -> String {
    let begin = GUIDE.split_once("```hcl\n").unwrap().1;
    let lists = "path \"secret/detailed-metadata/pull-secrets\" { capabilities = [\"list\"] }";
    assert!(GUIDE.contains(lists), "{lists}");
    format!("{}{lists}\n", begin.split_once("```").unwrap().0).replace("pull-secrets", &server.unique)
}

async fn store_with(server: &OpenBao, policy: &str) -> VaultStore {
    let token = server.token_with("limited", policy).await;
    VaultStore::connect(&server.settings_with(VaultLogin::TokenFile(token))).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guides_policy_suffices() {
    let Some(server) = OpenBao::shared().await else { return };
    let store = store_with(&server, &policy(&server)).await;
    let none = Permissions { missing: BTreeSet::new(), unknown: BTreeSet::new() };
    assert_eq!(store.permissions(&secret_id(), &PERMISSIONS.into()).await.unwrap(), none);
    for operation in [Operation::Create, Operation::AddVersion, Operation::ReadVersion, Operation::List] {
        attempt(&store, operation).await.unwrap();
    }
    let mut metadata = store.find(&secret_id()).await.unwrap().unwrap().metadata;
    metadata.etag = store.update(&secret_id(), &metadata).await.unwrap();
    for operation in [Operation::FindVersion, Operation::ListVersions, Operation::DestroyVersion] {
        attempt(&store, operation).await.unwrap();
    }
    assert!(store.delete(&secret_id(), &metadata.etag).await.unwrap());
    assert_eq!(store.list(&[], None).await.unwrap().secrets.len(), 0);
}

#[rstest]
#[case(Operation::Create, "metadata", "create", &[Permission::Create])]
#[case(Operation::Update, "metadata", "update", &[Permission::Update])]
#[case(Operation::Delete, "metadata", "delete", &[Permission::Delete])]
#[case(Operation::Find, "metadata", "read", &[Permission::Find, Permission::FindVersion, Permission::ListVersions])]
#[case(Operation::List, "detailed-metadata", "list", &[Permission::List])]
#[case(Operation::AddVersion, "data", "update", &[Permission::AddVersion])]
#[case(Operation::ReadVersion, "data", "read", &[Permission::ReadVersion])]
#[case(Operation::DestroyVersion, "destroy", "update", &[Permission::DestroyVersion])]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denial_names_path_and_capability(
    #[case] operation: Operation,
    #[case] area: &str,
    #[case] capability: &str,
    #[case] missing: &[Permission],
) {
    let Some(server) = OpenBao::shared().await else { return };
    let full = policy(&server);
    let without: Vec<_> = full
        .lines()
        .map(|line| {
            let is_of_area = line.contains(&format!("/{area}/"));
            if is_of_area { line.replace(&format!("\"{capability}\""), "\"deny-nothing\"") } else { line.to_owned() }
        })
        .collect();
    let without = without
        .join("\n")
        .replace(", \"deny-nothing\"", "")
        .replace("\"deny-nothing\", ", "")
        .replace("\"deny-nothing\"", "");
    assert_ne!(without, full);
    let store = store_with(&server, &without).await;
    let permissions = store.permissions(&secret_id(), &PERMISSIONS.into()).await.unwrap();
    assert_eq!(permissions.missing, missing.iter().copied().collect());
    let all = server.store();
    if operation != Operation::Create {
        for operation in [Operation::Create, Operation::AddVersion] {
            attempt(&all, operation).await.unwrap();
        }
    }
    let metadata = all.find(&secret_id()).await.unwrap().map(|found| found.metadata).unwrap_or_default();
    let attempted = match operation {
        Operation::Update => store.update(&secret_id(), &metadata).await.map(drop),
        Operation::Delete => store.delete(&secret_id(), &metadata.etag).await.map(drop),
        _ => attempt(&store, operation).await,
    };
    let error = attempted.unwrap_err();
    assert_eq!(error.kind, ErrorKind::PermissionDenied, "{error}");
    let of_secret = if operation == Operation::List { "" } else { "/pull-secret" };
    let needed = format!("`{capability}` on `secret/{area}/{}{of_secret}`", server.unique);
    assert!(error.to_string().contains(&format!("(needs {needed}; ")), "{error}");
    assert_eq!(error.hint(), Some(format!("grant a policy of the token {needed}")));
    let name = store.permission_name(missing[0]);
    assert_eq!(name, format!("`{capability}` on `{area}/…`"));
}
