//! The result of a rotation of keys: of those that encrypt pull secrets in the API, and of those that seal passwords in the ledger.

use std::collections::BTreeMap;
use std::process::ExitCode;

use daemon::output;
use serde_json::json;

use crate::cli::OutputFormat;

/// The result of a rotation of keys.
pub(crate) struct Rekeyed {
    /// Number of values that were encrypted anew.
    pub(crate) done: usize,
    /// Ids of those that cannot be decrypted.
    pub(crate) failed: Vec<String>,
    /// Ids of those that were removed, as their key is lost.
    pub(crate) removed: Vec<String>,
    /// Number of values by the id of their key.
    pub(crate) keys: BTreeMap<String, u64>,
}

// === impl Rekeyed ===

impl Rekeyed {
    /// Prints the keys in use, or all as JSON; the exit code is 1 if a value cannot be decrypted.
    pub(crate) fn print(&self, format: OutputFormat) -> anyhow::Result<ExitCode> {
        let Self { done, failed, removed, keys } = self;
        match format {
            OutputFormat::Json => {
                let document = json!({ "encryptedAnew": done, "failed": failed, "removed": removed, "keys": keys });
                output::print(format_args!("{document:#}\n"))?;
            }
            OutputFormat::Table => {
                let lines = keys.iter().map(|(key, number)| format!("{key} {number}\n"));
                output::print(format_args!("{}", lines.collect::<String>()))?;
            }
        }
        Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
