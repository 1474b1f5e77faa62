//! Probes of credentials at registries, protected against requests to internal addresses.
//!
//! The author of a pull secret may choose the hosts that are probed from inside the operator's network. So every
//! address is checked after its name was resolved, and the connection goes to the checked address; redirects and
//! proxies are not followed, every connection uses TLS, and answers are bounded and never quoted.
//!
//! With an image the probe asks for what a node needs: it requests a token for the repository and decodes its `access`
//! (distribution's token specification), or asks for the manifest where a token does not say what it permits.

mod access;
mod address;
mod challenge;
mod finding;
mod gate;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Certificate, Client, Method, Response, StatusCode, Url, redirect};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretSlice};
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::name::{Image, Reference};
use access::Access;
use challenge::Challenge;
use gate::{GatedResolver, NotAllowed};

pub use finding::{Cause, Finding, Place, Verdict};
pub use gate::{Gate, is_denied};

/// Maximum number of concurrent probes.
const AT_A_TIME: usize = 4;
/// Maximum time of a probe, including the time in the queue.
const WHOLE_WAIT: Duration = Duration::from_mins(1);
/// Maximum size of an answer in bytes; tokens have some kilobytes.
const MAX_ANSWER: usize = 64 * 1024;
/// The manifests that a node accepts (OCI image specification, Docker's schema 2).
const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
                         application/vnd.docker.distribution.manifest.list.v2+json, \
                         application/vnd.docker.distribution.manifest.v2+json";

/// Settings of probes.
#[derive(Clone, Debug)]
pub struct ProberSettings {
    /// The hosts and addresses that may be probed.
    pub gate: Gate,
    /// File with certificate authorities to trust beside the system's, in PEM.
    pub ca_file: Option<PathBuf>,
    /// Time limit of the requests of one probe.
    pub timeout: Duration,
    /// The user agent, by which probes are recognized in the registry's log.
    pub user_agent: String,
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
    #[error("the file of certificate authorities for probes cannot be read, or has no certificate in PEM")]
    CaFile,
    /// The system's authorities cannot be used.
    #[error("cannot set up TLS for probing registries: {0}")]
    Tls(#[source] reqwest::Error),
}

/// A probe to start. Holds a credential: its `Debug` does not show it.
#[derive(Clone, Debug)]
pub struct ProbeRequest {
    /// Host and port.
    pub host: String,
    /// `USER:PASSWORD`.
    pub credential: SecretSlice<u8>,
    /// The image to be pulled; without one only the login is tried.
    pub image: Option<Image>,
}

/// An answer of a token endpoint (distribution's token specification).
#[derive(Deserialize)]
struct Token<'a> {
    #[serde(borrow, default)]
    token: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    access_token: Option<Cow<'a, str>>,
}

/// An exchange that gave no conclusive answer.
type Inconclusive = Finding;

// === impl Prober ===

impl Prober {
    /// Sets the client up. No request is sent.
    ///
    /// # Errors
    ///
    /// Authorities that cannot be read or used.
    pub fn new(settings: ProberSettings) -> Result<Self, SetupError> {
        let gate = Arc::new(settings.gate);
        let mut builder = Client::builder()
            .user_agent(settings.user_agent)
            .redirect(redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .https_only(!gate.plain_loopback)
            .http1_only()
            .connect_timeout(settings.timeout)
            // Every probe resolves and checks anew.
            .pool_max_idle_per_host(0)
            .dns_resolver(GatedResolver(Arc::clone(&gate)));
        if let Some(path) = settings.ca_file {
            builder = builder.tls_certs_merge(authorities(&path)?);
        }
        let http = builder.build().map_err(SetupError::Tls)?;
        Ok(Self { http, gate, slots: Semaphore::new(AT_A_TIME), timeout: settings.timeout })
    }

    /// Asks; the answer comes in bounded time, whatever the registry does.
    pub async fn probe(&self, request: &ProbeRequest) -> Finding {
        self.bounded(self.exchange(request)).await
    }

    /// Logs in at the registry itself with user and password, for which it need not ask. It must take them beside tokens, as
    /// Harbor does. No image is asked for.
    pub async fn log_in(&self, request: &ProbeRequest) -> Finding {
        let exchange = async {
            let here = |cause| Finding::inconclusive(Place::Registry, cause);
            let base = self.base(request).map_err(here)?;
            self.log_in_at(&base, basic(request).map_err(here)?).await
        };
        self.bounded(exchange).await
    }

    /// Waits for a free slot, and for the end of an exchange.
    async fn bounded(&self, exchange: impl Future<Output = Result<Finding, Inconclusive>>) -> Finding {
        let asked = async {
            let _slot = self.slots.acquire().await;
            timeout(self.timeout, exchange).await
        };
        match timeout(WHOLE_WAIT, asked).await {
            Ok(Ok(finding)) => finding.unwrap_or_else(|inconclusive| inconclusive),
            Ok(Err(_elapsed)) | Err(_elapsed) => Finding::inconclusive(Place::Registry, Cause::NoAnswer),
        }
    }

    fn base(&self, request: &ProbeRequest) -> Result<Url, Cause> {
        let scheme = self.gate.scheme(&request.host);
        Url::parse(&format!("{scheme}://{}/v2/", request.host)).map_err(|_error| Cause::NoAddress)
    }

    async fn log_in_at(&self, base: &Url, basic: HeaderValue) -> Result<Finding, Inconclusive> {
        let result = self.send(Method::GET, base, Some(basic)).await;
        let result = result.map_err(|cause| Finding::inconclusive(Place::Registry, cause))?;
        // The registry's own answer at /v2/ is a JSON object, mostly an empty one.
        let is_proof = |body: &[u8]| serde_json::from_slice::<serde_json::Map<_, _>>(body).is_ok();
        judge(result, Place::Registry, is_proof).await
    }

    async fn exchange(&self, request: &ProbeRequest) -> Result<Finding, Inconclusive> {
        let here = |cause| Finding::inconclusive(Place::Registry, cause);
        let base = self.base(request).map_err(here)?;
        let result = self.send(Method::GET, &base, None).await.map_err(here)?;
        let challenges = match result.status() {
            StatusCode::UNAUTHORIZED => challenges_of(&result),
            StatusCode::OK => return Err(here(Cause::IsOpen)),
            status => return Err(here(odd(status))),
        };
        let basic = basic(request).map_err(here)?;
        match challenge::best(challenges) {
            Some(Challenge::Bearer { realm, service, scope }) => {
                let mut url = Url::parse(&realm).map_err(|_error| here(Cause::BadRealm))?;
                let scope = match &request.image {
                    Some(image) => Some(format!("repository:{}:pull", image.repository)),
                    None => scope,
                };
                for (name, value) in [("service", service), ("scope", scope)] {
                    if let Some(value) = value {
                        url.query_pairs_mut().append_pair(name, &value);
                    }
                }
                let at_endpoint = |cause| Finding::inconclusive(Place::TokenEndpoint, cause);
                let result = self.send(Method::GET, &url, Some(basic)).await.map_err(at_endpoint)?;
                self.judge_token(result, &base, request.image.as_ref()).await
            }
            Some(Challenge::Basic) => {
                let login = self.log_in_at(&base, basic.clone()).await;
                match (&request.image, &login) {
                    (Some(image), Ok(finding)) if finding.verdict == Verdict::Accepted => {
                        self.manifest(&base, image, basic).await
                    }
                    // Nothing has shown yet that this is a registry: a manifest does.
                    (Some(image), Err(inconclusive)) if inconclusive.cause == Cause::NoProof => {
                        let answer = self.head(&base, image, basic).await?;
                        if is_manifest(&answer) { judge_manifest(&answer) } else { login }
                    }
                    _ => login,
                }
            }
            None => Err(here(Cause::UnknownChallenge)),
        }
    }

    /// Judges the answer of a token endpoint, and the token in it where an image is asked for.
    async fn judge_token(&self, result: Response, base: &Url, image: Option<&Image>) -> Result<Finding, Inconclusive> {
        let mut found = None;
        let accepted = judge(result, Place::TokenEndpoint, |body| {
            found = token_in(body);
            found.is_some()
        })
        .await?;
        let (Some(image), Some(token)) = (image, found) else { return Ok(accepted) };
        let permits = match access::of(&token, &image.repository) {
            Access::Pulls => (Verdict::Pulls, Cause::Permits),
            Access::Nothing => (Verdict::NotPermitted, Cause::PermitsNothing),
            Access::Unknown => {
                let bearer = header("Bearer", &token)
                    .map_err(|_cause| Finding::inconclusive(Place::TokenEndpoint, Cause::NoProof))?;
                return self.manifest(base, image, bearer).await;
            }
        };
        Ok(Finding { verdict: permits.0, place: Place::TokenEndpoint, cause: permits.1 })
    }

    /// Asks for the manifest of an image: a login that is accepted may still not be permitted to pull.
    async fn manifest(&self, base: &Url, image: &Image, authorization: HeaderValue) -> Result<Finding, Inconclusive> {
        judge_manifest(&self.head(base, image, authorization).await?)
    }

    async fn head(&self, base: &Url, image: &Image, authorization: HeaderValue) -> Result<Response, Inconclusive> {
        let at = |cause| Finding::inconclusive(Place::Manifest, cause);
        let Some(reference) = image.reference.as_ref().map(Reference::as_str) else {
            return Err(Finding::inconclusive(Place::Registry, Cause::SaysNothing));
        };
        let path = format!("{}/manifests/{reference}", image.repository);
        let url = base.join(&path).map_err(|_error| at(Cause::NoAddress))?;
        self.send(Method::HEAD, &url, Some(authorization)).await.map_err(at)
    }

    async fn send(&self, method: Method, url: &Url, authorization: Option<HeaderValue>) -> Result<Response, Cause> {
        self.gate.admits(url)?;
        let mut request = self.http.request(method.clone(), url.clone());
        if method == Method::HEAD {
            request = request.header(ACCEPT, MANIFESTS);
        }
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        // The library's texts are not forwarded: they quote the address, and the registry chooses the realm's.
        request.send().await.map_err(|error| why(&error))
    }
}

/// Judges the answer to a question for a manifest.
fn judge_manifest(answer: &Response) -> Result<Finding, Inconclusive> {
    let at = |cause| Finding::inconclusive(Place::Manifest, cause);
    let found = |verdict, cause| Ok(Finding { verdict, place: Place::Manifest, cause });
    match answer.status() {
        StatusCode::OK => found(Verdict::Pulls, Cause::Permits),
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            found(Verdict::NotPermitted, Cause::Status(status.as_u16()))
        }
        StatusCode::NOT_FOUND => Err(at(Cause::NoManifest)),
        status => Err(at(odd(status))),
    }
}

/// True if an answer is no success, or describes a manifest.
fn is_manifest(answer: &Response) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_one = kind.is_some_and(|kind| MANIFESTS.split(", ").any(|manifest| kind.starts_with(manifest)));
    answer.status() != StatusCode::OK || is_one || answer.headers().contains_key("docker-content-digest")
}

/// Judges an answer to a login. A body that is not proved to be one is inconclusive.
async fn judge(result: Response, place: Place, is_proof: impl FnOnce(&[u8]) -> bool) -> Result<Finding, Inconclusive> {
    match result.status() {
        StatusCode::OK => {
            let body = read(result).await.map_err(|cause| Finding::inconclusive(place, cause))?;
            if is_proof(&body) {
                Ok(Finding { verdict: Verdict::Accepted, place: Place::Registry, cause: Cause::Takes })
            } else {
                Err(Finding::inconclusive(place, Cause::NoProof))
            }
        }
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            Ok(Finding { verdict: Verdict::Refused, place, cause: Cause::Status(status.as_u16()) })
        }
        status => Err(Finding::inconclusive(place, odd(status))),
    }
}

/// Returns the token in an answer, unless there is none or it is empty.
fn token_in(body: &[u8]) -> Option<Zeroizing<String>> {
    let Token { token, access_token } = serde_json::from_slice(body).ok()?;
    let found = [token, access_token].into_iter().flatten().find(|text| !text.is_empty());
    found.map(|text| Zeroizing::new(text.into_owned()))
}

fn odd(status: StatusCode) -> Cause {
    if status.is_redirection() { Cause::Redirect } else { Cause::Status(status.as_u16()) }
}

/// A token is a credential, too.
async fn read(mut result: Response) -> Result<Zeroizing<Vec<u8>>, Cause> {
    // As large as it may become from the beginning: growing would leave copies.
    let mut body = Zeroizing::new(Vec::with_capacity(MAX_ANSWER));
    while let Some(chunk) = result.chunk().await.map_err(|error| why(&error))? {
        if body.len().saturating_add(chunk.len()) > MAX_ANSWER {
            return Err(Cause::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn challenges_of(result: &Response) -> Vec<Challenge> {
    let values = result.headers().get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(challenge::parse).collect()
}

fn basic(request: &ProbeRequest) -> Result<HeaderValue, Cause> {
    header("Basic", &STANDARD.encode(request.credential.expose_secret()))
}

fn header(scheme: &str, credential: &str) -> Result<HeaderValue, Cause> {
    let text = Zeroizing::new(format!("{scheme} {credential}"));
    let mut value = HeaderValue::from_str(&text).map_err(|_error| Cause::BadCredential)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The reason for which no answer came, without the library's message.
fn why(error: &reqwest::Error) -> Cause {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(one) = cause {
        if one.is::<NotAllowed>() {
            return Cause::NotAllowed;
        }
        cause = one.source();
    }
    match () {
        () if error.is_timeout() => Cause::NoAnswer,
        () if error.is_connect() => Cause::Unreachable,
        () => Cause::Broken,
    }
}

/// The certificates in a file, of which there must be one at least.
fn authorities(path: &Path) -> Result<Vec<Certificate>, SetupError> {
    let pem = std::fs::read(path).map_err(|_error| SetupError::CaFile)?;
    let found = Certificate::from_pem_bundle(&pem).unwrap_or_default();
    if found.is_empty() { Err(SetupError::CaFile) } else { Ok(found) }
}
