//! Deletes a secret, and purges it if its name is to be free again.

use azure_core::http::ClientMethodOptions;
use azure_security_keyvault_secrets::models::{
    SecretClientDeleteSecretOptions, SecretClientGetDeletedSecretOptions, SecretClientPurgeDeletedSecretOptions,
};

use super::AzureStore;
use super::client::{Call, Kind, Waits, kind};
use super::errors::{BEING_DELETED, Fault, NOT_FOUND};
use super::permission::PURGE;
use crate::error::{ErrorKind, Operation};
use crate::{Permission, SecretId, StoreError};

impl AzureStore {
    pub(super) async fn deleted(&self, call: &Call<'_>, secret: &SecretId, etag: &str) -> Result<bool, StoreError> {
        let Some(view) = self.view(call, Operation::ListVersions, secret).await? else {
            // One whose purge did not come to its end.
            if self.session.settings.purge {
                self.purge_what_is_left(call, secret).await?;
            }
            return Ok(false);
        };
        if view.details().etag() != etag {
            return Err(call.failed(ErrorKind::Changed));
        }
        let kind = kind(Operation::Delete, Permission::Delete);
        let options =
            SecretClientDeleteSecretOptions { method_options: ClientMethodOptions { context: call.context(kind) } };
        let request = self.session.client.delete_secret(secret.as_str(), Some(options));
        match call.send(kind, Box::pin(request)).await {
            Err(fault) if fault.code == NOT_FOUND => return Ok(false),
            deleted => drop(deleted?),
        }
        if self.session.settings.purge {
            self.wait_until_deleted(call, secret).await?;
            self.purge(call, secret).await?;
        }
        Ok(true)
    }

    async fn purge_what_is_left(&self, call: &Call<'_>, secret: &SecretId) -> Result<(), StoreError> {
        match self.purge(call, secret).await {
            Err(fault) if fault.code == NOT_FOUND => Ok(()),
            Err(fault) if fault.code == BEING_DELETED => {
                self.wait_until_deleted(call, secret).await?;
                Ok(self.purge(call, secret).await?)
            }
            purged => Ok(purged?),
        }
    }

    /// Waits until a deletion has come to its end, which takes up to a minute.
    async fn wait_until_deleted(&self, call: &Call<'_>, secret: &SecretId) -> Result<(), StoreError> {
        let kind = Kind { counts_as: Operation::Find, ..kind(Operation::Delete, Permission::Find) };
        let mut waits = Waits::default();
        loop {
            let options = SecretClientGetDeletedSecretOptions {
                method_options: ClientMethodOptions { context: call.context(kind) },
            };
            let request = self.session.client.get_deleted_secret(secret.as_str(), Some(options));
            match call.send(kind, Box::pin(request)).await {
                Err(fault) if fault.code == NOT_FOUND => {}
                deleted => return deleted.map(drop).map_err(StoreError::from),
            }
            call.wait(&mut waits, "the secret is not deleted yet; the next deletion purges it").await?;
        }
    }

    async fn purge(&self, call: &Call<'_>, secret: &SecretId) -> Result<(), Fault> {
        let kind = Kind { counts_as: Operation::Delete, needs: PURGE };
        let options = SecretClientPurgeDeletedSecretOptions {
            method_options: ClientMethodOptions { context: call.context(kind) },
        };
        let request = self.session.client.purge_deleted_secret(secret.as_str(), Some(options));
        call.send(kind, Box::pin(request)).await.map(drop).map_err(|Fault { code, error }| {
            let hint = match error.kind {
                ErrorKind::PermissionDenied => Some(format!(
                    "give the identity the data action {PURGE}, or do without the purge: a vault with purge protection refuses it"
                )),
                _ => error.hint.clone(),
            };
            Fault { code, error: StoreError { hint, ..error } }
        })
    }
}
