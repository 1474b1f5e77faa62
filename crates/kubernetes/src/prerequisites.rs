//! Prerequisites of a Job: namespaces and service accounts, created where they are missing.

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;

use crate::cluster::Cluster;
use crate::error::{ErrorKind, KubernetesError};
use crate::verb::Verb;

impl Cluster {
    /// Creates the namespace unless there is one of that name; returns true if it was created.
    pub async fn ensure_namespace(&self, name: &str) -> Result<bool, KubernetesError> {
        let api: Api<Namespace> = Api::all(self.client());
        let namespace = Namespace { metadata: named(name), ..Namespace::default() };
        let created =
            self.call(Verb::Create, &format!("namespace {name}"), api.create(&self.creation(), &namespace)).await;
        unless_it_exists(created)
    }

    /// Creates the service account unless there is one of that name; returns true if it was created.
    pub async fn ensure_service_account(&self, namespace: &str, name: &str) -> Result<bool, KubernetesError> {
        let api: Api<ServiceAccount> = Api::namespaced(self.client(), namespace);
        let account = ServiceAccount { metadata: named(name), ..ServiceAccount::default() };
        let object = format!("service account {namespace}/{name}");
        unless_it_exists(self.call(Verb::Create, &object, api.create(&self.creation(), &account)).await)
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

fn unless_it_exists<T>(created: Result<T, KubernetesError>) -> Result<bool, KubernetesError> {
    match created {
        Ok(_) => Ok(true),
        Err(error) if error.kind == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
