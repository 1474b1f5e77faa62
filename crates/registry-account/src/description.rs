//! Descriptions of accounts at registries that keep no metadata: the id of the credential ends them.

use fleet_model::names::DESCRIPTION_CREDENTIAL;

use crate::name::CredentialId;

/// Length of what [`with_id`] adds, in characters.
pub(crate) const ID_LENGTH: usize =
    " [ ]".len() + DESCRIPTION_CREDENTIAL.len() + "01932b5c-9f3e-7c2a-8e1d-0123456789ab".len();

/// The part of a description that people have written, and the id of the credential.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Described<'a> {
    pub(crate) text: &'a str,
    pub(crate) credential: Option<CredentialId>,
}

/// Returns a description with the id of the credential.
pub(crate) fn with_id(text: &str, credential: CredentialId) -> String {
    format!("{text} [{DESCRIPTION_CREDENTIAL} {credential}]")
}

// === impl Described ===

impl<'a> Described<'a> {
    pub(crate) fn read(description: &'a str) -> Self {
        let parts = description.strip_suffix(']').and_then(|text| text.rsplit_once(" ["));
        let id = |id: &str| id.strip_prefix(DESCRIPTION_CREDENTIAL)?.strip_prefix(' ')?.parse().ok();
        match parts.and_then(|(text, id_part)| Some((text, id(id_part)?))) {
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
    #[case::own("a text [hyperfleet credential 01932b5c-9f3e-7c2a-8e1d-0123456789ab]", "a text", true)]
    #[case::empty(" [hyperfleet credential 01932b5c-9f3e-7c2a-8e1d-0123456789ab]", "", true)]
    #[case::brackets("a [b] [hyperfleet credential 01932b5c-9f3e-7c2a-8e1d-0123456789ab]", "a [b]", true)]
    #[case::of_a_stranger("a text", "a text", false)]
    #[case::not_at_the_end("[hyperfleet credential 01932b5c-9f3e-7c2a-8e1d-0123456789ab] a", "", false)]
    #[case::no_id("a [hyperfleet credential 5]", "", false)]
    #[case::another_word("a [other credential 01932b5c-9f3e-7c2a-8e1d-0123456789ab]", "", false)]
    fn a_description_carries_the_id(#[case] description: &str, #[case] text: &str, #[case] is_own: bool) {
        let found = Described::read(description);
        assert_eq!(found.credential, is_own.then(|| ID.parse().unwrap()));
        assert_eq!(found.text, if is_own { text } else { description });
        if is_own {
            assert_eq!(with_id(text, ID.parse().unwrap()), description);
            assert_eq!(description.chars().count() - text.chars().count(), ID_LENGTH);
        }
    }
}
