//! The key of an entry: which registry, or which part of one, the credential is for.

#[cfg(test)]
mod tests;

use std::fmt;
use std::net::Ipv6Addr;

use crate::base64_text;
use crate::path::shown;
use crate::problem::ProblemKind;

/// The spellings of Docker Hub that docker, kubelet and containers/image know.
const DOCKER_HUB_HOSTS: &[&str] = &["docker.io", "index.docker.io", "registry-1.docker.io"];

/// Where kubelet looks, beside [`DOCKER_HUB`], for images of Docker Hub.
const DEFAULT_HOST: &str = "index.docker.io";

/// What Docker Hub is compared as.
const DOCKER_HUB: &str = "docker.io";

/// The longest host name and the longest label in one (RFC 1035 §2.3.4).
const HOST_CHARACTERS: usize = 253;
const LABEL_CHARACTERS: usize = 63;

/// `host[:port][/path]`, or one of the historic URL forms of it.
///
/// Kept as written, since the two readers make different things of it. The normalised form says which keys probably
/// mean the same registry: scheme, `/v1/` or `/v2/` and a slash at the end are taken off, the host is in lower case,
/// and all spellings of Docker Hub are one. A port stays, even 443: kubelet tells `quay.io:443` from `quay.io`.
///
/// Ordered by the normalised form, then as written. Displayed as written, escaped, and cut where it is long.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct RegistryKey {
    normalized: String,
    as_written: String,
    has_glob: bool,
}

impl RegistryKey {
    /// Checks and normalises a key.
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

    /// What kubelet and what containers/image compare with the name of an image.
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

    /// Whether the host has a `*`, which only kubelet understands.
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

/// Host with port, and the path with its slash; refuses what belongs to a URL only.
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

/// The readers know these two schemes, in lower case only.
fn without_scheme(key: &str) -> &str {
    key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key)
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

/// Whether the host, if it is one, has a glob.
fn check_host(host: &str) -> Result<bool, ProblemKind> {
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok()) {
        return Ok(false);
    }
    let good_label = |label: &str| {
        (1..=LABEL_CHARACTERS).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'*'))
    };
    if host.len() <= HOST_CHARACTERS && host.split('.').all(good_label) {
        Ok(host.contains('*'))
    } else {
        Err(ProblemKind::KeyHost)
    }
}

/// The path without what kubelet strips from it.
fn unversioned(path: &str) -> &str {
    let versioned = path.starts_with("/v1/") || path.starts_with("/v2/");
    if versioned { path.get("/v1".len()..).unwrap_or(path) } else { path }
}

/// The same without a slash at the end, and checked.
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
