//! JSON paths for messages, with names escaped, shortened and masked.

use std::fmt;

use crate::base64_text;

/// Maximum characters of a name, so that a message stays one readable line.
const MAX_NAME_CHARACTERS: usize = 80;

/// Maximum digits of a port; longer text after a colon may be a password.
const MAX_PORT_DIGITS: usize = 5;

/// A path to a member; the root is displayed as `document`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Path(String);

impl Path {
    pub(crate) fn root() -> Self {
        Self(String::new())
    }

    pub(crate) fn member(&self, name: &str) -> Self {
        let plain = !name.is_empty()
            && name.len() <= MAX_NAME_CHARACTERS
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !hides_credential(name);
        if !plain {
            return self.key(name);
        }
        let dot = if self.0.is_empty() { "" } else { "." };
        Self(format!("{}{dot}{name}", self.0))
    }

    pub(crate) fn key(&self, name: &str) -> Self {
        Self(format!("{}[\"{}\"]", self.0, shown(name)))
    }

    pub(crate) fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "document" } else { &self.0 })
    }
}

/// Returns a name in a form that is safe to print.
pub(crate) fn shown(name: &str) -> String {
    let (mask, rest) = masked(name);
    let mut text = mask.to_owned();
    let mut rest = rest.chars();
    for character in rest.by_ref().take(MAX_NAME_CHARACTERS) {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            invisible if invisible.is_control() || is_format(invisible) => {
                text.extend(format!("\\u{:04x}", u32::from(invisible)).chars());
            }
            plain => text.push(plain),
        }
    }
    if rest.next().is_some() {
        text.push('…');
    }
    text
}

/// Returns the mask of the hidden part, and the part after it that is safe to print.
fn masked(name: &str) -> (&'static str, &str) {
    let (mask, rest) = match name.rsplit_once('@') {
        Some((_, host)) => ("…@", host),
        None => ("", name),
    };
    if hides_credential(rest) { ("…", "") } else { (mask, rest) }
}

/// Returns true if a name holds a credential by mistake, plain or encoded.
fn hides_credential(name: &str) -> bool {
    looks_like_pair(name) || base64_text::is_encoded_pair(name)
}

/// `user:password` or `host?token=…`, as opposed to `host:port` or `https://host`.
fn looks_like_pair(name: &str) -> bool {
    let is_scheme = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let name = name.split_once("://").filter(|(scheme, _)| is_scheme(scheme)).map_or(name, |(_, rest)| rest);
    let host = name.split('/').next().unwrap_or_default();
    let is_port = |port: &str| port.len() <= MAX_PORT_DIGITS && port.bytes().all(|b| b.is_ascii_digit());
    name.contains('?') || (!host.starts_with('[') && host.split_once(':').is_some_and(|(_, port)| !is_port(port)))
}

/// Returns true for characters that reverse or hide the text around them.
fn is_format(character: char) -> bool {
    matches!(character, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}
