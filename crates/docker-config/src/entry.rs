//! Reads one registry's entry: its credential, and the readers that can use it.

use zeroize::Zeroizing;

use crate::base64_text;
use crate::json::{Member, Value, member};
use crate::path::Path;
use crate::placeholder::is_placeholder;
use crate::problem::{Findings, Position, Problem, ProblemKind};
use crate::registry_key::RegistryKey;

/// One registry of an accepted document, without its credential.
#[derive(Debug)]
pub struct Entry {
    pub(crate) key: RegistryKey,
    pub(crate) credential: CredentialKind,
    pub(crate) masked_user: Option<String>,
    pub(crate) position: Position,
}

/// The form of an entry's credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialKind {
    /// User and password in `auth`: every reader uses it.
    Auth,
    /// `username` and `password` without `auth`: only kubelet uses it.
    UsernamePassword,
    /// `identitytoken`: kubelet ignores it.
    IdentityToken,
    /// `registrytoken`: both ignore it; accepted only if a credential helper serves the registry.
    RegistryToken,
    /// None in the entry: `credHelpers` names a program that provides it.
    Helper,
}

/// User and password as bytes, as the readers use them.
pub(crate) struct Pair {
    /// True if containers/image cannot use it: `auth` is missing or lacks its padding.
    pub(crate) only_kubelet: bool,
    pub(crate) user: Zeroizing<Vec<u8>>,
    pub(crate) password: Zeroizing<Vec<u8>>,
}

/// The credential of an entry.
pub(crate) struct Credential {
    pub(crate) kind: CredentialKind,
    pub(crate) pair: Option<Pair>,
}

impl Entry {
    /// The key of its registry.
    pub fn key(&self) -> &RegistryKey {
        &self.key
    }

    /// The form of its credential.
    pub fn credential(&self) -> CredentialKind {
        self.credential
    }

    /// The first character of the user and `***`, regardless of its length; `None` for tokens and helpers.
    pub fn masked_user(&self) -> Option<String> {
        self.masked_user.clone()
    }

    /// The position of its key.
    pub fn position(&self) -> Position {
        self.position
    }
}

impl CredentialKind {
    /// A description for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Auth => "user and password in auth",
            Self::UsernamePassword => "user and password",
            Self::IdentityToken => "identity token",
            Self::RegistryToken => "registry token",
            Self::Helper => "credential helper",
        }
    }
}

impl Credential {
    pub(crate) fn masked_user(&self) -> Option<String> {
        match self.kind {
            CredentialKind::Auth | CredentialKind::UsernamePassword => {
                let user = &self.pair.as_ref()?.user;
                let first = user.utf8_chunks().next()?.valid().chars().next();
                Some(format!("{}***", first.filter(|c| !c.is_control()).unwrap_or('?')))
            }
            CredentialKind::IdentityToken | CredentialKind::RegistryToken | CredentialKind::Helper => None,
        }
    }
}

/// The members that both readers or docker give a meaning; all are strings.
const KNOWN: &[&str] = &["auth", "username", "password", "identitytoken", "registrytoken", "email"];

/// Frequent misspellings, besides those that differ only in case.
const MISSPELLINGS: &[(&str, &str)] = &[
    ("auths", "auth"),
    ("authorization", "auth"),
    ("user", "username"),
    ("user_name", "username"),
    ("user-name", "username"),
    ("login", "username"),
    ("pass", "password"),
    ("passwd", "password"),
    ("pwd", "password"),
    ("token", "identitytoken"),
    ("identity_token", "identitytoken"),
    ("identity-token", "identitytoken"),
    ("registry_token", "registrytoken"),
    ("registry-token", "registrytoken"),
];

/// Returns true if an object looks like an entry.
pub(crate) fn has_credential_member(members: &[Member]) -> bool {
    members.iter().any(|m| KNOWN.contains(&m.name.as_str()) && *m.name != "email")
}

/// Reads an entry. `helped` is true if a credential helper serves its registry.
pub(crate) fn read(path: &Path, value: &Value, helped: bool, findings: &mut Findings) -> Option<Credential> {
    let members = findings.good(value.object_or(path))?;
    let problems_before = findings.problems.len();
    let misspelled = misspellings(path, members, KNOWN, MISSPELLINGS, findings);
    let fields = Fields { path, position: value.position, members, helped };
    fields.check_types(findings);
    if findings.problems.len() > problems_before {
        // The unreadable member may be the credential, so a missing one is not reported too.
        findings.good(fields.auth()).flatten();
        return None;
    }
    match fields.credential(&mut findings.warnings) {
        Ok(credential) => {
            findings.warnings.extend(misspelled);
            Some(credential)
        }
        Err(problem) => {
            findings.problems.push(problem);
            findings.problems.extend(misspelled);
            None
        }
    }
}

/// Finds names that are nearly known ones. Returns a report for each that stands alone; one beside the correct spelling in
/// another case is a problem.
pub(crate) fn misspellings(
    path: &Path,
    members: &[Member],
    known: &[&'static str],
    misspellings: &[(&'static str, &'static str)],
    findings: &mut Findings,
) -> Vec<Problem> {
    let mut alone = Vec::new();
    for found in members.iter().filter(|m| !known.contains(&m.name.as_str())) {
        let other_case = known.iter().find(|known| known.eq_ignore_ascii_case(&found.name));
        let similar = misspellings.iter().find(|(wrong, _)| wrong.eq_ignore_ascii_case(&found.name));
        let Some(meant) = other_case.copied().or(similar.map(|(_, meant)| *meant)) else {
            continue;
        };
        let report = |kind| Problem::new(path.member(&found.name), kind, found.position);
        if other_case.is_some() && member(members, meant).is_some() {
            findings.problems.push(report(ProblemKind::TwoCases { meant }));
        } else {
            alone.push(report(ProblemKind::Misspelled { meant }));
        }
    }
    alone
}

/// The members of one entry.
struct Fields<'a> {
    path: &'a Path,
    position: Position,
    members: &'a [Member],
    helped: bool,
}

impl Fields<'_> {
    fn check_types(&self, findings: &mut Findings) {
        for found in self.members.iter().filter(|m| KNOWN.contains(&m.name.as_str())) {
            let text = findings.good(found.value.text_or(&self.path.member(&found.name)));
            let secret = *found.name != "email" && *found.name != "auth";
            if secret && text.is_some_and(|text| text.contains('\0')) {
                findings.problems.push(self.at(&found.name, ProblemKind::NulInCredential));
            }
        }
    }

    /// Returns the credential that the readers would use, or the problem that prevents it.
    fn credential(&self, warnings: &mut Vec<Problem>) -> Result<Credential, Problem> {
        let has_token = self.text("identitytoken").is_some();
        let (kind, pair) = if let Some(pair) = self.auth()? {
            if pair.only_kubelet {
                warnings.push(self.at("auth", ProblemKind::Unpadded));
            }
            self.compare("username", &pair.user, warnings);
            self.compare("password", &pair.password, warnings);
            if has_token {
                warnings.push(self.at("identitytoken", ProblemKind::IdentityToken));
            }
            let only_token = pair.password.is_empty();
            let kind = if only_token { CredentialKind::IdentityToken } else { CredentialKind::Auth };
            (kind, Some(pair))
        } else {
            if has_token {
                warnings.push(self.at("identitytoken", ProblemKind::IdentityTokenWithoutAuth));
            }
            self.without_auth(has_token, warnings)?
        };
        if self.text("registrytoken").is_some() {
            warnings.push(self.at("registrytoken", ProblemKind::RegistryToken));
        }
        Ok(Credential { kind, pair })
    }

    fn without_auth(
        &self,
        has_token: bool,
        warnings: &mut Vec<Problem>,
    ) -> Result<(CredentialKind, Option<Pair>), Problem> {
        match (self.text("username"), self.text("password")) {
            (Some(user), Some(password)) => {
                if !self.helped {
                    warnings.push(self.here(ProblemKind::OnlyKubelet));
                }
                let pair =
                    Pair { only_kubelet: true, user: owned(user.as_bytes()), password: owned(password.as_bytes()) };
                Ok((CredentialKind::UsernamePassword, Some(pair)))
            }
            _ if has_token => Ok((CredentialKind::IdentityToken, None)),
            _ if self.helped => {
                warnings.push(self.here(ProblemKind::OnlyHelper));
                let kind = match self.text("registrytoken") {
                    Some(_) => CredentialKind::RegistryToken,
                    None => CredentialKind::Helper,
                };
                Ok((kind, None))
            }
            (Some(_), None) if self.is_present("password") => Err(self.at("password", ProblemKind::EmptyPassword)),
            (Some(_), None) => Err(self.here(ProblemKind::MissingPassword)),
            (None, Some(_)) if self.is_present("username") => Err(self.at("username", ProblemKind::EmptyUser)),
            (None, Some(_)) => Err(self.here(ProblemKind::MissingUser)),
            (None, None) if self.text("registrytoken").is_some() => {
                Err(self.at("registrytoken", ProblemKind::OnlyRegistryToken))
            }
            (None, None) => {
                let empty = KNOWN.iter().find(|name| **name != "email" && self.is_present(name));
                Err(empty.map_or_else(
                    || self.here(ProblemKind::NoCredential),
                    |name| self.at(name, ProblemKind::EmptyValue),
                ))
            }
        }
    }

    /// Decodes user and password from `auth`.
    fn auth(&self) -> Result<Option<Pair>, Problem> {
        let Some(text) = self.text("auth") else {
            return Ok(None);
        };
        let report = |kind| self.at("auth", kind);
        let pair =
            decode(text).map_err(|kind| report(if is_placeholder(text) { ProblemKind::Placeholder } else { kind }))?;
        // Docker leaves the password empty where the token is the credential.
        if pair.password.is_empty() && self.text("identitytoken").is_none() {
            return Err(report(ProblemKind::EmptyPassword));
        }
        Ok(Some(pair))
    }

    /// Warns if a member repeats its half of `auth` differently.
    fn compare(&self, name: &str, half: &[u8], warnings: &mut Vec<Problem>) {
        if self.text(name).is_some_and(|text| text.as_bytes() != half) {
            warnings.push(self.at(name, ProblemKind::Disagree));
        }
    }

    /// Returns a member's text; every reader treats an empty text as absent.
    fn text(&self, name: &str) -> Option<&str> {
        member(self.members, name)?.value.as_text().filter(|text| !text.is_empty())
    }

    fn is_present(&self, name: &str) -> bool {
        member(self.members, name).is_some()
    }

    fn here(&self, kind: ProblemKind) -> Problem {
        Problem::new(self.path, kind, self.position)
    }

    fn at(&self, name: &str, kind: ProblemKind) -> Problem {
        let position = member(self.members, name).map_or(self.position, |m| m.value.position);
        Problem::new(self.path.member(name), kind, position)
    }
}

/// Splits `auth` at the first colon, as every reader does.
fn decode(text: &str) -> Result<Pair, ProblemKind> {
    let decoded = base64_text::decode(text)?;
    let mut halves = decoded.bytes.splitn(2, |byte| *byte == b':');
    let user = halves.next().unwrap_or_default();
    let password = halves.next().ok_or(ProblemKind::MissingColon)?;
    if user.is_empty() {
        return Err(ProblemKind::EmptyUser);
    }
    if decoded.bytes.contains(&0) {
        return Err(ProblemKind::NulInCredential);
    }
    Ok(Pair { only_kubelet: decoded.unpadded, user: owned(user), password: owned(password) })
}

fn owned(bytes: &[u8]) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(bytes.to_vec())
}
