//! The checks of the HyperFleet API.

use fleet_model::names;
use hyperfleet_client::{Claims, ConnectionFault, Identity, Probe};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::checks::{CERTIFICATE_EXPIRING, Checks};
use crate::decide::age;
use crate::doctor::facts::{ApiFacts, Facts, Refusal};
use crate::doctor::{Group, Line};

/// Maximum difference of clocks: the API accepts tokens that expired so long ago, or begin so soon.
const MAX_CLOCK_DIFFERENCE: SignedDuration = SignedDuration::from_secs(30);

/// Resolution of the header `Date`.
const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// Makes a token with the identity of the adapter.
const CREATE_TOKEN: &str = "umask 077; kubectl --namespace hyperfleet-system create token pullsecret-adapter --audience hyperfleet-api > token \
                            && export HYPERFLEET_API_AUTH_TOKEN_PATH=token";

/// Writes the authority that the installation guide makes.
const GET_AUTHORITY: &str = r"kubectl --namespace hyperfleet-system get configmap hyperfleet-api-ca --output jsonpath='{.data.ca\.crt}' > ca.crt \
                             && export HYPERFLEET_API_CA_FILE=ca.crt";

/// Stores a certificate that was made as the installation guide says.
const REPLACE_CERTIFICATE: &str = "kubectl --namespace hyperfleet-system create secret tls hyperfleet-api-tls --cert=tls.crt --key=tls.key \
                                   --dry-run=client --output yaml | kubectl apply -f -";

const SET_ADDRESS: &str = "export HYPERFLEET_API_BASE_URL=https://HOST:PORT";

/// Texts of rustls for a certificate of another authority; the second is for one of the same name, as after it was made anew.
const UNTRUSTED: [&str; 2] = ["UnknownIssuer", "BadSignature"];

/// The end of the API's address that is not part of its setting.
const API_PATH: &str = "/api/hyperfleet/v1";

pub(super) fn lines(facts: &Facts) -> Vec<Line> {
    let mut checks = Checks::of(Group::Api);
    let api = match &facts.api {
        Ok(api) => api,
        Err(fault) => {
            checks.failed("settings", fault, SET_ADDRESS);
            return checks.lines;
        }
    };
    match &api.probe {
        Ok(probe) => {
            checks.ok("reachable", format!("{} answers", api.address));
            identity(&mut checks, api, facts.now);
            grants(&mut checks, api);
            clock(&mut checks, probe);
            certificate(&mut checks, probe, facts.now);
        }
        Err(refusal) => {
            let (message, fix) = unreachable(&api.address, refusal);
            checks.failed("reachable", message, fix);
            for check in ["identity", "list clusters", "read pull secrets", &report_check(), "clock", "certificate"] {
                checks.skipped(check, "the API does not answer");
            }
        }
    }
    checks.lines
}

/// The cause for which there is no answer, and the command that fixes it.
fn unreachable(address: &str, refusal: &Refusal) -> (String, String) {
    let origin = address.strip_suffix(API_PATH).unwrap_or(address);
    let with_scheme = |scheme: &str| {
        let (_, rest) = origin.split_once("://").unwrap_or_default();
        format!("export HYPERFLEET_API_BASE_URL={scheme}://{rest}")
    };
    let host = origin.split_once("://").map_or(origin, |(_, rest)| rest).split(['/', ':']).next().unwrap_or_default();
    let is_local = host == "localhost" || host.starts_with("127.");
    let fault = match refusal {
        Refusal::Unconnected(fault) => fault,
        Refusal::TimedOut => {
            let fix = format!("curl --verbose --max-time 5 {origin}/api/hyperfleet");
            return (
                format!("{address} gives no answer in time: a firewall or NetworkPolicy may drop the packets"),
                fix,
            );
        }
        other => return (format!("{address}: {}", words(other)), format!("curl --verbose {origin}/api/hyperfleet")),
    };
    match fault {
        ConnectionFault::NotTls => {
            (format!("{address}: the server speaks plain HTTP, and the address begins with https"), with_scheme("http"))
        }
        ConnectionFault::NotPlain => {
            (format!("{address}: the server speaks TLS, and the address begins with http"), with_scheme("https"))
        }
        ConnectionFault::Certificate(reason) if UNTRUSTED.iter().any(|text| reason.contains(text)) => {
            let message = format!("{address}: its certificate is not of an authority that is trusted here: {reason}");
            (message, GET_AUTHORITY.to_owned())
        }
        ConnectionFault::Certificate(reason) => {
            (format!("{address}: its certificate is not accepted: {reason}"), REPLACE_CERTIFICATE.to_owned())
        }
        ConnectionFault::UnknownHost => {
            (format!("{address}: the name {host} cannot be resolved"), SET_ADDRESS.to_owned())
        }
        ConnectionFault::Refused if is_local => {
            let message = format!("{address}: no process listens there");
            (message, "kubectl --namespace hyperfleet-system port-forward service/hyperfleet-api 8000:8000".to_owned())
        }
        ConnectionFault::Refused => {
            let message = format!("{address}: no process listens there");
            (message, "kubectl --namespace hyperfleet-system rollout status deployment/hyperfleet-api".to_owned())
        }
        ConnectionFault::Other(reason) => {
            (format!("{address}: {reason}"), format!("curl --verbose {origin}/api/hyperfleet"))
        }
    }
}

/// The identity that is sent, and whether the API accepts it.
fn identity(checks: &mut Checks, api: &ApiFacts, now: Timestamp) {
    const CHECK: &str = "identity";
    let identity = match &api.identity {
        Ok(identity) => identity,
        Err(fault) => return checks.failed(CHECK, fault, CREATE_TOKEN),
    };
    let refusal = match &api.list {
        Err(Refusal::Unauthenticated(words)) => Some(words),
        _ => None,
    };
    match identity {
        Identity::Anonymous if refusal.is_some() => {
            checks.failed(CHECK, "the API asks for a token, and no file with one is set", CREATE_TOKEN);
        }
        Identity::Anonymous => checks.ok(CHECK, "none is sent, and the API asks for none"),
        Identity::Opaque => match refusal {
            Some(words) => checks.failed(CHECK, format!("the API does not accept the token: {words}"), CREATE_TOKEN),
            None => checks.ok(CHECK, "the API accepts the token, which does not say whose it is"),
        },
        Identity::Claimed(claims) => {
            let of = format!("{} of {}", claims.subject, claims.issuer);
            match (claims.expires(), refusal) {
                (Some(expires), _) if now.duration_since(expires) > MAX_CLOCK_DIFFERENCE => {
                    let message = format!("the token of {of} expired {} ago", age(now.duration_since(expires)));
                    checks.failed(CHECK, message, CREATE_TOKEN);
                }
                (_, Some(words)) => {
                    let message = format!(
                        "the API does not accept the token of {of}: {words}; it must be of an issuer in server.jwt.configs, for its audience"
                    );
                    checks.failed(CHECK, message, CREATE_TOKEN);
                }
                (_, None) => checks.ok(CHECK, of),
            }
        }
    }
}

fn report_check() -> String {
    format!("report as {}", names::ADAPTER)
}

/// The permissions of the adapter at the API, for the identity that is sent.
fn grants(checks: &mut Checks, api: &ApiFacts) {
    let claims = match &api.identity {
        Ok(Identity::Claimed(claims)) => Some(claims),
        _ => None,
    };
    for (check, answer) in
        [("list clusters", &api.list), ("read pull secrets", &api.read), (&report_check(), &api.report)]
    {
        match answer {
            Ok(()) => checks.ok(check, "allowed"),
            Err(Refusal::Unauthenticated(words)) => checks.skipped(check, format!("not authenticated: {words}")),
            Err(Refusal::Denied(words)) => checks.failed(check, words, granting(claims)),
            Err(Refusal::Stranger(status)) => {
                let message =
                    format!("{} answers {status}, and not as a HyperFleet API does: check the address", api.address);
                checks.failed(check, message, SET_ADDRESS);
            }
            Err(other) => checks.failed(
                check,
                words(other),
                "kubectl --namespace hyperfleet-system logs deployment/hyperfleet-api",
            ),
        }
    }
}

/// The command that grants all that the adapter needs; without claims there are no identities, and no grants.
fn granting(claims: Option<&Claims>) -> String {
    let Some(Claims { issuer, subject, email, .. }) = claims else {
        return "export HYPERFLEET_API_AUTH_TOKEN_PATH=FILE  # that of the API's pull_secret.reader_token_file"
            .to_owned();
    };
    let (claim, name) = email.as_ref().map_or(("sub", subject), |email| ("email", email));
    // A string of JSON is one of YAML, whatever the token says.
    let (issuer, name) = (Value::from(issuer.as_str()), Value::from(name.as_str()));
    format!(
        "helm upgrade hyperfleet charts/pull-secret --namespace hyperfleet-system --values values.yaml  # subject: the claim that the \
         issuer's identity_claim names (default email), here {claim}; add to api.grants of the values: {{issuer: {issuer}, subject: \
         {name}, kinds: [Cluster], verbs: [get, list], reports_as: [{}], reads_pull_secrets: true, all_tenants: true}}",
        names::ADAPTER
    )
}

pub(super) fn words(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Unconnected(_) => "the connection broke".to_owned(),
        Refusal::TimedOut => "no answer in time".to_owned(),
        Refusal::Unauthenticated(words) | Refusal::Denied(words) | Refusal::Other(words) => words.clone(),
        Refusal::Stranger(status) => format!("the server answers {status}, and not as a HyperFleet API does"),
    }
}

/// The difference between this machine's clock and the API's.
fn clock(checks: &mut Checks, probe: &Probe) {
    const CHECK: &str = "clock";
    let Some(date) = probe.date else { return checks.skipped(CHECK, "the API's answer has no date") };
    let (behind, ahead) = (date.duration_since(probe.received), probe.sent.duration_since(date) - SECOND);
    let difference = behind.max(ahead).max(SignedDuration::ZERO);
    if difference <= MAX_CLOCK_DIFFERENCE {
        return checks.ok(CHECK, format!("this machine and the API differ by less than {}", age(MAX_CLOCK_DIFFERENCE)));
    }
    let direction = if behind > ahead { "behind" } else { "ahead of" };
    let message = format!(
        "this machine's clock is {} {direction} the API's: tokens and reports of either side are taken for old or early",
        age(difference)
    );
    checks.failed(CHECK, message, "sudo timedatectl set-ntp true  # on the machine whose clock is wrong");
}

/// The end of the API's certificate.
fn certificate(checks: &mut Checks, probe: &Probe, now: Timestamp) {
    const CHECK: &str = "certificate";
    let Some(end) = probe.certificate_end else { return checks.skipped(CHECK, "the API is reached without TLS") };
    let left = end.duration_since(now);
    let message = format!("it expires at {end}, in {}", age(left));
    if left > CERTIFICATE_EXPIRING {
        checks.ok(CHECK, message);
    } else {
        checks.warning(CHECK, message, REPLACE_CERTIFICATE);
    }
}
