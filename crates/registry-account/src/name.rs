//! Names of accounts, ids of credentials, repositories and their images.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// The longest name of an account in bytes: Red Hat's registry allows no more.
const LONGEST_NAME: usize = 49;
/// Characters of base32 that 128 random bits take.
const RANDOM_CHARACTERS: usize = 26;
/// The longest prefix of names in bytes: what [`LONGEST_NAME`] leaves beside a hyphen and the random part.
const LONGEST_PREFIX: usize = LONGEST_NAME - RANDOM_CHARACTERS - 1;
/// The longest name of a repository in bytes (distribution's limit).
const LONGEST_REPOSITORY: usize = 255;
/// The longest tag or digest in bytes.
const LONGEST_REFERENCE: usize = 160;

/// A text that is no valid name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// See [`AccountName`].
    #[error("must be 2 to 49 characters of a-z and 0-9, with single '.', '_' or '-' between them")]
    Account,
    /// See [`NamePrefix`].
    #[error("must be 1 to 22 characters of a-z and 0-9, with single '.', '_' or '-' between them")]
    Prefix,
    /// See [`CredentialId`].
    #[error("must be a UUID of version 7")]
    Credential,
    /// See [`Repository`].
    #[error("must be parts of a-z, 0-9, '.', '_' and '-' with '/' between them, without the registry's host")]
    Repository,
    /// See [`Reference`].
    #[error("must be a tag, or a digest such as sha256:…")]
    Reference,
}

/// The beginning of the names of the accounts of one installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePrefix(String);

/// The name of an account within its organization. A name is used once: a registry revives tokens of a deleted account with
/// its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountName(String);

/// Our id of a credential: a UUID of version 7, kept in the metadata of its account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CredentialId(Uuid);

/// A repository within its registry, such as `openshift-release-dev/ocp-release`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Repository(String);

/// The tag or the digest of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference(String);

/// The image that a probe asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its repository.
    pub repository: Repository,
    /// Tag or digest, for registries whose tokens do not say what they permit.
    pub reference: Option<Reference>,
}

// === impl NamePrefix ===

impl FromStr for NamePrefix {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let fits = (1..=LONGEST_PREFIX).contains(&text.len()) && is_separated(text);
        fits.then(|| Self(text.to_owned())).ok_or(InvalidName::Prefix)
    }
}

/// Characters of the random part of a name.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Random bits of each of them.
const CHARACTER_BITS: u32 = 5;
/// Number of characters of the random part.
const RANDOM_LENGTH: usize = u128::BITS.div_ceil(CHARACTER_BITS) as usize;

// === impl AccountName ===

impl AccountName {
    /// Returns the name with these random bits, which must come from a secure source: they make it unique for ever.
    pub fn random(prefix: &NamePrefix, bits: u128) -> Self {
        let character = |place: u32| {
            let index = usize::try_from(bits.unbounded_shr(place * CHARACTER_BITS) % 32).unwrap_or_default();
            char::from(ALPHABET.get(index).copied().unwrap_or(b'a'))
        };
        let random: String = (0..u128::BITS.div_ceil(CHARACTER_BITS)).map(character).collect();
        Self(format!("{}-{random}", prefix.0))
    }

    /// Returns true if the name is one that an installation with this prefix makes.
    pub fn has_prefix(&self, prefix: &NamePrefix) -> bool {
        let random = self.0.strip_prefix(&prefix.0).and_then(|rest| rest.strip_prefix('-'));
        random
            .is_some_and(|random| random.len() == RANDOM_LENGTH && random.bytes().all(|byte| ALPHABET.contains(&byte)))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AccountName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let fits = (2..=LONGEST_NAME).contains(&text.len()) && is_separated(text);
        fits.then(|| Self(text.to_owned())).ok_or(InvalidName::Account)
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

// === impl CredentialId ===

impl TryFrom<Uuid> for CredentialId {
    type Error = InvalidName;

    fn try_from(id: Uuid) -> Result<Self, InvalidName> {
        if id.get_version_num() == 7 { Ok(Self(id)) } else { Err(InvalidName::Credential) }
    }
}

impl FromStr for CredentialId {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Uuid::try_parse(text).map_err(|_error| InvalidName::Credential)?.try_into()
    }
}

impl fmt::Display for CredentialId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(formatter)
    }
}

// === impl Repository ===

impl Repository {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Repository {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let is_part = |part: &str| {
            part.starts_with(is_lower_alphanumeric)
                && part.ends_with(is_lower_alphanumeric)
                && part.chars().all(|char| is_lower_alphanumeric(char) || "._-".contains(char))
        };
        let fits = text.len() <= LONGEST_REPOSITORY && text.split('/').all(is_part);
        fits.then(|| Self(text.to_owned())).ok_or(InvalidName::Repository)
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

// === impl Reference ===

impl Reference {
    /// Returns the tag or digest.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Reference {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let fits = text.len() <= LONGEST_REFERENCE
            && text.starts_with(|char: char| char.is_ascii_alphanumeric() || char == '_')
            && text.chars().all(|char| char.is_ascii_alphanumeric() || "._-:+".contains(char));
        fits.then(|| Self(text.to_owned())).ok_or(InvalidName::Reference)
    }
}

/// Returns true for `^[a-z0-9]+(?:[._-][a-z0-9]+)*$`, the names of robots at Quay and Harbor.
pub(crate) fn is_separated(text: &str) -> bool {
    text.split(['.', '_', '-']).all(|part| !part.is_empty() && part.chars().all(is_lower_alphanumeric))
}

fn is_lower_alphanumeric(char: char) -> bool {
    char.is_ascii_lowercase() || char.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("hf-abc", true)]
    #[case("a1.b_c-d", true)]
    #[case("ab", true)]
    #[case(&"a".repeat(49), true)]
    #[case("a", false)]
    #[case("Bad-Name", false)]
    #[case("ab__c", false)]
    #[case("-ab", false)]
    #[case("ab-", false)]
    #[case("org+ab", false)]
    #[case("a/b", false)]
    #[case(&"a".repeat(50), false)]
    #[case("", false)]
    fn names_fit_every_registry(#[case] name: &str, #[case] fits: bool) {
        assert_eq!(name.parse::<AccountName>().is_ok(), fits);
    }

    #[rstest]
    #[case("hf", 0, "hf-aaaaaaaaaaaaaaaaaaaaaaaaaa")]
    #[case("hf", 1, "hf-baaaaaaaaaaaaaaaaaaaaaaaaa")]
    #[case("a.long_prefix-of22char", u128::MAX, "a.long_prefix-of22char-7777777777777777777777777h")]
    fn random_names_have_all_bits_and_fit(#[case] prefix: &str, #[case] bits: u128, #[case] expected: &str) {
        let name = AccountName::random(&prefix.parse().unwrap(), bits);
        assert_eq!(name.as_str(), expected);
        assert_eq!(expected.parse::<AccountName>(), Ok(name));
    }

    #[rstest]
    #[case("hf-aaaaaaaaaaaaaaaaaaaaaaaaaa", true)]
    #[case("hf-eu-aaaaaaaaaaaaaaaaaaaaaaaaaa", false)]
    #[case("hf-release-bot", false)]
    #[case("hfaaaaaaaaaaaaaaaaaaaaaaaaaaa", false)]
    fn a_prefix_is_that_of_one_installation(#[case] name: &str, #[case] expected: bool) {
        assert_eq!(name.parse::<AccountName>().unwrap().has_prefix(&"hf".parse().unwrap()), expected);
    }

    #[test]
    fn a_prefix_leaves_room_for_the_random_part() {
        assert!("a".repeat(22).parse::<NamePrefix>().is_ok());
        assert!("a".repeat(23).parse::<NamePrefix>().is_err());
        assert!("a-".parse::<NamePrefix>().is_err());
    }

    #[rstest]
    #[case("01932b5c-9f3e-7c2a-8e1d-0123456789ab", true)]
    #[case("01932b5c-9f3e-4c2a-8e1d-0123456789ab", false)]
    #[case("01932b5c", false)]
    fn a_credential_has_a_uuid_of_version_7(#[case] id: &str, #[case] fits: bool) {
        assert_eq!(id.parse::<CredentialId>().is_ok(), fits);
    }

    #[rstest]
    #[case("openshift-release-dev/ocp-release", true)]
    #[case("a", true)]
    #[case("a/b/c__d.e", true)]
    #[case("a//b", false)]
    #[case("../v2", false)]
    #[case("a/..", false)]
    #[case("quay.io:443/a", false)]
    #[case("A/b", false)]
    #[case("a/b?x=1", false)]
    #[case("", false)]
    fn repositories_are_safe_in_addresses(#[case] name: &str, #[case] fits: bool) {
        assert_eq!(name.parse::<Repository>().is_ok(), fits);
    }

    #[rstest]
    #[case("4.20.1-x86_64", true)]
    #[case("sha256:0f1e", true)]
    #[case("..", false)]
    #[case("a/b", false)]
    #[case("", false)]
    fn references_are_safe_in_addresses(#[case] reference: &str, #[case] fits: bool) {
        assert_eq!(reference.parse::<Reference>().is_ok(), fits);
    }
}
