//! An API server with one identity, and a timeout for each call.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use daemon::calls::{self, CallLog};
use http::HeaderValue;
use http::header::USER_AGENT;
use kube::api::PostParams;
use kube::client::ClientBuilder;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use secrecy::ExposeSecret;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

use crate::FIELD_MANAGER;
use crate::error::{ErrorKind, KubernetesError, classify, status_code};
use crate::transport::TransportLayer;
use crate::verb::Verb;

/// The API server to connect to, and the options of its client.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A kubeconfig; without one the Pod's own service account, and outside a Pod the user's kubeconfig.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; its current one if not given.
    pub context: Option<String>,
    /// Maximum time of one call.
    pub call_timeout: Duration,
    /// Name of the program in audit logs: the field manager of what is written, and the user agent.
    pub program: &'static str,
    /// Setting by which users of the program choose the context, such as `MANAGEMENT_CONTEXT`, if there is one.
    pub context_setting: Option<&'static str>,
    /// True if the kubeconfig may name a helper program (`exec`), which is run for a token.
    pub allows_exec: bool,
    /// Record of each call, for a program that runs once.
    pub calls: Option<CallLog>,
}

/// An API server with an identity.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    server: String,
    call_timeout: Duration,
    program: &'static str,
    calls: Option<CallLog>,
    client_certificate: Option<Arc<str>>,
}

// === impl Settings ===

impl Default for Settings {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            context: None,
            call_timeout: Duration::from_secs(10),
            program: FIELD_MANAGER,
            context_setting: None,
            allows_exec: true,
            calls: None,
        }
    }
}

// === impl Cluster ===

impl Cluster {
    /// Sets the client up. No request is sent.
    pub async fn connect(settings: &Settings) -> Result<Self, KubernetesError> {
        Self::prepare(settings).await.map_err(|detail| {
            let object = match &settings.kubeconfig {
                Some(file) => format!("the kubeconfig {}", file.display()),
                None => "the API server".to_owned(),
            };
            KubernetesError { detail: Some(detail), ..KubernetesError::new(Verb::Connect, object, ErrorKind::Unusable) }
        })
    }

    async fn prepare(settings: &Settings) -> Result<Self, String> {
        let detail = |error: &KubeconfigError| detail(error, settings.context_setting);
        let options = KubeConfigOptions { context: settings.context.clone(), ..KubeConfigOptions::default() };
        let users_file = || accepted(Kubeconfig::read().map_err(|error| detail(&error))?, settings);
        let mut config = match &settings.kubeconfig {
            Some(path) => {
                let file = accepted(Kubeconfig::read_from(path).map_err(|error| detail(&error))?, settings)?;
                Config::from_custom_kubeconfig(file, &options).await.map_err(|error| detail(&error))?
            }
            None if settings.context.is_some() => {
                Config::from_custom_kubeconfig(users_file()?, &options).await.map_err(|error| detail(&error))?
            }
            None => match Config::incluster() {
                Ok(config) => config,
                Err(_not_in_a_pod) => {
                    Config::from_custom_kubeconfig(users_file()?, &options).await.map_err(|error| detail(&error))?
                }
            },
        };
        // The library would silently retry 15 times and hold the run for minutes.
        config.default_retry = false;
        // A proxy could read requests in clear text; the library takes proxies for TLS from the environment alone.
        if config.cluster_url.scheme_str() == Some("http") {
            config.proxy_url = None;
            // Without TLS the machine's certificates, of which there may be hundreds, need not be read.
            config.root_cert = Some(Vec::new());
        }
        let agent = HeaderValue::from_str(&format!("{}/{}", settings.program, env!("CARGO_PKG_VERSION")));
        config.headers.extend(agent.ok().map(|agent| (USER_AGENT, agent)));
        // The address may contain credentials.
        let server = config.cluster_url.to_string().rsplit('@').next().unwrap_or_default().to_owned();
        // The library panics on a token that is no valid header value.
        let token = config.auth_info.token.as_ref().map(ExposeSecret::expose_secret);
        if token.is_some_and(|token| HeaderValue::from_str(token).is_err()) {
            return Err("its token cannot be used".to_owned());
        }
        let client_certificate = client_certificate(&config.auth_info);
        // A helper program that the kubeconfig names runs here, and blocks. Nothing else has to be waited for.
        let has_helper = config.auth_info.exec.is_some() || config.auth_info.auth_provider.is_some();
        let time_limit = if has_helper { settings.call_timeout } else { Duration::MAX };
        let transport = TransportLayer::new(settings.call_timeout);
        let build = move || Ok::<_, kube::Error>(ClientBuilder::try_from(config)?.with_layer(&transport).build());
        let preparing = timeout(time_limit, spawn_blocking(build));
        let client = preparing.await.map_err(|_elapsed| "its helper program gives no answer in time".to_owned())?;
        let unusable = "its credentials or certificates cannot be used";
        let client = client.map_err(|_panic| unusable.to_owned())?.map_err(|_error| unusable.to_owned())?;
        let (call_timeout, program, calls) = (settings.call_timeout, settings.program, settings.calls.clone());
        Ok(Self { client, server, call_timeout, program, calls, client_certificate })
    }

    /// The server's address, for people.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The certificate, PEM, by which the program identifies itself, where the kubeconfig has one.
    pub fn client_certificate(&self) -> Option<&str> {
        self.client_certificate.as_deref()
    }

    /// Maximum time of one call.
    pub(crate) fn call_timeout(&self) -> Duration {
        self.call_timeout
    }

    /// The field manager of what is written.
    pub(crate) fn program(&self) -> &'static str {
        self.program
    }

    /// The parameters of a creation, or of a replacement, by this program.
    pub(crate) fn creation(&self) -> PostParams {
        PostParams { field_manager: Some(self.program.to_owned()), ..PostParams::default() }
    }

    /// The client library's client.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Waits for the answer, at most for the call timeout.
    pub(crate) async fn call<T>(
        &self,
        verb: Verb,
        object: &str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, KubernetesError> {
        let start = Instant::now();
        let answered = timeout(self.call_timeout, request).await;
        if let Some(calls) = &self.calls {
            let status_code = match &answered {
                Ok(Ok(_)) if verb == Verb::Create => 201,
                Ok(Ok(_)) => 200,
                Ok(Err(error)) => status_code(error),
                Err(_elapsed) => calls::TIMED_OUT,
            };
            let kind = object.split(' ').next().unwrap_or_default();
            calls.record(format!("{verb}_{kind}"), status_code, start.elapsed());
        }
        match answered {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(classify(verb, object, &error)),
            Err(_elapsed) => Err(KubernetesError::new(verb, object, ErrorKind::TimedOut)),
        }
    }
}

/// Refuses a kubeconfig that names a helper program, if those are not allowed; whichever way the file was found.
fn accepted(file: Kubeconfig, settings: &Settings) -> Result<Kubeconfig, String> {
    let mut users = file.auth_infos.iter().filter_map(|user| user.auth_info.as_ref());
    if !settings.allows_exec && users.any(|user| user.exec.is_some()) {
        return Err("it names a helper program (exec), which is not run here; use a token or a certificate".to_owned());
    }
    Ok(file)
}

/// The client's certificate, without what else is in its place, such as the key. One that cannot be read is left out, as the
/// client cannot be built with it.
fn client_certificate(auth: &AuthInfo) -> Option<Arc<str>> {
    let pem = match (&auth.client_certificate_data, &auth.client_certificate) {
        (Some(data), _) => BASE64_STANDARD.decode(data).ok()?,
        (None, Some(file)) => std::fs::read(file).ok()?,
        (None, None) => return None,
    };
    let [begin, end] = ["-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"];
    let (_before, rest) = std::str::from_utf8(&pem).ok()?.split_once(begin)?;
    let (body, _after) = rest.split_once(end)?;
    Some(format!("{begin}{body}{end}\n").into())
}

/// The problem of a kubeconfig. The library's messages are not forwarded: they quote the file.
fn detail(error: &KubeconfigError, context_setting: Option<&str>) -> String {
    let detail = match error {
        KubeconfigError::ReadConfig(..) | KubeconfigError::FindPath => "the file cannot be read",
        KubeconfigError::Parse(_) => "the file cannot be parsed",
        KubeconfigError::CurrentContextNotSet => {
            let choose = context_setting
                .map_or("choose one with kubectl config use-context".to_owned(), |setting| format!("set {setting}"));
            return format!("it has no current context: {choose}");
        }
        KubeconfigError::LoadContext(_) => "it has no such context",
        KubeconfigError::LoadClusterOfContext(_) => "the context names a cluster that it does not have",
        KubeconfigError::MissingClusterUrl | KubeconfigError::ParseClusterUrl(_) => "the cluster has no usable address",
        KubeconfigError::LoadCertificateAuthority(_) | KubeconfigError::ParseCertificates(_) => {
            "the certificate authority cannot be used"
        }
        KubeconfigError::LoadClientCertificate(_) | KubeconfigError::LoadClientKey(_) => {
            "the client certificate or key cannot be used"
        }
        _ => "it cannot be used",
    };
    detail.to_owned()
}

impl fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Cluster").field("server", &self.server).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_certificate_comes_without_its_key() {
        let certificate = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
        let pem = format!("-----BEGIN PRIVATE KEY-----\nc4n4ry\n-----END PRIVATE KEY-----\n{certificate}{certificate}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("both.pem");
        daemon::file::replace(&file, pem.as_bytes()).unwrap();
        let by_file = AuthInfo { client_certificate: file.to_str().map(str::to_owned), ..AuthInfo::default() };
        let by_data = AuthInfo { client_certificate_data: Some(BASE64_STANDARD.encode(pem)), ..AuthInfo::default() };
        for auth in [by_file, by_data] {
            assert_eq!(client_certificate(&auth).as_deref(), Some(certificate));
        }
        let unreadable = AuthInfo { client_certificate_data: Some("c4n4ry".to_owned()), ..AuthInfo::default() };
        assert_eq!((client_certificate(&unreadable), client_certificate(&AuthInfo::default())), (None, None));
    }
}
