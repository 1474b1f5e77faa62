//! Settings as they were read, with all faults.

use super::dump::Dump;

/// Settings as far as they could be read, and all faults.
#[derive(Debug)]
pub struct Loaded<T> {
    pub(super) settings: Option<T>,
    pub(super) faults: Vec<String>,
    /// Keys that were given and have no effect, each as a line for the log.
    pub(super) notes: Vec<String>,
    /// The settings with their sources.
    pub(super) dump: Dump,
}

// === impl Loaded ===

impl<T> Loaded<T> {
    /// Keys that were given and have no effect, each as a line for the log.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The settings as far as they could be read, with defaults in place of what is faulty.
    pub fn settings(&self) -> Option<&T> {
        self.settings.as_ref()
    }

    /// Returns the settings.
    ///
    /// # Errors
    ///
    /// Every fault, as a line for a message.
    pub fn done(self) -> Result<T, Vec<String>> {
        self.then(Ok)
    }

    /// Returns the settings if a check of the whole finds no fault either.
    ///
    /// # Errors
    ///
    /// Every fault, those of the check last.
    pub fn checked(self, check: impl FnOnce(&T) -> Vec<String>) -> Result<T, Vec<String>> {
        self.then(|settings| {
            let faults = check(&settings);
            if faults.is_empty() { Ok(settings) } else { Err(faults) }
        })
    }

    /// Returns the settings with their sources, if something can be made of them.
    ///
    /// # Errors
    ///
    /// Every fault, those of `make` last.
    pub fn dumped<U>(mut self, make: impl FnOnce(T) -> Result<U, Vec<String>>) -> Result<Dump, Vec<String>> {
        let dump = std::mem::take(&mut self.dump);
        self.then(make).map(|_usable| dump)
    }

    /// Makes something of the settings.
    ///
    /// # Errors
    ///
    /// Every fault, those of `make` last.
    pub fn then<U>(self, make: impl FnOnce(T) -> Result<U, Vec<String>>) -> Result<U, Vec<String>> {
        let Self { settings, mut faults, notes: _, dump: _ } = self;
        match settings.map(make) {
            Some(Ok(made)) if faults.is_empty() => return Ok(made),
            Some(Err(more)) => faults.extend(more),
            Some(Ok(_)) | None => {}
        }
        Err(faults)
    }
}
