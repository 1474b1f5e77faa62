//! The identity and the permissions of callers, as Kubernetes has them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use fleet_model::ClusterId;
use fleet_model::names::access;
use kubernetes::{Cluster, Identity, Operation};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::recent::Recent;

/// Time for which a positive answer holds; a revoked token or permission works no longer than that.
const ACCEPTED_FOR: Duration = Duration::from_secs(30);
/// Time for which a negative answer holds.
const REFUSED_FOR: Duration = Duration::from_secs(5);
/// The greatest number of kept answers about tokens, and of those about permissions.
const MAX_KEPT: usize = 4096;

/// A source of identities and permissions.
pub trait Reviewer: Send + Sync + 'static {
    /// Returns the identity of a bearer token; `None` if it is not accepted.
    fn identify(&self, token: &SecretString) -> impl Future<Output = Result<Option<Identity>, Unreviewed>> + Send;

    /// Returns true if the identity has a permission on a cluster.
    fn permits(
        &self,
        identity: &Identity,
        permission: Permission,
        cluster: &ClusterId,
    ) -> impl Future<Output = Result<bool, Unreviewed>> + Send;
}

/// A review that could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreviewed(pub String);

/// A permission on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// See the credentials of a cluster, without passwords.
    GetPullSecrets,
    /// Have credentials made.
    CreatePullSecrets,
    /// Have credentials retired, or revoked.
    DeletePullSecrets,
    /// Read the passwords.
    GetContent,
    /// See one rotation.
    GetRotations,
    /// List rotations.
    ListRotations,
    /// Start a rotation.
    CreateRotations,
}

/// The reviews of an API server.
#[derive(Clone, Debug)]
pub struct KubernetesReviewer {
    /// The API server, with an identity that may review tokens and accesses.
    pub cluster: Cluster,
    /// The audience that tokens must be for.
    pub audience: String,
}

/// Reviews whose answers are kept for a short time.
#[derive(Debug)]
pub(crate) struct Reviews<R> {
    reviewer: R,
    identities: Recent<TokenHash, Option<Arc<Identity>>>,
    decisions: Recent<Asked, bool>,
}

/// The hash of a token, in place of it.
type TokenHash = [u8; 32];

/// A caller whose token was accepted.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    identity: Arc<Identity>,
    token: TokenHash,
}

/// The permission that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    token: TokenHash,
    permission: Permission,
    cluster: String,
}

// === impl Permission ===

impl Permission {
    /// Returns the verb in a role.
    pub fn verb(self) -> &'static str {
        match self {
            Self::GetPullSecrets | Self::GetContent | Self::GetRotations => "get",
            Self::CreatePullSecrets | Self::CreateRotations => "create",
            Self::DeletePullSecrets => "delete",
            Self::ListRotations => "list",
        }
    }

    /// Returns the subresource in a role.
    pub fn subresource(self) -> &'static str {
        match self {
            Self::GetPullSecrets | Self::CreatePullSecrets | Self::DeletePullSecrets => access::PULL_SECRETS,
            Self::GetContent => access::CONTENT,
            Self::GetRotations | Self::ListRotations | Self::CreateRotations => access::ROTATIONS,
        }
    }
}

// === impl Caller ===

impl Caller {
    /// Returns the name of the identity.
    pub(crate) fn name(&self) -> &str {
        &self.identity.name
    }
}

// === impl Reviews ===

impl<R: Reviewer> Reviews<R> {
    /// Returns reviews whose answers are kept.
    pub(crate) fn new(reviewer: R) -> Self {
        Self { reviewer, identities: Recent::new(MAX_KEPT), decisions: Recent::new(MAX_KEPT) }
    }

    /// Returns the caller with a bearer token; `None` if it is not accepted.
    pub(crate) async fn identify(&self, token: &SecretString) -> Result<Option<Caller>, Unreviewed> {
        let hash: TokenHash = Sha256::digest(token.expose_secret()).into();
        let caller = |identity: Option<Arc<Identity>>| identity.map(|identity| Caller { identity, token: hash });
        if let Some(known) = self.identities.get(&hash) {
            return Ok(caller(known));
        }
        let identity = self.reviewer.identify(token).await?.map(Arc::new);
        self.identities.put(hash, identity.clone(), kept_until(identity.is_some()));
        Ok(caller(identity))
    }

    /// Returns true if a caller has a permission on a cluster.
    pub(crate) async fn permits(
        &self,
        caller: &Caller,
        permission: Permission,
        cluster: &ClusterId,
    ) -> Result<bool, Unreviewed> {
        let asked = Asked { token: caller.token, permission, cluster: cluster.to_string() };
        if let Some(known) = self.decisions.get(&asked) {
            return Ok(known);
        }
        let is_permitted = self.reviewer.permits(&caller.identity, permission, cluster).await?;
        self.decisions.put(asked, is_permitted, kept_until(is_permitted));
        Ok(is_permitted)
    }
}

fn kept_until(is_accepted: bool) -> Instant {
    Instant::now() + if is_accepted { ACCEPTED_FOR } else { REFUSED_FOR }
}

// === impl KubernetesReviewer ===

impl Reviewer for KubernetesReviewer {
    async fn identify(&self, token: &SecretString) -> Result<Option<Identity>, Unreviewed> {
        self.cluster.review_token(token, &self.audience).await.map_err(|error| Unreviewed(error.to_string()))
    }

    async fn permits(
        &self,
        identity: &Identity,
        permission: Permission,
        cluster: &ClusterId,
    ) -> Result<bool, Unreviewed> {
        let operation = Operation {
            verb: permission.verb(),
            group: access::GROUP,
            resource: access::CLUSTERS,
            subresource: Some(permission.subresource()),
            name: Some(cluster.as_str()),
            namespace: None,
        };
        let access = self.cluster.review_access(identity, &operation).await;
        access.map(|access| access.allowed).map_err(|error| Unreviewed(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Accepts one token, permits one cluster, and counts.
    #[derive(Debug, Default)]
    struct Counted {
        tokens: AtomicU32,
        accesses: AtomicU32,
    }

    impl Reviewer for Counted {
        async fn identify(&self, token: &SecretString) -> Result<Option<Identity>, Unreviewed> {
            self.tokens.fetch_add(1, Ordering::Relaxed);
            let is_accepted = token.expose_secret() == "t0ken";
            Ok(is_accepted.then(|| Identity { name: "ann".to_owned(), ..Identity::default() }))
        }

        async fn permits(
            &self,
            _identity: &Identity,
            permission: Permission,
            cluster: &ClusterId,
        ) -> Result<bool, Unreviewed> {
            self.accesses.fetch_add(1, Ordering::Relaxed);
            Ok(permission == Permission::GetPullSecrets && cluster.as_str() == "one")
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_cached_for_a_short_time() {
        let reviews = Reviews::new(Counted::default());
        let count =
            || [&reviews.reviewer.tokens, &reviews.reviewer.accesses].map(|count| count.load(Ordering::Relaxed));
        let identify = async |token: &str| reviews.identify(&SecretString::from(token)).await.unwrap();
        let ann = identify("t0ken").await.unwrap();
        assert!(identify("other").await.is_none() && identify("other").await.is_none());
        assert_eq!((identify("t0ken").await.unwrap().name(), count()), ("ann", [2, 0]));
        let permits = async |permission, cluster: &str| {
            reviews.permits(&ann, permission, &cluster.parse().unwrap()).await.unwrap()
        };
        for expected in [1, 1] {
            assert!(permits(Permission::GetPullSecrets, "one").await);
            assert_eq!(count(), [2, expected]);
        }
        assert!(!permits(Permission::GetPullSecrets, "two").await && !permits(Permission::GetContent, "one").await);
        assert_eq!(count(), [2, 3], "each permission and cluster is a question of its own");
        tokio::time::advance(REFUSED_FOR).await;
        assert!(identify("other").await.is_none() && !permits(Permission::GetContent, "one").await);
        assert!(permits(Permission::GetPullSecrets, "one").await);
        assert_eq!(count(), [3, 4], "what was refused is asked again, and no more");
        tokio::time::advance(ACCEPTED_FOR).await;
        assert!(identify("t0ken").await.is_some() && permits(Permission::GetPullSecrets, "one").await);
        assert_eq!(count(), [4, 5]);
        let debug = format!("{reviews:?} {ann:?}");
        assert!(!debug.contains("t0ken"), "{debug}");
    }
}
