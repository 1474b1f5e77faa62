//! The keys of a credential document with their sources, and the difference between two of them.

use std::collections::{BTreeMap, BTreeSet};

use docker_config::{Digest, Document, RegistryKey};
use serde::{Deserialize, Serialize};

/// Maximum number of keys that the record of a change names.
const MAX_RECORDED: usize = 500;
/// Maximum bytes of the record of a change: annotations have 256 KiB in all.
const MAX_BYTES: usize = 64 * 1024;
/// The key under which credentials are compared, whatever their own.
const COMPARED_AS: &str = "registry.invalid";
/// The source of a key of which none is recorded.
pub const UNKNOWN_SOURCE: &str = "?";

/// The keys of one content. Holds no credential.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys(BTreeMap<String, Provided>);

/// The source and the credential of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provided {
    /// The Secret.
    pub from: String,
    /// The credential.
    pub credential: Credential,
}

/// A credential, to be compared with others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Credential {
    /// That of an entry at hand.
    Of(Digest),
    /// That of a former key; no entry at hand has it.
    Former(String),
}

/// The difference of a content to the one before: enough to say which keys there were, without a credential.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The keys that are new, or have another credential than before.
    #[serde(default)]
    pub added: Vec<String>,
    /// The keys that are gone, or had another credential.
    #[serde(default)]
    pub removed: BTreeMap<String, Former>,
    /// True if there were too many to record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unknown: bool,
}

/// A key that is gone, or had another credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Former {
    /// The Secret that it was from.
    pub from: String,
    /// A key that has its credential now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now_under: Option<String>,
}

// === impl Keys ===

impl Keys {
    /// The keys of a document, with the recorded source of each. A text that is no key serves no image, and is left out: it may be a
    /// credential by mistake.
    pub fn of(document: &Document, sources: &BTreeMap<String, String>) -> Self {
        let provided = |key: &str| {
            RegistryKey::parse(key).ok()?;
            let from = sources.get(key).map_or(UNKNOWN_SOURCE, String::as_str).to_owned();
            let credential = Credential::Of(document.entry(key)?.digest(COMPARED_AS));
            Some((key.to_owned(), Provided { from, credential }))
        };
        Self(document.keys().filter_map(provided).collect())
    }

    /// The keys.
    pub fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.keys().map(String::as_str)
    }

    /// The source and the credential of a key.
    pub fn get(&self, key: &str) -> Option<&Provided> {
        self.0.get(key)
    }

    /// The keys that only one of two contents has, or of which the credentials differ.
    pub fn differences<'a>(&'a self, other: &'a Self) -> BTreeSet<&'a str> {
        let differs = |key: &&str| {
            self.get(key).map(|provided| &provided.credential) != other.get(key).map(|provided| &provided.credential)
        };
        self.iter().chain(other.iter()).filter(differs).collect()
    }
}

// === impl Change ===

impl Change {
    /// The change from one content to another.
    pub fn between(before: &Keys, after: &Keys) -> Self {
        let differences = before.differences(after);
        let unknown = Self { is_unknown: true, ..Self::default() };
        if differences.len() > MAX_RECORDED {
            return unknown;
        }
        let added = differences.iter().filter(|key| after.get(key).is_some()).map(|key| (*key).to_owned()).collect();
        let former = |provided: &Provided| {
            let mut same = after.0.iter().filter(|(_, now)| now.credential == provided.credential);
            Former { from: provided.from.clone(), now_under: same.next().map(|(key, _)| key.clone()) }
        };
        let removed = differences.iter().filter_map(|key| Some(((*key).to_owned(), former(before.get(key)?))));
        let change = Self { added, removed: removed.collect(), is_unknown: false };
        let is_short = serde_json::to_string(&change).is_ok_and(|text| text.len() <= MAX_BYTES);
        if is_short { change } else { unknown }
    }

    /// The keys before the change, from those after it.
    pub fn before(&self, after: &Keys) -> Keys {
        let mut keys = after.clone();
        for key in &self.added {
            keys.0.remove(key);
        }
        for (key, Former { from, now_under }) in &self.removed {
            let now = now_under.as_ref().and_then(|now| after.get(now)).map(|now| now.credential.clone());
            let credential = now.unwrap_or_else(|| Credential::Former(key.clone()));
            keys.0.insert(key.clone(), Provided { from: from.clone(), credential });
        }
        keys
    }

    /// The keys to which a later change from `before` to `after` is compared, so that it does not hide this one: those before it,
    /// and those that this change has taken and that are not their Secret's again.
    pub fn carried(&self, before: &Keys, after: &Keys) -> Keys {
        let mut keys = before.clone();
        let is_open = |(key, former): &(&String, &Provided)| {
            self.removed.contains_key(*key) && after.get(key).is_none_or(|now| now.from != former.from)
        };
        let earlier = self.before(before);
        keys.0.extend(earlier.0.iter().filter(is_open).map(|(key, former)| (key.clone(), former.clone())));
        keys
    }

    /// Returns true if an image may have lost a key: one is gone, or another Secret's now. A new credential under a key of the
    /// same Secret takes none away.
    pub fn may_lose(&self, sources: &BTreeMap<String, String>) -> bool {
        self.removed.iter().any(|(key, former)| sources.get(key) != Some(&former.from))
    }
}

#[cfg(test)]
mod tests {
    use docker_config::Limits;
    use rstest::rstest;

    use super::*;

    /// `quay.io=b from a` as keys; the values stand for passwords.
    fn keys(text: &str) -> Keys {
        let mut document = Document::default();
        let mut sources = BTreeMap::new();
        for part in text.split(' ').filter(|part| !part.is_empty()) {
            let mut words = part.split('=');
            let (key, letter, from) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            let auth = format!(r#"{{"auths": {{"{key}": {{"auth": "dTpW{letter}"}}}}}}"#);
            let read = Document::parse(auth.as_bytes(), &Limits::SECRET).unwrap();
            document.insert(key, read.entry(key).unwrap().clone());
            sources.insert(key.to_owned(), from.to_owned());
        }
        Keys::of(&document, &sources)
    }

    #[rstest]
    #[case::nothing("q.io=aaaa=o", "q.io=aaaa=o")]
    #[case::added("q.io=aaaa=o", "q.io=aaaa=o r.io=bbbb=s")]
    #[case::removed("q.io=aaaa=o r.io=bbbb=s", "q.io=aaaa=o")]
    #[case::another_credential("q.io=aaaa=o", "q.io=bbbb=s")]
    #[case::moved("q.io/a=aaaa=s q.io=bbbb=o", "q.io=aaaa=s")]
    #[case::all_gone("q.io=aaaa=o", "")]
    fn the_keys_before_follow_from_the_change(#[case] before: &str, #[case] after: &str) {
        let (before, after) = (keys(before), keys(after));
        let change = Change::between(&before, &after);
        let stored: Change = serde_json::from_str(&serde_json::to_string(&change).unwrap()).unwrap();
        assert_eq!(stored, change);
        let restored = stored.before(&after);
        assert_eq!(restored.iter().collect::<Vec<_>>(), before.iter().collect::<Vec<_>>());
        for key in before.iter() {
            assert_eq!(restored.get(key).unwrap().from, before.get(key).unwrap().from);
            for other in after.iter() {
                let is_same = |keys: &Keys| keys.get(key).unwrap().credential == after.get(other).unwrap().credential;
                assert_eq!(is_same(&restored), is_same(&before), "{key} {other}");
            }
        }
    }

    #[rstest]
    #[case::added("q.io=aaaa=o", "q.io=aaaa=o r.io=bbbb=s", false)]
    #[case::rotated("q.io=aaaa=o", "q.io=bbbb=o", false)]
    #[case::gone("q.io=aaaa=o r.io=bbbb=s", "q.io=aaaa=o", true)]
    #[case::another_secrets("q.io=aaaa=o", "q.io=bbbb=s", true)]
    fn a_change_that_only_adds_or_rotates_takes_no_key(
        #[case] before: &str,
        #[case] after: &str,
        #[case] expected: bool,
    ) {
        let after = keys(after);
        let sources = after.iter().map(|key| (key.to_owned(), after.get(key).unwrap().from.clone())).collect();
        assert_eq!(Change::between(&keys(before), &after).may_lose(&sources), expected);
    }

    /// Each row: three contents, and the keys that the second change has removed, with their sources.
    #[rstest]
    #[case::gone("r.io=aaaa=s t.io=aaaa=s", "q.io=bbbb=o", "q.io=bbbb=o r.io=dddd=s", "t.io s")]
    #[case::rotated_after("q.io=aaaa=o", "q.io=bbbb=s", "q.io=cccc=s", "q.io o")]
    #[case::given_back("q.io=aaaa=o", "q.io=bbbb=s", "q.io=aaaa=o", "q.io s")]
    #[case::of_both("q.io=aaaa=o", "q.io=bbbb=s r.io=bbbb=s", "q.io=bbbb=s", "q.io o, r.io s")]
    #[case::rotated_meanwhile("q.io/a=aaaa=s", "q.io=aaaa=t", "q.io=bbbb=t", "q.io t, q.io/a s")]
    fn a_later_change_carries_what_is_open(
        #[case] first: &str,
        #[case] second: &str,
        #[case] third: &str,
        #[case] expected: &str,
    ) {
        let [first, second, third] = [first, second, third].map(keys);
        let earlier = Change::between(&first, &second);
        let change = Change::between(&earlier.carried(&second, &third), &third);
        let removed: Vec<String> = change.removed.iter().map(|(key, one)| format!("{key} {}", one.from)).collect();
        assert_eq!(removed.join(", "), expected);
        assert!(change.removed.values().all(|former| former.now_under.is_none() || expected == "q.io o, r.io s"));
    }

    #[test]
    fn a_text_that_is_no_key_is_left_out() {
        assert_eq!(keys("u:c4n4ry@q.io=aaaa=s q.io=aaaa=s").iter().collect::<Vec<_>>(), ["q.io"]);
    }

    #[test]
    fn a_record_is_bounded_and_holds_no_credential() {
        let many: Vec<String> = (0..=MAX_RECORDED).map(|number| format!("{number}.io=aaaa=s")).collect();
        assert!(Change::between(&keys(&many.join(" ")), &keys("")).is_unknown);
        let long: Vec<String> = (0..400).map(|number| format!("{number}.io/{}=aaaa=s", "a".repeat(200))).collect();
        assert!(Change::between(&keys(&long.join(" ")), &keys("")).is_unknown, "400 keys of 200 bytes");
        assert!(!Change::between(&keys(&long[..200].join(" ")), &keys("")).is_unknown);
        let text = serde_json::to_string(&Change::between(&keys("q.io=aaaa=s"), &keys("r.io=aaaa=s"))).unwrap();
        assert_eq!(text, r#"{"added":["r.io"],"removed":{"q.io":{"from":"s","nowUnder":"r.io"}}}"#);
    }
}
