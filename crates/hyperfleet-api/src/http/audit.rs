//! Audit records of calls: every read and write of a pull secret and every denied call.

use std::net::IpAddr;

use fleet_model::Generation;

use crate::audit::{Chain, Operation, Record};
use crate::resource::Resource;
use crate::service::Caller;
use crate::tenancy;

/// The cause in the record of a write whose result is not known: the request was given up, or the database did not answer.
const UNKNOWN: &str = "the result is not known: it may have been stored";

/// One call that is recorded. Holds no credential.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) chain: &'a Chain,
    pub(super) request_id: &'a str,
    pub(super) method: &'a str,
    /// The path, shortened and escaped.
    pub(super) path: &'a str,
    /// The address of the connection's other end.
    pub(super) peer: Option<IpAddr>,
    /// The caller, unless its token was refused.
    pub(super) caller: Option<&'a Caller>,
}

/// A record that is still to be written, and is written without its resource if the request ends before.
#[derive(Debug)]
pub(super) struct Unfinished<'a> {
    call: Call<'a>,
    operation: Operation,
    because: String,
    is_finished: bool,
}

// === impl Call ===

impl<'a> Call<'a> {
    /// Records that a caller got a pull secret, and the grant that allowed it.
    pub(super) fn read(&self, resource: &Resource, because: &str) {
        self.record(Operation::ReadPullSecret, Some(resource), because);
    }

    /// Begins the record that a caller stores a pull secret.
    pub(super) fn write(self) -> Unfinished<'a> {
        self.begin(Operation::WritePullSecret, UNKNOWN)
    }

    /// Begins the record that a call was denied, and what was missing.
    pub(super) fn deny(self, because: &str) -> Unfinished<'a> {
        self.begin(Operation::Deny, because)
    }

    fn begin(self, operation: Operation, because: &str) -> Unfinished<'a> {
        Unfinished { call: self, operation, because: because.to_owned(), is_finished: false }
    }

    fn record(&self, operation: Operation, resource: Option<&Resource>, because: &str) {
        let identity = self.caller.map(|caller| caller.identity.clone()).unwrap_or_default();
        self.chain.append(&Record {
            operation,
            allowed: operation != Operation::Deny,
            because: because.to_owned(),
            request_id: self.request_id.to_owned(),
            method: self.method.to_owned(),
            path: self.path.to_owned(),
            issuer: identity.issuer,
            subject: identity.subject,
            tenancy: self.caller.map(|caller| tenancy::text(&caller.tenancy)).unwrap_or_default(),
            remote: self.peer.map(|peer| peer.to_string()).unwrap_or_default(),
            kind: resource.map(|resource| resource.kind.clone()).unwrap_or_default(),
            id: resource.map(|resource| resource.id.clone()).unwrap_or_default(),
            incarnation: resource.map(|resource| resource.created_time.to_string()).unwrap_or_default(),
            generation: resource.map_or(Generation::NONE, |resource| resource.generation),
        });
    }
}

// === impl Unfinished ===

impl Unfinished<'_> {
    /// Records that the pull secret of this resource was stored.
    pub(super) fn stored(mut self, resource: &Resource) {
        self.is_finished = true;
        self.call.record(self.operation, Some(resource), "");
    }

    /// Records the call about this resource, if it is known.
    pub(super) fn about(mut self, resource: Option<&Resource>) {
        self.is_finished = true;
        self.call.record(self.operation, resource, &self.because);
    }

    /// Records nothing, as nothing was stored.
    pub(super) fn refused(mut self) {
        self.is_finished = true;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.call.record(self.operation, None, &self.because);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use daemon::log::{self, Format, Settings};
    use tracing::level_filters::LevelFilter;

    use super::*;
    use crate::audit::TARGET;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A caller that stores a pull secret and closes the connection is recorded too.
    #[test]
    fn a_request_that_is_given_up_is_recorded() {
        let (buffer, chain) = (Buffer::default(), Chain::new());
        let settings = Settings { format: Format::Json, level: LevelFilter::INFO, crates: &[TARGET] };
        let call = Call { chain: &chain, request_id: "r", method: "PATCH", path: "/x", peer: None, caller: None };
        tracing::subscriber::with_default(log::subscriber(settings, buffer.clone()), || {
            drop(call.write());
            call.write().refused();
            drop(call.deny("get on Cluster"));
            call.deny("list on Cluster").about(None);
        });
        let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        let because: Vec<&str> =
            text.lines().filter_map(|line| line.split("because\":\"").nth(1)?.split('"').next()).collect();
        assert_eq!(because, [UNKNOWN, "get on Cluster", "list on Cluster"]);
    }
}
