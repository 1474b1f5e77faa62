//! Audit records: every read of a pull secret and every denied call, as log lines of their own target.

use std::net::IpAddr;

use crate::resource::Resource;
use crate::service::Caller;
use crate::tenancy;

/// The target of audit records in the log.
pub const TARGET: &str = "audit";

/// One call that is recorded. Holds no credential.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) request_id: &'a str,
    pub(super) method: &'a str,
    /// The path, shortened and escaped.
    pub(super) path: &'a str,
    /// The address of the connection's other end.
    pub(super) peer: Option<IpAddr>,
    /// The caller, unless its token was refused.
    pub(super) caller: Option<&'a Caller>,
    /// The resource, as far as it is known.
    pub(super) resource: Option<&'a Resource>,
}

/// The fields that every record has.
struct Fields {
    issuer: String,
    subject: String,
    tenancy: String,
    remote: String,
    kind: String,
    id: String,
    incarnation: String,
    generation: i64,
}

impl Call<'_> {
    /// Records that a caller got a pull secret, and the grant that allowed it.
    pub(super) fn read(&self, because: &str) {
        let Fields { issuer, subject, tenancy, remote, kind, id, incarnation, generation } = self.fields();
        let Self { request_id, method, path, .. } = self;
        tracing::info!(
            target: TARGET,
            operation = "read-pull-secret",
            allowed = true,
            request_id,
            method,
            path,
            issuer,
            subject,
            tenancy,
            remote,
            kind,
            id,
            incarnation,
            generation,
            because,
            "pull secret read"
        );
    }

    /// Records that a call was denied, and what was missing.
    pub(super) fn denied(&self, because: &str) {
        let Fields { issuer, subject, tenancy, remote, kind, id, incarnation, generation } = self.fields();
        let Self { request_id, method, path, .. } = self;
        tracing::warn!(
            target: TARGET,
            operation = "deny",
            allowed = false,
            request_id,
            method,
            path,
            issuer,
            subject,
            tenancy,
            remote,
            kind,
            id,
            incarnation,
            generation,
            because,
            "call denied"
        );
    }

    fn fields(&self) -> Fields {
        let (caller, resource) = (self.caller, self.resource);
        let identity = caller.map(|caller| caller.identity.clone()).unwrap_or_default();
        Fields {
            issuer: identity.issuer,
            subject: identity.subject,
            tenancy: caller.map(|caller| tenancy::text(&caller.tenancy)).unwrap_or_default(),
            remote: self.peer.map(|peer| peer.to_string()).unwrap_or_default(),
            kind: resource.map(|resource| resource.kind.clone()).unwrap_or_default(),
            id: resource.map(|resource| resource.id.clone()).unwrap_or_default(),
            incarnation: resource.map(|resource| resource.created_time.to_string()).unwrap_or_default(),
            generation: resource.map_or(0, |resource| resource.generation.into()),
        }
    }
}
