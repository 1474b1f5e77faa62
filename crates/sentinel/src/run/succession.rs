//! The position that a leader has from its predecessor, and hands over to its successor.

use crate::position::{Position, Recorder, Records, Tracker, Version};

/// The inheritance of a leader, and the way to its successor.
#[derive(Default)]
pub(super) struct Succession {
    /// The predecessor's position, while this leader goes on from it.
    pub(super) inherited: Option<Position>,
    /// True once every page of the first sweep was applied.
    pub(super) has_swept: bool,
    pub(super) tracker: Tracker,
    /// The way to the store; `None` without one.
    recorder: Option<Recorder>,
}

// === impl Succession ===

impl Succession {
    /// Goes on from the position of a predecessor, if there is one; returns the positions for a successor.
    pub(super) fn begin(&mut self, position: Option<Position>) -> Records {
        if let Some(position) = position {
            tracing::info!(
                operation = "lead",
                position = position.version(),
                "resuming from the predecessor's position"
            );
            self.tracker = Tracker::resume(&position);
            self.inherited = Some(position);
        }
        let (recorder, records) = Recorder::new();
        self.recorder = Some(recorder);
        records
    }

    /// Counts a confirmed event of a resource.
    pub(super) fn published(&mut self, id: &str, is_done: bool) {
        if is_done {
            self.tracker.done(id);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.published();
        }
    }

    /// Returns true if the predecessor has published the change of this version.
    pub(super) fn covers(&self, version: &Version<'_>) -> bool {
        self.inherited.as_ref().is_some_and(|position| position.covers(version))
    }

    /// Begins anew: the stream delivers the whole fleet.
    pub(super) fn forget(&mut self) {
        (self.inherited, self.tracker) = (None, Tracker::default());
    }

    /// Hands the position to the store if it has changed.
    pub(super) fn show(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.show(self.tracker.position());
        }
    }

    /// Returns true if another event may be published before what is published is recorded, or nothing can be recorded.
    pub(super) fn has_room(&self, limit: usize) -> bool {
        !self.tracker.is_known() || self.recorder.as_ref().is_none_or(|recorder| recorder.has_room(limit))
    }

    /// Waits until more is recorded.
    pub(super) async fn recorded(&mut self) {
        match &mut self.recorder {
            Some(recorder) => recorder.recorded().await,
            None => std::future::pending().await,
        }
    }
}
