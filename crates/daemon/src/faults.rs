//! All faults of an input at once, as one error.

use std::fmt;

/// Faults of a configuration or of a command line, one per line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    title: &'static str,
    faults: Vec<String>,
}

// === impl Faults ===

impl Faults {
    /// Faults of a configuration.
    pub fn of_configuration(faults: impl Into<Vec<String>>) -> Self {
        Self { title: "invalid configuration", faults: faults.into() }
    }

    /// Faults of a command line.
    pub fn of_options(faults: impl Into<Vec<String>>) -> Self {
        Self { title: "invalid options", faults: faults.into() }
    }
}

impl std::error::Error for Faults {}

impl fmt::Display for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.title)?;
        self.faults.iter().try_for_each(|fault| write!(formatter, "\n  {fault}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_a_line() {
        let faults = Faults::of_configuration(["log.level: is unknown".to_owned(), "shard: is missing".to_owned()]);
        assert_eq!(faults.to_string(), "invalid configuration\n  log.level: is unknown\n  shard: is missing");
    }
}
