//! Checks settings that are valid each for itself but contradict each other.

use daemon::host::is_loopback;

use super::{Dialect, Server, Settings};

/// Every contradiction between settings.
pub(super) fn faults(settings: &Settings) -> Vec<String> {
    let rules = server(&settings.server).into_iter().chain(rest(settings));
    rules.filter(|(holds, _)| !holds).map(|(_, fault)| fault.to_owned()).collect()
}

fn server(server: &Server) -> Vec<(bool, &'static str)> {
    let Server { host, proxies, tls, jwt, tenant, .. } = server;
    let is_header = |name: &str| http::HeaderName::try_from(name).is_ok();
    vec![
        (
            jwt.enabled || is_loopback(host),
            "server.host: without authentication only loopback is served; set server.jwt.enabled",
        ),
        (
            !proxies.is_empty() || jwt.configs.iter().all(|issuer| issuer.identity_header.is_none()),
            "server.jwt.configs: identity_header is believed only from a proxy; name the proxies in server.proxies",
        ),
        (jwt.enabled || jwt.configs.is_empty(), "server.jwt.configs: has no effect without server.jwt.enabled"),
        (
            tenant.enabled || tenant.dimensions.is_empty(),
            "server.tenant.dimensions: has no effect without server.tenant.enabled",
        ),
        (
            tenant.enabled || tenant.system_header.is_none(),
            "server.tenant.system_header: has no effect without server.tenant.enabled",
        ),
        (
            !tenant.enabled || !tenant.dimensions.is_empty(),
            "server.tenant.enabled: names no dimension in server.tenant.dimensions",
        ),
        (
            !tenant.enabled || !proxies.is_empty(),
            "server.tenant.enabled: tenancy headers are believed only from a proxy; name the proxies in server.proxies",
        ),
        (
            tenant.dimensions.iter().all(|dimension| is_header(&dimension.header)),
            "server.tenant.dimensions: a header is not a valid header name",
        ),
        (
            tenant.system_header.as_deref().is_none_or(is_header),
            "server.tenant.system_header: must be a valid header name",
        ),
        (
            tls.enabled == tls.cert_file.is_some() && tls.enabled == tls.key_file.is_some(),
            "server.tls: enabled, cert_file and key_file must be set together",
        ),
    ]
}

fn rest(settings: &Settings) -> Vec<(bool, &'static str)> {
    let Settings { server, authorization, database, pull_secret, .. } = settings;
    vec![
        (
            database.password.is_none() || database.password_file.is_none(),
            "database.password: give either it or database.password_file",
        ),
        (
            database.dialect == Dialect::Sqlite || is_loopback(&database.host) || is_decided(&database.ssl.mode),
            "database.ssl.mode: whether the connection is encrypted would be up to the network; set verify-full, or another \
             mode than allow and prefer",
        ),
        (
            authorization.grants.is_empty() || server.jwt.enabled,
            "authorization.grants: has no effect without server.jwt.enabled",
        ),
        (
            !authorization.grants.is_empty() || !server.jwt.enabled || server.jwt.configs.is_empty(),
            "authorization.grants: is empty, so that every call is denied; give each identity what it needs",
        ),
        (
            pull_secret.reader_token_file.is_none() || !server.jwt.enabled,
            "pull_secret.reader_token_file: is for servers without authentication; with server.jwt.enabled give the \
             reader's identity reads_pull_secrets in authorization.grants",
        ),
    ]
}

/// Checks that a URL of PostgreSQL says how the connection to another machine is encrypted.
pub(super) fn url_fault(url: &str) -> Option<&'static str> {
    let (rest, parameters) = url.split_once('?').unwrap_or((url, ""));
    let authority = rest.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    let address = authority.rsplit('@').next().unwrap_or_default();
    let host = match address.strip_prefix('[') {
        Some(ip) => ip.split(']').next().unwrap_or_default(),
        None => address.split(':').next().unwrap_or_default(),
    };
    let mode = form_urlencoded::parse(parameters.as_bytes()).find(|(name, _)| name == "sslmode" || name == "ssl-mode");
    let is_safe = host.is_empty() || is_loopback(host) || mode.is_some_and(|(_, mode)| is_decided(&mode));
    (!is_safe).then_some(
        "DATABASE_URL: does not say how the connection is encrypted: append ?sslmode=verify-full, or another mode than allow \
         and prefer",
    )
}

/// False for the modes with which the network decides whether a connection is encrypted.
fn is_decided(mode: &str) -> bool {
    !matches!(mode, "allow" | "prefer")
}
