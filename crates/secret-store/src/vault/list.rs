//! Lists of secrets: a page with all metadata in one request, or, at HashiCorp's server, the names and then each secret.

use http::Method;

use super::client::{Answer, Call, Reply, Request};
use super::wire::{self, Folder, SecretInfo};
use super::{VaultStore, errors, metadata};
use crate::contract::{ListedSecrets, Metadata};
use crate::error::Operation;
use crate::{Permission, SecretId, StoreError};

/// Largest page with metadata.
const DETAILED_PAGE: usize = 200;
/// Largest page whose secrets are read one by one.
const PAGE: usize = 100;

impl VaultStore {
    pub(super) async fn listed(
        &self,
        labels: &[(&str, &str)],
        page: Option<&str>,
    ) -> Result<ListedSecrets, StoreError> {
        let call = self.session.client.call(Operation::List, self.place.clone());
        let after = page.map(|page| format!("&after={page}")).unwrap_or_default();
        let request = self.folder("detailed-metadata").with_query(format!("list=true&limit={DETAILED_PAGE}{after}"));
        let answer = self.session.exchange(&call, &request).await?;
        if is_unknown(&answer) {
            return self.listed_by_name(&call, labels, page).await;
        }
        let Reply::Found(body) = call.accepted(&request, answer)? else { return Ok(ListedSecrets::default()) };
        let Folder { keys, key_info } = wire::data(&body).ok_or_else(|| call.unreadable())?;
        let next = keys.last().filter(|_| keys.len() >= DETAILED_PAGE).cloned();
        let mut infos = key_info.unwrap_or_default();
        let mut listed = ListedSecrets { next, ..ListedSecrets::default() };
        for key in keys {
            // A folder in the folder has a name that is none of a secret.
            let Ok(secret) = key.parse::<SecretId>() else { continue };
            let info = infos.remove(&key).ok_or_else(|| call.unreadable())?;
            let info: SecretInfo = serde_json::from_value(info).map_err(|_error| call.unreadable())?;
            add(&mut listed, secret, metadata::read(info), labels);
        }
        Ok(listed)
    }

    /// Lists as a server does it that lists only names, and all of them.
    async fn listed_by_name(
        &self,
        call: &Call<'_>,
        labels: &[(&str, &str)],
        page: Option<&str>,
    ) -> Result<ListedSecrets, StoreError> {
        let request = self.folder("metadata").with_query("list=true".to_owned());
        let Reply::Found(body) = self.session.send(call, &request).await? else { return Ok(ListedSecrets::default()) };
        let Folder { keys, .. } = wire::data(&body).ok_or_else(|| call.unreadable())?;
        let mut names: Vec<SecretId> = keys.iter().filter_map(|key| key.parse().ok()).collect();
        names.retain(|name| page.is_none_or(|page| name.as_str() > page));
        names.sort_unstable();
        let next = names.get(PAGE - 1).filter(|_| names.len() > PAGE).map(ToString::to_string);
        let mut listed = ListedSecrets { next, ..ListedSecrets::default() };
        for name in names.into_iter().take(PAGE) {
            // It may have been deleted meanwhile.
            if let Some(info) = self.info(call, Operation::Find, &name).await? {
                add(&mut listed, name, metadata::read(info), labels);
            }
        }
        Ok(listed)
    }

    fn folder(&self, area: &str) -> Request {
        Request::new(Operation::List, Permission::List, Method::GET, self.folder_path(area))
    }
}

fn add(listed: &mut ListedSecrets, secret: SecretId, metadata: Metadata, labels: &[(&str, &str)]) {
    if labels.iter().all(|(key, value)| metadata.labels.get(*key).is_some_and(|found| found == value)) {
        listed.secrets.insert(secret, metadata);
    }
}

/// Returns true if the server does not have the path: HashiCorp's engine answers with a warning, and without errors.
fn is_unknown(answer: &Answer) -> bool {
    let refusal = errors::refusal(&answer.body).unwrap_or_default();
    match answer.status {
        404 => refusal.warnings.is_some_and(|warnings| !warnings.is_empty()),
        405 => refusal.errors.is_some(),
        _ => false,
    }
}
