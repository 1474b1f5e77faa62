//! Secret stores as the adapter reads them: metadata and states of versions, never content.

use std::fmt;
use std::sync::Arc;

use fleet_model::{StoredCopy, names};
use futures_util::future::BoxFuture;
use secret_store::{
    ErrorKind, ListedSecrets, Location, Metadata, Operation, ProjectId, SecretId, SecretStore, StoreError,
    VersionSummary,
};

/// The store of one place. It cannot read content, and writes nothing.
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

/// The view of a place's store, or the reason why there is none.
pub type Opened = Result<Arc<dyn StoreView>, StoreError>;

type Open = dyn Fn(StoredCopy) -> BoxFuture<'static, Opened> + Send + Sync;

/// The secret stores of all places.
#[derive(Clone)]
pub struct Stores(Arc<Open>);

// === impl Stores ===

impl Stores {
    /// Opens the store of a copy, whose name does not matter, with this function.
    pub fn new(open: impl Fn(StoredCopy) -> BoxFuture<'static, Opened> + Send + Sync + 'static) -> Self {
        Self(Arc::new(open))
    }

    /// Opens the store of a project at Google, and of a location where secrets are regional, with this function.
    pub fn of_projects<S, F>(open: impl Fn(ProjectId, Option<Location>) -> F + Send + Sync + 'static) -> Self
    where
        S: SecretStore + 'static,
        F: Future<Output = Result<S, StoreError>> + Send + 'static,
    {
        Self::new(move |copy| {
            let opening = project_of(&copy).map(|Project { id, location }| open(id, location));
            Box::pin(async move {
                let view: Arc<dyn StoreView> = Arc::new(opening?.await?);
                Ok(view)
            })
        })
    }

    /// Opens the store of a copy.
    pub async fn open(&self, copy: &StoredCopy) -> Opened {
        (self.0)(copy.clone()).await
    }
}

/// A project at Google, and the location of its secrets where they are regional.
struct Project {
    id: ProjectId,
    location: Option<Location>,
}

fn project_of(copy: &StoredCopy) -> Result<Project, StoreError> {
    let StoredCopy::Secret { project, location, .. } = copy else {
        return Err(unopened(copy, "it is in another store than Google's, which this adapter does not check"));
    };
    let invalid = |_error| unopened(copy, "the name of the project or of the location is none of Google's");
    let id = project.parse().map_err(invalid)?;
    Ok(Project { id, location: location.as_deref().map(str::parse).transpose().map_err(invalid)? })
}

/// The error of a store that is not opened.
pub fn unopened(copy: &StoredCopy, why: &str) -> StoreError {
    StoreError::new(Operation::Connect, copy.place(), ErrorKind::Invalid).with_detail(why)
}

impl fmt::Debug for Stores {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Stores")
    }
}
