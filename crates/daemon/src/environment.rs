//! Environment variables as an argument, replaceable in tests.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// Source of environment variables.
pub trait Environment {
    /// Returns the value of the variable, if it is set.
    fn raw(&self, name: &str) -> Option<OsString>;

    /// Returns the names of all variables that are set.
    fn names(&self) -> Vec<String>;

    /// Returns the value unchanged. A blank value counts as missing, one that is not UTF-8 is an error.
    fn verbatim(&self, name: &str) -> Result<Option<String>, NotUtf8> {
        let Some(value) = self.raw(name) else { return Ok(None) };
        let value = value.into_string().map_err(|_value| NotUtf8 { name: name.to_owned() })?;
        Ok(Some(value).filter(|value| !value.trim().is_empty()))
    }

    /// Returns the value without surrounding blanks. A blank value counts as missing, one that is not UTF-8 is an error.
    fn text(&self, name: &str) -> Result<Option<String>, NotUtf8> {
        Ok(self.verbatim(name)?.map(|value| value.trim().to_owned()))
    }
}

/// A variable whose value is not UTF-8. The value is not shown, as it may be a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: is not valid UTF-8")]
pub struct NotUtf8 {
    /// Name of the variable.
    pub name: String,
}

/// The environment of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the environment")]
    fn raw(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
    fn names(&self) -> Vec<String> {
        std::env::vars_os().filter_map(|(name, _value)| name.into_string().ok()).collect()
    }
}

impl Environment for BTreeMap<&str, &str> {
    fn raw(&self, name: &str) -> Option<OsString> {
        self.get(name).map(OsString::from)
    }

    fn names(&self) -> Vec<String> {
        self.keys().map(|name| (*name).to_owned()).collect()
    }
}
