//! Lists of secrets.

use azure_core::http::pager::{PagerContinuation, PagerOptions};
use azure_security_keyvault_secrets::ResourceExt as _;
use azure_security_keyvault_secrets::models::SecretClientListSecretPropertiesOptions;
use futures_util::TryStreamExt as _;

use super::AzureStore;
use super::client::kind;
use super::requests::PAGE;
use super::tags::{Details, Tags};
use crate::contract::ListedSecrets;
use crate::error::{ErrorKind, Operation};
use crate::{Permission, SecretId, StoreError};

impl AzureStore {
    pub(super) async fn listed(
        &self,
        labels: &[(&str, &str)],
        page: Option<&str>,
    ) -> Result<ListedSecrets, StoreError> {
        let call = self.session.call(Operation::List, &self.session.settings.vault);
        let kind = kind(Operation::List, Permission::List);
        let link = page.map(|page| page.parse().map(PagerContinuation::Link)).transpose();
        let link = link.map_err(|_error| call.failed(ErrorKind::Invalid).with_detail("the page is no address"))?;
        let options = SecretClientListSecretPropertiesOptions {
            maxresults: Some(PAGE),
            method_options: PagerOptions { context: call.context(kind), continuation: link },
        };
        let pages = self.session.client.list_secret_properties(Some(options));
        let mut pages = call.send(kind, async { pages }).await?.into_pages();
        let Some(answer) = call.send(kind, Box::pin(pages.try_next())).await? else {
            return Ok(ListedSecrets::default());
        };
        let next = pages.into_continuation().map(String::from);
        let answer = answer.into_model().map_err(|_error| call.unreadable())?;
        let mut listed = ListedSecrets { next, ..ListedSecrets::default() };
        // A secret that belongs to a certificate is none of ours.
        for item in answer.value.into_iter().filter(|item| item.managed != Some(true)) {
            let name = item.resource_id().map_err(|_error| call.unreadable())?.name;
            let Ok(secret) = name.parse::<SecretId>() else { continue };
            let tags: Tags = item.tags.unwrap_or_default().into_iter().collect();
            let metadata = Details::read(&tags).into_metadata();
            if labels.iter().all(|(key, value)| metadata.labels.get(*key).is_some_and(|found| found == value)) {
                listed.secrets.insert(secret, metadata);
            }
        }
        Ok(listed)
    }
}
