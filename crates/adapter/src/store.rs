//! Secret stores as the adapter reads them: metadata and states of versions, never content.

use std::fmt;
use std::sync::Arc;

use fleet_model::names;
use futures_util::future::BoxFuture;
use secret_store::{ListedSecrets, Location, Metadata, ProjectId, SecretId, SecretStore, StoreError, VersionSummary};

/// The store of one project. It cannot read content, and writes nothing.
pub trait StoreView: Send + Sync {
    /// Lists one page of the secrets that this service manages.
    fn list<'a>(&'a self, page: Option<&'a str>) -> BoxFuture<'a, Result<ListedSecrets, StoreError>>;

    /// Reads the metadata of a secret.
    fn find<'a>(&'a self, secret: &'a SecretId) -> BoxFuture<'a, Result<Option<Metadata>, StoreError>>;

    /// Reads number and state of the newest version of a secret.
    fn newest_version<'a>(&'a self, secret: &'a SecretId) -> BoxFuture<'a, Result<Option<VersionSummary>, StoreError>>;
}

impl<S: SecretStore> StoreView for S {
    fn list<'a>(&'a self, page: Option<&'a str>) -> BoxFuture<'a, Result<ListedSecrets, StoreError>> {
        Box::pin(SecretStore::list(self, &names::STORED_SECRETS, page))
    }

    fn find<'a>(&'a self, secret: &'a SecretId) -> BoxFuture<'a, Result<Option<Metadata>, StoreError>> {
        Box::pin(async move { Ok(SecretStore::find(self, secret).await?.map(|found| found.metadata)) })
    }

    fn newest_version<'a>(&'a self, secret: &'a SecretId) -> BoxFuture<'a, Result<Option<VersionSummary>, StoreError>> {
        Box::pin(SecretStore::newest_version(self, secret))
    }
}

/// The view of a project's store, or the reason why there is none.
pub type Opened = Result<Arc<dyn StoreView>, StoreError>;

type Open = dyn Fn(ProjectId, Option<Location>) -> BoxFuture<'static, Opened> + Send + Sync;

/// The secret stores of all projects.
#[derive(Clone)]
pub struct Stores(Arc<Open>);

// === impl Stores ===

impl Stores {
    /// Opens the store of a project, and of a location where secrets are regional, with this function.
    pub fn new<S, F>(open: impl Fn(ProjectId, Option<Location>) -> F + Send + Sync + 'static) -> Self
    where
        S: SecretStore + 'static,
        F: Future<Output = Result<S, StoreError>> + Send + 'static,
    {
        Self::viewing(move |project, location| {
            let opening = open(project, location);
            Box::pin(async move {
                let view: Arc<dyn StoreView> = Arc::new(opening.await?);
                Ok(view)
            })
        })
    }

    /// Opens views with this function.
    pub(crate) fn viewing(
        open: impl Fn(ProjectId, Option<Location>) -> BoxFuture<'static, Opened> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(open))
    }

    /// Opens the store of a project.
    pub async fn open(&self, project: ProjectId, location: Option<Location>) -> Opened {
        (self.0)(project, location).await
    }
}

impl fmt::Debug for Stores {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Stores")
    }
}
