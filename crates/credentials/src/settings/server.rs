//! The check of the settings of the HTTP API.

use daemon::host::is_loopback;

use super::shape::ServerSettings;

// === impl ServerSettings ===

impl ServerSettings {
    /// Adds the faults of settings that contradict each other.
    pub(super) fn check(&self, faults: &mut Vec<String>) {
        let (certificate, key) = (&self.tls.cert_file, &self.tls.key_file);
        if certificate.is_some() != key.is_some() {
            faults.push("server.tls: needs cert_file and key_file, or none of them".to_owned());
        }
        if self.enabled && certificate.is_none() && !is_loopback(&self.host) {
            let fault = "server.host: passwords leave this machine over TLS only: give server.tls.cert_file and server.tls.key_file";
            faults.push(fault.to_owned());
        }
        if self.audience.trim().is_empty() {
            faults.push("server.audience: must not be empty".to_owned());
        }
    }
}
