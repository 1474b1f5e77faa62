//! Objects of any namespaced kind: created, applied and deleted as they were observed.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::cluster::Cluster;
use crate::error::{ErrorKind, KubernetesError};
use crate::ownership::transferred;
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

    /// Applies the object, with this program as the field manager: creates one that was not observed, and otherwise changes the
    /// one whose uid, resourceVersion and managedFields `object` carries. Fails with `AlreadyExists` or `Changed` if that is no
    /// longer the newest state.
    ///
    /// Fields that this program has set before and `object` lacks are removed. Fields that only other managers set stay, except at and
    /// below the paths in `exclusive`, such as `spec.template.spec`.
    pub async fn apply<K: Object>(&self, object: &K, exclusive: &[&str]) -> Result<K, KubernetesError> {
        if object.meta().uid.is_none() {
            return self.create(object).await;
        }
        let mut applied = object.clone();
        let entries = applied.meta_mut().managed_fields.take().unwrap_or_default();
        if let Some(entries) = transferred(&entries, self.program(), exclusive) {
            let metadata = applied.meta();
            let metadata = json!({
                "uid": metadata.uid, "resourceVersion": metadata.resource_version, "managedFields": entries,
            });
            let transfer = Patch::Merge(json!({"metadata": metadata}));
            let parameters = PatchParams { field_manager: Some(self.program().to_owned()), ..PatchParams::default() };
            let transferred = self.patch(&applied, &parameters, &transfer).await?;
            applied.meta_mut().resource_version = transferred.resource_version();
        }
        self.patch(&applied, &self.application(), &Patch::Apply(&applied)).await
    }

    /// The parameters of a server-side apply by this program. It is forced: ownership was decided by the labels, and changes
    /// that other managers made to applied fields are drift to be repaired.
    pub(crate) fn application(&self) -> PatchParams {
        PatchParams::apply(self.program()).force()
    }

    /// Patches the object, whose uid and resourceVersion the patch contains; fails with `Changed` if they are not the newest.
    pub(crate) async fn patch<K: Object, P: Serialize + Debug>(
        &self,
        object: &K,
        parameters: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, KubernetesError> {
        let (api, name) = self.api_of(object);
        let request = api.patch(object.meta().name.as_deref().unwrap_or_default(), parameters, patch);
        match self.call(Verb::Apply, &name, request).await {
            // With a uid in it, a patch of a deleted object does not create one, and one of another object of the name is refused.
            Err(error) if error.kind == ErrorKind::NotFound || is_about_uid(&error) => {
                Err(KubernetesError { kind: ErrorKind::Changed, ..error })
            }
            other => other,
        }
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

/// Servers refuse another uid either as a conflict or as the change of an immutable field.
fn is_about_uid(error: &KubernetesError) -> bool {
    error.kind == ErrorKind::Invalid && error.detail.as_deref().is_some_and(|detail| detail.contains("metadata.uid"))
}

/// The name of an object in messages, such as `daemonset kube-system/x`.
pub(crate) fn called<K: Object>(namespace: &str, name: &str) -> String {
    format!("{} {namespace}/{name}", K::kind(&()).to_lowercase())
}
