//! A robot as it is stored, and the rules for names.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::binding::Binding;
use super::shown::date;
use crate::quay::fields::set;

/// The length of a password.
const PASSWORD_LENGTH: usize = 64;

/// The signs of a password.
const PASSWORD_SIGNS: &[u8; 36] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// The pattern of names, as errors quote it.
const NAME_PATTERN: &str = "^([a-z0-9]+(?:[._-][a-z0-9]+)*)$";

/// A robot with its password, which is never printed.
pub(super) struct Account {
    /// With the organization's name.
    pub(super) name: String,
    pub(super) password: String,
    pub(super) description: String,
    pub(super) metadata: Map<String, Value>,
    pub(super) created: Timestamp,
    pub(super) last_accessed: Option<Timestamp>,
    pub(super) deleted: Option<Timestamp>,
    pub(super) bindings: Vec<Binding>,
}

/// The parts of a robot's document that are not always in it.
#[derive(Clone, Copy, Default)]
pub(super) struct Shown {
    pub(super) password: bool,
    pub(super) metadata: bool,
}

// === impl Account ===

impl Account {
    /// One with a random password, and nothing else.
    pub(super) fn new(name: String, created: Timestamp) -> Self {
        Self {
            name,
            password: password(),
            description: String::new(),
            metadata: Map::new(),
            created,
            last_accessed: None,
            deleted: None,
            bindings: Vec::new(),
        }
    }

    pub(super) fn document(&self, shown: Shown) -> Value {
        let mut document = json!({
            "name": self.name,
            "created": date(self.created),
            "last_accessed": self.last_accessed.map(date),
            "description": self.description,
        });
        if shown.password {
            set(&mut document, "token", json!(self.password));
        }
        if shown.metadata {
            set(&mut document, "unstructured_metadata", json!(self.metadata));
        }
        document
    }
}

impl std::fmt::Debug for Account {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Account({})", self.name)
    }
}

/// Checks a name of a robot or a team, and says how it is wrong.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if !name.split(['.', '_', '-']).all(is_part) {
        return Err(format!("Namespace must match expression {NAME_PATTERN}"));
    }
    if !(2..=255).contains(&name.len()) {
        return Err("Namespace must be between 2 and 255 characters in length".to_owned());
    }
    Ok(())
}

/// A random password.
pub(super) fn password() -> String {
    let sign = |_| PASSWORD_SIGNS.get(rand::random::<u32>() as usize % PASSWORD_SIGNS.len()).copied();
    (0..PASSWORD_LENGTH).filter_map(sign).map(char::from).collect()
}
