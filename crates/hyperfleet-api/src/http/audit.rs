//! Audit records of calls: every read and write of a pull secret and every denied call.

use std::net::IpAddr;

use jiff::Timestamp;

use crate::audit::{Chain, Operation, Record};
use crate::resource::Resource;
use crate::service::Caller;
use crate::tenancy;

/// One call that is recorded. Holds no credential.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) chain: &'a Chain,
    pub(super) time: Timestamp,
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

impl Call<'_> {
    /// Records that a caller got a pull secret, and the grant that allowed it.
    pub(super) fn read(&self, because: &str) {
        self.record(Operation::ReadPullSecret, because);
    }

    /// Records that a caller stored a pull secret.
    pub(super) fn written(&self) {
        self.record(Operation::WritePullSecret, "");
    }

    /// Records that a call was denied, and what was missing.
    pub(super) fn denied(&self, because: &str) {
        self.record(Operation::Deny, because);
    }

    fn record(&self, operation: Operation, because: &str) {
        let (caller, resource) = (self.caller, self.resource);
        let identity = caller.map(|caller| caller.identity.clone()).unwrap_or_default();
        self.chain.append(&Record {
            operation,
            allowed: operation != Operation::Deny,
            because: because.to_owned(),
            request_id: self.request_id.to_owned(),
            method: self.method.to_owned(),
            path: self.path.to_owned(),
            issuer: identity.issuer,
            subject: identity.subject,
            tenancy: caller.map(|caller| tenancy::text(&caller.tenancy)).unwrap_or_default(),
            remote: self.peer.map(|peer| peer.to_string()).unwrap_or_default(),
            kind: resource.map(|resource| resource.kind.clone()).unwrap_or_default(),
            id: resource.map(|resource| resource.id.clone()).unwrap_or_default(),
            incarnation: resource.map(|resource| resource.created_time.to_string()).unwrap_or_default(),
            generation: resource.map_or(0, |resource| resource.generation.into()),
            time: self.time,
        });
    }
}
