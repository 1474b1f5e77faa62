//! A value that is replaced while it is used.

use tokio::sync::watch;

/// A value that is replaced while it is used: what is under way goes on with the one before.
#[derive(Debug)]
pub struct Live<T>(watch::Sender<T>);

// === impl Live ===

impl<T: Clone> Live<T> {
    /// Returns a value that can be replaced.
    pub fn new(value: T) -> Self {
        Self(watch::Sender::new(value))
    }

    /// Returns the current value.
    pub fn get(&self) -> T {
        self.0.borrow().clone()
    }

    /// Replaces the value.
    pub fn set(&self, value: T) {
        self.0.send_replace(value);
    }

    /// Returns a receiver that is notified of each replacement from now on.
    pub fn subscribe(&self) -> watch::Receiver<T> {
        self.0.subscribe()
    }
}

impl<T: Clone + Default> Default for Live<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}
