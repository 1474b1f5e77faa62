//! Access reviews: the identity and its permissions, requested before it acts.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use kube::Api;
use kube::api::PostParams;

use crate::cluster::Cluster;
use crate::error::KubernetesError;
use crate::secret::SecretKey;
use crate::verb::Verb;

/// The decision of the server's authorization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// True if the operation is allowed.
    pub allowed: bool,
    /// The server's reason, if it gives one.
    pub reason: Option<String>,
}

/// An operation, by the names of authorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// Such as `create`.
    pub verb: &'a str,
    /// The group of the API; empty for the core.
    pub group: &'a str,
    /// The plural of the kind.
    pub resource: &'a str,
    /// The part of the object, such as `status`; `None` for the object itself.
    pub subresource: Option<&'a str>,
    /// The object's name; `None` for any.
    pub name: Option<&'a str>,
    /// The namespace; `None` for all of them.
    pub namespace: Option<&'a str>,
}

impl Cluster {
    /// Requests a review of `verb` on the Secret for this identity.
    pub async fn may(&self, verb: Verb, key: &SecretKey) -> Result<Access, KubernetesError> {
        let operation = verb.to_string();
        self.may_do(&Operation {
            verb: &operation,
            group: "",
            resource: "secrets",
            subresource: None,
            // Authorization does not know a name before the object exists.
            name: Some(key.name.as_str()).filter(|_| verb != Verb::Create),
            namespace: Some(&key.namespace),
        })
        .await
    }

    /// Requests a review of any operation for this identity.
    pub async fn may_do(&self, operation: &Operation<'_>) -> Result<Access, KubernetesError> {
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client());
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes(operation)),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let object = format!("access review for {} of {}", operation.verb, operation.resource);
        let answer = self.call(Verb::Create, &object, api.create(&PostParams::default(), &review)).await?;
        Ok(Access::from(answer.status.unwrap_or_default()))
    }

    /// The name of this identity, as the server authenticates it.
    pub async fn user(&self) -> Result<String, KubernetesError> {
        let api: Api<SelfSubjectReview> = Api::all(self.client());
        let review = SelfSubjectReview::default();
        let answer =
            self.call(Verb::Create, "review of the identity", api.create(&PostParams::default(), &review)).await?;
        let user = answer.status.and_then(|status| status.user_info);
        Ok(user.and_then(|user| user.username).unwrap_or_default())
    }
}

/// The operation as authorization has it.
pub(crate) fn attributes(operation: &Operation<'_>) -> ResourceAttributes {
    let Operation { verb, group, resource, subresource, name, namespace } = operation;
    ResourceAttributes {
        namespace: namespace.map(str::to_owned),
        verb: Some((*verb).to_owned()),
        group: Some((*group).to_owned()),
        resource: Some((*resource).to_owned()),
        subresource: subresource.map(str::to_owned),
        name: name.map(str::to_owned),
        ..ResourceAttributes::default()
    }
}

// === impl Access ===

impl From<SubjectAccessReviewStatus> for Access {
    fn from(status: SubjectAccessReviewStatus) -> Self {
        Self { allowed: status.allowed, reason: status.reason.filter(|reason| !reason.is_empty()) }
    }
}
