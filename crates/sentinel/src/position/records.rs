//! Hands positions from a leader to the store, and limits how far publishing runs ahead of it.

use tokio::sync::watch;

use super::version::Position;

/// A position, and the number of events that were confirmed up to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The position.
    pub position: Position,
    /// Number of confirmed events of this term.
    pub published: u64,
}

/// The store's end: the newest record, and the number of events that are recorded.
#[derive(Debug)]
pub struct Records {
    /// The newest record.
    pub newest: watch::Receiver<Option<Record>>,
    /// Number of confirmed events that a written record covers.
    pub recorded: watch::Sender<u64>,
}

/// The leader's end.
#[derive(Debug)]
pub struct Recorder {
    newest: watch::Sender<Option<Record>>,
    recorded: watch::Receiver<u64>,
    published: u64,
}

impl Recorder {
    /// Creates both ends.
    pub fn new() -> (Self, Records) {
        let (newest, positions) = watch::channel(None);
        let (recorded, read) = watch::channel(0);
        (Self { newest, recorded: read, published: 0 }, Records { newest: positions, recorded })
    }

    /// Counts a confirmed event.
    pub fn published(&mut self) {
        self.published += 1;
    }

    /// Hands over the position if it or the number of events has changed.
    pub fn show(&self, position: Option<Position>) {
        let Some(position) = position else { return };
        let record = Record { position, published: self.published };
        self.newest.send_if_modified(|newest| {
            let is_new = newest.as_ref() != Some(&record);
            if is_new {
                *newest = Some(record);
            }
            is_new
        });
    }

    /// Returns true if less than `limit` confirmed events are not recorded.
    pub fn has_room(&self, limit: usize) -> bool {
        let unrecorded = self.published.saturating_sub(*self.recorded.borrow());
        unrecorded < u64::try_from(limit).unwrap_or(u64::MAX)
    }

    /// Waits until more events are recorded; for ever without a store.
    pub async fn recorded(&mut self) {
        if self.recorded.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn publishing_does_not_run_far_ahead_of_what_is_recorded() {
        let (mut recorder, records) = Recorder::new();
        (0..10).for_each(|_| recorder.published());
        recorder.show(Some("e-10".parse().unwrap()));
        assert!(!recorder.has_room(4));
        let Some(Record { published, .. }) = records.newest.borrow().clone() else { panic!("a record") };
        recorder.published();
        records.recorded.send_replace(published);
        recorder.recorded().await;
        assert!(recorder.has_room(4) && !recorder.has_room(1));
    }
}
