//! Tokens as Entra issues them: to an application that shows its client secret or a signed assertion.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::refusal::Refusal;
use super::settings::{Identity, Settings};
use crate::signed::Signer;

/// The resource for which a vault accepts tokens.
pub(crate) const RESOURCE: &str = "https://vault.azure.net";

/// The audience of the assertions that are exchanged for tokens.
const EXCHANGE: &str = "api://AzureADTokenExchange";

/// The form's name of an assertion.
const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Issues tokens and reads them.
#[derive(Debug)]
pub(crate) struct Entra {
    signer: Signer,
    identities: Vec<Identity>,
    lifetime: SignedDuration,
}

/// The claims of a token or an assertion.
#[derive(Deserialize)]
struct Claims {
    aud: String,
    /// Unix seconds.
    exp: i64,
    sub: Option<String>,
    appid: Option<String>,
}

/// The fields of a request for a token.
pub(crate) struct Form(Vec<(String, String)>);

// === impl Form ===

impl Form {
    pub(crate) fn read(body: &[u8]) -> Self {
        Self(form_urlencoded::parse(body).into_owned().collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    fn need(&self, name: &str) -> Result<&str, Refusal> {
        let absent = || format!("AADSTS900144: The request body must contain the following parameter: '{name}'.");
        self.get(name).ok_or_else(|| Refusal::new(400, "invalid_request", absent()))
    }
}

impl std::fmt::Debug for Form {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Form(redacted)")
    }
}

// === impl Entra ===

impl Entra {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            signer: Signer::new(None),
            identities: settings.identities.clone(),
            lifetime: SignedDuration::try_from(settings.token_lifetime).unwrap_or(SignedDuration::MAX),
        }
    }

    /// An assertion of `subject`, as an issuer that the tenant trusts would sign it.
    pub(crate) fn assertion(&self, now: Timestamp, subject: &str) -> String {
        let until = now.saturating_add(self.lifetime).unwrap_or(Timestamp::MAX);
        self.signer.issue(&json!({"sub": subject, "aud": EXCHANGE, "exp": until.as_second()}))
    }

    /// Answers a request for a token.
    pub(crate) fn token(&self, now: Timestamp, form: &Form) -> Result<Value, Refusal> {
        let grant = form.need("grant_type")?;
        if grant != "client_credentials" {
            let message = format!("AADSTS70003: The app requested an unsupported grant type '{grant}'.");
            return Err(Refusal::new(400, "unsupported_grant_type", message));
        }
        let (client, scope) = (form.need("client_id")?, form.need("scope")?);
        let Some(resource) = scope.strip_suffix("/.default") else {
            let message =
                format!("AADSTS1002012: The value '{scope}' for scope is not valid: it must end in /.default.");
            return Err(Refusal::new(400, "invalid_scope", message));
        };
        let Some(identity) = self.identities.iter().find(|identity| identity.client_id == client) else {
            let message =
                format!("AADSTS700016: Application with identifier '{client}' was not found in the directory.");
            return Err(Refusal::new(400, "unauthorized_client", message));
        };
        self.authenticate(now, identity, form)?;
        let until = now.saturating_add(self.lifetime).unwrap_or(Timestamp::MAX);
        let token = self.signer.issue(&json!({
            "aud": resource, "appid": client, "iat": now.as_second(), "exp": until.as_second(), "uti": rand::random::<u64>(),
        }));
        let seconds = self.lifetime.as_secs();
        Ok(json!({"token_type": "Bearer", "expires_in": seconds, "ext_expires_in": seconds, "access_token": token}))
    }

    /// The identity that a bearer token stands for.
    pub(crate) fn identity(&self, now: Timestamp, token: &str) -> Result<&Identity, Refusal> {
        let unknown = || Refusal::unauthorized("AKV10000: The token is not one of this tenant.");
        let claims = self.read(token).ok_or_else(unknown)?;
        if claims.aud != RESOURCE {
            return Err(Refusal::unauthorized(format!("AKV10022: Invalid audience. Expected {RESOURCE}.")));
        }
        if claims.exp <= now.as_second() {
            return Err(Refusal::unauthorized("[TokenExpired] Error validating token: the token has expired."));
        }
        let mut identities = self.identities.iter();
        identities.find(|identity| Some(&identity.client_id) == claims.appid.as_ref()).ok_or_else(unknown)
    }

    fn read(&self, token: &str) -> Option<Claims> {
        serde_json::from_value(self.signer.read(token)?).ok()
    }

    fn authenticate(&self, now: Timestamp, identity: &Identity, form: &Form) -> Result<(), Refusal> {
        let invalid = |message: &str| Err(Refusal::new(401, "invalid_client", message));
        if let Some(secret) = form.get("client_secret") {
            if identity.secret.as_deref() == Some(secret) {
                return Ok(());
            }
            return invalid("AADSTS7000215: Invalid client secret provided.");
        }
        if form.get("client_assertion_type") != Some(JWT_BEARER) {
            return invalid(
                "AADSTS7000218: The request body must contain the following parameter: 'client_assertion' or 'client_secret'.",
            );
        }
        let Some(claims) = self.read(form.need("client_assertion")?) else {
            return invalid("AADSTS50013: Assertion failed signature validation.");
        };
        if claims.exp <= now.as_second() {
            return invalid("AADSTS700024: Client assertion is not within its valid time range.");
        }
        if claims.aud != EXCHANGE || claims.sub.is_none() || claims.sub != identity.subject {
            return invalid("AADSTS700213: No matching federated identity record found for presented assertion.");
        }
        Ok(())
    }
}
