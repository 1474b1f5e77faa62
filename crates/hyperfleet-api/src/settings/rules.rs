//! What settings must be beyond their form, each with what is said where it is not so.

use std::net::IpAddr;
use std::time::Duration;

use daemon::log;

use super::{Server, Settings};

/// Everything that is wrong with settings that are well-formed each for itself.
pub(super) fn faults(settings: &Settings) -> Vec<String> {
    let rules = server(&settings.server).into_iter().chain(rest(settings));
    rules.filter(|(holds, _)| !holds).map(|(_, fault)| fault.to_owned()).collect()
}

fn server(server: &Server) -> Vec<(bool, &'static str)> {
    let Server { host, insecure, max_body, tls, jwt, tenant, .. } = server;
    let is_header = |name: &str| http::HeaderName::try_from(name).is_ok();
    vec![
        (
            jwt.enabled || *insecure || is_loopback(host),
            "server.host: without authentication only loopback is served; set server.jwt.enabled, or server.insecure to \
             allow everybody everything",
        ),
        (!insecure || !jwt.enabled, "server.insecure: has no effect while server.jwt.enabled"),
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
            tenant.dimensions.iter().all(|dimension| is_header(&dimension.header)),
            "server.tenant.dimensions: a header is not the name of one",
        ),
        (
            tenant.system_header.as_deref().is_none_or(is_header),
            "server.tenant.system_header: is not the name of a header",
        ),
        (
            tls.enabled == tls.cert_file.is_some() && tls.enabled == tls.key_file.is_some(),
            "server.tls: enabled, cert_file and key_file belong together",
        ),
        ((1..=16 << 20).contains(max_body), "server.max_body: must be 1 to 16777216"),
    ]
}

fn rest(settings: &Settings) -> Vec<(bool, &'static str)> {
    let Settings { server, database, changes, pull_secret, logging, health, .. } = settings;
    vec![
        (database.pool.max_connections > 0, "database.pool.max_connections: must be at least 1"),
        (
            database.password.is_none() || database.password_file.is_none(),
            "database.password: give either it or database.password_file",
        ),
        (changes.max_events > 0, "changes.max_events: must be at least 1"),
        (
            (Duration::from_millis(100)..=Duration::from_secs(30)).contains(&changes.bookmark_interval),
            "changes.bookmark_interval: must be 100ms to 30s",
        ),
        (
            (Duration::from_secs(1)..=Duration::from_mins(2)).contains(&health.shutdown_timeout),
            "health.shutdown_timeout: must be 1s to 120s",
        ),
        (
            pull_secret.readers.is_empty() || server.jwt.enabled,
            "pull_secret.readers: has no effect without server.jwt.enabled",
        ),
        (log::level(&logging.level).is_ok(), "logging.level: must be one of error, warn, info, debug"),
        (logging.format.parse::<log::Format>().is_ok(), "logging.format: must be one of json, text"),
    ]
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}
