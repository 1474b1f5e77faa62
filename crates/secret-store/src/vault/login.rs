//! The identity: a token, had by a login or from a file, and replaced before it expires.

use std::path::Path;
use std::time::Duration;

use http::Method;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::client::{Body, Call, Request};
use super::token::Token;
use super::wire::{Issued, IssuedToken};
use crate::error::ErrorKind;
use crate::{StoreError, VaultLogin};

/// The login, and the token that it has last led to.
pub(super) struct Login {
    login: VaultLogin,
    /// Locked during a login, so that there is one at a time.
    held: Mutex<Option<Held>>,
}

/// A token of a login.
struct Held {
    token: Token,
    /// Time from which another login is made; `None` if the token does not expire.
    renew_at: Option<Instant>,
    /// Time from which the server does not accept it.
    expires_at: Option<Instant>,
}

// === impl Login ===

impl Login {
    /// Fails, naming the file, if the credential cannot be read.
    pub(super) fn new(login: VaultLogin) -> Result<Self, String> {
        read(file(&login))?;
        Ok(Self { login, held: Mutex::new(None) })
    }

    /// Returns the token for a request; makes a login if there is none, or if its time is nearly over.
    pub(super) async fn token(&self, call: &Call<'_>) -> Result<Token, StoreError> {
        if let VaultLogin::TokenFile(path) = &self.login {
            return self.token_in(call, path);
        }
        let mut held = self.held.lock().await;
        let now = Instant::now();
        match &*held {
            Some(held) if held.renew_at.is_none_or(|renewal| now < renewal) => Ok(held.token.clone()),
            Some(former) if former.expires_at.is_none_or(|end| now < end) => {
                let former = former.token.clone();
                match self.log_in(call).await {
                    Ok(renewed) => Ok(held.insert(renewed).token.clone()),
                    // The former one is good for a while.
                    Err(_not_renewed) => Ok(former),
                }
            }
            _ => Ok(held.insert(self.log_in(call).await?).token.clone()),
        }
    }

    /// Returns true if the server knows the token: it answers alike to a token that it does not know and to one that may not
    /// do something.
    pub(super) async fn is_accepted(&self, call: &Call<'_>, token: &Token) -> Result<bool, StoreError> {
        let request = Request {
            name: "lookup_self",
            needs: None,
            method: Method::GET,
            path: "auth/token/lookup-self".to_owned(),
            query: String::new(),
            body: None,
        };
        let answer = call.transmit(&request, Some(token)).await?;
        match answer.status {
            403 => Ok(false),
            _ => call.accepted(&request, answer).map(|_reply| true),
        }
    }

    /// Returns a token in place of one that the server has refused.
    pub(super) async fn renewed(&self, call: &Call<'_>, refused: &Token) -> Result<Token, StoreError> {
        if let VaultLogin::TokenFile(path) = &self.login {
            let token = self.token_in(call, path)?;
            let detail = format!("the server does not accept the token in {}", path.display());
            return if token == *refused { Err(self.unauthenticated(call, detail)) } else { Ok(token) };
        }
        let mut held = self.held.lock().await;
        match &*held {
            // Another call was faster.
            Some(held) if held.token != *refused => Ok(held.token.clone()),
            _ => {
                *held = None;
                Ok(held.insert(self.log_in(call).await?).token.clone())
            }
        }
    }

    fn token_in(&self, call: &Call<'_>, path: &Path) -> Result<Token, StoreError> {
        let token = read(path).map_err(|detail| self.unauthenticated(call, detail))?;
        Token::new(&token).ok_or_else(|| self.unauthenticated(call, format!("{} holds no token", path.display())))
    }

    async fn log_in(&self, call: &Call<'_>) -> Result<Held, StoreError> {
        let credential = read(file(&self.login)).map_err(|detail| self.unauthenticated(call, detail))?;
        let text = credential.expose_secret().trim();
        let (mount, body): (&str, Value) = match &self.login {
            VaultLogin::Jwt { mount, role, .. } => (mount, json!({"role": role, "jwt": text})),
            VaultLogin::AppRole { mount, role_id, .. } => (mount, json!({"role_id": role_id, "secret_id": text})),
            VaultLogin::TokenFile(_) => return Err(self.unauthenticated(call, "there is no login".to_owned())),
        };
        let request = Request {
            name: "login",
            needs: None,
            method: Method::POST,
            path: format!("auth/{mount}/login"),
            query: String::new(),
            body: Some(Body { json: body.to_string(), secret: Some(text.to_owned()) }),
        };
        let start = Instant::now();
        let answer = call.transmit(&request, None).await?;
        if (200..300).contains(&answer.status) {
            return held(&answer.body, start).ok_or_else(|| call.unreadable());
        }
        let status = answer.status;
        match call.accepted(&request, answer) {
            Ok(_reply) => Err(self.unauthenticated(call, format!("the login is answered with HTTP status {status}"))),
            // The server says so to credentials that it does not accept, and to mounts and roles that it does not have.
            Err(error) if matches!(status, 400 | 401 | 403 | 404 | 405) => {
                let message = error.detail.unwrap_or_default();
                Err(self.unauthenticated(call, format!("the login is refused: {message}")))
            }
            Err(error) => Err(error),
        }
    }

    fn unauthenticated(&self, call: &Call<'_>, detail: String) -> StoreError {
        let hint = match &self.login {
            VaultLogin::TokenFile(path) => format!("renew the token in {}", path.display()),
            VaultLogin::Jwt { mount, role, token_file } => format!(
                "check that the auth method at auth/{mount} has the role {role}, and that the role accepts the token in {} \
                 (audience, issuer, service account and namespace)",
                token_file.display()
            ),
            VaultLogin::AppRole { mount, role_id, secret_id_file } => format!(
                "check that the auth method at auth/{mount} has the role id {role_id}, and that the secret id in {} can still \
                 be used",
                secret_id_file.display()
            ),
        };
        StoreError { hint: Some(hint), ..call.failed(ErrorKind::Unauthenticated) }.with_detail(detail)
    }
}

/// Returns the token of a login that was made at `start`; `None` if the answer has none.
fn held(body: &[u8], start: Instant) -> Option<Held> {
    let Issued { auth } = serde_json::from_slice(body).ok()?;
    let lease = Some(Duration::from_secs(auth.lease_duration)).filter(|lease| !lease.is_zero());
    let at = |time: Option<Duration>| time.and_then(|time| start.checked_add(time));
    let (renew_at, expires_at) = (at(lease.map(|lease| lease * 2 / 3)), at(lease));
    Some(Held { token: Token::new(&IssuedToken::into_token(auth))?, renew_at, expires_at })
}

/// Returns the file with the credential.
fn file(login: &VaultLogin) -> &Path {
    match login {
        VaultLogin::TokenFile(path)
        | VaultLogin::Jwt { token_file: path, .. }
        | VaultLogin::AppRole { secret_id_file: path, .. } => path,
    }
}

fn read(path: &Path) -> Result<SecretString, String> {
    match std::fs::read_to_string(path) {
        Ok(text) if text.trim().is_empty() => Err(format!("{} is empty", path.display())),
        Ok(text) => Ok(text.into()),
        Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
    }
}
