//! The requests that more than one operation makes.

use aws_sdk_secretsmanager::operation::get_secret_value::GetSecretValueOutput;
use secrecy::SecretSlice;

use super::AwsStore;
use super::client::{Call, kind};
use super::errors::{Fault, NOT_FOUND};
use super::labels;
use super::view::{Found, Versions, View};
use crate::error::Operation;
use crate::{Permission, SecretId, StoreError, VersionNumber};

impl AwsStore {
    /// Reads a secret without its content; `None` if it does not exist.
    pub(super) async fn describe(&self, call: &Call<'_>, secret: &SecretId) -> Result<Option<View>, StoreError> {
        let request = self.session.client.describe_secret().secret_id(self.name(secret));
        match call.send(kind(Operation::Find, Permission::Find), Box::pin(request.send())).await {
            Ok(described) => Ok(Some(View::of(described))),
            Err(fault) if fault.code == NOT_FOUND => Ok(None),
            Err(fault) => Err(fault.error),
        }
    }

    /// Reads the version with this number, whatever its labels; `None` if there is none.
    pub(super) async fn get(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        number: VersionNumber,
    ) -> Result<Option<Found>, StoreError> {
        self.get_by_id(call, secret, labels::id(number)).await
    }

    pub(super) async fn get_by_id(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        id: String,
    ) -> Result<Option<Found>, StoreError> {
        let request = self.session.client.get_secret_value().secret_id(self.name(secret)).version_id(id);
        match call.send(kind(Operation::ReadVersion, Permission::ReadVersion), Box::pin(request.send())).await {
            Ok(version) => Ok(Some(found(version))),
            Err(fault) if fault.code == NOT_FOUND => Ok(None),
            Err(fault) => Err(fault.error),
        }
    }

    /// Lists all versions, those without labels too.
    pub(super) async fn all_versions(&self, call: &Call<'_>, secret: &SecretId) -> Result<Versions, StoreError> {
        let (mut versions, mut page) = (Versions::default(), None);
        loop {
            let request = self.session.client.list_secret_version_ids().secret_id(self.name(secret));
            let request = request.include_deprecated(true).max_results(100).set_next_token(page);
            let kind = kind(Operation::ListVersions, Permission::ListVersions);
            let listed = call.send(kind, Box::pin(request.send())).await?;
            let entries = listed.versions.unwrap_or_default().into_iter();
            let entry = |(id, labels): (Option<String>, Option<Vec<String>>)| Some((id?, labels.unwrap_or_default()));
            versions.0.extend(entries.filter_map(|version| entry((version.version_id, version.version_stages))));
            page = listed.next_token.filter(|token| !token.is_empty());
            if page.is_none() {
                return Ok(versions);
            }
        }
    }

    /// Returns true if the number is the one after the newest version's. Versions without labels are not in the view.
    pub(super) async fn is_next(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        versions: &Versions,
        number: VersionNumber,
    ) -> Result<bool, StoreError> {
        /// More versions than that without labels are not looked for.
        const PROBED: u64 = 8;
        let newest = versions.newest().map_or(0, VersionNumber::get);
        if number.get() <= newest || number.get() - newest > PROBED {
            return Ok(false);
        }
        for between in (newest + 1..number.get()).filter_map(VersionNumber::new) {
            if self.get(call, secret, between).await?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves a label, if it is on `from`.
    pub(super) async fn move_label(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        label: &str,
        from: Option<String>,
        to: Option<String>,
    ) -> Result<(), Fault> {
        let request = self.session.client.update_secret_version_stage().secret_id(self.name(secret));
        let request = request.version_stage(label).set_remove_from_version_id(from).set_move_to_version_id(to);
        let kind = kind(call.operation, Permission::DestroyVersion);
        call.send(kind, Box::pin(request.send())).await.map(drop)
    }
}

fn found(version: GetSecretValueOutput) -> Found {
    let content = match (version.secret_string, version.secret_binary) {
        (Some(text), _) => text.into_bytes(),
        (None, Some(bytes)) => bytes.into_inner(),
        (None, None) => Vec::new(),
    };
    Found { content: SecretSlice::from(content), labels: version.version_stages.unwrap_or_default() }
}
