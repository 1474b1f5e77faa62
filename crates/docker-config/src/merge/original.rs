//! The original's entries by registry: what its keys mean to either reader, so that no normalised key is less than they are.

use std::collections::BTreeMap;

use crate::credentials::{Document, RawEntry};
use crate::digest::Digest;
use crate::lookup::covers;
use crate::normal::{normal_key, preference};
use crate::registry_key::{RegistryKey, is_form_of_images};

/// The second spelling of Docker Hub that kubelet tries beside the normalised one.
const DOCKER_HUB_URL: &str = "https://docker.io";

/// The original's entries for one registry, the one that readers prefer first.
#[derive(Default)]
pub(super) struct Claims<'a>(Vec<Claim<'a>>);

/// An entry that a reader finds for a registry.
#[derive(Clone, Copy)]
struct Claim<'a> {
    /// The key as written.
    key: &'a str,
    entry: &'a RawEntry,
    /// Only containers/image finds it: the registry is the host of a URL with a path.
    is_host_only: bool,
}

/// Returns the entries by normalised key.
pub(super) fn claims(original: &Document) -> BTreeMap<String, Claims<'_>> {
    let mut claims: BTreeMap<String, Claims<'_>> = BTreeMap::new();
    for (key, entry) in original.entries() {
        let registry = normal_key(key);
        if let Some(host) = host_of_url(key).filter(|host| *host != registry) {
            claims.entry(host).or_default().0.push(Claim { key, entry, is_host_only: true });
        }
        claims.entry(registry).or_default().0.push(Claim { key, entry, is_host_only: false });
    }
    for (registry, Claims(claims)) in &mut claims {
        claims.sort_by_key(|claim| {
            (!is_live(claim.key), !is_kubelets(claim.key, registry), preference(registry, claim.key))
        });
    }
    claims
}

/// Returns the host for which containers/image reads a URL, whatever path it has.
fn host_of_url(key: &str) -> Option<String> {
    let parsed = RegistryKey::parse(key).ok().filter(|parsed| !parsed.has_glob())?;
    let [_, containers_image] = parsed.as_read();
    (normal_key(&containers_image) == containers_image).then_some(containers_image)
}

/// Returns true if kubelet uses the key only where no other key matches, as the normalised one does.
fn is_of_default_registry(key: &str) -> bool {
    RegistryKey::parse(key).is_ok_and(|parsed| parsed.is_of_default_registry())
}

/// Returns true if kubelet reads the key as this registry.
fn is_kubelets(key: &str, registry: &str) -> bool {
    RegistryKey::parse(key).is_ok_and(|parsed| matches!(parsed.as_read(), [kubelet, _] if kubelet == registry))
}

/// Returns true if a reader finds images by this spelling.
fn is_live(key: &str) -> bool {
    RegistryKey::parse(key).is_ok_and(|parsed| parsed.as_read().iter().any(|form| is_form_of_images(form)))
}

/// Returns true if a reader finds images by this spelling that it does not find by the normalised key.
fn is_read_as_written(key: &str, registry: &str) -> bool {
    let Ok(parsed) = RegistryKey::parse(key) else { return false };
    let [kubelet, containers_image] = parsed.as_read();
    let is_exact = is_form_of_images(&containers_image) && !containers_image.ends_with('/') && !parsed.has_glob();
    let is_below = containers_image.strip_prefix(registry).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_host_of_it = registry.strip_prefix(&containers_image).is_some_and(|rest| rest.starts_with('/'));
    (is_form_of_images(&kubelet) && !covers(registry, &kubelet)) || (is_exact && !is_below && !is_host_of_it)
}

// === impl Claims ===

impl Claims<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The digests of all entries, as if each had the normalised key.
    pub(super) fn digests(&self, registry: &str) -> impl Iterator<Item = Digest> {
        self.0.iter().map(|claim| claim.entry.digest(registry))
    }

    /// The entries to write. Of several for one registry kubelet tries all, so those with another credential keep their
    /// spelling.
    pub(super) fn entries(&self, registry: &str) -> Vec<(String, RawEntry)> {
        let Some((first, others)) = self.0.split_first() else { return Vec::new() };
        let mut entries = vec![(registry.to_owned(), first.entry.normalized())];
        let digest = first.entry.digest(registry);
        let is_kept = |claim: &&Claim<'_>| {
            let differs = !claim.is_host_only && is_live(claim.key) && claim.entry.digest(registry) != digest;
            claim.key != registry && (differs || is_read_as_written(claim.key, registry))
        };
        let kept =
            others.iter().filter(is_kept).chain(Some(first).filter(|first| is_read_as_written(first.key, registry)));
        for claim in kept {
            let key = if is_of_default_registry(claim.key) { DOCKER_HUB_URL } else { claim.key };
            if entries.iter().all(|(written, _)| written != key) {
                entries.push((key.to_owned(), claim.entry.normalized()));
            }
        }
        entries
    }
}
