//! Requests as they are asked for: the cluster, the operation, and the permissions that it needs.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fleet_model::ClusterId;
use http::Method;
use jiff::Timestamp;
use registry_account::name::CredentialId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::problem::{Code, Problem};
use super::reviews::Permission;
use super::rotation::{RotationReason, RotationStatus};
use super::route::Route;
use crate::credential::RegistryName;

/// Rotations of a page where no number is asked for, and the most.
const PAGE: u32 = 50;
const MAX_PAGE: u32 = 100;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requested {
    /// The cluster.
    pub(crate) cluster: ClusterId,
    /// The operation on its credentials.
    pub(crate) operation: Operation,
}

/// An operation on the credentials of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// See them.
    Read,
    /// Have them made, at these registries; at all of the cluster if none is named.
    Ensure(Vec<RegistryName>),
    /// Have them retired.
    Retire,
    /// List the rotations.
    ListRotations(RotationQuery),
    /// See one rotation.
    ReadRotation(CredentialId),
    /// Start a rotation.
    Rotate(NewRotation),
}

/// A rotation that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewRotation {
    /// The reason.
    pub(crate) reason: RotationReason,
    /// True if the old credentials are revoked at once.
    pub(crate) is_forced: bool,
}

/// The rotations of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RotationQuery {
    /// Those with this status.
    pub(crate) status: Option<RotationStatus>,
    /// Those that began then or later.
    pub(crate) since: Option<Timestamp>,
    /// Those after this one.
    pub(crate) after: Option<Cursor>,
    /// The most of a page.
    pub(crate) limit: usize,
}

/// The place of a rotation in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor {
    /// Its beginning.
    pub(crate) created: Timestamp,
    /// Its id.
    pub(crate) id: CredentialId,
}

/// A cursor as it is written.
#[derive(Deserialize, Serialize)]
struct CursorText {
    created_at: Timestamp,
    id: String,
}

/// The body by which credentials are asked for. What is said about the cloud has no effect: accounts are the same everywhere.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct EnsureBody {
    cluster_id: Option<String>,
    #[serde(rename = "cloud_provider")]
    _cloud_provider: Option<String>,
    #[serde(rename = "region")]
    _region: Option<String>,
    registries: Vec<String>,
}

/// The body by which a rotation is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RotationBody {
    reason: String,
    #[serde(default)]
    force_immediate: bool,
}

/// The body by which AMS's clients ask; other members are theirs.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AmsBody {
    external_resource_id: Option<String>,
}

/// The parts of a request that its meaning follows from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    /// The endpoint.
    pub(crate) route: Route<'a>,
    /// The method, one of the endpoint's.
    pub(crate) method: &'a Method,
    /// The query.
    pub(crate) query: &'a str,
    /// The body.
    pub(crate) body: &'a [u8],
}

// === impl Requested ===

impl Requested {
    /// Reads a request; `None` for the document, which needs nothing.
    pub(crate) fn read(parts: &Parts<'_>) -> Result<Option<Self>, Problem> {
        let Parts { route, method, query, body } = *parts;
        let (posts, deletes) = (*method == Method::POST, *method == Method::DELETE);
        let (cluster, operation) = match route {
            Route::OpenApi => return Ok(None),
            Route::PullSecrets(cluster) if posts => (cluster_id(cluster)?, ensure(body, cluster)?),
            Route::PullSecrets(cluster) if deletes => (cluster_id(cluster)?, Operation::Retire),
            Route::PullSecrets(cluster) => (cluster_id(cluster)?, Operation::Read),
            Route::Rotations(cluster) if posts => (cluster_id(cluster)?, rotate(body)?),
            Route::Rotations(cluster) => (cluster_id(cluster)?, Operation::ListRotations(RotationQuery::read(query)?)),
            Route::Rotation { cluster, id } => {
                let no_rotation = |_invalid| Problem::new(Code::NotFound, "there is no such rotation of this cluster");
                (cluster_id(cluster)?, Operation::ReadRotation(id.parse().map_err(no_rotation)?))
            }
            Route::AmsAccessToken | Route::AmsPullSecrets => (external_id(body)?, Operation::Ensure(Vec::new())),
            Route::AmsPullSecret(id) => (cluster_id(id)?, Operation::Retire),
        };
        Ok(Some(Self { cluster, operation }))
    }

    /// Returns the permissions that it needs.
    pub(crate) fn permissions(&self) -> &'static [Permission] {
        match &self.operation {
            Operation::Read => &[Permission::GetPullSecrets],
            Operation::Ensure(_) => &[Permission::CreatePullSecrets],
            Operation::Retire => &[Permission::DeletePullSecrets],
            Operation::ListRotations(_) => &[Permission::ListRotations],
            Operation::ReadRotation(_) => &[Permission::GetRotations],
            // What is revoked at once may be in use.
            Operation::Rotate(NewRotation { is_forced: true, .. }) => {
                &[Permission::CreateRotations, Permission::DeletePullSecrets]
            }
            Operation::Rotate(_) => &[Permission::CreateRotations],
        }
    }

    /// Returns true if its answer may have passwords.
    pub(crate) fn may_reveal(&self) -> bool {
        matches!(self.operation, Operation::Read | Operation::Ensure(_))
    }
}

fn cluster_id(text: &str) -> Result<ClusterId, Problem> {
    text.parse().map_err(|invalid| Problem::invalid("cluster_id", "pattern", format!("{invalid}")))
}

fn ensure(body: &[u8], cluster: &str) -> Result<Operation, Problem> {
    let EnsureBody { cluster_id, registries, .. } = if body.is_empty() {
        EnsureBody::default()
    } else {
        json(body, "cluster_id, cloud_provider, region, registries")?
    };
    if cluster_id.is_some_and(|given| given != cluster) {
        return Err(Problem::invalid("cluster_id", "enum", "must be that of the path"));
    }
    let mut names: Vec<RegistryName> = Vec::new();
    for name in registries {
        let invalid = |invalid| Problem::invalid("registries", "pattern", format!("each {invalid}"));
        let name = name.parse().map_err(invalid)?;
        if names.contains(&name) {
            return Err(Problem::invalid("registries", "unique", "must name each registry once"));
        }
        names.push(name);
    }
    Ok(Operation::Ensure(names))
}

fn rotate(body: &[u8]) -> Result<Operation, Problem> {
    let RotationBody { reason, force_immediate } = json(body, "reason, force_immediate")?;
    let one_of = "must be scheduled, compromise or manual";
    let reason = RotationReason::parse(&reason).ok_or_else(|| Problem::invalid("reason", "enum", one_of))?;
    let is_forced = force_immediate || reason == RotationReason::Compromise;
    Ok(Operation::Rotate(NewRotation { reason, is_forced }))
}

fn external_id(body: &[u8]) -> Result<ClusterId, Problem> {
    let AmsBody { external_resource_id } =
        if body.is_empty() { AmsBody::default() } else { json(body, "external_resource_id")? };
    let id = external_resource_id.ok_or_else(|| {
        let must = "must be the id of a cluster: the credentials of this service belong to clusters, and not to users; send it to \
                    /api/accounts_mgmt/v1/pull_secrets";
        Problem::invalid("external_resource_id", "required", must)
    })?;
    id.parse().map_err(|invalid| Problem::invalid("external_resource_id", "pattern", format!("{invalid}")))
}

/// Reads a body. The library's messages are not forwarded: they quote it.
fn json<T: DeserializeOwned>(body: &[u8], members: &str) -> Result<T, Problem> {
    let malformed = |error: serde_json::Error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        Problem::new(Code::Malformed, format!("the body must be a JSON object with the members {members}: see {place}"))
    };
    serde_json::from_slice(body).map_err(malformed)
}

// === impl RotationQuery ===

impl RotationQuery {
    fn read(query: &str) -> Result<Self, Problem> {
        let mut read = Self { status: None, since: None, after: None, limit: PAGE as usize };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "status" => {
                    let one_of = "must be pending, in_progress, completed, failed or cancelled";
                    let status = RotationStatus::parse(&value);
                    read.status = Some(status.ok_or_else(|| Problem::invalid("status", "enum", one_of))?);
                }
                "since" => {
                    let since = value.parse().ok();
                    let must = "must be a time such as 2026-11-28T09:00:00Z";
                    read.since = Some(since.ok_or_else(|| Problem::invalid("since", "format", must))?);
                }
                "cursor" => {
                    let after = Cursor::parse(&value);
                    let must = "must be the next_cursor of an answer";
                    read.after = Some(after.ok_or_else(|| Problem::invalid("cursor", "format", must))?);
                }
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
                    let must = "must be a whole number from 1 to 100";
                    read.limit = limit.ok_or_else(|| Problem::invalid("limit", "max", must))? as usize;
                }
                _ => {}
            }
        }
        Ok(read)
    }
}

// === impl Cursor ===

impl Cursor {
    /// Returns the cursor as it is written: the base64 of an object.
    pub(crate) fn text(&self) -> String {
        let text = CursorText { created_at: self.created, id: self.id.to_string() };
        // A time and a text always serialise.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&text).unwrap_or_default())
    }

    fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
        let CursorText { created_at, id } = serde_json::from_slice(&bytes).ok()?;
        Some(Self { created: created_at, id: id.parse().ok()? })
    }
}
