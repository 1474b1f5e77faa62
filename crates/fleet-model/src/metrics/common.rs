//! Metrics that several programs have.

use super::metrics;

metrics! {
    /// Metrics of several programs.
    METRICS:
    /// Time at which a certificate in use expires, in Unix time, by what has it: `server`, or the setting of a kubeconfig or of a client's certificate.
    CERTIFICATE_EXPIRY = Gauge "hyperfleet_certificate_expiry_timestamp" in Seconds by &["certificate"];
}
