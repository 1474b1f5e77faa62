//! The condition about images of running Pods that have lost their keys by a change.
//!
//! It never holds a roll-out back: an admin may remove a credential, and nodes that must not keep it cannot wait for Pods that
//! still use it.

use std::collections::BTreeMap;
use std::time::Duration;

use docker_config::Document;
use fleet_model::{ReportedCondition, Status, names};
use jiff::Timestamp;

use super::content::{Content, Desired, sources_of_original};
use super::images::{ImageEffect, losing};
use super::reconcile::Reconcile;
use super::time::later;
use crate::facts::is_managed;
use crate::images::{ObservedImages, RunningImages};
use crate::keys::{Change, Keys};
use crate::reason::Reason;
use crate::record::Record;
use crate::status;

/// Maximum number of images named in the condition.
const MAX_NAMED: usize = 10;
/// Time after which the images are read again, if some have lost their keys or they could not be read.
const REREAD: Duration = Duration::from_mins(10);

/// The content that nodes get.
struct Now<'a> {
    document: &'a Document,
    sources: BTreeMap<String, String>,
}

/// Status, reason and message.
type Answer = (Option<bool>, Reason, String);

impl Reconcile<'_> {
    /// The condition; `None` if it is switched off, or if no change is recorded. Requests the images where it needs them.
    pub(super) fn keys_kept(
        &mut self,
        content: &Content,
        record: Option<&Record>,
        before: &[ReportedCondition],
    ) -> Option<ReportedCondition> {
        let record = record.filter(|_| self.policy.running_images)?;
        let change = record.change.as_ref()?;
        let now = match &content.desired {
            Desired::Merged { document, sources } => Now { document, sources: sources.clone() },
            Desired::Gone { original: Some(document) } => Now { document, sources: sources_of_original(document) },
            Desired::AsItIs => return last(before).cloned(),
            Desired::Nothing | Desired::Gone { original: None } => return None,
        };
        let (holds, reason, message) = if change.is_unknown {
            (None, Reason::ImagesUnknown, "the last change has more keys than are recorded".to_owned())
        } else if change.may_lose(&now.sources) {
            self.lost_keys(&now, &record.revision, change)
        } else {
            (Some(true), Reason::KeysKept, "the last change takes no key away".to_owned())
        };
        Some(status::condition(names::condition::KEYS_KEPT, holds, reason, message, self.now))
    }

    /// Returns true if the last status does not rule out that images have lost their keys.
    pub(super) fn may_have_lost_keys(&self) -> bool {
        let status = self.facts.status.as_deref().filter(|status| is_managed(&status.metadata));
        let before = status.map(status::conditions_of).unwrap_or_default();
        last(&before).is_some_and(|last| last.status != Status::True)
    }

    fn lost_keys(&mut self, now: &Now<'_>, revision: &str, change: &Change) -> Answer {
        let observed = self.facts.images.as_ref().filter(|observed| observed.revision == revision);
        let Some(ObservedImages { at, images, .. }) = observed else {
            self.images_for = Some(revision.to_owned());
            return (None, Reason::ImagesUnknown, "the images of the running Pods are being read".to_owned());
        };
        let (holds, reason, message) = match images {
            Ok(images) => answer(now, images, change),
            Err(error) => (None, Reason::ImagesUnknown, error.clone()),
        };
        if holds != Some(true) {
            self.read_again(revision, *at);
        }
        (holds, reason, message)
    }

    fn read_again(&mut self, revision: &str, at: Timestamp) {
        let due = later(at, REREAD);
        if self.now >= due {
            self.images_for = Some(revision.to_owned());
        } else {
            self.requeue_at(due);
        }
    }
}

/// The last reported condition.
fn last(before: &[ReportedCondition]) -> Option<&ReportedCondition> {
    before.iter().find(|last| last.kind == names::condition::KEYS_KEPT)
}

fn answer(now: &Now<'_>, images: &RunningImages, change: &Change) -> Answer {
    let after = Keys::of(now.document, &now.sources);
    let lost = losing(images, &change.before(&after), &after);
    if !lost.is_empty() {
        (Some(false), Reason::KeysLost, named(&lost))
    } else if images.left_out > 0 {
        let message = "no image that was read has lost its key, but there are more repositories than are read";
        (None, Reason::ImagesUnknown, message.to_owned())
    } else {
        (Some(true), Reason::KeysKept, "no image of a running Pod has lost its key".to_owned())
    }
}

/// Pods are not counted here: they come and go, and each change of a message is a write and an Event.
fn named(lost: &[ImageEffect<'_>]) -> String {
    let line = |one: &ImageEffect<'_>| {
        let before = one.before.as_ref().map(ToString::to_string).unwrap_or_default();
        let after = one.after.as_ref().map_or("no key".to_owned(), ToString::to_string);
        format!("{} (had {before}, has {after})", one.image.name())
    };
    let mut parts: Vec<String> = lost.iter().take(MAX_NAMED).map(line).collect();
    let more = lost.len().saturating_sub(MAX_NAMED);
    parts.extend((more > 0).then(|| format!("and {more} more")));
    format!("images of running Pods have lost their key: {}", parts.join("; "))
}
