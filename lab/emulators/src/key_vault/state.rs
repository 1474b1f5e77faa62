//! The vault: secrets in memory, and the effect of a request at an instant. No clock, no network.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::operation::Operation;
use super::refusal::Refusal;
use super::request::Request;
use super::settings::Settings;

mod document;
mod pages;
mod version;

use document::{Attributes, Deletion, Document};
use version::Version;

/// The retention that is not a vault's own choice.
const DAYS_MAXIMUM: u16 = 90;

/// All secrets, by their names in lower case: names do not differ by case.
#[derive(Debug)]
pub(crate) struct State {
    secrets: BTreeMap<String, Secret>,
    rules: Rules,
}

/// The settings that decide what happens to secrets.
#[derive(Debug)]
struct Rules {
    transition: SignedDuration,
    version_lag: SignedDuration,
    purge_protection: bool,
    days: u16,
}

#[derive(Debug)]
struct Secret {
    /// As it was written first.
    name: String,
    /// In the order of their creation; never empty.
    versions: Vec<Version>,
    last: Change,
}

/// The last thing that happened to a secret as a whole.
#[derive(Clone, Copy, Debug)]
enum Change {
    Created,
    Deleted(Timestamp),
    Recovered(Timestamp),
    Purged(Timestamp),
}

/// The state of a secret at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Live,
    Deleting,
    Deleted,
    Recovering,
    Purging,
    Gone,
}

impl State {
    pub(crate) fn new(settings: &Settings) -> Self {
        let signed = |duration| SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
        let rules = Rules {
            transition: signed(settings.transition),
            version_lag: signed(settings.version_lag),
            purge_protection: settings.purge_protection,
            days: settings.recoverable_days,
        };
        Self { secrets: BTreeMap::new(), rules }
    }

    /// Lets a request happen at `now`; its answer is null if it has no body.
    pub(crate) fn handle(&mut self, now: Timestamp, request: &Request) -> Result<Value, Refusal> {
        let rules = &self.rules;
        self.secrets.retain(|_, secret| rules.phase(now, secret.last) != Phase::Gone);
        match request.operation {
            Operation::SetSecret => self.set(now, request),
            Operation::GetSecret => self.get(now, request),
            Operation::UpdateSecret => self.update(now, request),
            Operation::GetSecrets => self.list(now, request),
            Operation::GetSecretVersions => self.list_versions(now, request),
            Operation::DeleteSecret => self.delete(now, request),
            Operation::GetDeletedSecret => self.get_deleted(now, request),
            Operation::GetDeletedSecrets => self.list_deleted(now, request),
            Operation::PurgeDeletedSecret => self.purge(now, request),
            Operation::RecoverDeletedSecret => self.recover(now, request),
            Operation::RequestToken => Err(Refusal::bad_parameter("A vault issues no tokens.")),
        }
    }

    fn set(&mut self, now: Timestamp, request: &Request) -> Result<Value, Refusal> {
        let key = request.name.to_lowercase();
        if let Some(secret) = self.secrets.get(&key) {
            self.rules.phase(now, secret.last).check_free(&secret.name)?;
        }
        let version = Version::new(now, &request.bundle)?;
        let secret = self.secrets.entry(key).or_insert_with(|| Secret {
            name: request.name.clone(),
            versions: Vec::new(),
            last: Change::Created,
        });
        let answer = self.rules.properties(&request.base, &secret.name, &version);
        let answer = Document { value: Some(version.value.clone()), ..answer };
        secret.versions.push(version);
        Ok(json!(answer))
    }

    fn get(&self, now: Timestamp, request: &Request) -> Result<Value, Refusal> {
        let secret = self.live(now, &request.name)?;
        let version = match &request.version {
            Some(id) => self.rules.seen(now, secret).find(|version| version.id == *id),
            None => self.rules.seen(now, secret).last(),
        };
        let version = version.ok_or_else(|| absent(request))?;
        if !version.enabled {
            return Err(Refusal::forbidden("SecretDisabled", "Operation get is not allowed on a disabled secret."));
        }
        let answer = self.rules.properties(&request.base, &secret.name, version);
        Ok(json!(Document { value: Some(version.value.clone()), ..answer }))
    }

    fn update(&mut self, now: Timestamp, request: &Request) -> Result<Value, Refusal> {
        self.live(now, &request.name)?;
        let secret = self.secrets.get_mut(&request.name.to_lowercase()).ok_or_else(|| absent(request))?;
        let version = match &request.version {
            Some(id) => secret.versions.iter_mut().find(|version| version.id == *id),
            None => secret.versions.last_mut(),
        };
        let version = version.ok_or_else(|| absent(request))?;
        version.update(now, &request.bundle)?;
        Ok(json!(self.rules.properties(&request.base, &secret.name, version)))
    }

    fn delete(&mut self, now: Timestamp, request: &Request) -> Result<Value, Refusal> {
        let absent = || Refusal::not_found(&request.name);
        let secret = self.secrets.get_mut(&request.name.to_lowercase()).ok_or_else(absent)?;
        match self.rules.phase(now, secret.last) {
            Phase::Live => {}
            Phase::Deleting => return Err(being(&secret.name, "deleted", "ObjectIsBeingDeleted")),
            Phase::Recovering => return Err(being(&secret.name, "recovered", "ObjectIsBeingRecovered")),
            Phase::Deleted | Phase::Purging | Phase::Gone => return Err(absent()),
        }
        secret.last = Change::Deleted(now);
        Ok(json!(self.rules.deleted(&request.base, secret)))
    }

    fn get_deleted(&self, now: Timestamp, request: &Request) -> Result<Value, Refusal> {
        let secret = self.secrets.get(&request.name.to_lowercase());
        let deleted = secret.filter(|secret| self.rules.phase(now, secret.last) == Phase::Deleted);
        let secret = deleted.ok_or_else(|| not_deleted(&request.name))?;
        Ok(json!(self.rules.deleted(&request.base, secret)))
    }

    fn purge(&mut self, now: Timestamp, request: &Request) -> Result<Value, Refusal> {
        let protected = self.rules.purge_protection;
        let secret = self.deleted_mut(now, &request.name)?;
        if protected {
            let message = "Operation \"purge\" is not allowed because purge protection is enabled for this vault.";
            return Err(Refusal::forbidden("ForbiddenByPolicy", message));
        }
        secret.last = Change::Purged(now);
        Ok(Value::Null)
    }

    fn recover(&mut self, now: Timestamp, request: &Request) -> Result<Value, Refusal> {
        self.deleted_mut(now, &request.name)?.last = Change::Recovered(now);
        let secret = self.secrets.get(&request.name.to_lowercase()).ok_or_else(|| not_deleted(&request.name))?;
        let newest = secret.versions.last().ok_or_else(|| not_deleted(&request.name))?;
        Ok(json!(self.rules.properties(&request.base, &secret.name, newest)))
    }

    fn live(&self, now: Timestamp, name: &str) -> Result<&Secret, Refusal> {
        let secret = self.secrets.get(&name.to_lowercase());
        let live = secret.filter(|secret| self.rules.phase(now, secret.last) == Phase::Live);
        live.ok_or_else(|| Refusal::not_found(name))
    }

    /// A deleted secret, of which the deletion is done.
    fn deleted_mut(&mut self, now: Timestamp, name: &str) -> Result<&mut Secret, Refusal> {
        let secret = self.secrets.get_mut(&name.to_lowercase()).ok_or_else(|| not_deleted(name))?;
        match self.rules.phase(now, secret.last) {
            Phase::Deleted => Ok(secret),
            Phase::Deleting => Err(being(name, "deleted", "ObjectIsBeingDeleted")),
            _ => Err(not_deleted(name)),
        }
    }
}

// === impl Rules ===

impl Rules {
    fn phase(&self, now: Timestamp, last: Change) -> Phase {
        let since = |at: Timestamp| now.duration_since(at);
        match last {
            Change::Deleted(at) if since(at) < self.transition => Phase::Deleting,
            Change::Deleted(at) if since(at) >= self.retention() => Phase::Gone,
            Change::Deleted(_) => Phase::Deleted,
            Change::Recovered(at) if since(at) < self.transition => Phase::Recovering,
            Change::Purged(at) if since(at) < self.transition => Phase::Purging,
            Change::Purged(_) => Phase::Gone,
            Change::Created | Change::Recovered(_) => Phase::Live,
        }
    }

    fn retention(&self) -> SignedDuration {
        SignedDuration::from_hours(i64::from(self.days) * 24)
    }

    /// The versions of a secret that reads see.
    fn seen<'a>(&self, now: Timestamp, secret: &'a Secret) -> impl Iterator<Item = &'a Version> {
        let lag = self.version_lag;
        secret.versions.iter().filter(move |version| now.duration_since(version.created) >= lag)
    }

    /// A version without its value.
    fn properties(&self, base: &str, name: &str, version: &Version) -> Document {
        self.item(format!("{base}/secrets/{name}/{}", version.id), version)
    }

    /// The same under another id.
    fn item(&self, id: String, version: &Version) -> Document {
        let customized = if self.days < DAYS_MAXIMUM { "Customized" } else { "" };
        let purgeable = if self.purge_protection { "" } else { "+Purgeable" };
        let attributes = Attributes {
            enabled: version.enabled,
            nbf: version.nbf,
            exp: version.exp,
            created: version.created.as_second(),
            updated: version.updated.as_second(),
            recovery_level: format!("{customized}Recoverable{purgeable}"),
            recoverable_days: self.days,
        };
        let (content_type, tags) = (version.content_type.clone(), version.tags.clone());
        Document { id, value: None, content_type, attributes, tags, deletion: None }
    }

    /// A deleted secret by its newest version; none if it is not deleted.
    fn deleted(&self, base: &str, secret: &Secret) -> Option<Document> {
        let (Some(newest), Change::Deleted(at)) = (secret.versions.last(), secret.last) else { return None };
        let deletion = Deletion {
            recovery_id: format!("{base}/deletedsecrets/{}", secret.name),
            deleted_date: at.as_second(),
            scheduled_purge_date: at.saturating_add(self.retention()).unwrap_or(Timestamp::MAX).as_second(),
        };
        Some(Document { deletion: Some(deletion), ..self.properties(base, &secret.name, newest) })
    }
}

// === impl Phase ===

impl Phase {
    /// Refuses to write a version where the name is not free for it.
    fn check_free(self, name: &str) -> Result<(), Refusal> {
        match self {
            Self::Live | Self::Gone => Ok(()),
            Self::Deleting | Self::Purging => Err(being(name, "deleted", "ObjectIsBeingDeleted")),
            Self::Recovering => Err(being(name, "recovered", "ObjectIsBeingRecovered")),
            Self::Deleted => {
                let message = format!(
                    "Secret {name} is currently in a deleted but recoverable state, and its name cannot be reused; in this \
                     state, the secret can only be recovered or purged."
                );
                Err(Refusal::conflict("ObjectIsDeletedButRecoverable", message))
            }
        }
    }
}

fn being(name: &str, what: &str, inner: &'static str) -> Refusal {
    Refusal::conflict(inner, format!("Secret {name} is currently being {what}."))
}

fn not_deleted(name: &str) -> Refusal {
    Refusal::new(404, "SecretNotFound", format!("Deleted Secret not found: {name}"))
}

fn absent(request: &Request) -> Refusal {
    match &request.version {
        Some(version) => Refusal::not_found(&format!("{}/{version}", request.name)),
        None => Refusal::not_found(&request.name),
    }
}
