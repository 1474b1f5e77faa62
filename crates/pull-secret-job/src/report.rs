//! Writes the result for programs: the status-reporter's file and the container's termination message.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use daemon::file::Readers;
use serde::Serialize;

use crate::{Outcome, Settings};

/// Data that the adapter reports. Members that do not apply are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// The cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// The secret's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// The secret's full name in the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_path: Option<String>,
    /// The version that holds the pull secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_version: Option<u64>,
    /// The project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcp_project: Option<String>,
    /// The generation that the run acted for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
    /// The keyed digest of the pull secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Namespace of the Kubernetes Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of the Kubernetes Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k8s_secret_name: Option<String>,
    /// Number of versions that were added.
    pub versions_added: u32,
    /// Number of versions that were destroyed.
    pub versions_destroyed: u32,
    /// Number of calls to the store by kind, failed ones included.
    pub api_calls: BTreeMap<&'static str, u32>,
    /// Number of calls to the management cluster by kind, failed ones included.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub k8s_api_calls: BTreeMap<&'static str, u32>,
    /// Duration of the run, in milliseconds.
    pub duration_ms: u64,
}

/// The file's format is HyperFleet's: reason up to 128 bytes, message up to 1024.
#[derive(Serialize)]
struct ResultFile<'a> {
    status: &'static str,
    reason: String,
    message: &'a str,
    details: &'a Details,
}

const MAX_MESSAGE: usize = 1024;

impl Details {
    /// Details that are known before the run.
    pub(crate) fn of(settings: &Settings) -> Self {
        let key = settings.kubernetes_secret.as_ref().map(|kubernetes_secret| &kubernetes_secret.key);
        Self {
            cluster_id: Some(settings.cluster.to_string()),
            secret_name: Some(settings.secret.to_string()),
            gcp_project: Some(settings.store.project.to_string()),
            generation: settings.generation.map(|generation| generation.to_string()),
            namespace: key.map(|key| key.namespace.clone()),
            k8s_secret_name: key.map(|key| key.name.clone()),
            ..Self::default()
        }
    }
}

/// The result as JSON. With its bounded message it fits the 4096 bytes of a termination message.
pub fn render(outcome: &Outcome) -> String {
    let status = if outcome.reason.is_success() { "success" } else { "failure" };
    let message = cut(&outcome.message, MAX_MESSAGE);
    let file = ResultFile { status, reason: outcome.reason.to_string(), message, details: &outcome.details };
    serde_json::to_string(&file).unwrap_or_default() + "\n"
}

/// Writes the result file as a whole or not at all: its reader parses it as soon as it appears. That is a container of
/// its own, under a user of its own.
pub fn write_result(path: &Path, result: &str) -> Result<(), daemon::file::ReplaceError> {
    daemon::file::replace_for(Readers::All, path, result.as_bytes())
}

/// Writes the termination message, if the container runtime has provided the file. It is mounted, so it can only be
/// written in place.
pub fn write_termination_message(path: &Path, result: &str) -> io::Result<()> {
    match OpenOptions::new().write(true).truncate(true).open(path) {
        Ok(mut file) => file.write_all(result.as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// The longest beginning of `text` that has at most `bytes` bytes.
fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use fleet_model::job::Reason;

    use super::*;

    #[test]
    fn a_result_is_what_the_status_reporter_reads() {
        let details = Details { secret_version: Some(3), ..Details::default() };
        let outcome = Outcome { reason: Reason::SecretStored, message: "stored".to_owned(), details };
        assert_eq!(
            render(&outcome),
            "{\"status\":\"success\",\"reason\":\"SecretStored\",\"message\":\"stored\",\"details\":\
             {\"secretVersion\":3,\"versionsAdded\":0,\"versionsDestroyed\":0,\"apiCalls\":{},\"durationMs\":0}}\n"
        );
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        assert_eq!(cut("aéb", 2), "a");
        assert_eq!(cut("aéb", 3), "aé");
        let outcome =
            Outcome { reason: Reason::InvalidPullSecret, message: "é".repeat(4_000), details: Details::default() };
        assert!(render(&outcome).len() < 4_096);
    }

    #[test]
    fn a_termination_message_is_written_only_where_there_is_a_file_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("termination-log");
        write_termination_message(&path, "x").unwrap();
        assert!(!path.exists());
        std::fs::File::create(&path).unwrap();
        write_termination_message(&path, "x").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "x");
    }
}
