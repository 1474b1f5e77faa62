//! Answers that are kept for a short time, in bounded number.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// Answers by what was asked.
pub(crate) struct Recent<K, V> {
    most: usize,
    kept: Mutex<BTreeMap<K, Kept<V>>>,
}

struct Kept<V> {
    value: V,
    until: Instant,
}

// === impl Recent ===

impl<K: Ord, V: Clone> Recent<K, V> {
    /// Keeps at most that many.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, kept: Mutex::default() }
    }

    /// Returns the answer, if it is recent enough.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(key).filter(|kept| kept.until > Instant::now()).map(|kept| kept.value.clone())
    }

    /// Keeps an answer until a time. Where there is no place for it, all others are forgotten.
    pub(crate) fn put(&self, key: K, value: V, until: Instant) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= self.most {
            let now = Instant::now();
            kept.retain(|_key, kept| kept.until > now);
        }
        if kept.len() >= self.most {
            kept.clear();
        }
        kept.insert(key, Kept { value, until });
    }
}

impl<K, V> fmt::Debug for Recent<K, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Recent").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn answers_are_forgotten_in_time_and_bounded_in_number() {
        let recent = Recent::new(2);
        let until = |seconds| Instant::now() + Duration::from_secs(seconds);
        recent.put(1, 'a', until(10));
        recent.put(2, 'b', until(20));
        assert_eq!((recent.get(&1), recent.get(&3)), (Some('a'), None));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!((recent.get(&1), recent.get(&2)), (None, Some('b')));
        recent.put(3, 'c', until(20));
        assert_eq!((recent.get(&2), recent.get(&3)), (Some('b'), Some('c')), "an old one has made place");
        recent.put(4, 'd', until(20));
        assert_eq!((recent.get(&3), recent.get(&4)), (None, Some('d')), "none was old");
        assert_eq!(recent.kept.lock().unwrap().len(), 1);
    }
}
