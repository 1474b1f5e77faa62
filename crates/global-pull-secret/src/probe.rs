//! Probes of credentials at registries, protected against requests to internal addresses.
//!
//! The author of an additional Secret chooses the hosts that are probed from inside the operator's network. So every
//! address is checked after its name was resolved, and the connection goes to the checked address; redirects and
//! proxies are not followed, every connection uses TLS, and answers are bounded and never quoted.

mod address;
mod challenge;

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Certificate, Client, Response, StatusCode, Url, redirect};
use secrecy::ExposeSecret as _;
use secrecy::zeroize::Zeroizing;
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::finding::{Finding, ProbeRequest, Verdict, is_denied};
use challenge::Challenge;

/// Maximum number of concurrent probes.
const AT_A_TIME: usize = 4;
/// Maximum time of a probe, including the time in the queue.
const WHOLE_WAIT: Duration = Duration::from_mins(1);
/// Maximum size of an answer in bytes; tokens have some kilobytes.
const MAX_ANSWER: usize = 64 * 1024;

/// The hosts and addresses that may be probed.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    /// Hosts, with all subdomains, that are never probed.
    pub deny: Vec<String>,
    /// True if loopback and private addresses may be probed; link-local and metadata addresses never are.
    pub allow_private: bool,
}

/// Probes registries.
#[derive(Debug)]
pub struct Prober {
    http: Client,
    gate: Arc<Gate>,
    slots: Semaphore,
    timeout: Duration,
}

/// An error that prevents all probes.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The file of authorities cannot be read or has none.
    #[error("probe.ca_file: cannot be read, or has no certificate in PEM")]
    CaFile,
    /// The system's authorities cannot be used.
    #[error("cannot set up TLS for probing registries: {0}")]
    Tls(#[source] reqwest::Error),
}

/// The error for an address that may not be probed.
#[derive(Debug, thiserror::Error)]
#[error("the address is not allowed")]
struct NotAllowed;

/// An answer of a token endpoint (distribution's token specification).
#[derive(Deserialize)]
struct Token<'a> {
    #[serde(borrow, default)]
    token: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    access_token: Option<Cow<'a, str>>,
}

const NOT_ALLOWED: &str = "has a private, local or reserved address (--probe-allow-private)";
const REDIRECT: &str = "answers with a redirect, which is not followed";

// === impl Gate ===

impl Gate {
    /// Checks the URL before its name is resolved.
    fn admits(&self, url: &Url) -> Result<(), &'static str> {
        let Some(host) = url.host_str().filter(|host| !host.is_empty()) else { return Err("names no host") };
        if url.scheme() != "https" {
            return Err("is not https");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("has a user in it");
        }
        if is_denied(host, &self.deny) {
            return Err("is on the deny list (--probe-deny)");
        }
        // The client takes an address as it is, without its resolver.
        let literal = host.trim_matches(['[', ']']).parse::<IpAddr>();
        if literal.is_ok_and(|address| !address::is_allowed(address, self.allow_private)) {
            return Err(NOT_ALLOWED);
        }
        Ok(())
    }

    async fn addresses(self: Arc<Self>, name: String) -> Result<Addrs, Box<dyn std::error::Error + Send + Sync>> {
        let found: Vec<SocketAddr> = tokio::net::lookup_host((name, 0)).await?.collect();
        // One address that is not allowed rejects the name: a mix of both is an attack.
        if found.is_empty() || found.iter().any(|one| !address::is_allowed(one.ip(), self.allow_private)) {
            return Err(Box::new(NotAllowed));
        }
        Ok(Box::new(found.into_iter()))
    }
}

/// The resolver of a gate: the client connects to its results, so only to checked addresses.
struct GatedResolver(Arc<Gate>);

impl Resolve for GatedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(Arc::clone(&self.0).addresses(name.as_str().to_owned()))
    }
}

// === impl Prober ===

impl Prober {
    /// Sets the client up. No request is sent.
    pub fn new(gate: Gate, ca_file: Option<&Path>, timeout: Duration) -> Result<Self, SetupError> {
        let gate = Arc::new(gate);
        let mut builder = Client::builder()
            .user_agent(concat!("global-pull-secret/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .https_only(true)
            .http1_only()
            .connect_timeout(timeout)
            // Every probe resolves and checks anew.
            .pool_max_idle_per_host(0)
            .dns_resolver(GatedResolver(Arc::clone(&gate)));
        if let Some(path) = ca_file {
            builder = builder.tls_certs_merge(authorities(path)?);
        }
        let http = builder.build().map_err(SetupError::Tls)?;
        Ok(Self { http, gate, slots: Semaphore::new(AT_A_TIME), timeout })
    }

    /// Asks; the answer comes in bounded time, whatever the registry does.
    pub async fn probe(&self, request: &ProbeRequest) -> Finding {
        let asked = async {
            let _turn = self.slots.acquire().await;
            timeout(self.timeout, self.exchange(request)).await
        };
        match timeout(WHOLE_WAIT, asked).await {
            Ok(Ok(Ok(finding))) => finding,
            Ok(Ok(Err(message))) => Finding::new(Verdict::Unreachable, message),
            Ok(Err(_elapsed)) | Err(_elapsed) => Finding::new(Verdict::Unreachable, "gives no answer in time"),
        }
    }

    async fn exchange(&self, request: &ProbeRequest) -> Result<Finding, String> {
        let url = Url::parse(&format!("https://{}/v2/", request.host)).map_err(|_error| "has no usable address")?;
        let result = self.get(&url, None).await?;
        let challenges = match result.status() {
            StatusCode::UNAUTHORIZED => challenges_of(&result),
            StatusCode::OK => {
                return Err("demands no credential at /v2/, so the credential cannot be verified".to_owned());
            }
            status => return Err(odd(status)),
        };
        let basic = basic(request)?;
        match challenge::best(challenges) {
            Some(Challenge::Bearer { realm, service, scope }) => {
                let mut url = Url::parse(&realm).map_err(|_error| "names a token endpoint that is no URL")?;
                for (name, value) in [("service", service), ("scope", scope)] {
                    if let Some(value) = value {
                        url.query_pairs_mut().append_pair(name, &value);
                    }
                }
                let result =
                    self.get(&url, Some(basic)).await.map_err(|message| format!("its token endpoint {message}"))?;
                judge(result, "its token endpoint ", |body| {
                    let token: Option<Token<'_>> = serde_json::from_slice(body).ok();
                    let is_there = |text: Option<Cow<'_, str>>| text.is_some_and(|text| !text.is_empty());
                    token.is_some_and(|Token { token, access_token }| is_there(token) || is_there(access_token))
                })
                .await
            }
            // The registry's own answer at /v2/ is a JSON object, mostly an empty one.
            Some(Challenge::Basic) => {
                let result = self.get(&url, Some(basic)).await?;
                judge(result, "", |body| serde_json::from_slice::<serde_json::Map<_, _>>(body).is_ok()).await
            }
            None => Err("asks for no kind of credential that is known here".to_owned()),
        }
    }

    async fn get(&self, url: &Url, authorization: Option<HeaderValue>) -> Result<Response, String> {
        self.gate.admits(url)?;
        let mut request = self.http.get(url.clone());
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        // The library's texts are not forwarded: they quote the address, and the registry chooses the realm's.
        request.send().await.map_err(|error| why(&error).to_owned())
    }
}

async fn judge(result: Response, who: &str, is_proof: impl Fn(&[u8]) -> bool) -> Result<Finding, String> {
    match result.status() {
        StatusCode::OK => {
            let body = read(result).await.map_err(|message| format!("{who}{message}"))?;
            if is_proof(&body) {
                Ok(Finding::new(Verdict::Accepted, "takes it"))
            } else {
                Err(format!("{who}answers 200 without what proves it"))
            }
        }
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            Ok(Finding::new(Verdict::Refused, format!("{who}answers HTTP status {}", status.as_u16())))
        }
        status => Err(format!("{who}{}", odd(status))),
    }
}

fn odd(status: StatusCode) -> String {
    if status.is_redirection() { REDIRECT.to_owned() } else { format!("answers HTTP status {}", status.as_u16()) }
}

/// A token is a credential, too.
async fn read(mut result: Response) -> Result<Zeroizing<Vec<u8>>, &'static str> {
    // As large as it may become from the beginning: growing would leave copies.
    let mut body = Zeroizing::new(Vec::with_capacity(MAX_ANSWER));
    while let Some(chunk) = result.chunk().await.map_err(|error| why(&error))? {
        if body.len().saturating_add(chunk.len()) > MAX_ANSWER {
            return Err("answers more than can be meant");
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn challenges_of(result: &Response) -> Vec<Challenge> {
    let values = result.headers().get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(challenge::parse).collect()
}

fn basic(request: &ProbeRequest) -> Result<HeaderValue, String> {
    let encoded = Zeroizing::new(STANDARD.encode(request.credential.expose_secret()));
    let text = Zeroizing::new(format!("Basic {}", *encoded));
    let mut value = HeaderValue::from_str(&text).map_err(|_error| "cannot be given this credential")?;
    value.set_sensitive(true);
    Ok(value)
}

/// The reason for which no answer came, without the library's message.
fn why(error: &reqwest::Error) -> &'static str {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(one) = cause {
        if one.is::<NotAllowed>() {
            return NOT_ALLOWED;
        }
        cause = one.source();
    }
    match () {
        () if error.is_timeout() => "gives no answer in time",
        () if error.is_connect() => "cannot be reached by TLS: no such host, no connection, or no trusted certificate",
        () => "breaks the connection off",
    }
}

/// The certificates in a file, of which there must be one at least.
fn authorities(path: &Path) -> Result<Vec<Certificate>, SetupError> {
    let pem = std::fs::read(path).map_err(|_error| SetupError::CaFile)?;
    let found = Certificate::from_pem_bundle(&pem).unwrap_or_default();
    if found.is_empty() { Err(SetupError::CaFile) } else { Ok(found) }
}
