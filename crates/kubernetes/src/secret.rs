//! Secrets with one key of content: observed, created, applied, deleted.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta, OwnerReference};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use secrecy::{ExposeSecret as _, SecretSlice};

use crate::cluster::Cluster;
use crate::error::{ErrorKind, KubernetesError};
use crate::verb::Verb;

/// Type of a Secret with which nodes pull images.
pub const DOCKER_CONFIG_JSON: &str = "kubernetes.io/dockerconfigjson";
/// The only key of such a Secret.
pub const DOCKER_CONFIG_JSON_KEY: &str = ".dockerconfigjson";

/// The type of a Secret, and the key of its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A Secret with which nodes pull images.
    #[default]
    DockerConfigJson,
    /// A Secret of type `Opaque` with its content under this key.
    Opaque(String),
}

/// The Job that owns a Secret: when the Job is deleted, so is the Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerJob {
    /// The Job's name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// The namespace and name of a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A Secret in a list, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSecret {
    /// Its namespace and name.
    pub key: SecretKey,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its uid.
    pub uid: String,
}

/// A Secret as it was observed.
pub struct ObservedSecret {
    /// Its uid; a Secret that is created anew has another.
    pub uid: String,
    /// Its resourceVersion, which changes with every write.
    pub resource_version: String,
    /// Its type.
    pub kind: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// True if its content can never be changed.
    pub is_immutable: bool,
    /// True while it is being deleted and waits for a finalizer.
    pub is_terminating: bool,
    /// The uids of the objects that own it.
    pub owners: Vec<String>,
    /// Its fields by manager; see [`ownership`](crate::ownership).
    pub managed_fields: Vec<ManagedFieldsEntry>,
    /// Its content under its form's key.
    pub content: Option<SecretSlice<u8>>,
}

/// A Secret as it is applied.
pub struct AppliedSecret {
    /// All labels that this program manages.
    pub labels: BTreeMap<String, String>,
    /// All annotations that this program manages.
    pub annotations: BTreeMap<String, String>,
    /// Its content under its form's key.
    pub content: SecretSlice<u8>,
    /// Its type and key.
    pub form: Form,
    /// The Job that owns it, if any.
    pub owner: Option<OwnerJob>,
}

// === impl Cluster ===

impl Cluster {
    /// The Secret with which nodes pull images; `None` if there is none of that name.
    pub async fn find_secret(&self, key: &SecretKey) -> Result<Option<ObservedSecret>, KubernetesError> {
        self.find_secret_of(key, &Form::DockerConfigJson).await
    }

    /// The Secret of that form; `None` if there is none of that name.
    pub async fn find_secret_of(
        &self,
        key: &SecretKey,
        form: &Form,
    ) -> Result<Option<ObservedSecret>, KubernetesError> {
        let api: Api<Secret> = Api::namespaced(self.client(), &key.namespace);
        match self.call(Verb::Get, &key.to_string(), api.get(&key.name)).await {
            Ok(secret) => Ok(Some(ObservedSecret::of(secret, form))),
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::NamespaceMissing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists the Secrets of all namespaces that have these labels, without their content.
    pub async fn secrets_with(&self, labels: &str) -> Result<Vec<ListedSecret>, KubernetesError> {
        let api: Api<Secret> = Api::all(self.client());
        let parameters = ListParams::default().labels(labels);
        let found = self.call(Verb::List, "secrets", api.list_metadata(&parameters)).await?;
        Ok(found.items.into_iter().map(|item| ListedSecret::of(item.metadata)).collect())
    }

    /// Returns true if the namespace exists; `None` if this identity may not read it.
    pub async fn namespace_exists(&self, namespace: &str) -> Result<Option<bool>, KubernetesError> {
        let api: Api<Namespace> = Api::all(self.client());
        match self.call(Verb::Get, &format!("namespace {namespace}"), api.get_metadata(namespace)).await {
            Ok(_found) => Ok(Some(true)),
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::NamespaceMissing) => Ok(Some(false)),
            Err(error) if error.kind == ErrorKind::Forbidden => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates the Secret; fails with `AlreadyExists` if there is one. This is no apply, which would take over a Secret that
    /// another process created since the observation.
    pub async fn create_secret(
        &self,
        key: &SecretKey,
        secret: &AppliedSecret,
        dry_run: bool,
    ) -> Result<(), KubernetesError> {
        let api: Api<Secret> = Api::namespaced(self.client(), &key.namespace);
        let parameters = PostParams { dry_run, ..self.creation() };
        let object = secret.object(key, None);
        self.call(Verb::Create, &key.to_string(), api.create(&parameters, &object)).await.map(drop)
    }

    /// Applies the Secret over the one that was observed; fails with `Changed` if it has changed since.
    ///
    /// Removes the labels and annotations that this program has set before, by [`Cluster::create_secret`] too, and that `secret`
    /// does not have.
    pub async fn apply_secret(
        &self,
        key: &SecretKey,
        secret: &AppliedSecret,
        observed: &ObservedSecret,
        dry_run: bool,
    ) -> Result<(), KubernetesError> {
        let mut object = secret.object(key, Some(observed));
        if dry_run {
            let parameters = PatchParams { dry_run, ..self.application() };
            return self.patch(&object, &parameters, &Patch::Apply(&object)).await.map(drop);
        }
        object.metadata.managed_fields = Some(observed.managed_fields.clone());
        self.apply(&object, &[]).await.map(drop)
    }

    /// Deletes the Secret that was observed; returns true if it is gone, false if it waits for a finalizer. One that is gone
    /// already is a success, another of its name is `Changed`.
    pub async fn delete_secret(
        &self,
        key: &SecretKey,
        observed: &ObservedSecret,
        dry_run: bool,
    ) -> Result<bool, KubernetesError> {
        let api: Api<Secret> = Api::namespaced(self.client(), &key.namespace);
        let preconditions = Preconditions {
            uid: Some(observed.uid.clone()),
            resource_version: Some(observed.resource_version.clone()),
        };
        let parameters = DeleteParams { dry_run, preconditions: Some(preconditions), ..DeleteParams::default() };
        match self.call(Verb::Delete, &key.to_string(), api.delete(&key.name, &parameters)).await {
            Ok(answer) => {
                Ok(answer.left().is_none_or(|secret| secret.metadata.finalizers.unwrap_or_default().is_empty()))
            }
            Err(error) if error.kind == ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }
}

// === impl ListedSecret ===

impl ListedSecret {
    fn of(metadata: ObjectMeta) -> Self {
        Self {
            key: SecretKey {
                namespace: metadata.namespace.unwrap_or_default(),
                name: metadata.name.unwrap_or_default(),
            },
            labels: metadata.labels.unwrap_or_default(),
            annotations: metadata.annotations.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
        }
    }
}

// === impl Form ===

impl Form {
    fn kind(&self) -> &str {
        match self {
            Self::DockerConfigJson => DOCKER_CONFIG_JSON,
            Self::Opaque(_) => "Opaque",
        }
    }

    fn key(&self) -> &str {
        match self {
            Self::DockerConfigJson => DOCKER_CONFIG_JSON_KEY,
            Self::Opaque(key) => key,
        }
    }
}

// === impl OwnerJob ===

impl OwnerJob {
    fn reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: "batch/v1".to_owned(),
            kind: "Job".to_owned(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            ..OwnerReference::default()
        }
    }
}

// === impl ObservedSecret ===

impl ObservedSecret {
    fn of(secret: Secret, form: &Form) -> Self {
        let Secret { metadata, data, immutable, type_, .. } = secret;
        let content = data.and_then(|mut data| data.remove(form.key()));
        Self {
            uid: metadata.uid.unwrap_or_default(),
            resource_version: metadata.resource_version.unwrap_or_default(),
            kind: type_.unwrap_or_default(),
            labels: metadata.labels.unwrap_or_default(),
            annotations: metadata.annotations.unwrap_or_default(),
            is_immutable: immutable.unwrap_or_default(),
            is_terminating: metadata.deletion_timestamp.is_some(),
            managed_fields: metadata.managed_fields.unwrap_or_default(),
            owners: metadata.owner_references.unwrap_or_default().into_iter().map(|owner| owner.uid).collect(),
            content: content.map(|ByteString(bytes)| SecretSlice::from(bytes)),
        }
    }
}

impl fmt::Debug for ObservedSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ObservedSecret")
            .field("uid", &self.uid)
            .field("resource_version", &self.resource_version)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

// === impl AppliedSecret ===

impl AppliedSecret {
    /// The object to send; over an observed one, with the uid and resourceVersion that it must still have.
    fn object(&self, key: &SecretKey, observed: Option<&ObservedSecret>) -> Secret {
        let bytes = ByteString(self.content.expose_secret().to_vec());
        Secret {
            metadata: ObjectMeta {
                name: Some(key.name.clone()),
                namespace: Some(key.namespace.clone()),
                labels: Some(self.labels.clone()),
                annotations: Some(self.annotations.clone()),
                uid: observed.map(|observed| observed.uid.clone()),
                resource_version: observed.map(|observed| observed.resource_version.clone()),
                owner_references: self.owner.as_ref().map(|owner| vec![owner.reference()]),
                ..ObjectMeta::default()
            },
            type_: Some(self.form.kind().to_owned()),
            data: Some(BTreeMap::from([(self.form.key().to_owned(), bytes)])),
            ..Secret::default()
        }
    }
}

impl fmt::Debug for AppliedSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AppliedSecret").field("labels", &self.labels).finish_non_exhaustive()
    }
}

impl fmt::Display for SecretKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "secret {}/{}", self.namespace, self.name)
    }
}
