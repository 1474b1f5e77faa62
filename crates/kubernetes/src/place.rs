//! What must be there before a Job can run: namespaces and service accounts, made where they are missing.

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;

use crate::cluster::Cluster;
use crate::error::{Fault, KubernetesError};
use crate::verb::Verb;

impl Cluster {
    /// Makes the namespace unless there is one of that name; returns whether it was made.
    pub async fn ensure_namespace(&self, name: &str) -> Result<bool, KubernetesError> {
        let api: Api<Namespace> = Api::all(self.client());
        let namespace = Namespace { metadata: named(name), ..Namespace::default() };
        let made =
            self.call(Verb::Create, &format!("namespace {name}"), api.create(&self.creation(), &namespace)).await;
        unless_it_exists(made)
    }

    /// Makes the service account unless there is one of that name; returns whether it was made.
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

fn unless_it_exists<T>(made: Result<T, KubernetesError>) -> Result<bool, KubernetesError> {
    match made {
        Ok(_) => Ok(true),
        Err(error) if error.fault == Fault::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
