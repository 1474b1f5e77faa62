//! The ways to AMS and to its SSO.

use std::time::Duration;

use daemon::connections::{Connections, Server};
use fleet_model::names::client::PULL_SECRET;
use http::HeaderMap;
use http::header::RETRY_AFTER;

use crate::error::{AmsError, ErrorKind, Operation};
use crate::settings::AmsSettings;

/// The connections of a client.
pub(crate) struct Connected {
    pub(crate) settings: AmsSettings,
    pub(crate) ams: Connections,
    pub(crate) sso: Connections,
}

// === impl Connected ===

impl Connected {
    pub(crate) fn new(settings: AmsSettings) -> Result<Self, AmsError> {
        let connections = |is_plain| {
            let server = Server {
                authorities: "the certificate authorities of AMS",
                is_plain,
                ca_file: settings.ca_file.clone(),
                certificate: None,
                user_agent: format!("{PULL_SECRET}/{}", env!("CARGO_PKG_VERSION")),
                connect_timeout: settings.call_timeout,
            };
            let failed = AmsError::new(Operation::Connect, settings.address.as_str(), ErrorKind::Invalid);
            Connections::new(server).map_err(|error| failed.with_detail(error))
        };
        let ams = connections(settings.address.plain_host().is_some())?;
        let sso = connections(settings.token_address.plain_host().is_some())?;
        Ok(Self { settings, ams, sso })
    }
}

/// Returns the delay that a server asks for.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    daemon::causes::retry_after(headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()))
}
