//! One version of a secret, and the limits of its parts.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;

use crate::key_vault::refusal::Refusal;
use crate::key_vault::request::{Attributes, Bundle};

/// The largest value.
const VALUE_BYTES_MAXIMUM: usize = 25 * 1024;

/// The largest number of tags.
const TAGS_MAXIMUM: usize = 15;

/// The longest name and the longest value of a tag, and the longest content type.
const TEXT_MAXIMUM: usize = 256;

/// A version with its value, which is never printed.
pub(crate) struct Version {
    /// 32 hexadecimal digits, in no order.
    pub(super) id: String,
    pub(super) value: String,
    pub(super) content_type: Option<String>,
    pub(super) enabled: bool,
    pub(super) nbf: Option<i64>,
    pub(super) exp: Option<i64>,
    pub(super) created: Timestamp,
    pub(super) updated: Timestamp,
    pub(super) tags: BTreeMap<String, String>,
}

impl Version {
    pub(super) fn new(now: Timestamp, bundle: &Bundle) -> Result<Self, Refusal> {
        let Some(value) = bundle.value.clone() else {
            return Err(Refusal::bad_parameter("The property value is required."));
        };
        if value.len() > VALUE_BYTES_MAXIMUM {
            let message = format!("The value of {} bytes is larger than {VALUE_BYTES_MAXIMUM} bytes.", value.len());
            return Err(Refusal::bad_parameter(message));
        }
        let mut version = Self {
            id: format!("{:032x}", rand::random::<u128>()),
            value,
            content_type: None,
            enabled: true,
            nbf: None,
            exp: None,
            created: now,
            updated: now,
            tags: BTreeMap::new(),
        };
        version.update(now, bundle)?;
        Ok(version)
    }

    /// Takes over the properties that are given; tags replace all tags.
    pub(super) fn update(&mut self, now: Timestamp, bundle: &Bundle) -> Result<(), Refusal> {
        let Bundle { content_type, attributes, tags, value: _ } = bundle;
        check(content_type.as_deref(), tags.as_ref())?;
        let Attributes { enabled, nbf, exp } = attributes.unwrap_or_default();
        self.enabled = enabled.unwrap_or(self.enabled);
        self.nbf = nbf.or(self.nbf);
        self.exp = exp.or(self.exp);
        self.content_type = content_type.clone().or_else(|| self.content_type.take());
        if let Some(tags) = tags {
            self.tags.clone_from(tags);
        }
        self.updated = now;
        Ok(())
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Version({})", self.id)
    }
}

fn check(content_type: Option<&str>, tags: Option<&BTreeMap<String, String>>) -> Result<(), Refusal> {
    let too_long = |text: &str| text.chars().count() > TEXT_MAXIMUM;
    if content_type.is_some_and(too_long) {
        return Err(Refusal::bad_parameter(format!("The content type is longer than {TEXT_MAXIMUM} characters.")));
    }
    let Some(tags) = tags else { return Ok(()) };
    if tags.len() > TAGS_MAXIMUM {
        return Err(Refusal::bad_parameter(format!("{} tags are more than {TAGS_MAXIMUM}.", tags.len())));
    }
    match tags.iter().find(|(name, value)| too_long(name) || too_long(value)) {
        Some((name, _)) => {
            let message = format!("The tag {name:?} or its value is longer than {TEXT_MAXIMUM} characters.");
            Err(Refusal::bad_parameter(message))
        }
        None => Ok(()),
    }
}
