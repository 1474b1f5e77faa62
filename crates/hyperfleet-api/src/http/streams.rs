//! The open change streams: their number is bounded, in total and for each identity, and so are their evaluations.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::authorization::Identity;
use crate::tenancy::Tenancy;

/// The open change streams of this server.
#[derive(Debug)]
pub struct Streams {
    total: usize,
    per_identity: usize,
    open: Mutex<BTreeMap<Key, usize>>,
    evaluations: Semaphore,
}

/// Maximum number of streams that evaluate a search at the same time, each on a thread of its own.
const EVALUATIONS: usize = 32;

/// An open change stream; dropping it makes room for another one.
#[derive(Debug)]
pub(super) struct OpenStream {
    streams: Arc<Streams>,
    key: Key,
}

/// The issuer, the subject and the tenancy of the caller: behind a proxy, all tenants may have one identity.
type Key = (String, String, Tenancy);

/// The bound that a further stream would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The bound of the server.
    Total,
    /// The bound of the identity.
    Identity,
}

// === impl Streams ===

impl Streams {
    /// Returns room for that many streams.
    pub fn new(total: u32, per_identity: u32) -> Arc<Self> {
        let bound = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Arc::new(Self {
            total: bound(total),
            per_identity: bound(per_identity),
            open: Mutex::default(),
            evaluations: Semaphore::new(EVALUATIONS),
        })
    }

    /// Waits for the permit of a stream that evaluates a search.
    pub(super) async fn evaluation(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.evaluations.acquire().await.ok()
    }

    /// Opens a stream. Where authentication is off, all callers share one identity and only the total is bounded.
    pub(super) fn open(self: &Arc<Self>, identity: &Identity, tenancy: &Tenancy) -> Result<OpenStream, Full> {
        let key = (identity.issuer.clone(), identity.subject.clone(), tenancy.clone());
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.values().sum::<usize>() >= self.total {
            return Err(Full::Total);
        }
        let of_identity = open.entry(key.clone()).or_default();
        if !identity.issuer.is_empty() && *of_identity >= self.per_identity {
            return Err(Full::Identity);
        }
        *of_identity += 1;
        Ok(OpenStream { streams: Arc::clone(self), key })
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut open = self.streams.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = open.get_mut(&self.key) {
            *number -= 1;
            if *number == 0 {
                open.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_bounds_hold_and_an_end_makes_room() {
        let streams = Streams::new(3, 2);
        let identity = |issuer: &str, subject: &str| Identity {
            issuer: issuer.to_owned(),
            subject: subject.to_owned(),
            ..Identity::default()
        };
        let (one, two) = (identity("i", "one"), identity("i", "two"));
        let none = Tenancy::new();
        let first = streams.open(&one, &none).unwrap();
        let _second = streams.open(&one, &none).unwrap();
        assert_eq!(streams.open(&one, &none).unwrap_err(), Full::Identity);
        let acme = streams.open(&one, &Tenancy::from([("org".to_owned(), "acme".to_owned())])).unwrap();
        drop(acme);
        let _other = streams.open(&two, &none).unwrap();
        assert_eq!(streams.open(&two, &none).unwrap_err(), Full::Total);
        drop(first);
        let _again = streams.open(&one, &none).unwrap();
        let open = Streams::new(3, 1);
        let held: Vec<OpenStream> = (0..3).map(|_| open.open(&identity("", "system"), &none).unwrap()).collect();
        assert_eq!(open.open(&identity("", "system"), &none).unwrap_err(), Full::Total);
        drop(held);
        assert!(open.open.lock().unwrap().is_empty());
    }
}
