//! Parses and normalises the key of an entry: the registry, or the part of one, that the credential is for.

#[cfg(test)]
mod tests;

use std::fmt;
use std::net::Ipv6Addr;

use crate::base64_text;
use crate::path::shown;
use crate::problem::ProblemKind;

/// The spellings of Docker Hub that docker, kubelet and containers/image know.
const DOCKER_HUB_HOSTS: &[&str] = &["docker.io", "index.docker.io", "registry-1.docker.io"];

/// The host that kubelet uses, besides [`DOCKER_HUB`], for images of Docker Hub.
const DEFAULT_HOST: &str = "index.docker.io";

/// The normalised host of Docker Hub.
const DOCKER_HUB: &str = "docker.io";

/// Maximum characters of a host name, and of one label (RFC 1035 §2.3.4).
const MAX_HOST_CHARACTERS: usize = 253;
const MAX_LABEL_CHARACTERS: usize = 63;

/// `host[:port][/path]`, or one of the historic URL forms of it.
///
/// Stored as written, since the two readers interpret it differently. The normalised form identifies keys that probably
/// mean the same registry: scheme, `/v1/` or `/v2/` and a slash at the end are removed, the host is in lower case,
/// and all spellings of Docker Hub are one. A port stays, even 443: kubelet distinguishes `quay.io:443` from `quay.io`.
///
/// Ordered by the normalised form, then as written. Displayed as written, but escaped and shortened.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct RegistryKey {
    normalized: String,
    as_written: String,
    has_glob: bool,
}

impl RegistryKey {
    /// Validates and normalises a key.
    pub fn parse(key: &str) -> Result<Self, ProblemKind> {
        let (authority, path) = split(key)?;
        let (host, port) = split_port(authority)?;
        let has_glob = check_host(host)?;
        let path = comparable_path(path)?;

        let mut normalized = host.to_ascii_lowercase();
        match port {
            Some(port) => normalized.extend([":", port]),
            None if DOCKER_HUB_HOSTS.contains(&normalized.as_str()) => {
                DOCKER_HUB.clone_into(&mut normalized);
            }
            None => {}
        }
        normalized.push_str(path);
        Ok(Self { normalized, as_written: key.to_owned(), has_glob })
    }

    /// The key as the document has it.
    pub fn as_written(&self) -> &str {
        &self.as_written
    }

    /// The form in which keys are compared with each other.
    pub fn normalized(&self) -> &str {
        &self.normalized
    }

    /// The forms that kubelet and containers/image compare with the name of an image.
    pub(crate) fn as_read(&self) -> [String; 2] {
        let rest = without_scheme(&self.as_written);
        let (host, path) = split_host(rest);
        let kubelet = match unversioned(path) {
            "" | "/" if host == DEFAULT_HOST => DOCKER_HUB.to_owned(),
            "/" => host.to_owned(),
            path => format!("{host}{path}"),
        };
        let is_url = rest.len() < self.as_written.len();
        let containers_image = if is_url { host } else { rest };
        let is_hub = DOCKER_HUB_HOSTS.contains(&containers_image);
        [kubelet, if is_hub { DOCKER_HUB } else { containers_image }.to_owned()]
    }

    /// Returns true if both readers find images of the registry by the key as it is written.
    ///
    /// Neither lowers the case of a host, only kubelet removes a slash or a version behind a name without a scheme, and both
    /// replace the default host in the names of images.
    pub fn is_found_as_written(&self) -> bool {
        let [kubelet, containers_image] = self.as_read();
        is_form_of_images(&kubelet) && (self.has_glob || is_form_of_images(&containers_image)) && {
            let is_url = without_scheme(&self.as_written).len() < self.as_written.len();
            is_url || self.has_glob || containers_image == self.normalized
        }
    }

    /// Returns true if kubelet uses the key for images of the default registry, if no other key matches.
    pub(crate) fn is_of_default_registry(&self) -> bool {
        let (host, path) = split_host(without_scheme(&self.as_written));
        host == DEFAULT_HOST && matches!(unversioned(path), "" | "/")
    }

    /// Returns true if the host has a `*`, which only kubelet understands.
    pub fn has_glob(&self) -> bool {
        self.has_glob
    }
}

impl fmt::Display for RegistryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.as_written))
    }
}

impl fmt::Debug for RegistryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RegistryKey(\"{self}\")")
    }
}

/// Splits a key into host with port, and the path with its slash. Refuses parts that only a URL has.
fn split(key: &str) -> Result<(&str, &str), ProblemKind> {
    if key.is_empty() {
        return Err(ProblemKind::KeyEmpty);
    }
    if key.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(ProblemKind::KeySpace);
    }
    if key.contains('@') || base64_text::is_encoded_pair(key) {
        return Err(ProblemKind::KeyUserinfo);
    }
    if key.contains(['?', '#']) {
        return Err(ProblemKind::KeyQuery);
    }
    let rest = without_scheme(key);
    if rest.contains("://") {
        return Err(ProblemKind::KeyScheme);
    }
    Ok(split_host(rest))
}

/// Removes the two schemes that the readers know, in lower case only.
fn without_scheme(key: &str) -> &str {
    key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key)
}

/// Returns true if the name of an image may start like this: without capitals in the host, and not at the default host, which
/// readers replace in names.
pub(crate) fn is_form_of_images(form: &str) -> bool {
    let (host, _) = split_host(form);
    host == host.to_ascii_lowercase() && host != DEFAULT_HOST
}

fn split_host(rest: &str) -> (&str, &str) {
    rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash))
}

fn split_port(authority: &str) -> Result<(&str, Option<&str>), ProblemKind> {
    let bracket = authority.rfind(']').unwrap_or(0);
    let Some(colon) = authority.rfind(':').filter(|colon| *colon >= bracket) else {
        return Ok((authority, None));
    };
    let (host, port) = authority.split_at(colon);
    let port = port.trim_start_matches(':');
    let plain = port.bytes().all(|b| b.is_ascii_digit()) && !port.starts_with('0');
    if plain && port.parse::<u16>().is_ok() { Ok((host, Some(port))) } else { Err(ProblemKind::KeyPort) }
}

/// Validates the host. Returns true if it has a glob.
fn check_host(host: &str) -> Result<bool, ProblemKind> {
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok()) {
        return Ok(false);
    }
    let good_label = |label: &str| {
        (1..=MAX_LABEL_CHARACTERS).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'*'))
    };
    if host.len() <= MAX_HOST_CHARACTERS && host.split('.').all(good_label) {
        Ok(host.contains('*'))
    } else {
        Err(ProblemKind::KeyHost)
    }
}

/// Removes the version that kubelet strips from a path.
fn unversioned(path: &str) -> &str {
    let versioned = path.starts_with("/v1/") || path.starts_with("/v2/");
    if versioned { path.get("/v1".len()..).unwrap_or(path) } else { path }
}

/// Removes the version and a slash at the end, and validates the path.
fn comparable_path(path: &str) -> Result<&str, ProblemKind> {
    let unversioned = unversioned(path);
    let trimmed = unversioned.strip_suffix('/').unwrap_or(unversioned);
    let good_segment = |segment: &str| {
        !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-~".contains(&b))
    };
    match trimmed.strip_prefix('/') {
        Some(segments) if !segments.split('/').all(good_segment) => Err(ProblemKind::KeyPath),
        _ => Ok(trimmed),
    }
}
