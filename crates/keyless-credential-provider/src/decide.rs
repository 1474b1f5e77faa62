//! Decisions about a request and about the registry's answer to it.

use std::collections::BTreeMap;

use fleet_model::names::ANNOTATION_ROBOT;
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::answer::Answer;
use crate::endpoint::Endpoint;
use crate::interface::{API_VERSION, RESPONSE};
use crate::jwt::{self, Claims};
use crate::refusal::{Refusal, is_transient};
use crate::request::Request;
use crate::robot::Robot;
use crate::settings::Settings;

#[cfg(test)]
mod tests;

/// The longest time for which the kubelet keeps a password: fifty minutes of Quay's hour.
const LONGEST_CACHE: i64 = 50 * 60;
/// The part of a password's life for which the kubelet keeps it, as a fraction: a pull that begins at its end still has the rest.
const CACHED_PART: (i64, i64) = (5, 6);

/// The exchange of a service account's token for a password.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) endpoint: Endpoint,
    pub(crate) robot: Robot,
    pub(crate) token: SecretString,
}

#[derive(Deserialize)]
struct Issued {
    token: SecretString,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    kind: &'static str,
    api_version: &'static str,
    cache_key_type: &'static str,
    cache_duration: String,
    auth: BTreeMap<&'a str, Login<'a>>,
}

#[derive(Serialize)]
struct Login<'a> {
    username: &'a str,
    password: &'a str,
}

/// Returns the exchange that a request asks for. A token is sent for images of the one registry only.
pub(crate) fn exchange(settings: &Settings, request: Request) -> Result<Exchange, Refusal> {
    let host = request.image.split_once('/').map(|(host, _repository)| host);
    if !host.is_some_and(|host| host.eq_ignore_ascii_case(&settings.registry)) {
        return Err(Refusal::OtherRegistry { registry: settings.registry.clone() });
    }
    let token = request.token.filter(|token| !token.expose_secret().is_empty()).ok_or(Refusal::NoToken)?;
    if !jwt::is_jwt(token.expose_secret()) {
        return Err(Refusal::NoJwt);
    }
    let robot = match request.annotations.get(ANNOTATION_ROBOT) {
        Some(robot) => robot.parse().map_err(Refusal::Robot)?,
        None => settings.robot.clone().ok_or(Refusal::NoRobot)?,
    };
    Ok(Exchange { endpoint: settings.endpoint.clone(), robot, token })
}

/// Returns the response to the kubelet.
pub(crate) fn response(
    settings: &Settings,
    exchange: &Exchange,
    answer: &Answer,
    now: Timestamp,
) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    let password = password(exchange, answer)?;
    let login = Login { username: exchange.robot.as_str(), password: password.expose_secret() };
    let response = Response {
        kind: RESPONSE,
        api_version: API_VERSION,
        cache_key_type: "Registry",
        cache_duration: format!("{}s", cache_seconds(password.expose_secret(), now)),
        auth: BTreeMap::from([(settings.registry.as_str(), login)]),
    };
    // The buffer does not grow, so no copy stays behind.
    let mut text = Zeroizing::new(Vec::with_capacity(crate::answer::LONGEST_ANSWER));
    serde_json::to_writer(&mut *text, &response).map_err(|error| Refusal::Output(error.into()))?;
    text.push(b'\n');
    Ok(text)
}

fn password(exchange: &Exchange, answer: &Answer) -> Result<SecretString, Refusal> {
    let endpoint = || exchange.endpoint.to_string();
    let status = answer.status;
    let failed = |hint| Err(Refusal::Status { endpoint: endpoint(), status, hint });
    match status {
        200 => {}
        400 | 401 | 403 => return Err(refused(exchange, status)),
        300..400 => return failed("redirects are not followed, so that no token goes to another host"),
        404 => return failed("check --federation-url: this server has no federation of robots there"),
        status if is_transient(status) => return failed("the kubelet tries again with the next pull"),
        _ => return failed("check --federation-url"),
    }
    let unusable = |reason| Refusal::Answer { endpoint: endpoint(), reason };
    let issued = serde_json::from_slice::<Issued>(&answer.body).map_err(|_quotes| unusable("it has no token"))?;
    let token = issued.token.expose_secret();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(unusable("its token is empty, or not of printable characters"));
    }
    Ok(issued.token)
}

/// The refusal of a token, with what the robot's federation would have to say. Neither claim is a secret.
fn refused(exchange: &Exchange, status: u16) -> Refusal {
    let claims = jwt::claims(exchange.token.expose_secret()).unwrap_or_default();
    Refusal::Refused {
        robot: exchange.robot.to_string(),
        status,
        issuer: jwt::quoted(claims.iss.as_deref()),
        subject: jwt::quoted(claims.sub.as_deref()),
    }
}

/// Returns the seconds for which the kubelet may keep a password. Zero, so not at all, for one whose end is unknown or past.
///
/// Of the life by the registry's own clock and the rest by the node's, the shorter one counts: a node whose clock is wrong keeps a
/// password too short, and never too long.
fn cache_seconds(password: &str, now: Timestamp) -> i64 {
    let Some(Claims { iat, exp: Some(end), .. }) = jwt::claims(password) else { return 0 };
    let rest = end.saturating_sub(now.as_second());
    let life = iat.map_or(rest, |begin| end.saturating_sub(begin)).min(rest);
    let (part, whole) = CACHED_PART;
    (life.clamp(0, 2 * LONGEST_CACHE) * part / whole).min(LONGEST_CACHE)
}
