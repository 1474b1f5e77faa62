//! The access token: the client-credentials grant, its life, and its replacement.

use std::time::Duration;

use daemon::exchange::{Answered, Exchange};
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::connected::{Connected, retry_after};
use crate::error::{AmsError, ErrorKind, Operation};
use crate::wire::{self, Granted};

/// Maximum size of the SSO's answer in bytes.
const MAX_ANSWER: usize = 64 * 1024;
/// Maximum size of the file with the secret in bytes.
const MAX_SECRET: u64 = 16 * 1024;
/// Time before its end at which a token is not used any more.
const MARGIN: Duration = Duration::from_secs(30);

/// The access token in use.
#[derive(Default)]
pub(crate) struct Tokens(Mutex<Option<Held>>);

struct Held {
    header: HeaderValue,
    until: Instant,
}

// === impl Tokens ===

impl Tokens {
    /// Returns the header with the token; a new one is asked for if there is none, or its life is over.
    pub(crate) async fn header(&self, connected: &Connected, deadline: Instant) -> Result<HeaderValue, AmsError> {
        let mut held = self.0.lock().await;
        if let Some(held) = held.as_ref().filter(|held| held.until > Instant::now()) {
            return Ok(held.header.clone());
        }
        let new = ask(connected, deadline).await?;
        let header = new.header.clone();
        *held = Some(new);
        Ok(header)
    }

    /// Forgets a token that was refused, unless there is another one already.
    pub(crate) async fn refused(&self, header: &HeaderValue) {
        let mut held = self.0.lock().await;
        if held.as_ref().is_some_and(|held| held.header == *header) {
            *held = None;
        }
    }
}

async fn ask(connected: &Connected, deadline: Instant) -> Result<Held, AmsError> {
    let failed = |kind| AmsError::new(Operation::Authenticate, connected.settings.token_address.as_str(), kind);
    let secret = secret(connected).await.map_err(|detail| failed(ErrorKind::Unauthenticated).with_detail(detail))?;
    let pairs = [
        ("grant_type", "client_credentials"),
        ("client_id", connected.settings.client_id.as_str()),
        ("client_secret", secret.expose_secret()),
    ];
    let form = Zeroizing::new(form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish());
    let client = connected.sso.current();
    let request = client.post(connected.settings.token_address.as_str());
    let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form.as_bytes().to_vec());
    let asked = Instant::now();
    let exchange = Exchange { request, deadline, longest: MAX_ANSWER, name: "token", log: None };
    let answered = exchange.send().await;
    let Answered { status, body, headers } =
        answered.map_err(|unanswered| unanswered.into_error(failed(ErrorKind::Unavailable)))?;
    let body = Zeroizing::new(body);
    match status {
        200 => {
            let Granted { token, seconds } = wire::granted(&body).ok_or_else(|| failed(ErrorKind::Internal))?;
            let header = bearer(&token).ok_or_else(|| failed(ErrorKind::Internal))?;
            let life = Duration::from_secs(seconds);
            Ok(Held { header, until: asked + life.saturating_sub(MARGIN.min(life / 2)) })
        }
        // The SSO says so of a wrong secret, too.
        400 | 401 => Err(failed(ErrorKind::Unauthenticated).with_detail(format!("HTTP status {status}"))),
        _ => {
            let retry_after = retry_after(&headers);
            let failed = AmsError { retry_after, ..failed(ErrorKind::of_status(status)) };
            Err(failed.with_detail(format!("HTTP status {status}")))
        }
    }
}

async fn secret(connected: &Connected) -> Result<SecretString, String> {
    let path = &connected.settings.client_secret_file;
    let unusable = |problem: &str| format!("the file {} {problem}", path.display());
    let file = File::open(path).await.map_err(|_error| unusable("cannot be read"))?;
    let mut text = Zeroizing::new(String::new());
    file.take(MAX_SECRET + 1).read_to_string(&mut text).await.map_err(|_error| unusable("cannot be read"))?;
    let secret = text.trim();
    if secret.is_empty() || text.len() as u64 > MAX_SECRET {
        return Err(unusable("does not hold a secret"));
    }
    Ok(SecretString::from(secret))
}

fn bearer(token: &SecretString) -> Option<HeaderValue> {
    let text = Zeroizing::new(format!("Bearer {}", token.expose_secret()));
    let mut header = HeaderValue::from_str(&text).ok()?;
    header.set_sensitive(true);
    Some(header)
}
