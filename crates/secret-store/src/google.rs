//! Google Secret Manager, through Google's own client library.

mod convert;
mod emulator_token;
mod errors;
mod permission;
mod projects;

use std::collections::BTreeSet;
use std::fmt;

use daemon::calls;
use google_cloud_auth::credentials::{self, Credentials};
use google_cloud_gax::client_builder::internal::with_follow_redirects;
use google_cloud_gax::options::RequestOptionsBuilder;
use google_cloud_gax::retry_policy::NeverRetry;
use google_cloud_secretmanager_v1::Result as GoogleResult;
use google_cloud_secretmanager_v1::client::SecretManagerService;
use google_cloud_wkt::FieldMask;
use tokio::time::{Instant, timeout};

use crate::contract::{
    Adds, Capabilities, Destroys, ListedSecrets, LiveVersion, Metadata, NewSecret, NewVersion, Permission, Permissions,
    Records, Secret, Version, VersionSummary,
};
use crate::error::{ErrorKind, Operation};
use crate::{Endpoint, ProjectId, SecretId, SecretStore, Settings, StoreError, VersionNumber};

pub use projects::GoogleProjects;

/// The largest payload of a version.
pub const MAX_CONTENT_BYTES: usize = 64 * 1024;

/// The largest page of a list of secrets: 100,000 secrets are four calls.
const MAX_PAGE: i32 = 25_000;

/// A [`SecretStore`] in Google Secret Manager.
pub struct GoogleSecretManager {
    client: SecretManagerService,
    settings: Settings,
    /// `projects/…`, with `/locations/…` for regional secrets.
    parent: String,
}

// === impl GoogleSecretManager ===

impl GoogleSecretManager {
    /// Sets up the client. No request is sent; an identity that does not work fails the first call.
    pub async fn connect(settings: &Settings) -> Result<Self, StoreError> {
        let parent = parent(settings);
        let credentials = credentials(&settings.endpoint).map_err(|detail| {
            errors::failed(Operation::Connect, parent.as_str(), ErrorKind::Unauthenticated).with_detail(detail)
        })?;
        // The library's own retries would hide failures and spend the run's time unseen.
        let mut builder = SecretManagerService::builder().with_retry_policy(NeverRetry).with_credentials(credentials);
        // A redirect would send content to an address that is not configured, and take its answer for success.
        builder = with_follow_redirects(builder, false);
        if let Some(address) = address(settings) {
            builder = builder.with_endpoint(address);
        }
        let client = builder.build().await.map_err(|_error| {
            errors::failed(Operation::Connect, parent.as_str(), ErrorKind::Invalid).with_detail(
                "the client cannot be set up: check the endpoint and the universe domain of the credentials",
            )
        })?;
        Ok(Self { client, settings: settings.clone(), parent })
    }

    /// Returns a client of another project that shares this one's connections and credentials.
    #[must_use]
    pub fn of_project(&self, project: ProjectId) -> Self {
        let settings = Settings { project, ..self.settings.clone() };
        Self { client: self.client.clone(), parent: parent(&settings), settings }
    }

    /// Waits for the answer, at most as long as one call may take.
    async fn call<T>(
        &self,
        operation: Operation,
        resource: &str,
        request: impl Future<Output = GoogleResult<T>>,
    ) -> Result<T, StoreError> {
        let start = Instant::now();
        let answered = timeout(self.settings.call_timeout, request).await;
        if let Some(calls) = &self.settings.calls {
            let status_code = match &answered {
                Ok(Ok(_)) => 200,
                Ok(Err(error)) => errors::status_code(error),
                Err(_elapsed) => calls::TIMED_OUT,
            };
            calls.record(operation.metric_name(), status_code, start.elapsed());
        }
        match answered {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(errors::classify(operation, resource, &error)),
            Err(_elapsed) => Err(errors::failed(operation, resource, ErrorKind::TimedOut)),
        }
    }

    fn version_path(&self, secret: &SecretId, number: VersionNumber) -> String {
        format!("{}/versions/{number}", self.path(secret))
    }
}

impl fmt::Debug for GoogleSecretManager {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("GoogleSecretManager").field("parent", &self.parent).finish_non_exhaustive()
    }
}

impl SecretStore for GoogleSecretManager {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_content_bytes: MAX_CONTENT_BYTES,
            adds: Adds::Open,
            records: Records::UnderEtag,
            versions_kept: None,
            destroys: Destroys::Any,
        }
    }

    fn path(&self, secret: &SecretId) -> String {
        format!("{}/secrets/{secret}", self.parent)
    }

    fn latest_path(&self, secret: &SecretId) -> String {
        format!("{}/versions/latest", self.path(secret))
    }

    fn permission_name(&self, permission: Permission) -> &'static str {
        permission::name(permission)
    }

    async fn find(&self, secret: &SecretId) -> Result<Option<Secret>, StoreError> {
        let path = self.path(secret);
        let request = with_user_agent(self.client.get_secret().set_name(&path)).send();
        match self.call(Operation::Find, &path, request).await {
            // Without an etag, later writes would be made to any revision.
            Ok(found) if found.etag.is_empty() => {
                Err(errors::failed(Operation::Find, path, ErrorKind::Internal).with_detail("the answer has no etag"))
            }
            Ok(found) => Ok(Some(convert::secret(found))),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn list(&self, labels: &[(&str, &str)], page: Option<&str>) -> Result<ListedSecrets, StoreError> {
        let filter =
            labels.iter().map(|(key, value)| format!("labels.{key}={value}")).collect::<Vec<_>>().join(" AND ");
        let request = self.client.list_secrets().set_parent(&self.parent).set_filter(filter).set_page_size(MAX_PAGE);
        let request = with_user_agent(request.set_page_token(page.unwrap_or_default())).send();
        let answer = self.call(Operation::List, &self.parent, request).await?;
        let secrets = answer.secrets.into_iter().filter_map(|found| {
            let id = found.name.rsplit('/').next()?.parse().ok()?;
            Some((id, convert::secret(found).metadata))
        });
        Ok(ListedSecrets {
            secrets: secrets.collect(),
            next: Some(answer.next_page_token).filter(|token| !token.is_empty()),
        })
    }

    async fn create(&self, secret: &SecretId, new: &NewSecret) -> Result<(), StoreError> {
        let path = self.path(secret);
        let request = self.client.create_secret().set_parent(&self.parent).set_secret_id(secret.as_str());
        let request = with_user_agent(request.set_secret(convert::new_secret(new))).send();
        self.call(Operation::Create, &path, request).await.map(drop)
    }

    async fn update(&self, secret: &SecretId, metadata: &Metadata) -> Result<String, StoreError> {
        let path = self.path(secret);
        if metadata.etag.is_empty() {
            return Err(errors::failed(Operation::Update, path, ErrorKind::Changed));
        }
        let mask = FieldMask::default().set_paths(["labels", "annotations"]);
        let changed = convert::changed_secret(&path, metadata);
        let request = with_user_agent(self.client.update_secret().set_secret(changed).set_update_mask(mask)).send();
        let updated = self.call(Operation::Update, &path, request).await;
        updated.map(|secret| secret.etag)
    }

    async fn delete(&self, secret: &SecretId, etag: &str) -> Result<bool, StoreError> {
        let path = self.path(secret);
        if etag.is_empty() {
            return Err(errors::failed(Operation::Delete, path, ErrorKind::Changed));
        }
        let request = with_user_agent(self.client.delete_secret().set_name(&path).set_etag(etag)).send();
        match self.call(Operation::Delete, &path, request).await {
            Ok(()) => Ok(true),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn add_version(&self, secret: &SecretId, new: &NewVersion<'_>) -> Result<VersionNumber, StoreError> {
        let path = self.path(secret);
        let payload = convert::payload(new.content);
        let request = with_user_agent(self.client.add_secret_version().set_parent(&path).set_payload(payload)).send();
        let added = self.call(Operation::AddVersion, &path, request).await?;
        convert::version_number(&added.name).ok_or_else(|| {
            errors::failed(Operation::AddVersion, path, ErrorKind::Internal).with_detail("the answer names no version")
        })
    }

    async fn read_version(&self, secret: &SecretId, number: VersionNumber) -> Result<Version, StoreError> {
        let path = self.version_path(secret, number);
        let request = with_user_agent(self.client.access_secret_version().set_name(&path)).send();
        match self.call(Operation::ReadVersion, &path, request).await {
            Ok(answer) => convert::content(answer)
                .map(|content| Version::Live(LiveVersion::without_record(content)))
                .ok_or_else(|| errors::failed(Operation::ReadVersion, path, ErrorKind::Corrupt)),
            Err(error) => errors::version_state(error),
        }
    }

    async fn newest_version(&self, secret: &SecretId) -> Result<Option<VersionSummary>, StoreError> {
        let path = self.latest_path(secret);
        let request = with_user_agent(self.client.get_secret_version().set_name(&path)).send();
        match self.call(Operation::FindVersion, &path, request).await {
            Ok(found) => Ok(convert::summary(&found)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn list_versions(&self, secret: &SecretId) -> Result<Vec<VersionSummary>, StoreError> {
        let path = self.path(secret);
        let (mut versions, mut page) = (Vec::new(), String::new());
        loop {
            let request = self.client.list_secret_versions().set_parent(&path).set_page_token(&page);
            let answer = self.call(Operation::ListVersions, &path, with_user_agent(request).send()).await?;
            versions.extend(answer.versions.iter().filter_map(convert::summary));
            page = answer.next_page_token;
            if page.is_empty() {
                return Ok(versions);
            }
        }
    }

    async fn destroy_version(&self, secret: &SecretId, number: VersionNumber) -> Result<(), StoreError> {
        let path = self.version_path(secret, number);
        let request = with_user_agent(self.client.destroy_secret_version().set_name(&path)).send();
        let destroyed = self.call(Operation::DestroyVersion, &path, request).await.map(drop);
        destroyed.or_else(errors::accept_destroyed)
    }

    async fn permissions(&self, secret: &SecretId, wanted: &BTreeSet<Permission>) -> Result<Permissions, StoreError> {
        let path = self.path(secret);
        // Creation is granted on the project, and Secret Manager does not answer for projects.
        let (unknown, asked): (BTreeSet<_>, BTreeSet<_>) =
            wanted.iter().copied().partition(|permission| *permission == Permission::Create);
        let names = asked.iter().copied().map(permission::name);
        let request =
            with_user_agent(self.client.test_iam_permissions().set_resource(&path).set_permissions(names)).send();
        let answer = self.call(Operation::CheckPermissions, &path, request).await?;
        let held =
            |permission: &Permission| answer.permissions.iter().any(|name| name == permission::name(*permission));
        Ok(Permissions { missing: asked.into_iter().filter(|permission| !held(permission)).collect(), unknown })
    }
}

fn parent(settings: &Settings) -> String {
    match &settings.location {
        None => format!("projects/{}", settings.project),
        Some(location) => format!("projects/{}/locations/{location}", settings.project),
    }
}

/// Returns the address of the endpoint; `None` for the client library's own.
fn address(settings: &Settings) -> Option<String> {
    match (&settings.endpoint, &settings.location) {
        (Endpoint::Provider, None) => None,
        (Endpoint::Provider, Some(location)) => Some(format!("https://secretmanager.{location}.rep.googleapis.com")),
        (Endpoint::Emulator { host, .. }, _) => Some(format!("http://{host}")),
        (Endpoint::Custom(url), _) => Some(url.as_str().to_owned()),
    }
}

/// Returns the identity for an endpoint; the error says what is wrong with it.
fn credentials(endpoint: &Endpoint) -> Result<Credentials, &'static str> {
    match endpoint {
        Endpoint::Emulator { token_file: None, .. } => Ok(credentials::anonymous::Builder::new().build()),
        Endpoint::Emulator { token_file: Some(path), .. } => emulator_token::credentials(path),
        Endpoint::Provider | Endpoint::Custom(_) => {
            credentials::Builder::default().build().map_err(|error| errors::of_credentials(&error))
        }
    }
}

/// Names the program that calls.
fn with_user_agent<R: RequestOptionsBuilder>(request: R) -> R {
    request.with_user_agent(concat!("pull-secret/", env!("CARGO_PKG_VERSION")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn regional_secrets_have_an_endpoint_of_their_own() {
        let settings = Settings {
            project: "my-project".parse().unwrap(),
            location: Some("europe-west1".parse().unwrap()),
            endpoint: Endpoint::Provider,
            call_timeout: Duration::from_secs(30),
            calls: None,
        };
        assert_eq!(parent(&settings), "projects/my-project/locations/europe-west1");
        let address = address(&settings);
        assert_eq!(address.as_deref(), Some("https://secretmanager.europe-west1.rep.googleapis.com"));
    }
}
