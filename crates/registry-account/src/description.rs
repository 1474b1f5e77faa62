//! Descriptions of accounts at registries that keep no metadata: our id of the credential ends them.

use fleet_model::names::DESCRIPTION_CREDENTIAL;

use crate::name::CredentialId;

/// Length of what [`marked`] adds, in characters.
pub(crate) const MARK: usize =
    " [ ]".len() + DESCRIPTION_CREDENTIAL.len() + "01932b5c-9f3e-7c2a-8e1d-0123456789ab".len();

/// The part of a description that people have written, and our id of the credential.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Described<'a> {
    pub(crate) text: &'a str,
    pub(crate) credential: Option<CredentialId>,
}

/// Returns a description with our id of the credential.
pub(crate) fn marked(text: &str, credential: CredentialId) -> String {
    format!("{text} [{DESCRIPTION_CREDENTIAL} {credential}]")
}

// === impl Described ===

impl<'a> Described<'a> {
    pub(crate) fn read(description: &'a str) -> Self {
        let marked = description.strip_suffix(']').and_then(|text| text.rsplit_once(" ["));
        let id = |mark: &str| mark.strip_prefix(DESCRIPTION_CREDENTIAL)?.strip_prefix(' ')?.parse().ok();
        match marked.and_then(|(text, mark)| Some((text, id(mark)?))) {
            Some((text, credential)) => Self { text, credential: Some(credential) },
            None => Self { text: description, credential: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const ID: &str = "01932b5c-9f3e-7c2a-8e1d-0123456789ab";

    #[rstest]
    #[case::ours("a text [hyperfleet credential 01932b5c-9f3e-7c2a-8e1d-0123456789ab]", "a text", true)]
    #[case::empty(" [hyperfleet credential 01932b5c-9f3e-7c2a-8e1d-0123456789ab]", "", true)]
    #[case::brackets("a [b] [hyperfleet credential 01932b5c-9f3e-7c2a-8e1d-0123456789ab]", "a [b]", true)]
    #[case::of_a_stranger("a text", "a text", false)]
    #[case::not_at_the_end("[hyperfleet credential 01932b5c-9f3e-7c2a-8e1d-0123456789ab] a", "", false)]
    #[case::no_id("a [hyperfleet credential 5]", "", false)]
    #[case::another_mark("a [other credential 01932b5c-9f3e-7c2a-8e1d-0123456789ab]", "", false)]
    fn a_description_carries_the_id(#[case] description: &str, #[case] text: &str, #[case] is_ours: bool) {
        let found = Described::read(description);
        assert_eq!(found.credential, is_ours.then(|| ID.parse().unwrap()));
        assert_eq!(found.text, if is_ours { text } else { description });
        if is_ours {
            assert_eq!(marked(text, ID.parse().unwrap()), description);
            assert_eq!(description.chars().count() - text.chars().count(), MARK);
        }
    }
}
