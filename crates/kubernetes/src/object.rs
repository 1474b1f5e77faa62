//! Objects of any namespaced kind: created, replaced and deleted as they were observed.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cluster::Cluster;
use crate::error::{ErrorKind, KubernetesError};
use crate::verb::Verb;

/// A namespaced kind of objects.
pub trait Object:
    Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned
{
}

impl<K> Object for K where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned
{
}

impl Cluster {
    /// The object of that name; `None` if there is none.
    pub async fn find<K: Object>(&self, namespace: &str, name: &str) -> Result<Option<K>, KubernetesError> {
        let api: Api<K> = Api::namespaced(self.client(), namespace);
        self.call(Verb::Get, &called::<K>(namespace, name), api.get_opt(name)).await
    }

    /// All objects of the kind with these labels.
    pub async fn list<K: Object>(&self, namespace: &str, labels: &str) -> Result<Vec<K>, KubernetesError> {
        let api: Api<K> = Api::namespaced(self.client(), namespace);
        let parameters = kube::api::ListParams::default().labels(labels);
        let object = called::<K>(namespace, labels);
        self.call(Verb::List, &object, api.list(&parameters)).await.map(|list| list.items)
    }

    /// Creates the object in its namespace; fails with `AlreadyExists` if there is one. Returns the object as it is stored.
    pub async fn create<K: Object>(&self, object: &K) -> Result<K, KubernetesError> {
        let (api, name) = self.api_of(object);
        let parameters = self.creation();
        self.call(Verb::Create, &name, api.create(&parameters, object)).await
    }

    /// Replaces the object that was observed, whose uid and resourceVersion `object` carries, as a whole: fields of other
    /// managers go. Fails with `Changed` if it has changed since, or does not exist any more.
    pub async fn replace<K: Object>(&self, object: &K) -> Result<K, KubernetesError> {
        let (api, name) = self.api_of(object);
        let parameters = self.creation();
        let request = api.replace(object.meta().name.as_deref().unwrap_or_default(), &parameters, object);
        self.call(Verb::Replace, &name, request).await.map_err(|error| match error.kind {
            ErrorKind::NotFound => KubernetesError { kind: ErrorKind::Changed, ..error },
            _ => error,
        })
    }

    /// Deletes the object that was observed, by its uid. One that is gone is a success, another of its name is `Changed`.
    pub async fn delete<K: Object>(&self, object: &K) -> Result<(), KubernetesError> {
        let (api, name) = self.api_of(object);
        let preconditions = Preconditions { uid: object.uid(), resource_version: None };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        let request = api.delete(object.meta().name.as_deref().unwrap_or_default(), &parameters);
        match self.call(Verb::Delete, &name, request).await {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
            other => other.map(drop),
        }
    }

    fn api_of<K: Object>(&self, object: &K) -> (Api<K>, String) {
        let namespace = object.namespace().unwrap_or_default();
        (Api::namespaced(self.client(), &namespace), called::<K>(&namespace, &object.name_any()))
    }
}

/// The name of an object in messages, such as `daemonset kube-system/x`.
pub(crate) fn called<K: Object>(namespace: &str, name: &str) -> String {
    format!("{} {namespace}/{name}", K::kind(&()).to_lowercase())
}
