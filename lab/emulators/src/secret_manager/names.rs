//! Resource names: projects by id or number, global and regional secrets, versions by number or alias.

use std::fmt;

use super::status::Status;

/// The project number that a project id stands for has this many digits.
const NUMBER_DIGITS_BASE: u64 = 100_000_000_000;

/// The parent of secrets: a project, or one location of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Parent {
    pub(crate) project: u64,
    pub(crate) location: Option<String>,
}

/// A secret's place. Secrets of one parent are neighbours in this order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) parent: Parent,
    pub(crate) id: String,
}

/// A version of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Latest,
    Number(u64),
    Alias(String),
}

impl Parent {
    /// Reads `projects/P` or `projects/P/locations/L`.
    pub(crate) fn parse(name: &str) -> Result<Self, Status> {
        let segments: Vec<&str> = name.split('/').collect();
        match segments.as_slice() {
            ["projects", project] => Self::new(project, None),
            ["projects", project, "locations", location] => Self::new(project, Some(location)),
            _ => None,
        }
        .ok_or_else(|| mismatch("parent", name, "projects/*"))
    }

    fn new(project: &str, location: Option<&str>) -> Option<Self> {
        let sound = |text: &str| {
            let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b':' | b'.' | b'_');
            !text.is_empty() && text.bytes().all(legal)
        };
        let all_sound = sound(project) && location.is_none_or(sound);
        all_sound.then(|| Self { project: project_number(project), location: location.map(str::to_owned) })
    }
}

impl Key {
    /// Reads the name of a secret.
    pub(crate) fn parse(name: &str) -> Result<Self, Status> {
        Self::split(name).ok_or_else(|| mismatch("Secret ID", name, "projects/*/secrets/*"))
    }

    /// Reads the name of a version.
    pub(crate) fn parse_version(name: &str) -> Result<(Self, Which), Status> {
        let wrong = || mismatch("Secret Version ID", name, "projects/*/secrets/*/versions/*");
        let (secret, version) = name.rsplit_once("/versions/").ok_or_else(wrong)?;
        let key = Self::split(secret).ok_or_else(wrong)?;
        Ok((key, Which::parse(version).ok_or_else(wrong)?))
    }

    pub(crate) fn version(&self, number: u64) -> String {
        format!("{self}/versions/{number}")
    }

    fn split(name: &str) -> Option<Self> {
        let (parent, id) = name.rsplit_once("/secrets/")?;
        let parent = Parent::parse(parent).ok()?;
        is_secret_id(id).then(|| Self { parent, id: id.to_owned() })
    }
}

impl Which {
    fn parse(text: &str) -> Option<Self> {
        if text == "latest" {
            return Some(Self::Latest);
        }
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            let number = text.parse().ok().filter(|number| *number > 0)?;
            return (!text.starts_with('0')).then_some(Self::Number(number));
        }
        is_alias(text).then(|| Self::Alias(text.to_owned()))
    }
}

impl fmt::Display for Parent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "projects/{}", self.project)?;
        match &self.location {
            Some(location) => write!(formatter, "/locations/{location}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/secrets/{}", self.parent, self.id)
    }
}

/// 1 to 255 letters, digits, hyphens and underscores.
pub(crate) fn is_secret_id(id: &str) -> bool {
    (1..=255).contains(&id.len()) && id.bytes().all(is_id_byte)
}

/// 1 to 63 letters, digits, hyphens and underscores, a letter first, and neither of the two reserved words.
pub(crate) fn is_alias(alias: &str) -> bool {
    let starts_well = alias.starts_with(|first: char| first.is_ascii_alphabetic());
    starts_well && alias.len() <= 63 && alias.bytes().all(is_id_byte) && !["latest", "NEW"].contains(&alias)
}

/// The number that stands for a project: itself, or twelve digits made from the id, always the same ones.
pub(crate) fn project_number(project: &str) -> u64 {
    match project.parse() {
        Ok(number) => number,
        Err(_) => NUMBER_DIGITS_BASE + crate::folder::fnv(project) % (9 * NUMBER_DIGITS_BASE),
    }
}

fn is_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn mismatch(what: &str, name: &str, format: &str) -> Status {
    Status::invalid(format!("The provided {what} [{name}] does not match the expected format [{format}]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_id_and_its_number_are_the_same_place() {
        let by_id = Key::parse("projects/fleet-dev/secrets/s").unwrap();
        assert_eq!(by_id.parent.project.to_string().len(), 12);
        assert_eq!(Key::parse(&by_id.to_string()).unwrap(), by_id);
    }

    #[test]
    fn versions_are_numbers_aliases_or_latest() {
        let which = |text: &str| Key::parse_version(&format!("projects/p/locations/l/secrets/s/versions/{text}"));
        assert_eq!(which("latest").unwrap().1, Which::Latest);
        assert_eq!(which("12").unwrap().1, Which::Number(12));
        assert_eq!(which("blue").unwrap().1, Which::Alias("blue".to_owned()));
        for wrong in ["", "0", "01", "-1", "NEW", "a/b", "é", "1a"] {
            assert!(which(wrong).is_err(), "{wrong}");
        }
    }
}
