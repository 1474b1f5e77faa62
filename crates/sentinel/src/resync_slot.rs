//! Derives the shard and the resync slot of a resource from a stable hash of its id.

use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::moment::{Moment, millis};

/// Returns the hash of an id: the first eight bytes of its SHA-256, big-endian.
pub fn number(id: &str) -> u64 {
    Sha256::digest(id.as_bytes()).iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// Returns the first resync slot after a moment. Each number has one slot per interval, so that the resyncs of a fleet are
/// distributed over the interval.
pub fn next_slot_after(moment: Moment, number: u64, interval: Duration) -> Moment {
    let interval = millis(interval).max(1);
    let offset = i64::try_from(number % interval.unsigned_abs()).unwrap_or(0);
    let past = moment.0.saturating_sub(offset).div_euclid(interval);
    Moment(past.saturating_add(1).saturating_mul(interval).saturating_add(offset))
}

/// Extends a wait by up to an eighth, so that waits that began together do not end together.
pub fn with_jitter(wait: Duration, number: u64) -> Duration {
    let share = u32::try_from(number >> 40 & 0xff).unwrap_or(0);
    wait.saturating_add(wait / 2_048 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_stable() {
        assert_eq!(number("cls-123"), 0x187f_1a02_aaba_472f);
        assert_eq!(number(""), 0xe3b0_c442_98fc_1c14);
    }

    #[test]
    fn each_number_has_one_slot_per_interval() {
        let interval = Duration::from_mins(30);
        for id in ["a", "b", "c"] {
            let first = next_slot_after(Moment(1_000_000_000), number(id), interval);
            assert!(first > Moment(1_000_000_000) && first <= Moment(1_000_000_000).after(interval));
            assert_eq!(next_slot_after(first, number(id), interval), first.after(interval));
            assert_eq!(next_slot_after(Moment(first.0 - 1), number(id), interval), first);
        }
    }

    #[test]
    fn a_hundred_thousand_slots_make_no_burst() {
        let interval = Duration::from_mins(30);
        let mut seconds = vec![0_u32; 1_800];
        for resource in 0..100_000 {
            let slot = next_slot_after(Moment(0), number(&format!("cls-{resource}")), interval);
            seconds[usize::try_from(slot.0 / 1_000 % 1_800).unwrap()] += 1;
        }
        // 55 a second on average.
        assert!(seconds.iter().all(|slots| (20..110).contains(slots)), "{:?}", seconds.iter().max());
    }

    #[test]
    fn a_wait_with_jitter_is_at_most_an_eighth_longer() {
        let wait = Duration::from_secs(10);
        for id in 0..1_000 {
            let extended = with_jitter(wait, number(&id.to_string()));
            assert!(extended >= wait && extended < Duration::from_millis(11_250), "{extended:?}");
        }
    }
}
