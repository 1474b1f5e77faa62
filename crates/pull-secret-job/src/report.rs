//! Writes the result for programs: the status-reporter's file and the container's termination message.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use daemon::file::Readers;
use fleet_model::job::Calls;
use serde::Serialize;

use crate::outcome::{Details, Outcome};

/// The file's format is HyperFleet's: reason up to 128 bytes, message up to 1024.
#[derive(Serialize)]
struct ResultFile<'a> {
    status: &'static str,
    reason: String,
    message: &'a str,
    details: &'a Details,
}

const MAX_MESSAGE: usize = 1024;

/// The most bytes of a termination message; a longer one is cut, and then it is no JSON.
const MAX_RESULT: usize = 4096;

/// The result as JSON. It fits into a termination message: where it would not, the times of calls are left out, then the calls.
pub fn render(outcome: &Outcome) -> String {
    let without_times = |calls: &[Calls]| calls.iter().map(|call| Calls { ms: Vec::new(), ..call.clone() }).collect();
    let with_calls = |change: &dyn Fn(&[Calls]) -> Vec<Calls>| {
        let mut details = outcome.details.clone();
        let of_mirror = details.mirror.as_mut().map(|mirror| &mut mirror.api_calls);
        for calls in [&mut details.api_calls, &mut details.k8s_api_calls].into_iter().chain(of_mirror) {
            *calls = change(calls);
        }
        details
    };
    let (counts, none) = (with_calls(&without_times), with_calls(&|_| Vec::new()));
    let all = to_json(outcome, &outcome.details);
    [counts, none].iter().fold(all, |text, less| if text.len() > MAX_RESULT { to_json(outcome, less) } else { text })
}

fn to_json(outcome: &Outcome, details: &Details) -> String {
    let status = if outcome.reason.is_success() { "success" } else { "failure" };
    let message = cut(&outcome.message, MAX_MESSAGE);
    let file = ResultFile { status, reason: outcome.reason.to_string(), message, details };
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
             {\"secretVersion\":3,\"versionsAdded\":0,\"versionsDestroyed\":0,\"apiCalls\":[],\"retries\":0,\"durationMs\":0}}\n"
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
    fn a_result_that_is_too_long_loses_the_times_of_calls_first() {
        let calls = |number| Calls::group((0..number).map(|index| (format!("operation_{index}"), 200, 100_000)));
        let rendered = |number| {
            let details = Details { api_calls: calls(number), ..Details::default() };
            let message = "é".repeat(4_000);
            render(&Outcome { reason: Reason::StoreUnavailable, message, details })
        };
        for (number, has_calls, has_times) in [(10, true, true), (44, true, false), (100, false, false)] {
            let text = rendered(number);
            assert!(text.len() <= MAX_RESULT, "{}", text.len());
            assert_eq!((text.contains("operation_9"), text.contains("100000")), (has_calls, has_times), "{text}");
        }
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
