//! Determines the keys that the two readers on a node use for an image.
//!
//! kubelet takes every key that matches, in reverse order, and tries one credential after the other; a path matches by its
//! first characters, a host may have globs, a port must be equal. The key of the default registry, `index.docker.io`, counts
//! only where no other key matches, and then for every host without a dot or port. containers/image uses one key: the image's own name,
//! otherwise that of the nearest parent, otherwise the host.

#[cfg(test)]
mod tests;

use crate::registry_key::RegistryKey;

/// The name of an image without tag and digest: `host[:port]/path`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Image(String);

impl Image {
    /// Parses the `image` of a pod. A name without a registry is one of Docker Hub. `None` if it is no name.
    pub fn parse(reference: &str) -> Option<Self> {
        let name = reference.split_once('@').map_or(reference, |(name, _digest)| name);
        let last_slash = name.rfind('/').map_or(0, |slash| slash + 1);
        let name = match name.get(last_slash..)?.find(':') {
            // Without a path this is a tag: hosts always have a path behind them.
            Some(colon) => name.get(..last_slash + colon)?,
            None => name,
        };
        let is_host = |first: &str| first.contains(['.', ':']) || first == "localhost";
        let full = match name.split_once('/') {
            Some((host, path)) if is_host(host) && !path.is_empty() => name.to_owned(),
            Some(_) => format!("docker.io/{name}"),
            None => format!("docker.io/library/{name}"),
        };
        let full = full.strip_prefix("index.docker.io/").map_or(full.clone(), |path| format!("docker.io/{path}"));
        let good = |c: char| c.is_ascii_alphanumeric() || "._-/:[]".contains(c);
        (!name.is_empty() && full.chars().all(good) && !full.ends_with('/')).then_some(Self(full))
    }

    /// The name in full, such as `docker.io/library/nginx`.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Returns the keys whose credentials kubelet tries, in that order.
    pub fn kubelet_keys<'a>(&self, keys: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let parsed = keys.filter_map(|key| Some((RegistryKey::parse(key).ok()?, key)));
        let (defaults, others): (Vec<_>, Vec<_>) = parsed.partition(|(parsed, _)| parsed.is_of_default_registry());
        let read = others.into_iter().map(|(parsed, key)| (kubelet_form(&parsed), key));
        let mut matching: Vec<(String, &str)> = read.filter(|(read, _)| covers(read, &self.0)).collect();
        if matching.is_empty() && self.is_of_default_registry() {
            matching = defaults.into_iter().map(|(parsed, key)| (kubelet_form(&parsed), key)).collect();
        }
        matching.sort_by(|one, other| other.cmp(one));
        matching.into_iter().map(|(_, key)| key).collect()
    }

    /// Returns the keys whose credentials a node tries for the image of a Pod, in that order: kubelet's, and if kubelet has none,
    /// the one of containers/image (CRI-O), which then reads the same file.
    pub fn node_keys<'a>(&self, keys: impl Iterator<Item = &'a str> + Clone) -> Vec<&'a str> {
        let of_kubelet = self.kubelet_keys(keys.clone());
        if of_kubelet.is_empty() { self.containers_image_key(keys).into_iter().collect() } else { of_kubelet }
    }

    /// kubelet's rule, by which `localhost/app` is of the default registry too.
    fn is_of_default_registry(&self) -> bool {
        let (host, _) = split(&self.0);
        host == "docker.io" || !host.contains(['.', ':'])
    }

    /// Returns the key whose credential containers/image uses.
    pub fn containers_image_key<'a>(&self, keys: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        let parsed: Vec<(String, &str)> = keys.filter_map(|key| Some((containers_image_key(key)?, key))).collect();
        let mut name = self.0.as_str();
        loop {
            let here = parsed.iter().filter(|(read, _)| read == name).map(|(_, key)| *key);
            // An exact spelling takes precedence.
            if let Some(key) = here.min_by_key(|key| (*key != name, *key)) {
                return Some(key);
            }
            name = name.rsplit_once('/')?.0;
        }
    }
}

fn kubelet_form(key: &RegistryKey) -> String {
    let [kubelet, _] = key.as_read();
    kubelet
}

fn containers_image_key(key: &str) -> Option<String> {
    let parsed = RegistryKey::parse(key).ok()?;
    let [_, containers_image] = parsed.as_read();
    (!parsed.has_glob()).then_some(containers_image)
}

/// Returns true if kubelet uses the key for a name. Both are `host[:port][/path]`; the key's host may have globs.
pub(crate) fn covers(key: &str, name: &str) -> bool {
    let (key_host, key_path) = split(key);
    let (host, path) = split(name);
    let (key_host, key_port) = split_port(key_host);
    let (host, port) = split_port(host);
    let labels = key_host.split('.').count() == host.split('.').count();
    key_port == port
        && path.starts_with(key_path)
        && labels
        && key_host.split('.').zip(host.split('.')).all(|(glob, label)| glob_matches(glob.as_bytes(), label.as_bytes()))
}

fn split(name: &str) -> (&str, &str) {
    name.find('/').map_or((name, ""), |slash| name.split_at(slash))
}

fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (host, None),
    }
}

/// Matches a text with a glob, whose `*` matches any characters, also none. Takes time proportional to the product of the lengths at most.
fn glob_matches(glob: &[u8], text: &[u8]) -> bool {
    let (mut glob, mut text) = (glob, text);
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        match (glob.split_first(), text.split_first()) {
            (Some((b'*', after)), _) => {
                retry = Some((after, text));
                glob = after;
            }
            (Some((expected, after)), Some((found, rest))) if expected == found => {
                (glob, text) = (after, rest);
            }
            (None, None) => return true,
            _ => match retry.and_then(|(after, from)| Some((after, from.split_first()?.1))) {
                Some((after, from)) => {
                    retry = Some((after, from));
                    (glob, text) = (after, from);
                }
                None => return false,
            },
        }
    }
}
