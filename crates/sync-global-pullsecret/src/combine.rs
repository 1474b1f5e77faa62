//! What the kubelet's file is to say: what is wanted, and what others have put there.

use std::collections::BTreeSet;

use docker_config::{Digest, Document, Limits, ProblemKind, RegistryKey};
use secrecy::{ExposeSecret as _, SecretSlice};

use crate::record::Owned;

/// The most bytes of a credential file that are looked at: what the kubelet reads of one at most.
pub(crate) const MOST_BYTES: u64 = 10 * 1024 * 1024;

/// What happens to credentials that others have put into the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Foreign {
    /// They stay.
    #[default]
    Keep,
    /// They go: the file says exactly what the source says.
    Remove,
}

/// What the file is to say.
pub(crate) struct Target {
    pub(crate) bytes: SecretSlice<u8>,
    pub(crate) digest: Digest,
    pub(crate) owned: Owned,
    /// Keys of foreign entries that are left out because one of them would make the kubelet drop the whole file.
    pub(crate) spoilers: Vec<String>,
}

/// What stands in the file, read as a document.
pub(crate) struct Existing {
    document: Document,
    /// The keys of entries that a reader can use.
    usable: BTreeSet<String>,
}

/// How much of a document is looked at.
pub(crate) fn limits() -> Limits {
    Limits { max_bytes: usize::try_from(MOST_BYTES).unwrap_or(usize::MAX), ..Limits::default() }
}

/// Reads content that is wanted: a valid document, if need be one without entries. Says what is wrong with it without
/// its values.
pub(crate) fn wanted(bytes: &[u8]) -> Result<Document, String> {
    let limits = limits();
    if let Err(problems) = docker_config::parse(bytes, &limits)
        && !problems.iter().all(|problem| problem.kind() == ProblemKind::NoEntries)
    {
        return Err(problems.summary(3));
    }
    Document::parse(bytes, &limits).map_err(|problems| problems.summary(3))
}

/// Reads what stands in the file; `None` if no reader could.
pub(crate) fn existing(bytes: &[u8]) -> Option<Existing> {
    let limits = limits();
    let document = Document::parse(bytes, &limits).ok()?;
    let name = |entry: &docker_config::Entry| entry.key().as_written().to_owned();
    let usable = match docker_config::parse(bytes, &limits) {
        Ok(parsed) => parsed.entries().iter().map(name).collect(),
        Err(problems) => problems.entries().iter().map(name).collect(),
    };
    Some(Existing { document, usable })
}

/// Puts together what the file is to say. Where nothing foreign stays, it is what is wanted, to the byte.
pub(crate) fn target(
    bytes: &[u8],
    wanted: &Document,
    existing: Option<&Existing>,
    owned: &Owned,
    foreign: Foreign,
) -> Target {
    let mut document = wanted.clone();
    let mut spoilers = Vec::new();
    let mut is_mixed = false;
    if let (Some(existing), Foreign::Keep) = (existing, foreign) {
        let taken: BTreeSet<String> = wanted.keys().map(normalized).collect();
        for key in
            existing.document.keys().filter(|key| !owned.auths.contains(*key) && !taken.contains(&normalized(key)))
        {
            match existing.document.entry(key) {
                Some(entry) if existing.usable.contains(key) => {
                    document.insert(key, entry.clone());
                    is_mixed = true;
                }
                _ => spoilers.push(key.to_owned()),
            }
        }
        let ours: BTreeSet<&str> = wanted.other_members().collect();
        for name in
            existing.document.other_members().filter(|name| !owned.members.contains(*name) && !ours.contains(name))
        {
            is_mixed |= document.copy_other_member(&existing.document, name);
        }
    }
    Target {
        bytes: if is_mixed { document.to_bytes() } else { SecretSlice::from(bytes.to_vec()) },
        digest: document.digest(),
        owned: Owned {
            auths: wanted.keys().map(str::to_owned).collect(),
            members: wanted.other_members().map(str::to_owned).collect(),
        },
        spoilers,
    }
}

/// A key as all readers know it; one that is none stands for itself.
fn normalized(key: &str) -> String {
    RegistryKey::parse(key).map_or_else(|_not_a_key| key.to_owned(), |parsed| parsed.normalized().to_owned())
}

// === impl Existing ===

impl Existing {
    pub(crate) fn digest(&self) -> Digest {
        self.document.digest()
    }

    pub(crate) fn document(&self) -> &Document {
        &self.document
    }
}

// === impl Target ===

impl Target {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.expose_secret()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn owned(keys: &[&str]) -> Owned {
        Owned { auths: keys.iter().map(|key| (*key).to_owned()).collect(), members: BTreeSet::new() }
    }

    fn put_together(wanted_text: &str, existing_text: &str, owned_keys: &[&str], foreign: Foreign) -> String {
        let document = wanted(wanted_text.as_bytes()).unwrap();
        let existing = existing(existing_text.as_bytes());
        let target = target(wanted_text.as_bytes(), &document, existing.as_ref(), &owned(owned_keys), foreign);
        String::from_utf8(target.bytes().to_vec()).unwrap()
    }

    const A: &str = r#""a.io":{"auth":"YTph"}"#;
    const A2: &str = r#""a.io":{"auth":"YTpi"}"#;
    const B: &str = r#""b.io":{"auth":"Yjpi"}"#;
    const ECR: &str = r#""1.dkr.ecr.us-east-1.amazonaws.com":{"auth":"ZTpl"}"#;
    const BAD: &str = r#""bad.io":{"auth":"%%%"}"#;

    #[rstest]
    #[case::nothing_there([A], [], [], vec![A])]
    #[case::foreign_entries_stay([A], [ECR], [], vec![ECR, A])]
    #[case::ours_that_are_no_longer_wanted_go([A], [B], ["b.io"], vec![A])]
    #[case::ours_go_and_foreign_ones_stay([A], [B, ECR], ["b.io"], vec![ECR, A])]
    #[case::what_is_wanted_wins([A2], [A], [], vec![A2])]
    #[case::one_that_would_spoil_the_file_is_left_out([A], [BAD], [], vec![A])]
    #[case::another_spelling_is_the_same_registry([A], [r#""https://a.io/":{"auth":"YTpi"}"#], [], vec![A])]
    fn entries_are_put_together(
        #[case] wanted: impl AsRef<[&'static str]>,
        #[case] existing: impl AsRef<[&'static str]>,
        #[case] owned: impl AsRef<[&'static str]>,
        #[case] expected: Vec<&str>,
    ) {
        let text = |entries: &[&str]| format!("{{\"auths\":{{{}}}}}", entries.join(","));
        let result = put_together(&text(wanted.as_ref()), &text(existing.as_ref()), owned.as_ref(), Foreign::Keep);
        assert_eq!(result, text(&expected));
    }

    #[rstest]
    #[case::of_others_stay(r#"{"auths":{},"credHelpers":{"x.io":"ecr-login"}}"#, Foreign::Keep, true)]
    #[case::of_others_go(r#"{"auths":{},"credHelpers":{"x.io":"ecr-login"}}"#, Foreign::Remove, false)]
    fn other_members(#[case] existing: &str, #[case] foreign: Foreign, #[case] stays: bool) {
        let wanted = format!("{{\"auths\":{{{A}}}}}\n");
        let result = put_together(&wanted, existing, &[], foreign);
        assert_eq!(result.contains("ecr-login"), stays, "{result}");
        assert_eq!(result == wanted, !stays);
    }

    /// The peer's table (globalps §5.2), and where we differ: what would take all credentials away from the kubelet, or
    /// makes it drop the whole file, is refused.
    #[rstest]
    #[case::one(r#"{"auths":{"a.io":{"auth":"YTph"}}}"#, true)]
    #[case::many(r#"{"auths":{"a.io":{"auth":"YTph"},"b.io":{"auth":"Yjpi"}}}"#, true)]
    #[case::no_entries(r#"{"auths":{}}"#, true)]
    #[case::extra_fields(r#"{"auths":{"a.io":{"auth":"YTph","email":"x"}},"HttpHeaders":{"A":"b"}}"#, true)]
    #[case::auths_null_differs(r#"{"auths":null}"#, false)]
    #[case::auths_string_differs(r#"{"auths":"x"}"#, false)]
    #[case::auths_array_differs(r#"{"auths":[]}"#, false)]
    #[case::malformed_base64_differs(r#"{"auths":{"a.io":{"auth":"%%%"}}}"#, false)]
    #[case::duplicates_differ(r#"{"auths":{"a.io":{"auth":"YTph"},"a.io":{"auth":"Yjpi"}}}"#, false)]
    #[case::malformed("{", false)]
    #[case::trailing_comma(r#"{"auths":{},}"#, false)]
    #[case::unquoted_key("{auths:{}}", false)]
    #[case::missing_auths(r#"{"other":{}}"#, false)]
    #[case::empty("", false)]
    #[case::null("null", false)]
    #[case::string(r#""auths""#, false)]
    #[case::array("[]", false)]
    #[case::number("7", false)]
    #[case::boolean("true", false)]
    #[case::white_space(" \n", false)]
    #[case::empty_object("{}", false)]
    #[case::nested_auths(r#"{"x":{"auths":{}}}"#, false)]
    fn content_is_taken_or_refused(#[case] text: &str, #[case] taken: bool) {
        assert_eq!(wanted(text.as_bytes()).is_ok(), taken);
    }
}
