//! Reviews of others: the identity of a bearer token, and the permissions of an identity.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Api;
use kube::api::PostParams;
use secrecy::{ExposeSecret as _, SecretString};

use crate::access::{Access, Operation, attributes};
use crate::cluster::Cluster;
use crate::error::KubernetesError;
use crate::verb::Verb;

/// An identity, as the server authenticates it.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Its name, such as `system:serviceaccount:NAMESPACE:NAME`.
    pub name: String,
    /// Its id in time.
    pub uid: Option<String>,
    /// Its groups.
    pub groups: Vec<String>,
    /// Further facts, for authorizers.
    pub extra: BTreeMap<String, Vec<String>>,
}

// === impl Cluster ===

impl Cluster {
    /// Requests a review of a bearer token for an audience; `None` if the server does not accept it, or not for this audience.
    pub async fn review_token(
        &self,
        token: &SecretString,
        audience: &str,
    ) -> Result<Option<Identity>, KubernetesError> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.expose_secret().to_owned()),
                audiences: Some(vec![audience.to_owned()]),
            },
            ..TokenReview::default()
        };
        let api: Api<TokenReview> = Api::all(self.client());
        let answer = self.call(Verb::Create, "token review", api.create(&PostParams::default(), &review)).await?;
        let status = answer.status.unwrap_or_default();
        // A server that knows no audiences names none: the token is good for that server alone.
        let is_for_audience = status.audiences.iter().flatten().any(|accepted| accepted == audience);
        let is_accepted = status.authenticated.unwrap_or_default() && is_for_audience;
        Ok(status.user.filter(|_| is_accepted).map(Identity::from).filter(|identity| !identity.name.is_empty()))
    }

    /// Requests a review of an operation for another identity.
    pub async fn review_access(
        &self,
        identity: &Identity,
        operation: &Operation<'_>,
    ) -> Result<Access, KubernetesError> {
        let Identity { name, uid, groups, extra } = identity;
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(name.clone()),
                uid: uid.clone(),
                groups: Some(groups.clone()),
                extra: Some(extra.clone()),
                resource_attributes: Some(attributes(operation)),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let api: Api<SubjectAccessReview> = Api::all(self.client());
        let object = format!("access review for {} of {}", operation.verb, operation.resource);
        let answer = self.call(Verb::Create, &object, api.create(&PostParams::default(), &review)).await?;
        Ok(Access::from(answer.status.unwrap_or_default()))
    }
}

// === impl Identity ===

impl From<UserInfo> for Identity {
    fn from(user: UserInfo) -> Self {
        let UserInfo { username, uid, groups, extra } = user;
        Self {
            name: username.unwrap_or_default(),
            uid,
            groups: groups.unwrap_or_default(),
            extra: extra.unwrap_or_default(),
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nothing else: other facts may be ids of credentials.
        formatter.debug_struct("Identity").field("name", &self.name).finish_non_exhaustive()
    }
}
