//! JSON Web Tokens: their trusted issuers, their verification, and the identity in their claims.

mod files;
mod keys;
mod settings;

use http::HeaderMap;
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use keys::Keys;
use regex::Regex;
use serde_json::{Map, Value};

use super::identity::Verified;
use super::proxies::Trust;
use crate::authorization::Identity;
use crate::problem::{Code, Problem, Rejection};

pub use settings::IssuerSettings;

/// Maximum clock skew between the issuer and this server.
const LEEWAY_SECONDS: i64 = 30;

/// The trusted issuers.
#[derive(Debug)]
pub struct Issuers(Vec<Issuer>);

#[derive(Debug)]
struct Issuer {
    settings: IssuerSettings,
    pattern: Option<Regex>,
    keys: Keys,
}

// === impl Issuers ===

impl Issuers {
    /// Creates the issuers, or returns every fault of the settings.
    pub fn new(settings: Vec<IssuerSettings>) -> Result<Self, Vec<String>> {
        if settings.is_empty() {
            return Err(vec!["server.jwt.configs: authentication is on, but no issuer is configured".to_owned()]);
        }
        let created = settings.into_iter().enumerate().map(|(index, settings)| {
            Issuer::new(settings).map_err(|fault| format!("server.jwt.configs[{index}].{fault}"))
        });
        let (created, faults): (Vec<_>, Vec<_>) = created.partition(Result::is_ok);
        if faults.is_empty() {
            return Ok(Self(created.into_iter().filter_map(Result::ok).collect()));
        }
        Err(faults.into_iter().filter_map(Result::err).collect())
    }

    /// The identity in a request's token; `None` if a valid token has none.
    pub(super) async fn identity(
        &self,
        headers: &HeaderMap,
        trust: Trust,
        now: Timestamp,
    ) -> Result<Option<Identity>, Rejection> {
        let given = self.0.iter().find_map(|issuer| headers.get(&issuer.settings.header));
        let missing = || Problem::new(Code::Unauthenticated, "missing authorization header");
        let given = given.ok_or_else(missing)?;
        let no_bearer = || invalid("authorization header does not use Bearer scheme");
        let (scheme, token) = given.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(no_bearer)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(no_bearer().into());
        }
        let token = token.trim();
        let named = unverified_issuer(token);
        let issuer = self.0.iter().find(|issuer| Some(issuer.settings.issuer_url.as_str()) == named.as_deref());
        let issuer = issuer.filter(|issuer| headers.get(&issuer.settings.header) == Some(given));
        let issuer = issuer.ok_or_else(|| invalid("invalid JWT token"))?;
        let claims = issuer.verify(token, now).await?;
        let IssuerSettings { issuer_url, identity_claim, identity_header, .. } = &issuer.settings;
        let (pattern, header) = (issuer.pattern.as_ref(), identity_header.as_deref());
        Ok(Verified { issuer: issuer_url, claim: identity_claim, pattern, header, claims, headers, trust }.identity())
    }
}

// === impl Issuer ===

impl Issuer {
    fn new(settings: IssuerSettings) -> Result<Self, String> {
        let pattern = settings.identity_claim_pattern.as_ref().map(|pattern| Regex::new(&format!("^(?:{pattern})$")));
        let pattern = pattern.transpose().map_err(|_syntax| "identity_claim_pattern: is not a regular expression")?;
        if http::HeaderName::try_from(&settings.header).is_err() {
            return Err("header: is not the name of a header".to_owned());
        }
        let keys = Keys::of(&settings)?;
        Ok(Self { settings, pattern, keys })
    }

    /// Verifies a token at time `now` and returns its claims.
    async fn verify(&self, token: &str, now: Timestamp) -> Result<Map<String, Value>, Rejection> {
        let broken = || Rejection::from(invalid("invalid JWT token"));
        let header = decode_header(token).map_err(|_malformed| broken())?;
        if header.alg != Algorithm::RS256 {
            return Err(broken());
        }
        let key = self.keys.find(header.kid.as_deref()).await?.ok_or_else(broken)?;
        let mut validation = Validation::new(Algorithm::RS256);
        // Times are checked below against the time of the request, not the system clock.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.required_spec_claims = ["exp", "iss"].map(str::to_owned).into();
        validation.set_issuer(&[&self.settings.issuer_url]);
        // Without an audience, tokens that were made for another service would be accepted.
        let audience = self.settings.audience.as_ref().filter(|audience| !audience.is_empty()).ok_or_else(broken)?;
        validation.set_audience(&[audience]);
        // The crate accepts a token without `aud` unless the claim is required.
        validation.required_spec_claims.insert("aud".to_owned());
        let claims = decode::<Map<String, Value>>(token, &key, &validation).map_err(|_refused| broken())?.claims;
        let second = |name: &str| claims.get(name).and_then(Value::as_f64);
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 have 31 bits")]
        let (now, leeway) = (now.as_second() as f64, LEEWAY_SECONDS as f64);
        if second("exp").is_none_or(|expiry| expiry + leeway < now) {
            return Err(Problem::new(Code::InvalidToken, "JWT token has expired").into());
        }
        let begins = claims.get("nbf").map(|_| second("nbf"));
        if begins.is_some_and(|begin| begin.is_none_or(|begin| begin - leeway > now)) {
            return Err(broken());
        }
        Ok(claims)
    }
}

/// The issuer that a token names. The claim is not verified yet.
fn unverified_issuer(token: &str) -> Option<String> {
    use base64::Engine as _;
    let claims = token.split('.').nth(1)?;
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims).ok()?;
    let claims: Map<String, Value> = serde_json::from_slice(&claims).ok()?;
    claims.get("iss")?.as_str().map(str::to_owned)
}

fn invalid(detail: &str) -> Problem {
    Problem::new(Code::InvalidCredentials, detail)
}
