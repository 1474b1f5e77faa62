//! The times of the next single read, of the next repair, and of the next write of the record.

use std::time::Duration;

use tokio::time::Instant;

/// The pace of single reads and of repairs: evenly spread, so that neither uses up a quota at once.
#[derive(Debug)]
pub(super) struct Pace {
    read_every: Duration,
    repair_every: Duration,
    next_read: Instant,
    next_repair: Instant,
    next_write: Instant,
}

/// Minimum time between two writes of the record for findings between two checks.
const WRITE_EVERY: Duration = Duration::from_mins(1);

impl Pace {
    /// A pace of so many reads and repairs per minute, each at least one.
    pub(super) fn new(reads_per_minute: u32, repairs_per_minute: u32) -> Self {
        let every = |per_minute: u32| Duration::from_mins(1) / per_minute.max(1);
        let now = Instant::now();
        Self {
            read_every: every(reads_per_minute),
            repair_every: every(repairs_per_minute),
            next_read: now,
            next_repair: now,
            next_write: now,
        }
    }

    /// Time of the next read.
    pub(super) fn next_read(&self) -> Instant {
        self.next_read
    }

    /// Time of the next repair.
    pub(super) fn next_repair(&self) -> Instant {
        self.next_repair
    }

    /// Time of the next write of the record.
    pub(super) fn next_write(&self) -> Instant {
        self.next_write
    }

    /// Counts a write that begins now.
    pub(super) fn write(&mut self) {
        self.next_write = Instant::now() + WRITE_EVERY;
    }

    /// Counts a read that begins now.
    pub(super) fn read(&mut self) {
        self.next_read = Instant::now() + self.read_every;
    }

    /// Counts a repair that begins now.
    pub(super) fn repair(&mut self) {
        self.next_repair = Instant::now() + self.repair_every;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn repairs_of_a_whole_project_are_spread() {
        let (mut pace, start) = (Pace::new(60, 120), Instant::now());
        let mut times = Vec::new();
        for _ in 0..121 {
            tokio::time::sleep_until(pace.next_repair()).await;
            pace.repair();
            times.push(start.elapsed());
        }
        let even = (0..=120).map(|number| Duration::from_millis(500) * number).collect::<Vec<_>>();
        assert_eq!(times, even);
        assert_eq!(pace.next_read(), start, "reads have a pace of their own");
    }
}
