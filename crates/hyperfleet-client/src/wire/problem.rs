//! The API's refusal of a request (RFC 9457).

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// Maximum length of the API's text that is shown.
const SHOWN: usize = 500;

/// The API's refusal of a request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Problem {
    /// The problem's type, an address.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The title of the problem, for people.
    pub title: Option<String>,
    /// The status, once more.
    pub status: Option<u16>,
    /// The detail, for people.
    #[serde(alias = "reason")]
    pub detail: Option<String>,
    /// The path that was asked for.
    pub instance: Option<String>,
    /// The code that clients key on, such as `HYPERFLEET-NTF-001`.
    pub code: Option<String>,
    /// Under which the API's log says more.
    pub trace_id: Option<String>,
    /// The member of the request, if known.
    #[serde(deserialize_with = "super::null_is_default")]
    pub errors: Vec<FieldError>,
}

/// One fault of one member or parameter.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct FieldError {
    /// The member's path or the parameter's name.
    pub field: String,
    /// The value that was sent.
    pub value: Option<Value>,
    /// The kind of rule that it breaks.
    pub constraint: Option<String>,
    /// The rule that was broken.
    pub message: String,
}

// === impl Problem ===

impl Problem {
    /// The problem in an answer's body, if it is one.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let problem: Self = serde_json::from_slice(body).ok()?;
        (problem.code.is_some() || problem.detail.is_some() || problem.title.is_some()).then_some(problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.detail.as_deref().or(self.title.as_deref()).unwrap_or("no detail");
        // The message is not trusted: it must neither end a line of the log nor flood it.
        let shown: String = message.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
        match &self.code {
            Some(code) => write!(formatter, "{shown} ({})", code.escape_debug().take(64).collect::<String>()),
            None => formatter.write_str(&shown),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        r#"{"code": "HYPERFLEET-NTF-001", "detail": "Cluster not found"}"#,
        "Cluster not found (HYPERFLEET-NTF-001)"
    )]
    #[case(r#"{"kind": "Error", "reason": "of old"}"#, "of old")]
    #[case(r#"{"title": "Not\nFound", "errors": null}"#, "Not Found")]
    fn every_form_is_understood(#[case] body: &str, #[case] shown: &str) {
        assert_eq!(Problem::parse(body.as_bytes()).unwrap().to_string(), shown);
    }

    #[rstest]
    #[case("404 page not found")]
    #[case("<html>")]
    #[case(r#"{"message": "no Route matched"}"#)]
    fn other_bodies_are_none(#[case] body: &str) {
        assert_eq!(Problem::parse(body.as_bytes()), None);
    }
}
