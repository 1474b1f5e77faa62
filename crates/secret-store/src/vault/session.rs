//! Sends requests with a token that the server accepts.

use super::client::{Answer, Call, Client, Reply, Request};
use super::errors;
use super::login::Login;
use crate::error::{ErrorKind, Operation};
use crate::{StoreError, VaultSettings};

/// The way to the server, and the identity there.
pub(super) struct Session {
    pub(super) client: Client,
    login: Login,
}

// === impl Session ===

impl Session {
    pub(super) fn new(settings: &VaultSettings) -> Result<Self, StoreError> {
        let client = Client::new(settings)?;
        let login = Login::new(settings.login.clone()).map_err(|detail| {
            let resource = settings.address.as_str();
            errors::failed(Operation::Connect, resource, ErrorKind::Unauthenticated).with_detail(detail)
        })?;
        Ok(Self { client, login })
    }

    /// Sends a request and returns its answer, if it was carried out.
    pub(super) async fn send(&self, call: &Call<'_>, request: &Request) -> Result<Reply, StoreError> {
        let answer = self.exchange(call, request).await?;
        call.accepted(request, answer)
    }

    /// Sends a request with a token, and once more with a new one if the server does not accept the first.
    pub(super) async fn exchange(&self, call: &Call<'_>, request: &Request) -> Result<Answer, StoreError> {
        let token = self.login.token(call).await?;
        let answer = call.transmit(request, Some(&token)).await?;
        if answer.status != 403 || self.login.is_accepted(call, &token).await? {
            return Ok(answer);
        }
        let token = self.login.renewed(call, &token).await?;
        call.transmit(request, Some(&token)).await
    }
}
