//! Validates a document: from bytes to entries, warnings and a digest.

#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::canonical;
use crate::digest::Digest;
use crate::entry::{self, Entry};
use crate::json::{self, Member, Value, member};
use crate::path::Path;
use crate::problem::{Findings, Position, Problem, ProblemKind};
use crate::problems::Problems;
use crate::registry_key::RegistryKey;
use crate::shape;

/// The limits of a document.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum bytes; 64 KiB by default, the limit of Google Secret Manager.
    pub max_bytes: usize,
    /// Maximum depth of nested arrays and objects; 16 by default, more than 128 counts as 128.
    pub max_depth: usize,
}

/// An accepted document: its registries and its digest, without credentials.
#[derive(Debug)]
pub struct DockerConfig {
    entries: Vec<Entry>,
    warnings: Vec<Problem>,
    digest: Digest,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 65_536, max_depth: 16 }
    }
}

impl Limits {
    /// The limits of a Kubernetes Secret: 1 MiB (`MaxSecretSize` of the core API).
    pub const SECRET: Self = Self { max_bytes: 1_048_576, max_depth: 16 };
}

impl DockerConfig {
    /// The entries, by normalised key and then by key as written; never empty.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The warnings, in document order.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    pub(crate) fn into_warnings(self) -> Vec<Problem> {
        self.warnings
    }

    /// The digest: equal for documents of equal meaning, which includes the readers that can use each entry.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// Parses and validates a credential document.
///
/// Returns all problems at once. Invalid JSON is reported up to the first syntax error, since nothing after it can be
/// trusted.
///
/// ```
/// use docker_config::{Limits, parse};
///
/// let document = br#"{"auths": {"quay.io": {"auth": "base64-encoded-credentials"}}}"#;
/// let problems = parse(document, &Limits::default()).unwrap_err();
/// assert_eq!(
///     problems.to_string(),
///     r#"auths["quay.io"].auth: a placeholder, not a credential (line 1, column 32)"#
/// );
/// ```
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<DockerConfig, Problems> {
    let mut findings = Findings::default();
    let read = read(bytes, limits, &mut findings);
    let Findings { mut problems, mut warnings } = findings;
    warnings.sort_by_key(Problem::position);
    let entries = match read {
        Ok((entries, digest)) if problems.is_empty() => return Ok(DockerConfig { entries, warnings, digest }),
        Ok((entries, _)) => entries,
        Err(fatal) => {
            problems.push(fatal);
            Vec::new()
        }
    };
    problems.sort_by_key(Problem::position);
    Err(Problems { found: problems, entries, warnings })
}

/// Members that a document may have besides the entries.
pub(crate) const KNOWN: &[&str] = &["auths", "credHelpers", "credsStore", "HttpHeaders"];

pub(crate) const MISSPELLINGS: &[(&str, &str)] =
    &[("auth", "auths"), ("registries", "auths"), ("credHelper", "credHelpers"), ("credStore", "credsStore")];

/// Fails if reading cannot continue; other problems go to the findings.
fn read(bytes: &[u8], limits: &Limits, findings: &mut Findings) -> Result<(Vec<Entry>, Digest), Problem> {
    let value = read_json(bytes, limits, findings)?;
    let root = Path::root();
    let members = value.object_or(&root)?;
    json::duplicates(&value, &root, &mut findings.problems);
    let Some(auths) = member(members, "auths") else {
        let kind = shape::of_members(members).unwrap_or(ProblemKind::MissingAuths);
        if kind == ProblemKind::MissingAuths {
            let near = entry::misspellings(&root, members, KNOWN, MISSPELLINGS, findings);
            findings.problems.extend(near);
        }
        return Err(Problem::new(root, kind, value.position));
    };
    let helped = read_other_members(members, findings);
    let (entries, digests) = read_entries(auths, &helped, findings);
    let others = members.iter().filter(|m| *m.name != "auths");
    Ok((entries, canonical::document(digests, canonical::named(others))))
}

pub(crate) fn read_json(bytes: &[u8], limits: &Limits, findings: &mut Findings) -> Result<Value, Problem> {
    let report = |kind, position| Problem::new(Path::root(), kind, position);
    if bytes.len() > limits.max_bytes {
        let kind = ProblemKind::TooLarge { bytes: bytes.len(), allowed: limits.max_bytes };
        return Err(report(kind, Position::START));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = bytes.get(..error.valid_up_to()).and_then(|good| std::str::from_utf8(good).ok());
        report(ProblemKind::NotUtf8, Position::START.after(good.unwrap_or_default()))
    })?;
    let text = text.strip_prefix('\u{FEFF}').map_or(text, |rest| {
        findings.problems.push(report(ProblemKind::ByteOrderMark, Position::START));
        rest
    });
    let value = json::read(text, limits.max_depth);
    if !value.as_ref().is_ok_and(|value| value.as_object().is_some())
        && let Some(kind) = shape::of_text(text)
    {
        return Err(report(kind, Position::START));
    }
    value
}

/// Checks the members besides `auths`. Returns the normalised keys that have a credential helper.
fn read_other_members(members: &[Member], findings: &mut Findings) -> BTreeSet<String> {
    let root = Path::root();
    let near = entry::misspellings(&root, members, KNOWN, MISSPELLINGS, findings);
    let mut helped = BTreeSet::new();
    for found in members {
        let path = root.member(&found.name);
        let kind = match found.name.as_str() {
            "auths" => continue,
            "credHelpers" => {
                let helpers = read_strings(found, &path, findings);
                let keys = helpers.iter().filter_map(|m| RegistryKey::parse(&m.name).ok());
                helped.extend(keys.map(|key| key.normalized().to_owned()));
                ProblemKind::HelpersIgnored
            }
            "credsStore" => {
                findings.good(found.value.text_or(&path));
                ProblemKind::StoreIgnored
            }
            "HttpHeaders" => {
                read_strings(found, &path, findings);
                ProblemKind::Ignored
            }
            _ if near.iter().any(|problem| problem.position() == found.position) => continue,
            _ => ProblemKind::Ignored,
        };
        findings.warnings.push(Problem::new(path, kind, found.position));
    }
    findings.warnings.extend(near);
    helped
}

/// Returns the members of an object whose values must all be strings.
fn read_strings<'a>(found: &'a Member, path: &Path, findings: &mut Findings) -> &'a [Member] {
    let members = findings.good(found.value.object_or(path)).unwrap_or_default();
    for member in members {
        findings.good(member.value.text_or(&path.key(&member.name)));
    }
    members
}

fn read_entries(auths: &Member, helped: &BTreeSet<String>, findings: &mut Findings) -> (Vec<Entry>, Vec<Digest>) {
    let root = Path::root().member("auths");
    let members = findings.good(auths.value.object_or(&root));
    if members.is_some_and(<[Member]>::is_empty) {
        let problem = Problem::new(&root, ProblemKind::NoEntries, auths.value.position);
        findings.problems.push(problem);
    }
    let mut names = BTreeSet::new();
    let mut first_paths = BTreeMap::new();
    let mut entries = Vec::new();
    let mut digests = Vec::new();
    for found in members.unwrap_or_default() {
        let path = root.key(&found.name);
        let key = read_key(found, &path, &mut first_paths, findings);
        let has_helper = key.as_ref().is_some_and(|key| helped.contains(key.normalized()));
        let credential = entry::read(&path, &found.value, has_helper, findings);
        let repeats = !names.insert(found.name.as_str()) || json::has_duplicates(&found.value);
        if let (Some(key), Some(credential), false) = (key, credential, repeats) {
            let members = found.value.as_object().unwrap_or_default();
            let pair = credential.pair.as_ref();
            digests.push(canonical::entry(&key, pair, members));
            entries.push(Entry {
                key,
                credential: credential.kind,
                masked_user: credential.masked_user(),
                position: found.position,
            });
        }
    }
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    (entries, digests)
}

/// Validates a key by itself and against the keys before it.
fn read_key(
    found: &Member,
    path: &Path,
    first_paths: &mut BTreeMap<String, Path>,
    findings: &mut Findings,
) -> Option<RegistryKey> {
    let report = |kind| Problem::new(path, kind, found.position);
    let key = findings.good(RegistryKey::parse(&found.name).map_err(report))?;
    if key.has_glob() {
        findings.warnings.push(report(ProblemKind::KeyGlob));
    }
    if !key.is_found_as_written() {
        findings.warnings.push(report(ProblemKind::KeySpelling));
    }
    if let Some(first) = first_paths.get(key.normalized()) {
        // The same name again is a problem already.
        if first != path {
            findings.warnings.push(report(ProblemKind::KeyRepeated).with_other(first));
        }
    } else {
        first_paths.insert(key.normalized().to_owned(), path.clone());
    }
    Some(key)
}
