//! Secrets with one piece of content: seen, created, applied, deleted.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use secrecy::{ExposeSecret as _, SecretSlice};

use crate::cluster::Cluster;
use crate::error::{Fault, KubernetesError};
use crate::verb::Verb;

/// The type of a Secret that nodes pull images with.
pub const DOCKER_CONFIG_JSON: &str = "kubernetes.io/dockerconfigjson";
/// The one key of such a Secret.
pub const DOCKER_CONFIG_JSON_KEY: &str = ".dockerconfigjson";

/// What a Secret is for: its type, and the one key of it that counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Nodes pull images with it.
    #[default]
    DockerConfigJson,
    /// Of type `Opaque`, with its content under this key.
    Opaque(String),
}

/// The Job that a Secret goes with: when the Job is deleted, so is the Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerJob {
    /// The Job's name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// Which Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A Secret as it was seen.
pub struct SeenSecret {
    /// The identity of this very object; one that is created anew has another.
    pub uid: String,
    /// Changes with every change of the object.
    pub resource_version: String,
    /// Its type.
    pub kind: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Whether its content can never be changed.
    pub is_immutable: bool,
    /// Whether it is being deleted, and waits for a finalizer.
    pub is_going: bool,
    /// How many objects it goes with.
    pub owners: usize,
    /// What it holds under its form's key.
    pub content: Option<SecretSlice<u8>>,
}

/// A Secret as it is to be.
pub struct AppliedSecret {
    /// All labels that are ours.
    pub labels: BTreeMap<String, String>,
    /// All annotations that are ours.
    pub annotations: BTreeMap<String, String>,
    /// What it holds under its form's key.
    pub content: SecretSlice<u8>,
    /// What it is for.
    pub form: Form,
    /// What it goes with, if with anything.
    pub owner: Option<OwnerJob>,
}

// === impl Cluster ===

impl Cluster {
    /// The Secret that nodes pull images with; `None` when there is none of that name.
    pub async fn find_secret(&self, key: &SecretKey) -> Result<Option<SeenSecret>, KubernetesError> {
        self.find_secret_of(key, &Form::DockerConfigJson).await
    }

    /// The Secret of that form; `None` when there is none of that name.
    pub async fn find_secret_of(&self, key: &SecretKey, form: &Form) -> Result<Option<SeenSecret>, KubernetesError> {
        let api: Api<Secret> = Api::namespaced(self.client(), &key.namespace);
        let found = self.call(Verb::Get, &key.to_string(), api.get_opt(&key.name)).await?;
        Ok(found.map(|secret| SeenSecret::of(secret, form)))
    }

    /// Whether the namespace exists; `None` where this identity may not ask.
    pub async fn namespace_exists(&self, namespace: &str) -> Result<Option<bool>, KubernetesError> {
        let api: Api<Namespace> = Api::all(self.client());
        match self.call(Verb::Get, &format!("namespace {namespace}"), api.get_metadata_opt(namespace)).await {
            Ok(found) => Ok(Some(found.is_some())),
            Err(error) if error.fault == Fault::Forbidden => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates the Secret; fails with `AlreadyExists` when there is one. Creating does not apply: an apply would take
    /// a Secret over that somebody has created since the look.
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

    /// Applies the Secret over the one that was seen; fails with `Changed` when it is another by now.
    ///
    /// Labels and annotations that [`Cluster::create_secret`] has set and `secret` does not have stay, as they belong to
    /// that creation. The apply is forced: whose the Secret is was decided by its labels, and what others have put into our fields is
    /// drift to be repaired.
    pub async fn apply_secret(
        &self,
        key: &SecretKey,
        secret: &AppliedSecret,
        seen: &SeenSecret,
        dry_run: bool,
    ) -> Result<(), KubernetesError> {
        let api: Api<Secret> = Api::namespaced(self.client(), &key.namespace);
        let parameters = PatchParams { dry_run, ..PatchParams::apply(self.program()).force() };
        let patch = Patch::Apply(secret.object(key, Some(seen)));
        let request = api.patch(&key.name, &parameters, &patch);
        match self.call(Verb::Apply, &key.to_string(), request).await {
            Ok(_) => Ok(()),
            // With a uid in it, an apply to what is gone does not create, and one to another Secret of the name is refused.
            Err(error) if error.fault == Fault::NotFound || is_about_uid(&error) => {
                Err(KubernetesError { fault: Fault::Changed, ..error })
            }
            Err(error) => Err(error),
        }
    }

    /// Deletes the Secret that was seen, and says whether it has gone: one with a finalizer goes later. One that has gone
    /// meanwhile is a success, another of its name is `Changed`.
    pub async fn delete_secret(
        &self,
        key: &SecretKey,
        seen: &SeenSecret,
        dry_run: bool,
    ) -> Result<bool, KubernetesError> {
        let api: Api<Secret> = Api::namespaced(self.client(), &key.namespace);
        let preconditions =
            Preconditions { uid: Some(seen.uid.clone()), resource_version: Some(seen.resource_version.clone()) };
        let parameters = DeleteParams { dry_run, preconditions: Some(preconditions), ..DeleteParams::default() };
        match self.call(Verb::Delete, &key.to_string(), api.delete(&key.name, &parameters)).await {
            Ok(answer) => {
                Ok(answer.left().is_none_or(|secret| secret.metadata.finalizers.unwrap_or_default().is_empty()))
            }
            Err(error) if error.fault == Fault::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }
}

/// Servers refuse another uid either as a conflict or as the change of an immutable field.
fn is_about_uid(error: &KubernetesError) -> bool {
    error.fault == Fault::Invalid && error.detail.as_deref().is_some_and(|detail| detail.contains("metadata.uid"))
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

// === impl SeenSecret ===

impl SeenSecret {
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
            is_going: metadata.deletion_timestamp.is_some(),
            owners: metadata.owner_references.unwrap_or_default().len(),
            content: content.map(|ByteString(bytes)| SecretSlice::from(bytes)),
        }
    }
}

impl fmt::Debug for SeenSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SeenSecret")
            .field("uid", &self.uid)
            .field("resource_version", &self.resource_version)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

// === impl AppliedSecret ===

impl AppliedSecret {
    /// The object to send; over a seen one, with the uid and resource version that it must still have.
    fn object(&self, key: &SecretKey, seen: Option<&SeenSecret>) -> Secret {
        let bytes = ByteString(self.content.expose_secret().to_vec());
        Secret {
            metadata: ObjectMeta {
                name: Some(key.name.clone()),
                namespace: Some(key.namespace.clone()),
                labels: Some(self.labels.clone()),
                annotations: Some(self.annotations.clone()),
                uid: seen.map(|seen| seen.uid.clone()),
                resource_version: seen.map(|seen| seen.resource_version.clone()),
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
