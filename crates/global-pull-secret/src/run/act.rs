//! Doing what was decided, and telling it.

use std::sync::Arc;

use fleet_model::names;
use k8s_openapi::Metadata;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubernetes::event::Severity;
use kubernetes::{Cluster, Fault, KubernetesError, Object};
use serde_json::Value;

use super::{Views, Writes};
use crate::decide::wanted_value;
use crate::facts::{Facts, Written};
use crate::metrics::Metrics;
use crate::objects;
use crate::plan::{Action, News, Thing};

/// What came of a plan's actions.
#[derive(Default)]
pub(crate) struct Acted {
    /// Whether there was anything to do.
    pub(crate) changed: bool,
    /// Something has changed since it was seen: decide anew.
    pub(crate) is_overtaken: bool,
    /// What a server refused, or did not answer.
    pub(crate) refused: Option<String>,
    /// Whether the status says what was decided.
    pub(crate) is_told: bool,
}

/// Does what was decided, and remembers what came of it.
pub(crate) struct Hand<'a> {
    cluster: &'a Cluster,
    writes: Writes,
}

impl<'a> Hand<'a> {
    pub(crate) fn new(cluster: &'a Cluster) -> Self {
        Self { cluster, writes: Writes::new() }
    }

    pub(crate) fn written(&self) -> Writes {
        self.writes.clone()
    }

    /// Does one action after the other, up to the first that fails; what the server answers is seen at once. The status is
    /// written all the same: it says what is wrong.
    pub(crate) async fn act(&mut self, actions: Vec<Action>, views: &Views, metrics: &Metrics) -> Acted {
        let mut acted = Acted { changed: !actions.is_empty(), is_told: true, ..Acted::default() };
        for action in actions {
            let is_status = matches!(&action, Action::Put(thing) if matches!(**thing, Thing::Status(_)));
            if acted.is_overtaken || (acted.refused.is_some() && !is_status) {
                acted.is_told &= !is_status;
                continue;
            }
            let (verb, kind) = action.label();
            let done = match action {
                Action::Put(thing) => self.put(*thing, views).await,
                Action::Remove(thing) => self.remove(*thing, views).await,
            };
            metrics.acted(verb, kind, done.is_ok());
            match done {
                Ok(()) => tracing::info!(operation = verb, kind, "done"),
                Err(error) => {
                    tracing::debug!(operation = verb, kind, "{error}");
                    acted.is_told &= !is_status;
                    if matches!(error.fault, Fault::Changed | Fault::AlreadyExists) {
                        acted.is_overtaken = true;
                    } else {
                        acted.refused.get_or_insert(error.to_string());
                    }
                }
            }
        }
        acted
    }

    async fn put(&mut self, thing: Thing, views: &Views) -> Result<(), KubernetesError> {
        let kind = thing.kind();
        match thing {
            Thing::Secret(wanted) => {
                let made = self.write(&wanted).await?;
                views.global.put(names::GLOBAL_PULL_SECRET, Arc::new(made.into()));
            }
            Thing::ServiceAccount(wanted) => {
                let made = self.remember(kind, &wanted).await?;
                views.service_account.put(names::GLOBAL_SYNCER, Arc::new(made));
            }
            Thing::Role(wanted) => {
                let made = self.remember(kind, &wanted).await?;
                views.role.put(names::GLOBAL_SYNCER, Arc::new(made));
            }
            Thing::RoleBinding(wanted) => {
                let made = self.remember(kind, &wanted).await?;
                views.role_binding.put(names::GLOBAL_SYNCER, Arc::new(made));
            }
            Thing::DaemonSet(wanted) => {
                let made = self.remember(kind, &*wanted).await?;
                views.daemon_set.put(names::GLOBAL_SYNCER, Arc::new(made));
            }
            Thing::Status(wanted) => {
                let made = self.write(&wanted).await?;
                views.status.put(names::GLOBAL_STATUS, Arc::new(made));
            }
        }
        Ok(())
    }

    async fn remove(&mut self, thing: Thing, views: &Views) -> Result<(), KubernetesError> {
        self.writes.remove(thing.kind());
        // What waits for a finalizer stays, and is seen as going: the watch tells of it.
        match thing {
            Thing::Secret(object) => {
                self.cluster.delete(&object).await?;
                views.global.take(names::GLOBAL_PULL_SECRET);
            }
            Thing::ServiceAccount(object) => self.cluster.delete(&object).await?,
            Thing::Role(object) => self.cluster.delete(&object).await?,
            Thing::RoleBinding(object) => {
                self.cluster.delete(&object).await?;
                views.role_binding.take(names::GLOBAL_SYNCER);
            }
            Thing::DaemonSet(object) => self.cluster.delete(&*object).await?,
            Thing::Status(object) => self.cluster.delete(&object).await?,
        }
        Ok(())
    }

    /// Writes, and keeps what the server has made of it: the next look needs no second write for what it has filled in.
    async fn remember<K>(&mut self, kind: &'static str, wanted: &K) -> Result<K, KubernetesError>
    where
        K: Object + Metadata<Ty = ObjectMeta>,
    {
        let value: Value = wanted_value(wanted);
        let made = self.write(wanted).await?;
        let version = objects::version(Metadata::metadata(&made));
        self.writes.insert(kind, Written { wanted: value, version });
        Ok(made)
    }

    async fn write<K>(&self, wanted: &K) -> Result<K, KubernetesError>
    where
        K: Object + Metadata<Ty = ObjectMeta>,
    {
        if Metadata::metadata(wanted).uid.is_some() {
            self.cluster.replace(wanted).await
        } else {
            self.cluster.create(wanted).await
        }
    }
}

/// Publishes one piece of news as an Event of the Secret that it is about.
pub(crate) async fn publish(cluster: &Cluster, news: &News, facts: &Facts) -> Result<(), KubernetesError> {
    let known = facts.additional.iter().find(|secret| secret.name() == news.about);
    let about = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Secret".to_owned()),
        namespace: Some(names::GLOBAL_NAMESPACE.to_owned()),
        name: Some(news.about.clone()),
        uid: news.uid.clone().or_else(|| known.and_then(|secret| secret.metadata.uid.clone())),
        ..ObjectReference::default()
    };
    let severity = if news.reason.is_warning() { Severity::Warning } else { Severity::Normal };
    let mut note = news.note.clone();
    // An Event's message may have 1024 bytes.
    if let Some((end, _)) = note.char_indices().nth(900) {
        note.truncate(end);
        note.push('…');
    }
    let events = cluster.events(names::GLOBAL_MANAGER);
    events.publish(&about, severity, ("Reconcile", news.reason.as_str()), &note).await
}
