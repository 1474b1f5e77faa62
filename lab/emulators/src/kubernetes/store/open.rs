//! Opening a store: what is stored is loaded, what a crash has interrupted is ended, and what must exist is created.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::resources::Catalog;
use super::super::settings::Settings;
use super::super::status::Status;
use super::super::tokens::Tokens;
use super::super::{meta, rbac};
use super::change::FIRST_NAMESPACES;
use super::files::Files;
use super::index::Index;
use super::state::State;
use super::unsettled::Unsettled;
use super::writing::Writing;
use crate::start_error::StartError;

impl State {
    /// Loads what is stored, ends what a crash has interrupted, and makes what must be there.
    pub(crate) fn open(settings: &Settings, now: Timestamp) -> Result<Self, StartError> {
        let files = settings.data_dir.as_deref().map(Files::open).transpose()?;
        let mut state = Self {
            catalog: Catalog::default(),
            tokens: Tokens::new(files.as_ref().map(Files::key).transpose()?),
            objects: BTreeMap::new(),
            index: Index::default(),
            revision: 1,
            history: VecDeque::new(),
            history_limit: settings.watch_history,
            forgotten: 1,
            files: None,
            closed: false,
            unsettled: vec![Unsettled::Everything],
        };
        if let Some(files) = &files {
            state.revision = files.load(|storage, object| state.insert_loaded(storage, object))?.max(1);
        }
        state.files = files;
        for definition in state.objects.get("customresourcedefinitions.apiextensions.k8s.io").into_iter().flatten() {
            state.catalog.define(definition.1);
        }
        state.forgotten = state.revision;
        let begin = |status: Status| StartError::Initial { reason: status.message };
        state.begin(settings, now).map_err(begin)?;
        state.settle(now).map_err(begin)?;
        Ok(state)
    }

    fn insert_loaded(&mut self, storage: String, object: Value) {
        let key = (meta::namespace(&object).to_owned(), meta::name(&object).to_owned());
        self.index.add(&storage, &object);
        self.objects.entry(storage).or_default().insert(key, Arc::new(object));
    }

    fn begin(&mut self, settings: &Settings, now: Timestamp) -> Result<(), Status> {
        let given = settings.namespaces.iter().map(String::as_str);
        let namespaces = self.resource("namespaces")?;
        for name in FIRST_NAMESPACES.into_iter().chain(given) {
            if self.get(&namespaces, "", name).is_err() {
                let object = json!({"metadata": {"name": name}});
                self.create(&Writing::internal(&namespaces, "", name, now), object)?;
            }
        }
        rbac::bootstrap(self, now)
    }
}
