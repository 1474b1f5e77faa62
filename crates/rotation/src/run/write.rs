//! The write of one cluster.

use std::time::Duration;

use hyperfleet_client::{Patch, Resource};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value};
use zeroize::Zeroize as _;

use super::worker::{End, Worker};
use crate::decide::{ClusterProgress, progress};
use crate::event::Event;
use crate::fleet::{Content, Seen};
use crate::plan::Planned;
use crate::state::{Failure, Phase};

/// The reason of a cluster whose write the API has refused.
const REFUSED: &str = "RefusedByApi";

impl Worker<'_, '_> {
    /// Writes the cluster with this index, if it still is as it was planned; returns an end if the run cannot go on.
    pub(super) async fn write(&mut self, index: usize) -> Option<End> {
        let planned = self.plan.waves.get(self.state.wave)?.get(index)?;
        let text = match self.run.sources.text(planned) {
            Ok(text) => text,
            Err(error) => return Some(self.cannot_go_on(&error.to_string())),
        };
        let cluster = match self.run.calls.get("clusters", &planned.id).await {
            Ok(cluster) => cluster,
            Err(error) => return self.failed_call(&error),
        };
        let seen = cluster.as_ref().map(Seen::of);
        if let Some(end) = seen.as_ref().and_then(|seen| self.hidden(seen)) {
            return Some(end);
        }
        let now = progress(planned, self.plan.planned, seen.as_ref());
        let Some(cluster) = cluster.filter(|_| now == ClusterProgress::ToWrite) else {
            self.set(index, now);
            return None;
        };
        let mut patch = Patch { spec: Some(with_content(cluster, &text)), ..Patch::default() };
        let generation = Some(planned.generation);
        let written = self.run.calls.patch("clusters", &planned.id, &patch, generation).await;
        patch.spec.as_mut().map(wipe);
        self.wave.waited = Duration::ZERO;
        match written {
            Ok(written) => self.is_written(index, planned, &written),
            // The next observation says which change was first; it may have been the one of this run.
            Err(error) if matches!(error.status(), Some(404 | 409 | 412)) => {
                self.wave.observe_at_once();
                None
            }
            Err(error) if error.transient() => {
                self.wave.observe_at_once();
                self.failed_call(&error)
            }
            Err(error) if matches!(error.status(), Some(400 | 413 | 422)) => {
                let message = error.to_string();
                let failure = Failure { cluster: planned.id.clone(), reason: REFUSED.to_owned(), message };
                self.wave.refused.insert(index, failure);
                self.set(index, ClusterProgress::ToWrite);
                None
            }
            Err(error) => self.failed_call(&error),
        }
    }

    fn is_written(&mut self, index: usize, planned: &Planned, written: &Resource) -> Option<End> {
        self.set(index, ClusterProgress::Waiting);
        self.say(&Event::Written { cluster: planned.id.clone(), generation: written.generation });
        match Seen::of(written).content {
            Content::Shown(digest) if planned.digest.is_of(&digest) => None,
            _ => {
                let (id, name) = (&planned.id, self.run.name);
                let because = format!(
                    "the API shows another digest of the content that cluster {id} was given: --digest-key-file is not the API's \
                     pull_secret.digest_key_file; `pull-secret rotate abort {name}`, then plan again with the right key"
                );
                Some(End { phase: Phase::Stopped, because })
            }
        }
    }
}

/// Returns the spec of a cluster with another pull secret, and everything else as it was.
fn with_content(cluster: Resource, text: &SecretString) -> Map<String, Value> {
    let Value::Object(mut spec) = cluster.spec else { return Map::new() };
    if let Some(data) = spec.get_mut("pullSecret").and_then(|secret| secret.get_mut("data")) {
        *data = Value::from(text.expose_secret());
    }
    spec
}

fn wipe(spec: &mut Map<String, Value>) {
    if let Some(Value::String(text)) = spec.get_mut("pullSecret").and_then(|secret| secret.get_mut("data")) {
        text.zeroize();
    }
}
