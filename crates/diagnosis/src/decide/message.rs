//! The parts of a message about a run: what happened, the program's hint, and what the adapter does next.

use serde_json::Value;

/// Stands before the hint of a Job.
const HINT: &str = "; hint: ";
/// The beginnings of what the adapter adds about its next attempt.
const OUTLOOKS: [&str; 2] = ["retrying with another Job in ", "another Job is created when "];
/// Stands before what the Pods that have failed say, in the message about a Job that runs.
const FAILED_PODS: &str = " of its Pods failed (backoffLimit ";

/// A message in its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    /// The event.
    pub(crate) fact: &'a str,
    /// The program's own hint.
    pub(crate) hint: Option<&'a str>,
    /// The adapter's next attempt.
    pub(crate) outlook: Option<&'a str>,
}

impl<'a> Parts<'a> {
    pub(crate) fn of(message: &'a str) -> Self {
        let split = |outlook: &str| {
            let (before, _) = message.rsplit_once(&format!("; {outlook}"))?;
            Some((before, message.get(before.len() + "; ".len()..)))
        };
        let (rest, outlook) = OUTLOOKS.iter().find_map(|outlook| split(outlook)).unwrap_or((message, None));
        let (fact, hint) = match rest.split_once(HINT) {
            Some((fact, hint)) => (fact, Some(hint)),
            None => (rest, None),
        };
        Self { fact, hint, outlook }
    }
}

/// Takes apart the message about a Job that runs and whose Pods have failed: about the Job, and the Pods' reason and message.
pub(crate) fn failed_pods(message: &str) -> Option<(&str, &str, &str)> {
    let about = message.find(FAILED_PODS)?;
    let end = message.get(about..)?.find(')')? + about + 1;
    let (reason, rest) = message.get(end..)?.strip_prefix(": ")?.split_once(": ")?;
    let is_reason = !reason.is_empty() && reason.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_reason.then_some((message.get(..end)?, reason, rest))
}

/// The failed operation that the message of a Job begins with, such as `Failed to create/update secret`.
pub(crate) fn operation(message: &str) -> Option<&str> {
    message.split_once(": ").map(|(operation, _)| operation).filter(|operation| operation.starts_with("Failed to "))
}

/// Reason and message of a Job's result.
pub(super) fn result(message: &str) -> Option<(String, String)> {
    let result: Value = serde_json::from_str(message).ok()?;
    let text = |name: &str| Some(result.get(name)?.as_str()?.to_owned());
    Some((text("reason")?, text("message")?))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("no; hint: do; retrying with another Job in 30 min", ("no", Some("do"), Some("retrying with another Job in 30 min")))]
    #[case("no; another Job is created when the pull secret is changed", ("no", None, Some("another Job is created when the pull secret is changed")))]
    #[case("no; hint: do", ("no", Some("do"), None))]
    #[case("a; b", ("a; b", None, None))]
    fn a_message_is_taken_apart(#[case] message: &str, #[case] expect: (&str, Option<&str>, Option<&str>)) {
        let Parts { fact, hint, outlook } = Parts::of(message);
        assert_eq!((fact, hint, outlook), expect);
    }

    #[test]
    fn the_reason_of_failed_pods_is_found() {
        let message = "Job j is running; 2 of its Pods failed (backoffLimit 3): QuotaExceeded: Failed to add: no";
        let expect = ("Job j is running; 2 of its Pods failed (backoffLimit 3)", "QuotaExceeded", "Failed to add: no");
        assert_eq!(failed_pods(message), Some(expect));
        assert_eq!(failed_pods("Job j is running; 1 of its Pods failed (backoffLimit 3): killed by signal: 9"), None);
        assert_eq!(failed_pods("Job j is running"), None);
        assert_eq!(operation("Failed to create/update secret: no"), Some("Failed to create/update secret"));
        assert_eq!(operation("project one: denied"), None);
    }
}
