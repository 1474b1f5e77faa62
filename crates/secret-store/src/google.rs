//! Google Secret Manager, through Google's own client library.

mod convert;
mod errors;

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use google_cloud_auth::credentials::{self, Credentials};
use google_cloud_gax::client_builder::internal::with_follow_redirects;
use google_cloud_gax::options::RequestOptionsBuilder;
use google_cloud_gax::paginator::ItemPaginator as _;
use google_cloud_gax::retry_policy::NeverRetry;
use google_cloud_secretmanager_v1::Result as GoogleResult;
use google_cloud_secretmanager_v1::client::SecretManagerService;
use google_cloud_wkt::FieldMask;
use secrecy::SecretSlice;
use tokio::time::timeout;

use crate::error::{ErrorKind, Operation};
use crate::promise::{Capabilities, Metadata, NewSecret, Permission, Permissions, Secret, Version, VersionSummary};
use crate::{Location, ProjectId, SecretId, SecretStore, StoreError, VersionNumber};

/// The largest payload of a version.
pub const MAX_CONTENT_BYTES: usize = 64 * 1024;

/// Address, identity and timeout of Secret Manager.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The project that the secrets rest in.
    pub project: ProjectId,
    /// The location of regional secrets; `None` for global ones.
    pub location: Option<Location>,
    /// The endpoint.
    pub endpoint: Endpoint,
    /// Maximum time of a call, fetching a token included.
    pub call_timeout: Duration,
}

/// The endpoint, and the identity.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Endpoint {
    /// Google's own, with application default credentials.
    #[default]
    Google,
    /// An emulator: `HOST:PORT`, plain HTTP, no identity.
    Emulator(String),
    /// Another address of the real service (a private endpoint, a proxy), with application default credentials.
    Custom(EndpointUrl),
}

/// An address to which tokens may be sent: `https://…`, or `http://` to this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointUrl(String);

/// A text that is no [`EndpointUrl`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an https:// address (or http:// to this machine), without user, query or fragment")]
pub struct InvalidEndpoint;

/// A [`SecretStore`] at Google.
pub struct GoogleSecretManager {
    client: SecretManagerService,
    parent: String,
    call_timeout: Duration,
}

// === impl EndpointUrl ===

impl FromStr for EndpointUrl {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        let uri: http::Uri = text.parse().map_err(|_error| InvalidEndpoint)?;
        let host = uri.host().ok_or(InvalidEndpoint)?;
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let is_this_machine = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        let encrypted = uri.scheme_str() == Some("https");
        let plain_and_near = uri.scheme_str() == Some("http") && is_this_machine;
        let bare = !text.contains(['@', '?', '#']);
        if (encrypted || plain_and_near) && bare {
            Ok(Self(text.trim_end_matches('/').to_owned()))
        } else {
            Err(InvalidEndpoint)
        }
    }
}

// === impl Settings ===

impl Settings {
    /// The host that requests go to without encryption, if they do.
    pub fn plain_host(&self) -> Option<&str> {
        let address = match &self.endpoint {
            Endpoint::Google => return None,
            Endpoint::Emulator(host) => host,
            Endpoint::Custom(url) => url.0.strip_prefix("http://")?,
        };
        let authority = address.split('/').next()?;
        Some(authority.rsplit_once(':').map_or(authority, |(host, _port)| host))
    }

    /// The full name of whatever version of the secret is the newest.
    pub fn latest_path(&self, secret: &SecretId) -> String {
        format!("{}/secrets/{secret}/versions/latest", self.parent())
    }

    fn parent(&self) -> String {
        match &self.location {
            None => format!("projects/{}", self.project),
            Some(location) => format!("projects/{}/locations/{location}", self.project),
        }
    }

    fn address(&self) -> Option<String> {
        match (&self.endpoint, &self.location) {
            (Endpoint::Google, None) => None,
            (Endpoint::Google, Some(location)) => Some(format!("https://secretmanager.{location}.rep.googleapis.com")),
            (Endpoint::Emulator(host), _) => Some(format!("http://{host}")),
            (Endpoint::Custom(url), _) => Some(url.0.clone()),
        }
    }

    fn credentials(&self) -> Result<Credentials, google_cloud_auth::build_errors::Error> {
        match self.endpoint {
            Endpoint::Emulator(_) => Ok(credentials::anonymous::Builder::new().build()),
            Endpoint::Google | Endpoint::Custom(_) => credentials::Builder::default().build(),
        }
    }
}

// === impl GoogleSecretManager ===

impl GoogleSecretManager {
    /// Sets the client up. No request is sent; an identity that does not work shows at the first call.
    pub async fn connect(settings: &Settings) -> Result<Self, StoreError> {
        let parent = settings.parent();
        let credentials = settings.credentials().map_err(|error| {
            let detail = errors::of_credentials(&error);
            errors::failed(Operation::Connect, parent.as_str(), ErrorKind::Unauthenticated).with_detail(detail)
        })?;
        // The library's own retries would hide failures and spend the run's time unseen.
        let mut builder = SecretManagerService::builder().with_retry_policy(NeverRetry).with_credentials(credentials);
        // A redirect would send content to an address that is not configured, and take its answer for success.
        builder = with_follow_redirects(builder, false);
        if let Some(address) = settings.address() {
            builder = builder.with_endpoint(address);
        }
        let client = builder.build().await.map_err(|_error| {
            errors::failed(Operation::Connect, parent.as_str(), ErrorKind::Invalid).with_detail(
                "the client cannot be set up: check the endpoint and the universe domain of the credentials",
            )
        })?;
        Ok(Self { client, parent, call_timeout: settings.call_timeout })
    }

    /// Waits for the answer, for as long as one call may take.
    async fn call<T>(
        &self,
        operation: Operation,
        resource: &str,
        request: impl Future<Output = GoogleResult<T>>,
    ) -> Result<T, StoreError> {
        match timeout(self.call_timeout, request).await {
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
    fn capabilities() -> Capabilities {
        Capabilities { max_content_bytes: MAX_CONTENT_BYTES }
    }

    fn path(&self, secret: &SecretId) -> String {
        format!("{}/secrets/{secret}", self.parent)
    }

    async fn find(&self, secret: &SecretId) -> Result<Option<Secret>, StoreError> {
        let path = self.path(secret);
        let request = ours(self.client.get_secret().set_name(&path)).send();
        match self.call(Operation::Find, &path, request).await {
            // Without an etag, later writes would be made to any edition.
            Ok(found) if found.etag.is_empty() => {
                Err(errors::failed(Operation::Find, path, ErrorKind::Internal).with_detail("the answer has no etag"))
            }
            Ok(found) => Ok(Some(convert::secret(found))),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, secret: &SecretId, new: &NewSecret) -> Result<(), StoreError> {
        let path = self.path(secret);
        let request = self.client.create_secret().set_parent(&self.parent).set_secret_id(secret.as_str());
        let request = ours(request.set_secret(convert::new_secret(new))).send();
        self.call(Operation::Create, &path, request).await.map(drop)
    }

    async fn update(&self, secret: &SecretId, metadata: &Metadata) -> Result<String, StoreError> {
        let path = self.path(secret);
        if metadata.etag.is_empty() {
            return Err(errors::failed(Operation::Update, path, ErrorKind::Changed));
        }
        let mask = FieldMask::default().set_paths(["labels", "annotations"]);
        let changed = convert::changed_secret(&path, metadata);
        let request = ours(self.client.update_secret().set_secret(changed).set_update_mask(mask)).send();
        let updated = self.call(Operation::Update, &path, request).await;
        updated.map(|secret| secret.etag)
    }

    async fn delete(&self, secret: &SecretId, etag: &str) -> Result<bool, StoreError> {
        let path = self.path(secret);
        if etag.is_empty() {
            return Err(errors::failed(Operation::Delete, path, ErrorKind::Changed));
        }
        let request = ours(self.client.delete_secret().set_name(&path).set_etag(etag)).send();
        match self.call(Operation::Delete, &path, request).await {
            Ok(()) => Ok(true),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn add_version(&self, secret: &SecretId, content: &SecretSlice<u8>) -> Result<VersionNumber, StoreError> {
        let path = self.path(secret);
        let payload = convert::payload(content);
        let request = ours(self.client.add_secret_version().set_parent(&path).set_payload(payload)).send();
        let added = self.call(Operation::AddVersion, &path, request).await?;
        convert::version_number(&added.name).ok_or_else(|| {
            errors::failed(Operation::AddVersion, path, ErrorKind::Internal).with_detail("the answer names no version")
        })
    }

    async fn read_version(&self, secret: &SecretId, number: VersionNumber) -> Result<Version, StoreError> {
        let path = self.version_path(secret, number);
        let request = ours(self.client.access_secret_version().set_name(&path)).send();
        match self.call(Operation::ReadVersion, &path, request).await {
            Ok(answer) => convert::content(answer)
                .map(Version::Live)
                .ok_or_else(|| errors::failed(Operation::ReadVersion, path, ErrorKind::Corrupt)),
            Err(error) => errors::version_state(error),
        }
    }

    async fn list_versions(&self, secret: &SecretId) -> Result<Vec<VersionSummary>, StoreError> {
        let path = self.path(secret);
        let mut versions = Vec::new();
        let mut pages = ours(self.client.list_secret_versions().set_parent(&path)).by_item();
        while let Some(version) =
            self.call(Operation::ListVersions, &path, async { pages.next().await.transpose() }).await?
        {
            versions.extend(convert::summary(&version));
        }
        Ok(versions)
    }

    async fn destroy_version(&self, secret: &SecretId, number: VersionNumber) -> Result<(), StoreError> {
        let path = self.version_path(secret, number);
        let request = ours(self.client.destroy_secret_version().set_name(&path)).send();
        let destroyed = self.call(Operation::DestroyVersion, &path, request).await.map(drop);
        destroyed.or_else(errors::accept_destroyed)
    }

    async fn permissions(&self, secret: &SecretId, wanted: &BTreeSet<Permission>) -> Result<Permissions, StoreError> {
        let path = self.path(secret);
        // Creation is allowed on the project, of which Secret Manager cannot be asked.
        let (unknown, asked): (BTreeSet<_>, BTreeSet<_>) =
            wanted.iter().copied().partition(|permission| *permission == Permission::Create);
        let names = asked.iter().map(|permission| permission.name());
        let request = ours(self.client.test_iam_permissions().set_resource(&path).set_permissions(names)).send();
        let answer = self.call(Operation::CheckPermissions, &path, request).await?;
        let held = |permission: &Permission| answer.permissions.iter().any(|name| name == permission.name());
        Ok(Permissions { missing: asked.into_iter().filter(|permission| !held(permission)).collect(), unknown })
    }
}

/// Says who calls.
fn ours<R: RequestOptionsBuilder>(request: R) -> R {
    request.with_user_agent(concat!("pull-secret/", env!("CARGO_PKG_VERSION")))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://secretmanager.europe-west1.rep.googleapis.com", true)]
    #[case("https://secretmanager.example.com:8443/", true)]
    #[case("http://127.0.0.1:9000", true)]
    #[case("http://[::1]:9000", true)]
    #[case("http://localhost:9000", true)]
    #[case("http://10.0.0.7:9000", false)]
    #[case("http://localhost.example.com", false)]
    #[case("https://user:word@example.com", false)]
    #[case("https://example.com?x=1", false)]
    #[case("127.0.0.1:9000", false)]
    #[case("ftp://127.0.0.1", false)]
    #[case("", false)]
    fn tokens_are_sent_only_over_tls_or_loopback(#[case] url: &str, #[case] allowed: bool) {
        assert_eq!(url.parse::<EndpointUrl>().is_ok(), allowed);
    }

    #[test]
    fn regional_secrets_have_an_endpoint_of_their_own() {
        let settings = Settings {
            project: "my-project".parse().unwrap(),
            location: Some("europe-west1".parse().unwrap()),
            endpoint: Endpoint::Google,
            call_timeout: Duration::from_secs(30),
        };
        assert_eq!(settings.parent(), "projects/my-project/locations/europe-west1");
        let address = settings.address();
        assert_eq!(address.as_deref(), Some("https://secretmanager.europe-west1.rep.googleapis.com"));
    }
}
