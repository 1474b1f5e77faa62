//! Probes of credentials at registries: those of `registry_account`, with this program's name, settings and findings.

use std::path::Path;
use std::time::Duration;

use fleet_model::names::client;
use registry_account::probe::{
    Cause, Finding as Answer, ProbeRequest as Question, ProberSettings, SetupError as Fault,
};

use crate::finding::{Finding, ProbeRequest, Verdict};

pub use registry_account::probe::Gate;

/// Probes registries.
#[derive(Debug)]
pub struct Prober(registry_account::probe::Prober);

/// An error that prevents all probes.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The file of authorities cannot be read or has none.
    #[error("probe.ca_file: cannot be read, or has no certificate in PEM")]
    CaFile,
    /// The system's authorities cannot be used.
    #[error("cannot set up TLS for probing registries: {0}")]
    Tls(#[source] reqwest::Error),
}

// === impl Prober ===

impl Prober {
    /// Sets the client up. No request is sent.
    pub fn new(gate: Gate, ca_file: Option<&Path>, timeout: Duration) -> Result<Self, SetupError> {
        let user_agent = format!("{}/{}", client::GLOBAL_PULL_SECRET, env!("CARGO_PKG_VERSION"));
        let settings = ProberSettings { gate, ca_file: ca_file.map(Path::to_path_buf), timeout, user_agent };
        let prober = registry_account::probe::Prober::new(settings).map_err(|fault| match fault {
            Fault::CaFile => SetupError::CaFile,
            Fault::Tls(cause) => SetupError::Tls(cause),
        })?;
        Ok(Self(prober))
    }

    /// Asks; the answer comes in bounded time, whatever the registry does.
    pub async fn probe(&self, request: &ProbeRequest) -> Finding {
        let question = Question { host: request.host.clone(), credential: request.credential.clone(), image: None };
        finding(self.0.probe(&question).await)
    }
}

/// Returns the finding about an entry; it names the flag of an address that the gate keeps out.
fn finding(answer: Answer) -> Finding {
    use registry_account::probe::Verdict as Given;
    let verdict = match answer.verdict {
        Given::Accepted | Given::Pulls => Verdict::Accepted,
        Given::Refused | Given::NotPermitted => Verdict::Refused,
        Given::Inconclusive => Verdict::Unreachable,
    };
    let flag = match answer.cause {
        Cause::NotAllowed => " (--probe-allow-private)",
        Cause::Denied => " (--probe-deny)",
        _ => "",
    };
    Finding::new(verdict, format!("{answer}{flag}"))
}
