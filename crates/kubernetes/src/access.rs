//! Access reviews: the permissions of this identity, requested before it acts.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
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

impl Cluster {
    /// Requests a review of `verb` on the Secret for this identity.
    pub async fn may(&self, verb: Verb, key: &SecretKey) -> Result<Access, KubernetesError> {
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client());
        // Authorization does not know a name before the object exists.
        let name = Some(key.name.clone()).filter(|_| verb != Verb::Create);
        let attributes = ResourceAttributes {
            namespace: Some(key.namespace.clone()),
            verb: Some(verb.to_string()),
            resource: Some("secrets".to_owned()),
            name,
            ..ResourceAttributes::default()
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let object = format!("access review for {verb} of {key}");
        let answer = self.call(Verb::Create, &object, api.create(&PostParams::default(), &review)).await?;
        let status = answer.status.unwrap_or_default();
        Ok(Access { allowed: status.allowed, reason: status.reason.filter(|reason| !reason.is_empty()) })
    }
}
