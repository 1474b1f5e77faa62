//! Recognises documents of another kind, so that the message can name it.

use zeroize::Zeroizing;

use crate::base64_text;
use crate::entry;
use crate::json::{Member, Value, member};
use crate::problem::ProblemKind;

/// Returns the probable kind of text that is no JSON object.
pub(crate) fn of_text(text: &str) -> Option<ProblemKind> {
    let text = text.trim();
    if text.is_empty() {
        return Some(ProblemKind::Empty);
    }
    let has_line = |expected: &str| text.lines().any(|line| line.trim_end() == expected);
    if has_line("kind: Secret") && text.contains(".dockerconfigjson") {
        return Some(ProblemKind::KubernetesSecret);
    }
    is_encoded_object(text.trim_matches('"')).then_some(ProblemKind::EncodedDocument)
}

/// Returns the probable kind of an object without `auths`.
pub(crate) fn of_members(members: &[Member]) -> Option<ProblemKind> {
    let text = |name| member(members, name).and_then(|m| m.value.as_text());
    let object = |name| member(members, name).and_then(|m| m.value.as_object());
    let holds_document = |members| member(members, ".dockerconfigjson").is_some();
    let is_secret = text("kind") == Some("Secret")
        || ["data", "stringData"].into_iter().any(|name| object(name).is_some_and(holds_document));
    if is_secret {
        return Some(ProblemKind::KubernetesSecret);
    }
    let is_entry = |value: &Value| value.as_object().is_some_and(entry::has_credential_member);
    members.iter().any(|m| is_entry(&m.value)).then_some(ProblemKind::BareEntries)
}

/// Returns true if base64 text, wrapped or not, decodes to the start of an object.
fn is_encoded_object(text: &str) -> bool {
    // 16 characters are 12 bytes: enough to pass the white space before the brace.
    let start: Zeroizing<String> = Zeroizing::new(text.chars().filter(|c| !c.is_whitespace()).take(16).collect());
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=-_".contains(c) || c.is_whitespace();
    text.chars().all(is_base64)
        && base64_text::decode(&start).is_ok_and(|d| d.bytes.trim_ascii_start().starts_with(b"{"))
}
