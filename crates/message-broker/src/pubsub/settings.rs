//! Settings of the client of Pub/Sub: project, endpoint, handling of missing objects.

use std::time::Duration;

use google_cloud_auth::credentials::{self, Credentials};

/// Settings of the client.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Google Cloud project.
    pub project: String,
    /// Endpoint of the requests.
    pub endpoint: Endpoint,
    /// Handling of missing topics and subscriptions.
    pub provision: Provision,
    /// Maximum time of one attempt.
    pub attempt_timeout: Duration,
}

/// Endpoint and identity of the requests.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Endpoint {
    /// Google, with application default credentials.
    #[default]
    Google,
    /// An emulator at `HOST:PORT`, by plain HTTP without identity, as in `PUBSUB_EMULATOR_HOST`.
    Emulator(String),
}

/// Handling of missing topics and subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Provision {
    /// They are an error that names the command that creates them.
    #[default]
    Check,
    /// Topic, subscription, dead-letter topic and its subscription are created.
    Create,
}

// === impl Settings ===

impl Settings {
    /// Returns the settings for Google's Pub/Sub, with topics and subscriptions that exist.
    pub fn new(project: &str) -> Self {
        Self {
            project: project.to_owned(),
            endpoint: Endpoint::default(),
            provision: Provision::default(),
            attempt_timeout: Duration::from_secs(5),
        }
    }
}

// === impl Endpoint ===

impl Endpoint {
    pub(super) fn address(&self) -> String {
        match self {
            Self::Google => "https://pubsub.googleapis.com".to_owned(),
            Self::Emulator(host) => format!("http://{host}"),
        }
    }

    pub(super) fn credentials(&self) -> Result<Credentials, google_cloud_auth::build_errors::Error> {
        match self {
            Self::Google => credentials::Builder::default().build(),
            Self::Emulator(_) => Ok(credentials::anonymous::Builder::new().build()),
        }
    }
}
