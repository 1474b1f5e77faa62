//! Combines the desired credentials with the unmanaged entries of the kubelet's file.

use std::collections::BTreeSet;

use docker_config::{Digest, Document, Limits, ProblemKind, RegistryKey};
use secrecy::{ExposeSecret as _, SecretSlice};

use crate::record::Owned;

/// Maximum bytes of a credential file: the kubelet reads no more.
pub(crate) const MAX_BYTES: u64 = 10 * 1024 * 1024;

/// The treatment of credentials that other programs have added to the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnmanagedEntries {
    /// They stay.
    #[default]
    Keep,
    /// They are removed: the file has exactly the content of the source.
    Remove,
}

/// The parts of a new file.
pub(crate) struct Combination<'a> {
    /// The desired content as the source holds it.
    pub(crate) bytes: &'a [u8],
    /// The same, parsed.
    pub(crate) desired: &'a Document,
    /// The current file; `None` if no reader could parse it.
    pub(crate) existing: Option<&'a Existing>,
    /// The entries of the current file that this program manages.
    pub(crate) owned: &'a Owned,
    /// The treatment of all others.
    pub(crate) unmanaged_entries: UnmanagedEntries,
}

/// The new file.
pub(crate) struct Target {
    pub(crate) bytes: SecretSlice<u8>,
    pub(crate) digest: Digest,
    pub(crate) owned: Owned,
    /// Keys of unmanaged entries that are left out because one of them would make the kubelet reject the whole file.
    pub(crate) rejected: Vec<String>,
}

/// The current file, parsed.
pub(crate) struct Existing {
    document: Document,
    /// The keys of entries that a reader can use.
    usable: BTreeSet<String>,
}

/// The limits of a document.
pub(crate) fn limits() -> Limits {
    Limits { max_bytes: usize::try_from(MAX_BYTES).unwrap_or(usize::MAX), ..Limits::default() }
}

/// Parses desired content: a valid document, which may have no entries. The error names the problems without values.
pub(crate) fn parse_desired(bytes: &[u8]) -> Result<Document, String> {
    let limits = limits();
    if let Err(problems) = docker_config::parse(bytes, &limits)
        && !problems.iter().all(|problem| problem.kind() == ProblemKind::NoEntries)
    {
        return Err(problems.summary(3));
    }
    Document::parse(bytes, &limits).map_err(|problems| problems.summary(3))
}

/// Parses the current file; `None` if no reader could.
pub(crate) fn parse_existing(bytes: &[u8]) -> Option<Existing> {
    let limits = limits();
    let document = Document::parse(bytes, &limits).ok()?;
    let name = |entry: &docker_config::Entry| entry.key().as_written().to_owned();
    let usable = match docker_config::parse(bytes, &limits) {
        Ok(parsed) => parsed.entries().iter().map(name).collect(),
        Err(problems) => problems.entries().iter().map(name).collect(),
    };
    Some(Existing { document, usable })
}

/// Returns the normalised key; a text that is no key is returned as it is.
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
    /// Combines the parts. Without unmanaged entries, the new file is the desired content, byte for byte.
    pub(crate) fn combine(parts: &Combination<'_>) -> Self {
        let Combination { bytes, desired, owned, .. } = *parts;
        let mut document = desired.clone();
        let mut rejected = Vec::new();
        let mut is_mixed = false;
        if let (Some(existing), UnmanagedEntries::Keep) = (parts.existing, parts.unmanaged_entries) {
            let taken: BTreeSet<String> = desired.keys().map(normalized).collect();
            let is_unmanaged = |key: &&str| !owned.auths.contains(*key) && !taken.contains(&normalized(key));
            for key in existing.document.keys().filter(is_unmanaged) {
                match existing.document.entry(key) {
                    Some(entry) if existing.usable.contains(key) => {
                        document.insert(key, entry.clone());
                        is_mixed = true;
                    }
                    _ => rejected.push(key.to_owned()),
                }
            }
            let members: BTreeSet<&str> = desired.other_members().collect();
            let is_unmanaged = |name: &&str| !owned.members.contains(*name) && !members.contains(name);
            for name in existing.document.other_members().filter(is_unmanaged) {
                is_mixed |= document.copy_other_member(&existing.document, name);
            }
        }
        Self {
            bytes: if is_mixed { document.to_bytes() } else { SecretSlice::from(bytes.to_vec()) },
            digest: document.digest(),
            owned: Owned {
                auths: desired.keys().map(str::to_owned).collect(),
                members: desired.other_members().map(str::to_owned).collect(),
            },
            rejected,
        }
    }

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

    fn combined(desired: &str, existing: &str, owned_keys: &[&str], unmanaged_entries: UnmanagedEntries) -> String {
        let document = parse_desired(desired.as_bytes()).unwrap();
        let target = Target::combine(&Combination {
            bytes: desired.as_bytes(),
            desired: &document,
            existing: parse_existing(existing.as_bytes()).as_ref(),
            owned: &owned(owned_keys),
            unmanaged_entries,
        });
        String::from_utf8(target.bytes().to_vec()).unwrap()
    }

    const A: &str = r#""a.io":{"auth":"YTph"}"#;
    const A2: &str = r#""a.io":{"auth":"YTpi"}"#;
    const B: &str = r#""b.io":{"auth":"Yjpi"}"#;
    const ECR: &str = r#""1.dkr.ecr.us-east-1.amazonaws.com":{"auth":"ZTpl"}"#;
    const BAD: &str = r#""bad.io":{"auth":"%%%"}"#;

    #[rstest]
    #[case::nothing_there([A], [], [], vec![A])]
    #[case::unmanaged_entries_stay([A], [ECR], [], vec![ECR, A])]
    #[case::managed_ones_that_are_no_longer_desired_go([A], [B], ["b.io"], vec![A])]
    #[case::managed_ones_go_and_unmanaged_ones_stay([A], [B, ECR], ["b.io"], vec![ECR, A])]
    #[case::desired_entries_win([A2], [A], [], vec![A2])]
    #[case::one_that_would_invalidate_the_file_is_left_out([A], [BAD], [], vec![A])]
    #[case::another_spelling_is_the_same_registry([A], [r#""https://a.io/":{"auth":"YTpi"}"#], [], vec![A])]
    fn entries_are_combined(
        #[case] desired: impl AsRef<[&'static str]>,
        #[case] existing: impl AsRef<[&'static str]>,
        #[case] owned: impl AsRef<[&'static str]>,
        #[case] expected: Vec<&str>,
    ) {
        let text = |entries: &[&str]| format!("{{\"auths\":{{{}}}}}", entries.join(","));
        let result =
            combined(&text(desired.as_ref()), &text(existing.as_ref()), owned.as_ref(), UnmanagedEntries::Keep);
        assert_eq!(result, text(&expected));
    }

    #[rstest]
    #[case::of_others_stay(r#"{"auths":{},"credHelpers":{"x.io":"ecr-login"}}"#, UnmanagedEntries::Keep, true)]
    #[case::of_others_go(r#"{"auths":{},"credHelpers":{"x.io":"ecr-login"}}"#, UnmanagedEntries::Remove, false)]
    fn other_members(#[case] existing: &str, #[case] unmanaged: UnmanagedEntries, #[case] stays: bool) {
        let desired = format!("{{\"auths\":{{{A}}}}}\n");
        let result = combined(&desired, existing, &[], unmanaged);
        assert_eq!(result.contains("ecr-login"), stays, "{result}");
        assert_eq!(result == desired, !stays);
    }

    /// The cases of HyperShift's own syncer. Those that differ are refused here, because they would take all credentials
    /// away from the kubelet or make it reject the whole file.
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
    fn content_is_accepted_or_refused(#[case] text: &str, #[case] accepted: bool) {
        assert_eq!(parse_desired(text.as_bytes()).is_ok(), accepted);
    }
}
