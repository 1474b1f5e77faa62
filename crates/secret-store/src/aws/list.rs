//! Lists of secrets.

use aws_sdk_secretsmanager::types::{Filter, FilterNameStringType};

use super::client::kind;
use super::view::tags_of;
use super::{AwsStore, tags};
use crate::contract::ListedSecrets;
use crate::error::Operation;
use crate::{Permission, SecretId, StoreError};

/// The largest page.
const PAGE: i32 = 100;

impl AwsStore {
    pub(super) async fn listed(
        &self,
        labels: &[(&str, &str)],
        page: Option<&str>,
    ) -> Result<ListedSecrets, StoreError> {
        let folder = self.folder();
        let call = self.session.call(Operation::List, &folder);
        // Filters look for beginnings, so what is listed is looked at again.
        let filter = |name, value: &str| Filter::builder().key(name).values(value).build();
        let mut filters: Vec<_> = labels.iter().map(|(key, _)| filter(FilterNameStringType::TagKey, key)).collect();
        filters.push(filter(FilterNameStringType::Name, &folder));
        let request = self.session.client.list_secrets().max_results(PAGE);
        let request = request.set_filters(Some(filters)).set_next_token(page.map(str::to_owned));
        let answer = call.send(kind(Operation::List, Permission::List), Box::pin(request.send())).await?;
        let next = answer.next_token.filter(|token| !token.is_empty());
        let mut listed = ListedSecrets { next, ..ListedSecrets::default() };
        for entry in answer.secret_list.unwrap_or_default() {
            let name = entry.name.unwrap_or_default();
            // A secret in a folder of the folder has a name that is none of a secret.
            let Some(Ok(secret)) = name.strip_prefix(&folder).map(str::parse::<SecretId>) else { continue };
            let metadata = tags::read(&entry.arn.unwrap_or_default(), tags_of(entry.tags.unwrap_or_default()));
            if labels.iter().all(|(key, value)| metadata.labels.get(*key).is_some_and(|found| found == value)) {
                listed.secrets.insert(secret, metadata);
            }
        }
        Ok(listed)
    }
}
