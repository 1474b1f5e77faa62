//! The effect of a change of keys on the images of Pods.
//!
//! The keys that a node tries for an image are [`Image::node_keys`], one after the other; the first one serves it. An image loses
//! its key if a Secret that had one for it has none any more, and no other Secret has the same credential for it. A more specific
//! key of another Secret takes precedence, but takes nothing away: the node tries the earlier one after it. So every key counts,
//! not only the first: which of them the registry has accepted is not known, and a loss in two steps is still one.

use docker_config::lookup::Image;
use serde::Serialize;

use crate::images::{PodsOfImage, RunningImages};
use crate::keys::Keys;
use crate::record::Key;

/// The effect of a change on one image, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// A Secret had a key for it, and has none any more.
    Loses,
    /// Another credential serves it: a new one of the same Secret, or that of a key which the node tries before.
    Replaced,
    /// No key served it before.
    Gains,
    /// The same credential serves it, or none as before.
    Unchanged,
}

/// The effect on one image, with its keys.
#[derive(Clone, Debug)]
pub struct ImageEffect<'a> {
    /// The image.
    pub image: &'a Image,
    /// Its Pods.
    pub pods: &'a PodsOfImage,
    /// The effect.
    pub effect: Effect,
    /// The key that served it; of a loss, the first key that is lost.
    pub before: Option<Key>,
    /// The key that serves it after the change.
    pub after: Option<Key>,
    /// The key that the node tries after that one, if the credential that served the image is still there.
    pub still: Option<Key>,
}

/// The effects on all images: the worst first, then by name.
pub fn effects<'a>(images: &'a RunningImages, before: &Keys, after: &Keys) -> Vec<ImageEffect<'a>> {
    let of = |(image, pods): (&'a Image, &'a PodsOfImage)| effect(image, pods, before, after);
    let mut effects: Vec<ImageEffect<'a>> = images.repositories.iter().map(of).collect();
    effects.sort_by_key(|one| one.effect);
    effects
}

/// The images that lose their keys, by name. Those that no changed key is for are not looked up.
pub fn losing<'a>(images: &'a RunningImages, before: &Keys, after: &Keys) -> Vec<ImageEffect<'a>> {
    let changed = before.differences(after);
    let concerned =
        images.repositories.iter().filter(|(image, _)| !image.node_keys(changed.iter().copied()).is_empty());
    let effects = concerned.map(|(image, pods)| effect(image, pods, before, after));
    effects.filter(|one| one.effect == Effect::Loses).collect()
}

fn effect<'a>(image: &'a Image, pods: &'a PodsOfImage, before: &Keys, after: &Keys) -> ImageEffect<'a> {
    let (keys_before, keys_after) = (image.node_keys(before.iter()), image.node_keys(after.iter()));
    let (first, now) = (keys_before.first().copied(), keys_after.first().copied());
    let shown = |keys: &Keys, key: Option<&str>| Some(Key::of(key?, &keys.get(key?)?.from));
    let is_lost = |key: &&str| {
        let Some(former) = before.get(key) else { return false };
        let mut provided = keys_after.iter().filter_map(|key| after.get(key));
        !provided.any(|now| now.from == former.from || now.credential == former.credential)
    };
    let lost = keys_before.iter().copied().find(is_lost);
    let mut still = None;
    let effect = match (first.and_then(|key| before.get(key)), now.and_then(|key| after.get(key))) {
        _ if lost.is_some() => Effect::Loses,
        (None, None) => Effect::Unchanged,
        (None, Some(_)) => Effect::Gains,
        (Some(former), Some(now)) if former.credential == now.credential => Effect::Unchanged,
        (Some(former), _) => {
            let same = |key: &&&str| after.get(key).is_some_and(|now| now.credential == former.credential);
            still = keys_after.iter().find(same).and_then(|key| shown(after, Some(key)));
            Effect::Replaced
        }
    };
    ImageEffect { image, pods, effect, before: shown(before, lost.or(first)), after: shown(after, now), still }
}
