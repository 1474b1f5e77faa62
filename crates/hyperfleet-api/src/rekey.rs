//! Encrypts stored pull secrets anew, so that old keys can be withdrawn.

use std::collections::BTreeMap;

use database::sealed::{Begins, Keyring, SealedColumn, key_id};

use crate::decide::change::RequestInfo;
use crate::sealed::Binding;
use crate::service::{Failure, Service};
use crate::store::{Lock, Store, StoreError};
use crate::tenancy::Reach;

/// The encrypted pull secrets.
const SEALED: SealedColumn = SealedColumn { table: "resources", column: "sealed" };

/// The outcome of a pass over all stored pull secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rekeyed {
    /// Number of pull secrets that were encrypted anew.
    pub resealed: usize,
    /// The resources whose pull secret cannot be decrypted.
    pub unopened: Vec<String>,
}

/// Keys of stored pull secrets that are not configured. The text names them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "pull_secret.keys: stored pull secrets are encrypted with keys that are not configured: {}; configure them again, and \
     withdraw a key only when hyperfleet_api_pull_secrets counts none for it; `pull-secret api rekey --remove-lost-key ID` \
     removes what is encrypted with a key that is lost",
    .0.iter().map(|(key, number)| format!("`{key}` ({number} resources)")).collect::<Vec<_>>().join(", ")
)]
pub struct MissingKeys(pub BTreeMap<String, u64>);

/// Counts the stored pull secrets by the id of their key.
pub async fn keys_in_use(store: &Store) -> Result<BTreeMap<String, u64>, StoreError> {
    SEALED.by_key(store.database()).await
}

/// Returns the keys in use that the keyring does not have.
pub fn missing(keys: &BTreeMap<String, u64>, keyring: Option<&Keyring>) -> Option<MissingKeys> {
    let known = |id: &str| keyring.is_some_and(|keyring| keyring.has(id));
    let missing: BTreeMap<_, _> =
        keys.iter().filter(|(id, _)| !known(id)).map(|(id, number)| (id.clone(), *number)).collect();
    (!missing.is_empty()).then_some(MissingKeys(missing))
}

/// Encrypts with the first key whatever is not. Generations stay, and the change stream has no event: nothing that readers
/// see changes.
pub async fn rekey(store: &Store, keyring: &Keyring) -> Result<Rekeyed, StoreError> {
    let (mut done, mut after) = (Rekeyed::default(), String::new());
    let Some(current) = keyring.beginning() else { return Ok(done) };
    loop {
        let ids = SEALED.ids(store.database(), Begins::Otherwise(&current), &after).await?;
        let Some(last) = ids.last() else { return Ok(done) };
        after.clone_from(last);
        for id in ids {
            match reseal(store, keyring, &id).await? {
                Some(true) => done.resealed += 1,
                Some(false) => done.unopened.push(id),
                None => {}
            }
        }
    }
}

/// Removes every pull secret that is encrypted with a lost key; returns the resources, which need their content again.
pub async fn remove_lost(service: &Service, key: &str, request: &RequestInfo) -> Result<Vec<String>, Failure> {
    let mut removed = Vec::new();
    let database = service.store().database();
    let beginnings = SEALED.by_beginning(database).await?;
    for beginning in beginnings.keys().filter(|beginning| key_id(beginning) == key) {
        let mut after = String::new();
        loop {
            let ids = SEALED.ids(database, Begins::With(beginning), &after).await?;
            let Some(last) = ids.last() else { break };
            after.clone_from(last);
            for id in ids {
                if service.remove_lost(&id, key, request).await? {
                    removed.push(id);
                }
            }
        }
    }
    Ok(removed)
}

/// Encrypts the pull secret of one resource anew: true if it was, false if it cannot be decrypted, `None` if it needs not.
async fn reseal(store: &Store, keyring: &Keyring, id: &str) -> Result<Option<bool>, StoreError> {
    let mut write = store.write().await?;
    let Some(mut stored) = write.lock(id, Lock::Change, &Reach::Unlimited).await? else { return Ok(None) };
    let Some(sealed) = stored.sealed.take().filter(|sealed| !keyring.is_current(sealed)) else { return Ok(None) };
    let binding = Binding::of(&stored.resource);
    let Ok(resealed) = binding.reseal(keyring, &sealed, &binding) else { return Ok(Some(false)) };
    write.reseal(id, resealed).await?;
    write.commit().await?;
    Ok(Some(true))
}
