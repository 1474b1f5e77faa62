//! The requests about one secret.

use azure_core::http::pager::PagerOptions;
use azure_core::http::{ClientMethodOptions, RequestContent};
use azure_security_keyvault_secrets::models::{
    SecretClientGetSecretOptions, SecretClientListSecretPropertiesVersionsOptions, SecretClientSetSecretOptions,
    SecretClientUpdateSecretPropertiesOptions,
};
use futures_util::TryStreamExt as _;
use jiff::Timestamp;

use super::AzureStore;
use super::client::{Call, Kind, kind};
use super::errors::{DISABLED, NOT_FOUND};
use super::view::{Current, View};
use super::wire::{self, Change, Got, New, Written};
use crate::error::{ErrorKind, Operation};
use crate::{Permission, SecretId, StoreError};

/// The largest page.
pub(super) const PAGE: i32 = 25;

impl AzureStore {
    /// Returns the versions of a secret; `None` if it does not exist, or is deleted.
    pub(super) async fn view(
        &self,
        call: &Call<'_>,
        counts_as: Operation,
        secret: &SecretId,
    ) -> Result<Option<View>, StoreError> {
        let Some(mut view) = self.listed_versions(call, counts_as, secret).await? else { return Ok(None) };
        if view.is_tied() {
            let current = match self.get(call, secret, None).await? {
                Got::Found(found) => Current::Version(found.id),
                Got::Disabled => Current::Disabled,
                Got::Absent => Current::Absent,
            };
            view.tell_top(current);
        }
        Ok(Some(view))
    }

    async fn listed_versions(
        &self,
        call: &Call<'_>,
        counts_as: Operation,
        secret: &SecretId,
    ) -> Result<Option<View>, StoreError> {
        let kind = kind(counts_as, Permission::ListVersions);
        let options = SecretClientListSecretPropertiesVersionsOptions {
            maxresults: Some(PAGE),
            method_options: PagerOptions { context: call.context(kind), ..PagerOptions::default() },
        };
        let pages = self.session.client.list_secret_properties_versions(secret.as_str(), Some(options));
        let mut pages = call.send(kind, async { pages }).await?.into_pages();
        let (mut entries, mut time) = (Vec::new(), None);
        loop {
            let page = match call.send(kind, Box::pin(pages.try_next())).await {
                Err(fault) if fault.code == NOT_FOUND => return Ok(None),
                page => page?,
            };
            let Some(page) = page else { break };
            time = time.or_else(|| wire::date(page.headers()));
            let page = page.into_model().map_err(|_error| call.unreadable())?;
            for version in page.value {
                entries.push(wire::entry(version).ok_or_else(|| call.unreadable())?);
            }
        }
        // A server without a clock is taken to have this machine's.
        Ok(View::of(entries, time.unwrap_or_else(|| Timestamp::now().as_second())))
    }

    /// Reads a version; without an id the one that readers get.
    pub(super) async fn get(&self, call: &Call<'_>, secret: &SecretId, id: Option<&str>) -> Result<Got, StoreError> {
        let kind = kind(Operation::ReadVersion, Permission::ReadVersion);
        let options = SecretClientGetSecretOptions {
            secret_version: id.map(str::to_owned),
            method_options: ClientMethodOptions { context: call.context(kind) },
            ..SecretClientGetSecretOptions::default()
        };
        let request = self.session.client.get_secret(secret.as_str(), Some(options));
        let answer = match call.send(kind, Box::pin(request)).await {
            Err(fault) if fault.code == NOT_FOUND => return Ok(Got::Absent),
            Err(fault) if fault.code == DISABLED => return Ok(Got::Disabled),
            answer => answer?,
        };
        let found = answer.into_model().ok().and_then(wire::found);
        found.map(Got::Found).ok_or_else(|| call.unreadable())
    }

    /// Writes a version, whatever there is.
    pub(super) async fn put(
        &self,
        call: &Call<'_>,
        kind: Kind,
        secret: &SecretId,
        new: New<'_>,
    ) -> Result<Written, StoreError> {
        let parameters = wire::addition(new);
        let parameters: RequestContent<_> = parameters.try_into().map_err(|_error| call.failed(ErrorKind::Invalid))?;
        let options =
            SecretClientSetSecretOptions { method_options: ClientMethodOptions { context: call.context(kind) } };
        let request = self.session.client.set_secret(secret.as_str(), parameters, Some(options));
        let answer = call.send(kind, Box::pin(request)).await?;
        let written = answer.into_model().ok().and_then(|written| wire::written(&written));
        written.ok_or_else(|| call.unreadable())
    }

    /// Changes a version.
    pub(super) async fn patch(
        &self,
        call: &Call<'_>,
        kind: Kind,
        secret: &SecretId,
        id: &str,
        change: Change,
    ) -> Result<(), StoreError> {
        let parameters = wire::change(change);
        let parameters: RequestContent<_> = parameters.try_into().map_err(|_error| call.failed(ErrorKind::Invalid))?;
        let options = SecretClientUpdateSecretPropertiesOptions {
            method_options: ClientMethodOptions { context: call.context(kind) },
            secret_version: Some(id.to_owned()),
        };
        let request = self.session.client.update_secret_properties(secret.as_str(), parameters, Some(options));
        call.send(kind, Box::pin(request)).await?;
        Ok(())
    }
}
