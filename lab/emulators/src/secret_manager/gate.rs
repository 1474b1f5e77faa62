//! Checks in front of the service on both wires: token, scripted faults, quotas, permissions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp};

use super::faults::{Aim, Effect, Fault, refusal};
use super::method::{Class, Method};
use super::names::project_number;
use super::settings::{Quotas, Settings};
use super::status::{Code, Status};
use crate::scripted::Script;

/// Quotas are counted over the last minute.
const WINDOW: SignedDuration = SignedDuration::from_secs(60);

/// Google's quota of calls in a minute and project, as a scripted refusal names it.
const QUOTA: u32 = 600;

/// The service's name in refusals.
const SERVICE: &str = "secretmanager.googleapis.com";

/// The checks and what they remember.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) faults: Script<Fault>,
    quotas: Quotas,
    used: BTreeMap<(u64, Class), VecDeque<Timestamp>>,
    denied: BTreeSet<String>,
    token: Option<Token>,
}

/// The one bearer token that is accepted; never printed.
struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token(redacted)")
    }
}

impl Gate {
    pub(crate) fn new(settings: &Settings) -> Self {
        let mut faults = Script::default();
        settings.faults.iter().cloned().for_each(|fault| faults.add(fault));
        Self {
            faults,
            quotas: settings.quotas,
            used: BTreeMap::new(),
            denied: settings.denied_permissions.clone(),
            token: settings.required_token.clone().map(Token),
        }
    }

    /// Lets a call pass, perhaps with something to be done to it afterwards, or refuses it.
    ///
    /// The order is the real one: the front door checks credentials and quota, the service checks permissions.
    pub(crate) fn check(
        &mut self,
        now: Timestamp,
        method: Method,
        resource: &str,
        authorization: Option<&str>,
    ) -> Result<Option<Effect>, Status> {
        self.check_token(authorization)?;
        let project = resource.split('/').nth(1).unwrap_or_default().to_owned();
        let effect = self.faults.strike(&Aim { method, project });
        match effect {
            Some(Effect::Refuse { code, retry_after }) => return Err(refusal(code, retry_after)),
            Some(Effect::IamDenied) => {
                let permission = method.permission().unwrap_or_else(|| "secretmanager.secrets.get".to_owned());
                return Err(denied(&permission, resource));
            }
            Some(Effect::QuotaExceeded) => return Err(exhausted(method.class(), QUOTA, project_of(resource))),
            Some(Effect::ApiDisabled) => return Err(disabled(project_of(resource))),
            Some(effect) if !effect.commits() => return Ok(Some(effect)),
            _ => {}
        }
        self.check_quota(now, method.class(), resource)?;
        self.check_permission(method, resource)?;
        Ok(effect)
    }

    /// Those of `permissions` that are not denied.
    pub(crate) fn granted(&self, permissions: &[String]) -> Vec<String> {
        permissions.iter().filter(|permission| !self.denied.contains(*permission)).cloned().collect()
    }

    fn check_token(&self, authorization: Option<&str>) -> Result<(), Status> {
        let Some(Token(required)) = &self.token else { return Ok(()) };
        let presented = authorization.and_then(|value| value.split_once(' '));
        match presented {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && token.trim() == required => Ok(()),
            _ => {
                let message = "Request had invalid authentication credentials. Expected OAuth 2 access token.";
                let metadata = [("service", SERVICE)];
                Err(Status::new(Code::Unauthenticated, message).with_info(
                    "ACCESS_TOKEN_TYPE_UNSUPPORTED",
                    "googleapis.com",
                    &metadata,
                ))
            }
        }
    }

    fn check_quota(&mut self, now: Timestamp, class: Class, resource: &str) -> Result<(), Status> {
        let limit = match class {
            Class::Read => self.quotas.reads_per_minute,
            Class::Write => self.quotas.writes_per_minute,
            Class::Access => self.quotas.accesses_per_minute,
        };
        let Some(limit) = limit else { return Ok(()) };
        let project = project_of(resource);
        let used = self.used.entry((project, class)).or_default();
        while used.front().is_some_and(|at| now.duration_since(*at) >= WINDOW) {
            used.pop_front();
        }
        if u32::try_from(used.len()).is_ok_and(|used| used < limit) {
            used.push_back(now);
            return Ok(());
        }
        Err(exhausted(class, limit, project))
    }

    fn check_permission(&self, method: Method, resource: &str) -> Result<(), Status> {
        match method.permission() {
            Some(permission) if self.denied.contains(&permission) => Err(denied(&permission, resource)),
            _ => Ok(()),
        }
    }
}

/// The number of a resource's project.
fn project_of(resource: &str) -> u64 {
    resource.split('/').nth(1).map_or(0, project_number)
}

fn disabled(project: u64) -> Status {
    let message = format!(
        "Secret Manager API has not been used in project {project} before or it is disabled. Enable it by visiting \
         https://console.developers.google.com/apis/api/{SERVICE}/overview?project={project} then retry."
    );
    let consumer = format!("projects/{project}");
    let metadata = [("consumer", consumer.as_str()), ("service", SERVICE)];
    Status::new(Code::PermissionDenied, message).with_info("SERVICE_DISABLED", "googleapis.com", &metadata)
}

fn denied(permission: &str, resource: &str) -> Status {
    let message = format!("Permission '{permission}' denied for resource '{resource}' (or it may not exist).");
    let metadata = [("permission", permission), ("resource", resource)];
    Status::new(Code::PermissionDenied, message).with_info("IAM_PERMISSION_DENIED", "iam.googleapis.com", &metadata)
}

fn exhausted(class: Class, limit: u32, project: u64) -> Status {
    let (counted, metric, quota_limit) = class.words();
    let message = format!(
        "Quota exceeded for quota metric '{counted}' and limit '{counted} per minute' of service '{SERVICE}' for consumer \
         'project_number:{project}'."
    );
    let metadata = [
        ("consumer", &*format!("projects/{project}")),
        ("quota_limit", quota_limit),
        ("quota_limit_value", &limit.to_string()),
        ("quota_location", "global"),
        ("quota_metric", &format!("{SERVICE}/{metric}")),
        ("service", SERVICE),
    ];
    Status::new(Code::ResourceExhausted, message)
        .with_info("RATE_LIMIT_EXCEEDED", "googleapis.com", &metadata)
        .with_help("Request a higher quota limit.", "https://cloud.google.com/docs/quotas/help/request_increase")
}
